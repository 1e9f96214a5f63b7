"""`validate` says where a frame is wrong, what should stand there, and what does."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from dragoman_spec._validation import validate, violations
from dragoman_spec.errors import MethodNeeded, UnsupportedRevision, ValidationFailed
from dragoman_spec.revisions import HANDSHAKE_REVISIONS
from tests.support.effort import effort

NEW = "2025-11-25"
LATEST = "2026-07-28"
TAGS = "'text' or 'image' or 'audio' or 'resource_link' or 'resource'"
META = {"io.modelcontextprotocol/protocolVersion": LATEST, "io.modelcontextprotocol/clientCapabilities": {}}


def _result(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def _request(method: Any, params: Any = None) -> dict[str, Any]:
    frame = {"jsonrpc": "2.0", "id": 1, "method": method}
    return frame if params is None else {**frame, "params": params}


def _failure(frame: Any, revision: str, method: str | None = None, *, allow_null: bool = False) -> tuple[str, str, str]:
    with pytest.raises(ValidationFailed) as caught:
        validate(frame, revision, method, allow_null=allow_null)
    assert caught.value.revision == revision
    return caught.value.pointer, caught.value.expected, caught.value.found


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_valid_request_passes_in_every_handshake_revision(revision: str) -> None:
    validate(_request("tools/call", {"name": "add", "arguments": {"a": None}}), revision)


def test_what_is_wrong_a_hundred_thousand_times_is_told_nearly_as_soon_as_that_all_is_right() -> None:
    def judge(entry: dict[str, Any]) -> None:
        with contextlib.suppress(ValidationFailed):
            validate(_result({"content": [entry] * 50_000}), NEW, "tools/call")

    assert effort(lambda: judge({"type": 0})) < 4 * effort(lambda: judge({"type": "text", "text": ""}))


def test_unknown_revision_is_said() -> None:
    with pytest.raises(UnsupportedRevision):
        validate({}, "2023-01-01")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"type": "text", "text": 5}, ("/text", "a string", "the number 5")),
        ({"type": "text"}, ("/text", "a string", "nothing")),
        ({"type": "audio", "data": "", "mimeType": False}, ("/mimeType", "a string", "false")),
        ({"type": "video"}, ("/type", TAGS, "the string 'video'")),
        ({"text": "hi"}, ("/type", TAGS, "nothing")),
        ({"type": 5}, ("/type", TAGS, "the number 5")),
        ("text", ("", "an object", "the string 'text'")),
        ({"type": "resource", "resource": {"uri": 5, "text": ""}}, ("/resource/uri", "a string", "the number 5")),
        ({"type": "resource", "resource": {"blob": "", "uri": None}}, ("/resource/uri", "a string", "null")),
        ({"type": "resource", "resource": {"uri": ""}}, ("/resource/text", "a string", "nothing")),
        (
            {"type": "text", "text": "", "annotations": {"priority": 2}},
            ("/annotations/priority", "at most 1", "the number 2"),
        ),
        (
            {"type": "text", "text": "", "annotations": {"priority": "x"}},
            ("/annotations/priority", "a number", "the string 'x'"),
        ),
        (
            {"type": "text", "text": "", "annotations": {"audience": ["user", "bob"]}},
            ("/annotations/audience/1", "'assistant' or 'user'", "the string 'bob'"),
        ),
    ],
)
def test_content_fails_at_its_own_key(content: Any, expected: tuple[str, str, str]) -> None:
    below, wanted, found = expected
    frame = _result({"content": [{"type": "text", "text": ""}, content]})
    assert _failure(frame, NEW, "tools/call") == (f"/result/content/1{below}", wanted, found)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ([], ("", "a JSON-RPC object", "an empty array")),
        ({}, ("", "an object with method, result or error", "an object with none of them")),
        ({"method": "ping", "id": 1}, ("/jsonrpc", "'2.0'", "nothing")),
        ({"jsonrpc": "1.0", "method": "ping", "id": 1}, ("/jsonrpc", "'2.0'", "the string '1.0'")),
        ({"jsonrpc": "2.0", "method": "ping", "id": None}, ("/id", "a string or an integer", "null")),
        ({"jsonrpc": "2.0", "method": "ping", "id": 1.5}, ("/id", "a string or an integer", "the number 1.5")),
        ({"jsonrpc": "2.0", "method": "ping"}, ("/id", "a string or an integer", "nothing")),
        ({"jsonrpc": "2.0", "method": 5}, ("/method", "a string", "the number 5")),
        (
            {"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": ""}},
            ("/error/code", "an integer", "the string 'x'"),
        ),
        (
            {"jsonrpc": "2.0", "id": 1, "error": {"code": 1.5, "message": ""}},
            ("/error/code", "an integer", "the number 1.5"),
        ),
        ({"jsonrpc": "2.0", "id": 1, "result": []}, ("/result", "an object", "an empty array")),
    ],
)
def test_envelope_fails_at_its_own_key(frame: Any, expected: tuple[str, str, str]) -> None:
    assert _failure(frame, NEW) == expected


def test_of_two_arms_in_a_result_the_one_that_fits_better_is_told() -> None:
    frame = _result({"contents": [{"uri": "a", "text": ""}, {"uri": "b", "blob": 1}]})
    assert _failure(frame, NEW, "resources/read") == ("/result/contents/1/blob", "a string", "the number 1")


def test_unknown_method_names_the_nearest() -> None:
    pointer, expected, found = _failure(_request("tool/list"), NEW)
    assert (pointer, found) == ("/method", "the string 'tool/list'")
    assert expected.startswith(f"a method of {NEW}, such as tools/list or ")


def test_unknown_method_without_neighbours_names_none() -> None:
    assert _failure(_request("~"), NEW) == ("/method", f"a method of {NEW}", "the string '~'")


def test_method_of_another_revision_is_unknown() -> None:
    assert _failure(_request("elicitation/create", {}), "2025-03-26")[0] == "/method"


def test_result_is_judged_by_its_method() -> None:
    assert _failure(_result({"content": []}), NEW, "tools/list") == ("/result/tools", "an array", "nothing")


def test_result_without_method_cannot_be_judged() -> None:
    with pytest.raises(MethodNeeded, match="pass its method") as caught:
        validate(_result({"content": 5}), NEW)
    assert caught.value.revision == NEW


def test_broken_envelope_is_told_even_without_method() -> None:
    assert _failure({"jsonrpc": "2.0", "id": None, "result": {}}, NEW)[0] == "/id"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, ("/type", "'object'", "nothing")),
        ({"type": "array"}, ("/type", "'object'", "the string 'array'")),
        ({"type": "object", "properties": {"a": 1}}, ("/properties/a", "an object", "the number 1")),
        ({"type": "object", "required": [1]}, ("/required/0", "a string", "the number 1")),
        ({"type": "object", "$schema": None}, ("/$schema", "a string", "null")),
        ([], ("", "an object", "an empty array")),
    ],
)
def test_json_schema_is_judged_and_pointed_into(schema: Any, expected: tuple[str, str, str]) -> None:
    place, *rest = expected
    frame = _result({"tools": [{"name": "a", "inputSchema": schema}]})
    assert _failure(frame, NEW, "tools/list") == (f"/result/tools/0/inputSchema{place}", *rest)


def test_result_for_an_unknown_method_is_refused() -> None:
    assert _failure(_result({}), NEW, "tools/cal")[0] == ""


def test_task_result_passes_for_a_tool_call() -> None:
    task = {"taskId": "1", "createdAt": "", "lastUpdatedAt": "", "status": "working", "ttl": None}
    validate(_result({"task": task}), NEW, "tools/call")


def test_broken_task_result_fails_inside_the_task() -> None:
    assert _failure(_result({"task": {"taskId": 1}}), NEW, "tools/call")[0].startswith("/result/task/")


def test_constant_of_an_arm_leads_to_it() -> None:
    frame = _request("elicitation/create", {"mode": "url", "message": "?", "url": "x"})
    assert _failure(frame, NEW) == ("/params/elicitationId", "a string", "nothing")


def test_arm_with_the_fewest_missing_members_speaks() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "strin"}}}
    frame = _request("elicitation/create", {"message": "?", "requestedSchema": schema})
    pointer, expected, found = _failure(frame, NEW)
    assert (pointer, found) == ("/params/requestedSchema/properties/a/type", "the string 'strin'")
    assert expected == "'string' or 'integer' or 'number' or 'boolean' or 'array'"


@pytest.mark.parametrize(("content", "below"), [({"type": "text"}, ""), ([{"type": "text"}], "/0")])
def test_one_and_many_contents_are_told_apart(content: Any, below: str) -> None:
    params = {"maxTokens": 1, "messages": [{"role": "user", "content": content}]}
    assert _failure(_request("sampling/createMessage", params), NEW)[0] == f"/params/messages/0/content{below}/text"


def test_keys_are_escaped_in_pointers() -> None:
    request = {"method": "elicitation/create", "params": {"message": 1}}
    frame = _result({"resultType": "input_required", "inputRequests": {"a/b~c": request}})
    assert _failure(frame, LATEST, "tools/call")[0] == "/result/inputRequests/a~1b~0c/params/message"


def test_reserved_meta_key_is_named_by_its_wire_name() -> None:
    frame = _request("server/discover", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": 5}})
    assert _failure(frame, LATEST)[0] == "/params/_meta/io.modelcontextprotocol~1protocolVersion"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_number_that_json_does_not_have_is_refused_wherever_it_stands(number: float) -> None:
    frame = _request("tools/call", {"name": "add", "arguments": {"a/b": [1, {"c": number}]}})
    assert _failure(frame, NEW) == (
        "/params/arguments/a~1b/1/c",
        "a finite number",
        "a number that JSON does not have",
    )


@pytest.mark.parametrize(("params", "pointer"), [({"arguments": {1: 2}}, "/arguments/1"), ({1: 2}, "/1")])
def test_key_that_is_no_string_is_pointed_at(params: dict[Any, Any], pointer: str) -> None:
    frame = _request("tools/call", {"name": "add", **params})
    assert _failure(frame, NEW) == (f"/params{pointer}", "a string", "the number 1")


def test_half_a_character_is_refused_by_name() -> None:
    frame = _result({"content": [{"type": "text", "text": "", "\ud800": 1}]})
    assert _failure(frame, NEW, "tools/call")[1] == "a string of whole Unicode characters"


def test_number_too_long_to_print_is_not_printed() -> None:
    frame = _request("tools/call", {"name": 10**5000})
    assert _failure(frame, NEW) == ("/params/name", "a string", "a very long number")


@pytest.mark.parametrize("place", ["experimental", "extensions"])
def test_deep_json_is_no_problem(place: str) -> None:
    value: dict[str, Any] = {}
    for _ in range(400):
        value = {"deeper": value}
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": {place: value}}
    validate(_request("tools/list", {"_meta": meta}), LATEST)


def test_long_values_are_cut_short() -> None:
    assert len(_failure(_request("x" * 1000), NEW)[2]) < 100


def test_null_for_absent_is_refused() -> None:
    assert _failure(_result({"content": [], "isError": None}), NEW, "tools/call") == (
        "/result/isError",
        "a boolean",
        "null",
    )


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "a", "inputSchema": {"type": "object"}, "title": None},
        {"name": "a", "inputSchema": {"type": "object", "properties": None, "required": None}, "_meta": None},
        {
            "name": "a",
            "inputSchema": {"type": "object"},
            "annotations": {"title": None},
            "icons": [{"src": "", "sizes": None}],
        },
    ],
)
def test_null_for_absent_can_be_allowed(tool: dict[str, Any]) -> None:
    validate(_result({"tools": [tool], "nextCursor": None}), NEW, "tools/list", allow_null=True)


def test_null_for_a_required_member_is_never_allowed() -> None:
    frame = _result({"tools": [{"name": None, "title": None, "inputSchema": {"type": "object"}}]})
    assert _failure(frame, NEW, "tools/list", allow_null=True) == ("/result/tools/0/name", "a string", "null")


def test_frame_with_allowed_nulls_is_not_changed() -> None:
    frame = _result({"content": [], "isError": None})
    validate(frame, NEW, "tools/call", allow_null=True)
    assert frame == _result({"content": [], "isError": None})


def test_violations_tell_of_every_place() -> None:
    content = [{"type": "text", "text": 5}, {"type": "image", "data": 4}, {"type": "video"}, 3]
    frame = {"jsonrpc": "1.0", "id": 1, "result": {"content": content, "isError": "no"}}
    found = [(one.pointer, one.expected, one.found) for one in violations(frame, NEW, "tools/call")]
    assert found == [
        ("/jsonrpc", "'2.0'", "the string '1.0'"),
        ("/result/content/0/text", "a string", "the number 5"),
        ("/result/content/1/data", "a string", "the number 4"),
        ("/result/content/1/mimeType", "a string", "nothing"),
        ("/result/content/2/type", TAGS, "the string 'video'"),
        ("/result/content/3", "an object", "the number 3"),
        ("/result/isError", "a boolean", "the string 'no'"),
    ]


def test_a_valid_frame_has_no_violations() -> None:
    assert violations(_result({"tools": []}), NEW, "tools/list") == []


def test_violations_tell_of_a_method_and_of_the_envelope() -> None:
    found = [one.pointer for one in violations({"jsonrpc": "1.0", "id": 1, "method": "tools/lst"}, NEW)]
    assert found == ["/jsonrpc", "/method"]


def test_violations_of_a_result_may_be_those_of_the_usual_one_alone() -> None:
    frame = _result({"resultType": "complete", "content": [{"type": "text", "text": 5}]})
    assert violations(frame, LATEST, "tools/call") == []
    assert [one.pointer for one in violations(frame, LATEST, "tools/call", as_usual=True)] == ["/result/content/0/text"]
