"""How work is spelled in Python; small steps are rendered and run."""

from __future__ import annotations

import re
from typing import Any

import pytest

from codegen.errors import UnusedDecision
from codegen.plan.nodes import Action, ArrayNode, Case, Node, ObjectNode, UnionNode, Work
from codegen.read.model import Scalar
from codegen.write.bodies import MOST_KEYS_ASKED
from codegen.write.checks import Checks
from codegen.write.docs import render_docs
from codegen.write.spelling import can_be_gone, negate, spell_action
from codegen.write.steps import render_steps
from dragoman_spec.errors import TranslationError
from dragoman_spec.losses import Losses
from tests.support.small_specs import (
    INTEGER,
    NEWER,
    OLDER,
    STRING,
    Schema,
    any_of,
    array_of,
    const,
    decision,
    object_of,
    plan,
    ref,
    request,
    spec,
)

TEXT = Scalar(frozenset({"string"}))
DROP = Work(before=Action("drop-invalid"))
BLOCKS = {name: object_of("type", type=const(name.lower())) for name in ("Text", "Sound")}


def converted(older: Schema, newer: Schema, value: Any, overlay: str = "") -> Any:
    """What the way up makes of the value of a field `a`."""
    step = plan({"It": object_of(a=older), **BLOCKS}, {"It": object_of(a=newer), **BLOCKS}, overlay)
    module: dict[str, Any] = {}
    text = render_steps([step], dict.fromkeys((OLDER, NEWER), "1" * 64))["dragoman_spec/v2002_02_02/steps.py"]
    exec(text, module)
    return module["STEP"].up["strict"].definitions["It"]({"a": value}, None, Losses())


UNION = any_of(object_of("a", a=STRING, more=STRING), ref("Text"), STRING)
LESS = any_of(object_of("a", a=STRING), ref("Text"), STRING)
FEWER = any_of(ref("Text"), STRING)
DROP_SOUND = decision("up", "arm-removed", "It.a[]", "drop-item", arm='"Sound"')


@pytest.mark.parametrize(
    ("older", "newer", "overlay", "value", "expected"),
    [
        (STRING, INTEGER, "", "x", {}),
        (array_of(STRING), array_of(INTEGER), "", ["x", "y"], {"a": []}),
        (array_of(object_of(b=STRING)), array_of(object_of()), "", [{"b": "x"}], {"a": [{}]}),
        (object_of(b=STRING), object_of(), "", None, {"a": None}),
        (UNION, LESS, "", {"a": "x", "more": "y"}, {"a": {"a": "x"}}),
        (UNION, LESS, "", {"type": "text"}, {"a": {"type": "text"}}),
        (UNION, LESS, "", "x", {"a": "x"}),
        (
            {"type": "object", "additionalProperties": object_of(b=STRING)},
            {"type": "object", "additionalProperties": object_of()},
            "",
            {"x": None, "y": {"b": "z"}},
            {"a": {"x": None, "y": {}}},
        ),
        (
            array_of(any_of(ref("Text"), ref("Sound"))),
            array_of(ref("Text")),
            DROP_SOUND,
            [{"type": "text"}, {"type": "sound"}],
            {"a": [{"type": "text"}]},
        ),
    ],
)
def test_a_rendered_step_converts(older: Schema, newer: Schema, overlay: str, value: Any, expected: Any) -> None:
    assert converted(older, newer, value, overlay) == expected


@pytest.mark.parametrize("untagged", [{"a": "x"}, {"type": 1}, "x"])
def test_what_has_no_tag_is_of_no_case_of_a_tagged_union(untagged: Any) -> None:
    older, newer = array_of(any_of(ref("Text"), ref("Sound"))), array_of(ref("Text"))
    with pytest.raises(TranslationError, match="an object with 'type'"):
        converted(older, newer, [{"type": "text"}, untagged], DROP_SOUND)


HOOK = """
[[hook]]
name = "keep-as-text"
direction = "up"
at = "Text"
kind = "before"
when = "data"
do = "json-as-text"
with = { field = "data", into = "list" }
reason = "Because."
"""


@pytest.mark.parametrize(("value", "expected"), [({}, {"a": {}}), ({"b": "x"}, {})])
def test_an_object_that_the_step_empties_goes_and_one_that_was_empty_stays(value: Any, expected: Any) -> None:
    step = plan({"It": object_of("a", a=object_of(b=STRING))}, {"It": object_of(a=object_of())})
    module: dict[str, Any] = {}
    text = render_steps([step], dict.fromkeys((OLDER, NEWER), "1" * 64))["dragoman_spec/v2002_02_02/steps.py"]
    exec(text, module)
    assert module["STEP"].up["strict"].definitions["It"]({"a": value}, None, Losses()) == expected


