"""Actions by themselves: what they make of a value, and what they note."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman_spec import Loss, TranslationError, Untranslatable, actions, frames, mcp, schemas, translate
from dragoman_spec.losses import At, Losses, settle, spell
from tests.support.effort import effort

PLACE: At = ((None, "result"), "values")


def noted(losses: Losses) -> list[Loss]:
    return list(spell(note for note in losses.notes if note[1] != "#"))


def test_truncated_loss_is_what_was_cut_off() -> None:
    losses = Losses()
    assert actions.truncate(["a", "b", "c"], PLACE, losses, most=1) == ["a"]
    assert noted(losses) == [Loss("/result/values", "truncated", ["b", "c"])]


@pytest.mark.parametrize("value", [["a"], "abc"])
def test_nothing_is_cut_off_what_is_short_or_no_list(value: Any) -> None:
    losses = Losses()
    assert actions.truncate(value, PLACE, losses, most=1) is value
    assert noted(losses) == []


@pytest.mark.parametrize(
    ("value", "lost"), [(0, 1), (False, 1), (0.0, 1), ("a", 1), ("", 0), ([], 0), ({}, 0), (None, 0)]
)
def test_what_is_dropped_is_a_loss_unless_it_is_empty(value: Any, lost: int) -> None:
    for drop in (
        actions.lose,
        actions.lose_cosmetic,
        lambda y, key, at, out: actions.lose_object(y, key, ("title",), at, out),
        lambda y, key, at, out: actions.lose_unless(y, key, "same", at, out),
    ):
        losses, mine = Losses(), {"a": value}
        drop(mine, "a", None, losses)
        assert (mine, len(noted(losses))) == ({}, lost)


@pytest.mark.parametrize(("value", "lost"), [({}, 1), (None, 0)])
def test_an_empty_object_that_declares_something_is_a_loss(value: Any, lost: int) -> None:
    losses = Losses()
    actions.lose_declared({"a": value}, "a", None, losses)
    assert len(noted(losses)) == lost


@pytest.mark.parametrize(("value", "lost"), [(None, 0), (1, 1)])
def test_a_null_that_goes_is_no_loss(value: Any, lost: int) -> None:
    losses = Losses()
    assert actions.drop_invalid(value, PLACE, losses, check=lambda v: False) is actions.GONE
    assert len(noted(losses)) == lost


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a": 1, "c": 3}, {"b": 1, "c": 3}),
        ({"a": 1, "b": 2}, {"a": 1, "b": 2}),
        ({"c": 3}, {"c": 3}),
    ],
)
def test_renamed_member_gives_way_to_one_that_has_its_name(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert actions.rename(given, given, None, Losses(), {"a": "b"}) == expected


def result(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def test_result_that_has_what_tells_it_apart_is_not_refused() -> None:
    given = result(task={}, content=[])
    assert frames.refuse_result(given, None, Losses(), reason="No.", has="task", lacks="content") is given
    with pytest.raises(Untranslatable, match="No"):
        frames.refuse_result(result(task={}), None, Losses(), reason="No.", has="task", lacks="content")


def test_field_is_supplied_where_there_is_none() -> None:
    losses = Losses()
    assert frames.supply_result_field(result(), None, losses, field="a", value=[]) == result(a=[])
    assert noted(losses) == [Loss("/result/a", "added", [])]
    given = result(a=1)
    assert frames.supply_result_field(given, None, Losses(), field="a", value=[]) is given


def error(code: int, **data: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m", "data": data}}


@pytest.mark.parametrize(("method", "code"), [("resources/read", -32002), (None, -32602), ("tools/call", -32602)])
def test_missing_resource_has_its_own_code_in_answers_to_its_method_alone(method: str | None, code: int) -> None:
    given = error(-32602, uri="file:///a")
    made = mcp.restore_missing_resource(given, method, Losses(), code=-32002, only="resources/read", field="uri")
    assert made["error"]["code"] == code


@pytest.mark.parametrize(("method", "code"), [("a", 1), (None, 1), ("b", -5)])
def test_code_is_replaced_for_its_method_or_an_unknown_one(method: str | None, code: int) -> None:
    assert frames.replace_code(error(-5), method, Losses(), code=1, only="a")["error"]["code"] == code


@pytest.mark.parametrize(("code", "restored"), [(-32022, True), (-32021, True), (-32020, False), (-32023, False)])
def test_an_original_code_is_restored_in_its_range_alone(code: int, restored: bool) -> None:
    given = error(-32602, original={"code": code})
    made = frames.restore_code(given, None, Losses(), codes=[-32022, -32021])
    assert made["error"]["code"] == (code if restored else -32602)


@pytest.mark.parametrize(("value", "is_cosmetic"), [(True, True), (1, False), (1.0, False), (False, False)])
def test_a_value_that_says_what_its_absence_says_is_of_its_type(value: Any, is_cosmetic: bool) -> None:
    losses = Losses()
    actions.lose_implied({"a": value}, "a", True, None, losses)
    assert [note[3] for note in losses.notes] == [is_cosmetic]


def test_references_of_a_schema_with_an_id_are_its_own() -> None:
    with_id = {"$id": "https://example.com/s", "type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {}}}
    assert schemas.wrap_schema(with_id, None, Losses(), key="result")["properties"]["result"] == with_id


@pytest.mark.parametrize("kinds", [None, ["object", "null"]])
def test_a_schema_that_may_be_one_of_an_object_is_left_out(kinds: Any) -> None:
    losses = Losses()
    schema = {} if kinds is None else {"type": kinds}
    assert schemas.wrap_schema(schema, None, losses, key="result") is actions.GONE
    assert [loss.kind for loss in noted(losses)] == ["dropped"]


def test_references_of_a_schema_without_one_move_with_it() -> None:
    schema = {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {}}}
    wrapped = schemas.wrap_schema(schema, None, Losses(), key="result")
    assert wrapped["properties"]["result"]["items"] == {"$ref": "#/properties/result/$defs/A"}


SAMPLING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "sampling/createMessage",
    "params": {
        "maxTokens": 1,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
    },
}


@pytest.mark.parametrize("profile", ["strict", "minimal"])
def test_messages_are_split_in_order_in_both_profiles(profile: str) -> None:
    done = translate(SAMPLING, source="2025-11-25", target="2025-06-18", profile=profile)
    assert done.frame is not None
    said = [message["content"]["text"] for message in done.frame["params"]["messages"]]
    assert said == ["a", "b"]


def test_an_alias_of_a_notification_says_nothing_about_requests() -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialized"}
    assert translate(request, source="2025-06-18", target="2025-03-26").frame is request


@pytest.mark.parametrize("profile", ["strict", "minimal"])
def test_a_notification_that_the_target_lacks_is_swallowed_in_both_profiles(profile: str) -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": {"taskId": "1"}}
    done = translate(notice, source="2025-11-25", target="2025-06-18", profile=profile)
    assert (done.frame, done.losses) == (None, (Loss("", "swallowed", notice),))


DEEP: dict[str, Any] = {}
for _ in range(200_000):
    DEEP = {"x": DEEP}


def test_content_that_is_nested_too_deeply_is_refused() -> None:
    from dragoman_spec import TranslationError

    with pytest.raises(TranslationError, match="nested less deeply"):
        translate(
            result(content=[], structuredContent=DEEP), source="2025-06-18", target="2025-03-26", method="tools/call"
        )


@pytest.mark.parametrize(
    ("method", "field"), [("tools/call", "content"), ("prompts/get", "messages"), ("resources/read", "contents")]
)
@pytest.mark.parametrize("profile", ["strict", "minimal"])
@pytest.mark.parametrize("target", ["2025-11-25", "2024-11-05"])
def test_a_complete_result_with_nothing_in_it_comes_out_whole(
    method: str, field: str, profile: str, target: str
) -> None:
    given = result(resultType="complete")
    done = translate(given, source="2026-07-28", target=target, method=method, profile=profile)
    assert done.frame is not None
    assert done.frame["result"][field] == []
    assert ("added", f"/result/{field}") in [(loss.kind, loss.pointer) for loss in done.losses]


@pytest.mark.parametrize(
    ("given", "made", "options"),
    [
        ({"a": 1}, {"b": {"c": 1}}, {}),
        ({"a": 1, "b": {"d": 2}}, {"b": {"d": 2, "c": 1}}, {}),
        ({"a": 1, "b": None}, {"b": {"c": 1}}, {}),
        ({"b": {"d": 2}}, {"b": {"d": 2}}, {}),
    ],
)
def test_a_field_goes_into_an_object(given: Any, made: Any, options: Any) -> None:
    losses = Losses()
    assert actions.move(given, ["a"], ["b", "c"], PLACE, losses, **options) == made
    assert noted(losses) == []


@pytest.mark.parametrize(
    ("given", "made", "options"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"c": 2}}, {}),
        ({"a": 1, "b": "x"}, {"b": "x"}, {}),
        ({"a": 1}, {}, {"make": False}),
    ],
)
def test_a_field_that_has_no_place_is_lost_where_it_stood(given: Any, made: Any, options: Any) -> None:
    losses = Losses()
    assert actions.move(given, ["a"], ["b", "c"], PLACE, losses, **options) == made
    assert noted(losses) == [Loss("/result/values/a", "dropped", 1)]


@pytest.mark.parametrize(
    ("given", "made", "prune"),
    [
        ({"b": {"c": 1}}, {"b": {}, "a": 1}, False),
        ({"b": {"c": 1}}, {"a": 1}, True),
        ({"b": {"c": 1, "d": 2}}, {"b": {"d": 2}, "a": 1}, True),
        ({"b": {"d": 2}}, {"b": {"d": 2}}, True),
        ({"b": "x"}, {"b": "x"}, True),
    ],
)
def test_a_field_comes_out_of_an_object(given: Any, made: Any, prune: bool) -> None:
    assert actions.move(given, ["b", "c"], ["a"], PLACE, Losses(), prune=prune) == made


def test_what_is_lost_of_a_moved_field_is_lost_where_it_stood() -> None:
    losses = Losses()
    moved = actions.move({"a": 1}, ["a"], ["b", "c"], None, losses)
    losses.add(((None, "b"), "c"), "dropped", moved["b"]["c"])
    (note,) = settle([losses], {"a": 1})
    assert spell([note]) == (Loss("/a", "dropped", 1),)


# --- what a small mistake in an action would do ----------------------------------------------------------------------


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_references_of_a_wrapped_schema_are_moved_with_it(keyword: str) -> None:
    given = {"type": "array", "items": {keyword: "#/$defs/a"}, "$defs": {"a": {"type": "string"}}}
    found = schemas.wrap_schema(given, PLACE, Losses(), key="result")
    assert found["properties"]["result"]["items"] == {keyword: "#/properties/result/$defs/a"}


def test_a_digest_has_32_digits_and_depends_on_its_field_alone() -> None:
    found = actions.digest({"url": "https://example.com", "x": 1}, PLACE, Losses(), of="url")
    assert (len(found), found) == (32, actions.digest({"url": "https://example.com"}, PLACE, Losses(), of="url"))
    assert found != actions.digest({"url": "https://example.org"}, PLACE, Losses(), of="url")


def test_a_url_that_the_message_has_is_not_named_again() -> None:
    asked = [{"url": "https://example.com/a"}, {"url": "https://example.com/b"}]
    error = {"code": -32042, "message": "Open https://example.com/a", "data": {"elicitations": asked}}
    found = mcp.name_urls({"error": error}, None, Losses())
    assert found["error"]["message"] == "Open https://example.com/a (open https://example.com/b)"


def test_an_original_that_has_more_than_a_code_and_data_is_not_ours() -> None:
    frame = {"error": {"code": -32602, "message": "m", "data": {"original": {"code": -32002, "note": "x"}}}}
    assert frames.restore_code(frame, None, Losses(), codes=[-32099, -32000]) is frame


def test_a_refusal_shows_the_fields_that_it_names() -> None:
    with pytest.raises(Untranslatable) as caught:
        actions.refuse({"url": "u", "x": 1}, PLACE, Losses(), reason="Open {url}", show=["url"])
    assert (caught.value.reason, caught.value.data["url"], "x" in caught.value.data) == ("Open u", "u", False)


@pytest.mark.parametrize(("left", "refused"), [(["a"], True), (["a", "b"], False), (["a", "b", "c"], False)])
def test_a_list_is_refused_when_too_few_are_left(left: list[Any], refused: bool) -> None:
    if refused:
        with pytest.raises(Untranslatable, match=r"must have at least 2, and 1 are left"):
            actions.at_least(left, PLACE, 2)
    else:
        assert actions.at_least(left, PLACE, 2) is left


def is_whole(value: Any) -> bool:
    return type(value) is int and value <= 5000


@pytest.mark.parametrize(
    ("value", "times", "over", "expected", "losses"),
    [(5, 1000, 1, 5000, 0), (5000, 1, 1000, 5, 0), (1500, 1, 1000, 1, 1), (999, 1, 1000, 0, 1), (0, 1000, 1, 0, 0)],
)
def test_a_number_is_scaled_and_rounded_down(value: int, times: int, over: int, expected: int, losses: int) -> None:
    out = Losses()
    found = actions.scale(value, PLACE, out, times=times, over=over, check=is_whole)
    assert (found, type(found), len(noted(out))) == (expected, int, losses)


@pytest.mark.parametrize("value", ["5", True, None, [5]])
def test_what_is_no_number_is_not_scaled(value: Any) -> None:
    with pytest.raises(TranslationError, match="expected a number"):
        actions.scale(value, PLACE, Losses(), times=2, over=1, check=is_whole)


def test_a_number_that_gets_too_large_is_refused() -> None:
    with pytest.raises(Untranslatable):
        actions.scale(6, PLACE, Losses(), times=1000, over=1, check=is_whole)


def is_text(value: Any) -> bool:
    return type(value) is str


def is_texts(value: Any) -> bool:
    return type(value) is list and all(map(is_text, value))


def test_one_value_becomes_a_list_of_it() -> None:
    assert actions.as_list("a", PLACE, Losses(), check=is_texts) == ["a"]
    assert actions.as_list(["a"], PLACE, Losses(), check=is_texts) == ["a"]
    with pytest.raises(Untranslatable):
        actions.as_list(1, PLACE, Losses(), check=is_texts)


@pytest.mark.parametrize(
    ("value", "expected", "lost"),
    [("a", "a", []), (["a"], "a", []), (["a", "b"], "a", [["b"]]), ([1, "b"], "b", [[1]]), ([], actions.GONE, [[]])],
)
def test_a_list_becomes_its_first_item_that_fits(value: Any, expected: Any, lost: list[Any]) -> None:
    out = Losses()
    assert actions.first_item(value, PLACE, out, check=is_text) == expected
    assert [loss.value for loss in noted(out)] == lost


def test_a_text_is_split_where_the_target_wants_a_list() -> None:
    losses = Losses()
    assert actions.split_text(["a b"], PLACE, losses, separator=" ", check=is_texts) == ["a b"]
    assert noted(losses) == []
    assert actions.split_text("a b", PLACE, losses, separator=" ", check=is_texts) == ["a", "b"]
    assert noted(losses) == [Loss("/result/values", "rewritten", "a b")]
    with pytest.raises(TranslationError, match="expected a string"):
        actions.split_text(1, PLACE, Losses(), separator=" ", check=is_texts)


def test_half_a_character_has_a_digest() -> None:
    assert len(actions.digest({"url": "\ud800"}, PLACE, Losses(), of="url")) == 32


@pytest.mark.parametrize("value", [["a"], {"a": 1}, 5, True, None])
def test_what_is_no_constant_becomes_what_all_others_become(value: Any) -> None:
    assert actions.map_value(value, PLACE, Losses(), to={"a": "b"}, otherwise="c", check=lambda v: False) == "c"


def test_a_refusal_names_the_field_that_is_there_or_missing() -> None:
    with pytest.raises(Untranslatable) as caught:
        actions.refuse_field({"tools": [{}]}, PLACE, Losses(), field="tools", reason="No.")
    pointers = [caught.value.pointer, actions.without_field(PLACE, "requestId").pointer]
    assert pointers == ["/result/values/tools", "/result/values/requestId"]


@pytest.mark.parametrize("empty", [[], {}, "", None])
def test_an_empty_field_is_not_refused(empty: Any) -> None:
    given = {"tools": empty}
    assert actions.refuse_field(given, PLACE, Losses(), field="tools", reason="No.") is given


def test_what_no_wrapping_helps_is_refused() -> None:
    with pytest.raises(Untranslatable, match="string 'x' has no counterpart"):
        actions.wrap_unless_valid("x", PLACE, Losses(), key="result", check=lambda v: False)


@pytest.mark.parametrize("text", [5, ["a"], {"a": 1}, None])
def test_what_is_no_text_is_not_copied(text: Any) -> None:
    given = {"title": text}
    assert actions.copy_into(given, PLACE, Losses(), field="title", into=["annotations", "title"]) is given


def test_a_long_string_is_quoted_in_part() -> None:
    assert actions.describe("x" * 500) == f"string {'x' * 40!r}"


def test_a_whole_number_stays_one_in_another_unit() -> None:
    check = lambda v: type(v) is int  # noqa: E731 - as generated steps have it
    found = actions.scale(2_000, PLACE, Losses(), times=1, over=1_000, check=check)
    assert (found, type(found)) == (2, int)


@pytest.mark.parametrize("code", [-32099, -32050, -32020])
def test_an_original_code_is_restored_up_to_both_ends_of_its_range(code: int) -> None:
    replaced = frames.replace_code(error(code), None, Losses(), code=-32603)
    assert frames.restore_code(replaced, None, Losses(), codes=[-32099, -32020]) == error(code)


def test_data_beside_an_original_stays_and_that_of_ours_goes_again() -> None:
    given = {"error": {**error(-5)["error"], "data": {"uri": "a"}}}
    replaced = frames.replace_code(given, None, Losses(), code=1)
    assert replaced["error"]["data"] == {"uri": "a", "original": {"code": -5, "data": {"uri": "a"}}}
    assert frames.restore_code(replaced, None, Losses(), codes=[-5, -5]) == given


def test_a_refused_result_says_for_which_field() -> None:
    with pytest.raises(Untranslatable) as caught:
        frames.refuse_result(result(task={}), None, Losses(), reason="No.", has="task")
    assert caught.value.pointer == "/result/task"


def test_what_is_supplied_is_said() -> None:
    losses = Losses()
    frames.supply_result_field(result(), None, losses, field="a", value=[])
    assert noted(losses) == [Loss("/result/a", "added", [])]


def test_a_choice_without_a_title_is_named_by_its_constant() -> None:
    given = {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}
    found = mcp.titled_enum(given, PLACE, Losses())
    assert found == {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"]}


def test_an_error_that_was_put_there_is_no_missing_resource() -> None:
    replaced = frames.replace_code({"error": {**error(-5)["error"], "data": {"uri": "a"}}}, None, Losses(), code=-32602)
    options = {"code": -32002, "only": "resources/read", "field": "uri"}
    assert mcp.restore_missing_resource(replaced, "resources/read", Losses(), **options) is replaced


def test_texts_that_are_put_together_stay_apart() -> None:
    asked = [{"url": "https://example.com/a"}, {"url": "https://example.com/b"}]
    named = mcp.name_urls({"error": {"code": 1, "message": "Open", "data": {"elicitations": asked}}}, None, Losses())
    assert named["error"]["message"] == "Open (open https://example.com/a, https://example.com/b)"
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    block = {"type": "tool_result", "toolUseId": "1", "content": parts}
    frame = {"params": {"messages": [{"role": "user", "content": block}]}}
    flat = mcp.flatten_tool_blocks(frame, None, Losses())
    assert flat["params"]["messages"][0]["content"]["text"] == "[Tool result]\na\nb"


AS_TEXT = {"field": "structuredContent", "into": "content"}


def test_text_in_other_letters_is_written_as_it_is() -> None:
    found = mcp.json_as_text({"structuredContent": {"a": "é漢"}, "content": []}, PLACE, Losses(), **AS_TEXT)
    assert found["content"] == [{"type": "text", "text": '{"a":"é漢"}'}]


SAID: list[tuple[Any, list[str]]] = [
    ({"a": [1, None]}, ['{\n  "a": [1.0, null]\n}']),
    ({"a": 1}, ["In words first.", '{"a":1}']),
    ({"result": "21 degrees"}, ["21 degrees"]),
    ({"result": 5}, ["5"]),
    ({"result": ["a", {"b": 1}]}, ["a", '{"b": 1}']),
    ({"result": []}, ["[]"]),
]
UNSAID: list[tuple[Any, list[str]]] = [
    ({"a": 1}, ["It is one."]),
    ({"a": 1}, ["1"]),
    ({"a": 1}, ['{"a":2}']),
    ({"result": ["a", "b"]}, ["a"]),
    ({"result": []}, ["Nothing was found."]),
    ({"a": 1}, ["[" * 100_000, "9" * 10_000]),
]


@pytest.mark.parametrize(("structured", "texts"), SAID)
def test_structured_content_is_not_said_twice(structured: Any, texts: list[str]) -> None:
    result = {"structuredContent": structured, "content": [{"type": "text", "text": text} for text in texts]}
    losses = Losses()
    assert mcp.json_as_text(result, PLACE, losses, **AS_TEXT) is result
    assert not losses.notes


@pytest.mark.parametrize(("structured", "texts"), UNSAID)
def test_structured_content_that_no_text_says_becomes_the_last_text(structured: Any, texts: list[str]) -> None:
    blocks = [{"type": "text", "text": text} for text in texts]
    losses = Losses()
    found = mcp.json_as_text({"structuredContent": structured, "content": blocks}, PLACE, losses, **AS_TEXT)
    block = {"type": "text", "text": json.dumps(structured, separators=(",", ":"))}
    assert found["content"] == [*blocks, block]
    assert losses.notes == [(((PLACE, "content"), len(blocks)), "added", block, False)]


def test_structured_content_of_a_tool_result_in_a_message_is_text_too() -> None:
    parts = [{"type": "text", "text": "It is one."}]
    block = {"type": "tool_result", "toolUseId": "1", "content": parts, "structuredContent": {"a": 1}}
    frame = {"params": {"messages": [{"role": "user", "content": block}]}}
    flat = mcp.flatten_tool_blocks(frame, None, Losses())
    assert flat["params"]["messages"][0]["content"]["text"] == '[Tool result]\nIt is one.\n{"a":1}'


def test_the_data_of_a_refusal_has_what_there_is_and_no_more() -> None:
    refused = Untranslatable("No.", extra={"url": None, "name": "a"}, method="x/y")
    assert refused.data == {"method": "x/y", "reason": "No.", "name": "a"}
    assert TranslationError("", "a", "b").data == {"pointer": "", "expected": "a", "found": "b"}


@pytest.mark.parametrize("block", [0, {}, {"type": 1}])
def test_a_message_of_very_many_blocks_that_are_none_is_refused_by_its_first(block: Any) -> None:
    """Before there is a message for each of them: 1.5 MB took more than two seconds."""
    said = {**SAMPLING, "params": {"maxTokens": 1, "messages": [{"role": "user", "content": [block] * 500_000}]}}

    def refuse() -> None:
        with pytest.raises(TranslationError, match="/params/messages/0/content: expected an object with 'type'"):
            translate(said, source="2025-11-25", target="2025-06-18")

    assert effort(refuse) < 1
