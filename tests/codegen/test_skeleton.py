"""What a person finds in an overlay for changes that nobody has decided, and the defaults that are safe."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from codegen.ask.skeleton import add_entries, safe_default, undecided_error
from codegen.plan.plan import StepPlan
from codegen.plan.verbs import verbs_for
from codegen.read.overlay import Change
from tests.support.small_specs import INTEGER, STRING, Schema, any_of, array_of, const, decision, object_of, plan, ref

TEXT = object_of("type", type=const("text"), text=STRING)
SOUND = object_of("type", type=const("sound"), data=STRING)
BLOCKS = {"Text": TEXT, "Sound": SOUND}
NARROWING = ({"Tool": object_of(size=STRING)}, {"Tool": object_of(size=INTEGER)})
"""Undecided: `up narrowed Tool.size` and the same down."""


def the_change(step: StepPlan, kind: str) -> Change:
    (found,) = (change for change in step.undecided if change.kind == kind and change.direction == "up")
    return found


def default_for(older: Mapping[str, Schema], newer: Mapping[str, Schema], kind: str) -> list[str]:
    step = plan(older, newer)
    return safe_default(the_change(step, kind), step)


def without_sound(schema: Schema, rest: Schema) -> tuple[dict[str, Schema], dict[str, Schema]]:
    """A revision that has sounds in a place, and the next, where they are gone from there."""
    common = {**BLOCKS, "Other": object_of("type", type=const("other"))}
    return {"Result": schema, **common}, {"Result": rest, **common}


def entries(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(text)["decision"]
    return found


def test_safe_default_for_a_rename_keeps_the_two_apart() -> None:
    shape = object_of(a=STRING, b=STRING)
    assert default_for({"Old": shape}, {"New": shape}, "renamed") == ['do = "apart"']


def test_safe_default_for_a_field_where_any_key_may_be_keeps_it() -> None:
    open_again = {**object_of(b=STRING), "additionalProperties": {}}
    older, newer = {"Tool": object_of(a=STRING, b=STRING)}, {"Tool": open_again}
    assert default_for(older, newer, "field-removed") == ['do = "keep"']


def test_safe_default_for_a_narrowed_type_drops_what_is_invalid() -> None:
    older, newer = {"Tool": object_of(size={})}, {"Tool": object_of(size=any_of(STRING, INTEGER))}
    assert default_for(older, newer, "narrowed") == ['do = "drop-invalid"']


def test_safe_default_for_a_field_that_becomes_required_refuses() -> None:
    older, newer = {"Tool": object_of(name=STRING)}, {"Tool": object_of("name", name=STRING)}
    assert default_for(older, newer, "required") == ['do = "refuse"']


@pytest.mark.parametrize(
    ("schema", "rest"),
    [
        (object_of(content=array_of(any_of(ref("Text"), ref("Sound")))), object_of(content=array_of(ref("Text")))),
        (object_of(content=any_of(ref("Text"), ref("Sound"))), object_of(content=any_of(ref("Text"), ref("Other")))),
        (
            {"type": "object", "additionalProperties": any_of(ref("Text"), ref("Sound"))},
            {"type": "object", "additionalProperties": any_of(ref("Text"), ref("Other"))},
        ),
    ],
)
def test_safe_default_for_an_arm_is_a_text_where_there_may_be_one(schema: Schema, rest: Schema) -> None:
    found = default_for(*without_sound(schema, rest), "arm-removed")
    assert found == ['do = "text-block"', 'with = { template = "[Sound]" }']


def test_safe_default_for_an_arm_among_items_leaves_the_item_out() -> None:
    older = object_of(content=array_of(any_of(ref("Other"), ref("Sound"))))
    newer = object_of(content=array_of(ref("Other")))
    assert default_for(*without_sound(older, newer), "arm-removed") == ['do = "drop-item"']


def test_safe_default_for_an_arm_that_has_no_place_refuses() -> None:
    older, newer = object_of(content=any_of(ref("Other"), ref("Sound"))), object_of(content=ref("Other"))
    said = ['do = "refuse"', 'with = { reason = "2002-02-02 has no Sound here." }']
    assert default_for(*without_sound(older, newer), "arm-removed") == said


@pytest.mark.parametrize("pointer", ["/$defs/Gone", "/$defs/Tool/properties/gone/items", "/$defs/Tool/items"])
def test_safe_default_for_an_arm_refuses_where_the_target_has_no_such_place(pointer: str) -> None:
    step = plan(*NARROWING)
    arm = Change("up", "arm-removed", "Result.content", "nothing remains", "", "", "Tool", target_way=pointer)
    assert safe_default(arm, step)[0] == 'do = "refuse"'


def test_an_entry_to_fill_in_says_what_can_be_done() -> None:
    text = add_entries("", plan(*NARROWING), complete=False)
    verbs = " | ".join(verb.name for verb in verbs_for("narrowed", "up"))
    assert f'do = ""  # {verbs}\n' in text


def test_a_new_overlay_begins_with_the_step_that_it_is_for() -> None:
    text = add_entries("", plan(*NARROWING), complete=False)
    assert text.startswith("# The step 2001-01-01 <-> 2002-02-02.")


def test_an_entry_names_the_arm_that_is_gone() -> None:
    older, newer = object_of(content=any_of(ref("Other"), ref("Sound"))), object_of(content=ref("Other"))
    text = add_entries("", plan(*without_sound(older, newer)), complete=True)
    assert [(e["name"], e["arm"]) for e in entries(text)] == [("arm-removed Sound at Result.content", "Sound")]


def test_entries_stand_behind_what_a_person_wrote() -> None:
    written = "# By hand.\n\n" + decision("up", "narrowed", "Tool.size", "keep")
    text = add_entries(written, plan(*NARROWING, written), complete=False)
    assert text.startswith(written.rstrip())
    assert [entry["direction"] for entry in entries(text)] == ["up", "down"]


def test_a_change_that_has_an_entry_to_fill_in_gets_no_second() -> None:
    once = add_entries("", plan(*NARROWING), complete=False)
    assert add_entries(once, plan(*NARROWING, once), complete=False) == once


def test_entries_that_nobody_filled_in_give_way_to_the_safe_defaults() -> None:
    once = add_entries("", plan(*NARROWING), complete=False)
    text = add_entries(once, plan(*NARROWING, once), complete=True)
    assert [(entry["do"], entry["reviewed"]) for entry in entries(text)] == [("drop-invalid", False)] * 2


def test_safe_defaults_leave_nothing_undecided() -> None:
    assert plan(*NARROWING, add_entries("", plan(*NARROWING), complete=True)).undecided == ()


def test_undecided_error_lists_each_change_and_names_the_command() -> None:
    said = str(undecided_error(plan(*NARROWING), "skeleton"))
    assert "the step into 2002-02-02 has 2 undecided change(s):\n  - up narrowed Tool.size: string becomes int" in said
    assert "`nox -s regen -- --accept-defaults`" in said


# --- changes that are alike are one question -------------------------------------------------------------------------

RESULTS = {name: object_of(a=STRING) for name in ("A", "B", "C")}
STAMPED = {name: object_of("kind", a=STRING, kind=STRING) for name in RESULTS}
RENAMED = {name: object_of(b=STRING) for name in RESULTS}
MOVED = {name: object_of(inner=object_of(a=STRING)) for name in RESULTS}
NAMED = object_of("type", type=const("sound"), data=STRING)


def test_a_field_that_several_objects_get_is_one_question() -> None:
    (entry,) = entries(add_entries("", plan(RESULTS, STAMPED), complete=False))
    assert (entry["at"], entry["name"]) == (["A.kind", "B.kind", "C.kind"], "required at A.kind and 2 more")


def test_one_question_says_in_the_error_where_else_it_is() -> None:
    said = str(undecided_error(plan(RESULTS, STAMPED), "skeleton"))
    assert "has 1 undecided change(s)" in said
    assert said.split("\n")[1].endswith("; and so in 2 more: B.kind, C.kind")


@pytest.mark.parametrize("newer", [RENAMED, MOVED])
def test_one_entry_says_of_several_objects_that_it_is_the_same(newer: Mapping[str, Schema]) -> None:
    text = add_entries("", plan(RESULTS, newer), complete=False)
    ready = text.partition("write in the place of this entry:\n")[2].partition("\n\n")[0].replace("# ", "")
    answered = ready.replace('reason = ""', 'reason = "The same."')
    assert tomllib.loads(answered)[ready[2:].partition("]]")[0]][0]["at"] == ["A", "B", "C"]
    assert plan(RESULTS, newer, answered).undecided == ()


def test_safe_defaults_of_one_question_may_differ() -> None:
    blocks = {"Text": TEXT, "Sound": NAMED, "Other": object_of("type", type=const("other"))}
    older = {
        **blocks,
        "A": object_of(x=any_of(ref("Text"), ref("Sound"))),
        "B": object_of(x=any_of(ref("Other"), ref("Sound"))),
    }
    newer = {**blocks, "A": object_of(x=ref("Text")), "B": object_of(x=ref("Other"))}
    step = plan(older, newer)
    assert len(entries(add_entries("", step, complete=False))) == 1
    taken = entries(add_entries("", step, complete=True))
    assert [(entry["at"], entry["do"]) for entry in taken] == [("A.x", "text-block"), ("B.x", "refuse")]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (object_of(a=STRING, b=STRING), object_of("a", "b", a=STRING, b=STRING)),
        (object_of(a=STRING, b=INTEGER), object_of(a=INTEGER, b={"const": 1})),
        (object_of(a=any_of(STRING, INTEGER), b=any_of(STRING, INTEGER)), object_of(a=STRING, b=INTEGER)),
    ],
)
def test_changes_that_are_not_alike_are_two_questions(older: Schema, newer: Schema) -> None:
    found = entries(add_entries("", plan({"A": older}, {"A": newer}), complete=False))
    assert len([entry for entry in found if entry["direction"] == "up"]) == 2


def test_a_list_of_places_is_wrapped() -> None:
    older = {f"Definition{number:02}": object_of(a=STRING) for number in range(20)}
    newer = {name: object_of("kind", a=STRING, kind=STRING) for name in older}
    text = add_entries("", plan(older, newer), complete=False)
    assert max(map(len, text.splitlines())) <= 120
    assert entries(text)[0]["at"] == [f"{name}.kind" for name in older]


METHODS = {"RequestParams": object_of(_meta=object_of()), "RequestId": STRING, "EmptyResult": object_of()}
ASK = {"AskRequest": object_of("method", method=const("ask"), params=object_of(a=STRING))}
BEG = {"BegRequest": object_of("method", method=const("beg"), params=object_of(a=STRING))}
BOTH = any_of(ref("AskRequest"), ref("BegRequest"))
CLIENT = {"ClientRequest": any_of(ref("AskRequest"))}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"Old": object_of(a=STRING, b=STRING)}, {"New": object_of(a=STRING, b=STRING)}),
        ({"Tool": object_of(title=STRING)}, {"Tool": object_of(label=STRING)}),
        ({"Tool": object_of(title=STRING)}, {"Tool": object_of(shown=object_of(title=STRING))}),
        ({**METHODS, **ASK, **BEG, "ClientRequest": BOTH}, {**METHODS, **ASK, **BEG, "ClientMessage": BOTH}),
        ({**METHODS, **ASK, **CLIENT}, {**METHODS, **BEG, "ClientRequest": any_of(ref("BegRequest"))}),
    ],
)
def test_entry_that_says_that_it_is_the_same_stands_ready(older: dict[str, Schema], newer: dict[str, Schema]) -> None:
    step = plan(older, newer)
    (change,) = (change for change in step.undecided if change.instead[0])
    text = add_entries("", step, complete=False)
    ready = text.partition("write in the place of this entry:\n")[2].partition("\n\n")[0].replace("# ", "")
    assert {
        key: value for key, value in tomllib.loads(ready)[change.instead[0]][0].items() if key not in ("name", "reason")
    } == dict(change.instead[1])
    if change.kind != "methods-gone":  # the new name of a union is read with the schema
        answered = ready.replace('reason = ""', 'reason = "The same."')
        assert change not in plan(older, newer, answered).undecided


def test_values_that_are_gone_are_named() -> None:
    step = plan({"Level": {"enum": ["a", "b", "c"]}, "Log": object_of(level=ref("Level"))},
                {"Level": {"enum": ["b", "d"]}, "Log": object_of(level=ref("Level"))})  # fmt: skip
    assert [change.detail for change in step.undecided] == ["a, c are not there any more", "d is not there any more"]


@pytest.mark.parametrize(("new", "hinted"), [("ttlMs", True), ("lifetime", False)])
def test_a_new_name_that_says_a_unit_comes_with_a_factor(new: str, hinted: bool) -> None:
    older, newer = {"A": object_of(ttl=INTEGER)}, {"A": object_of(**{new: INTEGER})}
    assert ("# factor = 1000" in add_entries("", plan(older, newer), complete=False)) is hinted


def test_defaults_are_not_advised_where_there_is_none() -> None:
    older = {**METHODS, **ASK, **BEG, "ClientRequest": BOTH}
    step = plan(older, {**METHODS, **ASK, **BEG, "ClientMessage": BOTH})
    assert "--accept-defaults" not in str(undecided_error(step, "skeleton"))