def test_items_are_looked_at_where_a_hook_has_something_to_do() -> None:
    given = [{"type": "text", "list": []}, {"type": "text", "data": 1, "list": []}]
    found = converted(array_of(ref("Text")), array_of(ref("Text")), given, HOOK)
    assert found == {"a": [given[0], {**given[1], "list": [{"type": "text", "text": "1"}]}]}


@pytest.mark.parametrize(("reviewed", "said"), [("true", ""), ("false", " (not reviewed)")])
def test_a_page_says_what_nobody_has_looked_at(reviewed: str, said: str) -> None:
    ruled = decision("up", "narrowed", "It.a", "drop-invalid", reviewed=reviewed)
    step = plan({"It": object_of(a=STRING)}, {"It": object_of(a=INTEGER)}, ruled)
    assert f"- **it**{said}: `It.a`: `drop-invalid`. Because." in render_docs([step])[f"docs/steps/{NEWER}.md"]


def test_a_method_list_that_is_gone_is_asked_about_alone() -> None:
    meta = {"RequestParams": object_of(_meta=object_of()), "RequestId": STRING, "EmptyResult": object_of()}
    both = {"AskRequest": request("ask"), **meta}
    older = {"It": object_of(a=STRING), "ServerRequest": any_of(ref("AskRequest")), **both}
    newer = {"It": object_of(a=INTEGER), **both}
    assert [change.kind for change in plan(older, newer).undecided] == ["methods-gone"]
    asked = plan(older, newer, decision("up", "methods-gone", "ServerRequest", "gone")).undecided
    assert {change.kind for change in asked} == {"narrowed", "required"}


def test_no_steps_render_the_modules_that_steps_stand_on() -> None:
    assert [path for path in render_steps([], {}) if path.endswith("steps.py")] == []


def spelled(action: Action) -> str:
    return spell_action(action, "v", "at", Checks(spec({}), "up"))


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (Action("drop-item"), "do.drop_item(v, at, out)"),
        (Action("truncate", {"most": 3}), "do.truncate(v, at, out, most=3)"),
        (
            Action("copy-into", {"field": "c", "into": ("a", "b")}),
            "do.copy_into(v, at, out, field='c', into=['a', 'b'])",
        ),
        (Action("drop-invalid", {"check": TEXT}), "do.drop_invalid(v, at, out, check=up_is_wanted_0)"),
    ],
)
def test_an_action_is_spelled_as_a_call(action: Action, expected: str) -> None:
    assert spelled(action) == expected


def test_an_action_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(UnusedDecision, match=r"\[drop-tiem\]: there is no action 'drop-tiem'; there are .*drop-item, "):
        spelled(Action("drop-tiem"))


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (
            Action("truncate", {"max": 3}, entry="cut"),
            r"\[cut\]: truncate takes most in `with`: no 'max' and 'most' as well",
        ),
        (Action("drop-item", {"why": 3}), r"\[drop-item\]: drop-item takes nothing in `with`: no 'why'"),
    ],
)
def test_an_action_with_other_arguments_is_refused(action: Action, said: str) -> None:
    with pytest.raises(UnusedDecision, match=said):
        spelled(action)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("type(v) is str", "type(v) is not str"), ("type(v) is str and v", "not (type(v) is str and v)")],
)
def test_negate_writes_the_opposite_as_a_person_would(condition: str, expected: str) -> None:
    assert negate(condition) == expected


GONE: dict[str, Node] = {
    "drops": UnionNode("Drops", "type", (Case("dict", DROP), Case("list", Work("drops")))),
    "keeps": UnionNode("Keeps", "type", (Case("dict", Work("idle")), Case("list", Work("keeps")))),
    "idle": ObjectNode("Idle"),
    "hooked": ObjectNode("Hooked", hooks_after=(Action("drop-item"),)),
    "list": ArrayNode("List", DROP),
}


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (DROP, True),
        (Work("drops"), True),
        (Work("hooked"), True),
        (Work("keeps"), False),
        (Work("list"), False),
        (Work(), False),
        (Work(before=Action("truncate")), False),
        (Work("hooked", Action("truncate")), True),
    ],
)
def test_work_can_leave_a_value_out(work: Work, expected: bool) -> None:
    assert can_be_gone(work, GONE) is expected


def test_nodes_that_differ_in_their_label_alone_are_one_function() -> None:
    shape, less = object_of(a=STRING, b=STRING), object_of(a=STRING)
    older, newer = dict.fromkeys("ABCDEF", shape), dict.fromkeys("ABCDEF", less)
    text = render_steps([plan(older, newer)], dict.fromkeys((OLDER, NEWER), "1" * 64))
    (up,) = re.findall(r'def up_\w+\(x.*\n    """(.*)"""', text["dragoman_spec/v2002_02_02/steps.py"])
    assert up == "A, B, C, D and 2 more."


def test_items_without_what_is_looked_for_pass_without_a_call() -> None:
    step = plan({"It": object_of(a=array_of(object_of(b=STRING)))}, {"It": object_of(a=array_of(object_of()))})
    text = render_steps([step], dict.fromkeys((OLDER, NEWER), "1" * 64))["dragoman_spec/v2002_02_02/steps.py"]
    assert "if type(v) is dict and 'b' not in v:" in text


def test_items_are_handed_on_where_many_keys_would_have_to_be_looked_for() -> None:
    many = {f"b{number}": STRING for number in range(MOST_KEYS_ASKED + 1)}
    step = plan({"It": object_of(a=array_of(object_of(**many)))}, {"It": object_of(a=array_of(object_of()))})
    text = render_steps([step], dict.fromkeys((OLDER, NEWER), "1" * 64))["dragoman_spec/v2002_02_02/steps.py"]
    assert "do.each(x, at, out, up_" in text


def test_an_object_that_has_to_be_there_is_made_without_a_call_where_it_is_always_the_same() -> None:
    made = object_of("k", "deep", k=const("x"), deep=object_of("n", n=const("z")))
    older, newer = object_of(c=STRING), object_of("b", c=STRING, b=made)
    assert converted(older, newer, {"c": "q"}) == {"a": {"c": "q", "b": {"k": "x", "deep": {"n": "z"}}}}
    assert converted(older, newer, {"b": {"k": "x"}}) == {"a": {"b": {"k": "x", "deep": {"n": "z"}}}}
    text = render_steps([plan({"It": older}, {"It": newer})], dict.fromkeys((OLDER, NEWER), "1" * 64))
    assert "w = {'deep': {'n': 'z'}, 'k': 'x'}" in text["dragoman_spec/v2002_02_02/steps.py"]


SPELL = """
[[hook]]
name = "spell-booleans"
direction = "up"
at = "It.a"
kind = "before"
do = "objects-for-booleans"
reason = "It is so."
profiles = ["strict", "minimal"]
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"x": True, "y": {}}, {"x": {}, "y": {}}),
        ({"x": {}}, {"x": {}}),
        ({"x": 5, "y": True}, None),
        ([True], None),
    ],
)
def test_what_mends_a_field_is_called_only_where_it_would_have_to_go(value: Any, expected: Any) -> None:
    newer = object_of(properties={"type": "object", "additionalProperties": {"type": "object"}})
    left = {} if expected is None else {"properties": expected}
    given = {"properties": value}
    assert converted(object_of(), newer, given, SPELL) == {"a": left}
    assert given == {"properties": value}
    step = plan({"It": object_of(a=object_of())}, {"It": object_of(a=newer)}, SPELL)
    text = render_steps([step], dict.fromkeys((OLDER, NEWER), "1" * 64))["dragoman_spec/v2002_02_02/steps.py"]
    assert "objects_for_booleans(x" not in text
    assert re.search(r"if 'properties' in y and not .*\n +# spell-booleans\n +y = schemas.objects_for_booleans", text)


@pytest.mark.parametrize(
    ("name", "call"),
    [("ServerCapabilities", "lose_declared"), ("ClientCapabilities", "lose_declared"), ("CapabilitiesPage", "lose")],
)
def test_what_is_lost_of_capabilities_is_lost_even_if_empty(name: str, call: str) -> None:
    step = plan({name: object_of(a=object_of(), b=object_of())}, {name: object_of(b=object_of())})
    text = render_steps([step], dict.fromkeys((OLDER, NEWER), "1" * 64))["dragoman_spec/v2002_02_02/steps.py"]
    assert f"do.{call}(y, 'a', at, out)" in text


def test_functions_have_names_of_their_own() -> None:
    shapes = {"ToolMinimal": object_of(a=STRING), "Tool": object_of("b", b=STRING), "IsTool": object_of(c=STRING)}
    text = render_steps(
        [plan({name: object_of(x=STRING) for name in shapes}, shapes, decision("up", "required", "Tool.b", "refuse"))],
        dict.fromkeys((OLDER, NEWER), "1" * 64),
    )["dragoman_spec/v2002_02_02/steps.py"]
    names = re.findall(r"^def (\w+)\(", text, re.MULTILINE)
    assert len(names) == len(set(names))
    assert "up_convert_is_tool" in names
