"""Two small schemas in, nodes out; and what is asked of the overlay on the way."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.errors import UnusedDecision
from codegen.plan.derive import Derivation
from codegen.plan.nodes import Action, ArrayNode, Case, Member, Node, ObjectNode, UnionNode, Work
from codegen.plan.twins import ask_definitions
from codegen.read.model import Literal, Scalar
from tests.support.small_specs import (
    INTEGER,
    STRING,
    Schema,
    any_of,
    array_of,
    const,
    decision,
    derivation,
    object_of,
    ref,
)

TEXT = Scalar(frozenset({"string"}))
NUMBER = Scalar(frozenset({"integer"}))
BLOCKS = {name: object_of("type", type=const(name.lower())) for name in ("Text", "Sound", "Image")}


def derive(older: Schema, newer: Schema, overlay: str = "", **more: Any) -> Derivation:
    """The way up for one definition, `It`, and the three blocks."""
    way = derivation({"It": older, **BLOCKS}, {"It": newer, **BLOCKS}, overlay, **more)
    way.pair("It", "It")
    return way


def node(older: Schema, newer: Schema, overlay: str = "", **more: Any) -> Node:
    return derive(older, newer, overlay, **more).nodes["it"]


def object_node(older: Schema, newer: Schema, overlay: str = "", **more: Any) -> ObjectNode:
    found = node(older, newer, overlay, **more)
    assert isinstance(found, ObjectNode)
    return found


def member(older: Schema, newer: Schema, overlay: str = "", **more: Any) -> Work:
    """The work on a field `a` of these types."""
    return object_node(object_of(a=older), object_of(a=newer), overlay, **more).members["a"].work


def asked(way: Derivation) -> list[str]:
    """What the overlay did not rule on."""
    return [f"{change.kind} {change.at} {change.arm}".strip() for change in way.undecided.values()]


# --- scalars and arrays ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("older", "newer"), [(STRING, STRING), (const("a"), STRING), (STRING, {}), (ref("Text"), {})])
def test_values_that_fit_are_left_alone(older: Schema, newer: Schema) -> None:
    assert member(older, newer).idle


@pytest.mark.parametrize(
    ("older", "newer"),
    [(STRING, INTEGER), (object_of(), STRING), (STRING, const("a")), ({}, any_of(STRING, INTEGER)), ({}, STRING)],
)
def test_values_that_may_not_fit_are_asked_about(older: Schema, newer: Schema) -> None:
    assert asked(derive(object_of(a=older), object_of(a=newer))) == ["narrowed It.a"]


def test_values_that_may_not_fit_are_dropped_meanwhile() -> None:
    assert member(STRING, INTEGER).before == Action("drop-invalid", {"check": NUMBER})


def test_decision_to_keep_leaves_values_alone() -> None:
    assert member(STRING, INTEGER, decision("up", "narrowed", "It.a", "keep")).idle


def test_decision_that_asks_for_a_predicate_gets_that_of_the_target() -> None:
    ruled = decision("up", "narrowed", "It.a", "map-value", with_='{ to = { x = "a" } }')
    assert member(STRING, const("a"), ruled).before == Action(
        "map-value", {"to": {"x": "a"}, "check": Literal(("a",))}, entry="it"
    )


def test_decision_for_another_profile_leaves_the_safe_default() -> None:
    ruled = decision("up", "narrowed", "It.a", "keep", profiles='["strict"]')
    assert member(STRING, INTEGER, ruled, profile="minimal").before == Action("drop-invalid", {"check": NUMBER})


def test_items_are_converted_one_by_one() -> None:
    way = derive(object_of(a=array_of(STRING)), object_of(a=array_of(INTEGER)))
    assert way.nodes["it_a"] == ArrayNode("It.a", Work(before=Action("drop-invalid", {"check": NUMBER})))


@pytest.mark.parametrize("older", [{}, {"maxItems": 3}])
def test_a_shorter_limit_is_asked_about(older: dict[str, Any]) -> None:
    cut = decision("up", "narrowed", "It.a", "truncate", with_="{ most = 2 }")
    found = member(array_of(STRING, **older), array_of(STRING, maxItems=2), cut)
    assert found == Work(before=Action("truncate", {"most": 2}, entry="it"))


@pytest.mark.parametrize("newer", [{}, {"maxItems": 3}])
def test_a_longer_limit_is_not_asked_about(newer: dict[str, Any]) -> None:
    assert member(array_of(STRING, maxItems=2), array_of(STRING, **newer)).idle


# --- objects -----------------------------------------------------------------------------------------------------


def test_a_field_that_the_target_lacks_is_dropped() -> None:
    assert object_node(object_of(a=STRING), object_of()).drops == ("a",)


def test_a_field_that_the_target_lacks_stays_in_the_minimal_profile() -> None:
    assert object_node(object_of(a=STRING), object_of(), profile="minimal").drops == ()


def test_a_field_that_the_target_lacks_is_dropped_where_other_keys_have_a_type() -> None:
    closed = {"type": "object", "additionalProperties": INTEGER}
    assert object_node(object_of(a=STRING), closed, profile="minimal").drops == ("a",)


@pytest.mark.parametrize(("do", "drops"), [("keep", ()), ("drop", ("a",))])
def test_a_field_where_any_key_may_be_is_decided_on(do: str, drops: tuple[str, ...]) -> None:
    newer = {**object_of(b=STRING), "additionalProperties": {}}
    ruled = decision("up", "field-removed", "It.a", do)
    assert object_node(object_of(a=STRING, b=STRING), newer, ruled).drops == drops


def test_a_required_constant_that_is_dropped_is_no_loss() -> None:
    assert object_node(object_of("a", a=const("x")), object_of()).silent == {"a": "x"}


def test_what_the_way_up_filled_in_is_no_loss_on_the_way_down() -> None:
    found = object_node(object_of(), object_of(a=STRING), direction="down", synthesised={"It.a": "x"})
    assert found.silent == {"a": "x"}


def test_a_field_that_only_the_target_names_is_guarded() -> None:
    assert object_node(object_of(), object_of(a=STRING)).guards == {"a": TEXT}


def test_a_field_that_may_be_anything_needs_no_guard() -> None:
    assert object_node(object_of(), object_of(a={})).guards == {}


@pytest.mark.parametrize(
    ("direction", "profile", "guarded"),
    [("up", "strict", True), ("down", "strict", True), ("up", "minimal", False), ("down", "minimal", True)],
)
def test_the_minimal_profile_guards_on_the_way_down_alone(direction: str, profile: str, guarded: bool) -> None:
    less, more = object_of(), object_of(a=STRING)
    ends = (less, more) if direction == "up" else (more, less)
    assert bool(object_node(*ends, direction=direction, profile=profile).guards) is guarded


def test_a_required_constant_is_filled_in() -> None:
    assert object_node(object_of(b=STRING), object_of("a", a=const("x"))).fills == {"a": "x"}


@pytest.mark.parametrize("older", [object_of(), {**object_of(b=STRING), "additionalProperties": {}}])
def test_a_required_constant_where_any_key_may_be_is_asked_about(older: Schema) -> None:
    (change,) = derive(older, object_of("a", a=const("x"), b=STRING)).undecided.values()
    assert (change.kind, change.at, change.detail) == ("required", "It.a", 'a becomes required and is always "x"')


def test_an_object_that_is_made_where_none_was_is_given_its_constants() -> None:
    inner = object_of("c", "d", c=const("x"), d=object_of("e", e=const("y")))
    assert derive(object_of(b=STRING), object_of("a", a=inner)).filled == {"It.a.c": "x", "It.a.d.e": "y"}


def test_a_required_object_is_made_and_filled_in() -> None:
    way = derive(object_of(), object_of("a", a=object_of("b", b=const("x"))))
    found = way.nodes["it"]
    assert isinstance(found, ObjectNode)
    assert found.members["a"] == Member(Work("it_a"), ensure=True)
    assert way.filled == {"It.a.b": "x"}


def test_an_object_that_becomes_required_is_made_of_what_it_must_have() -> None:
    inner = object_of("b", b=const("x"))
    found = object_node(object_of(a=object_of()), object_of("a", a=inner))
    assert found.members["a"].ensure


def test_an_object_that_becomes_required_and_may_be_empty_is_asked_about() -> None:
    way = derive(object_of(a=object_of()), object_of("a", a=object_of()))
    assert [(kind, at) for kind, at, _ in way.undecided] == [("required", "It.a")]


def test_an_object_that_becomes_optional_goes_when_it_is_emptied() -> None:
    found = object_node(object_of("a", a=object_of()), object_of(a=object_of()))
    assert found.members["a"].prune


@pytest.mark.parametrize(
    ("do", "with_", "expected"),
    [
        ("refuse", "{}", ({}, {}, ("a",))),
        ("default", '{ value = "x" }', ({"a": "x"}, {}, ())),
        ("digest", '{ of = "x" }', ({}, {"a": Action("digest", {"of": "x"}, entry="it")}, ())),
    ],
)
def test_a_field_that_becomes_required_is_decided_on(do: str, with_: str, expected: Any) -> None:
    ruled = decision("up", "required", "It.a", do, with_=with_)
    found = object_node(object_of(a=STRING), object_of("a", a=STRING), ruled)
    assert (found.fills, found.computed, found.demands) == expected


def test_a_field_that_becomes_required_is_demanded_meanwhile() -> None:
    assert object_node(object_of(a=STRING), object_of("a", a=STRING)).demands == ("a",)


RENAME = '[[rename]]\nname = "so"\nwhat = "field"\nold = "a"\nnew = "b"\nat = "It"\nreason = "So."\n'


def test_a_renamed_field_goes_under_its_new_name() -> None:
    found = object_node(object_of("a", a=STRING), object_of("b", b=STRING), RENAME)
    assert (found.renames, found.drops, found.guards, found.demands) == ({"a": "b"}, (), {}, ())


def test_a_renamed_field_gets_its_old_name_back_on_the_way_down() -> None:
    found = object_node(object_of(a=STRING), object_of(b=STRING), RENAME, direction="down")
    assert found.renames == {"b": "a"}


def test_a_renamed_field_counts_as_a_use_of_the_entry() -> None:
    derive(object_of(a=STRING), object_of(b=STRING), RENAME).overlay.check_used()


HOOK = '[[hook]]\nname = "look"\ndirection = "up"\nat = "It"\nkind = "after"\ndo = "peek"\nreason = "So."\n'


def test_a_hook_is_called_where_it_says() -> None:
    found = object_node(object_of(), object_of(), HOOK)
    assert (found.hooks_before, found.hooks_after) == ((), (Action("peek", entry="look"),))


def test_a_hook_is_not_called_in_a_profile_that_it_does_not_name() -> None:
    assert object_node(object_of(), object_of(), HOOK, profile="minimal").hooks_after == ()


# --- unions ------------------------------------------------------------------------------------------------------


def test_arms_are_told_apart_by_their_tags() -> None:
    grown = object_of("type", "more", type=const("text"), more=const(1))
    older, newer = {"It": any_of(ref("Text"), ref("Sound"))}, {"It": any_of(ref("Sound"), ref("Text"))}
    way = derivation({**older, **BLOCKS}, {**newer, **BLOCKS, "Text": grown})
    way.pair("It", "It")
    cases = (Case("dict", Work("text"), ("text",)), Case("dict", Work("sound"), ("sound",)))
    assert way.nodes["it"] == UnionNode("It", "type", cases)


def test_arms_that_all_fit_need_nothing() -> None:
    assert member(any_of(STRING, INTEGER), any_of(INTEGER, STRING)).idle


def test_an_arm_that_is_gone_is_asked_about() -> None:
    way = derive(any_of(ref("Text"), ref("Sound")), any_of(ref("Text"), ref("Image")))
    assert asked(way) == ["arm-removed It Sound"]


def test_an_arm_without_a_name_is_asked_about_in_words() -> None:
    assert asked(derive(any_of(STRING, INTEGER), any_of(STRING, object_of()))) == ["arm-removed It integer"]


def gone(do: str, **more: str) -> Work:
    """The work on the arm `Sound`, which the newer revision lacks."""
    ruled = decision("up", "arm-removed", "It", do, arm='"Sound"', **more) if do else ""
    older = any_of(object_of("type", type=const("text"), more=STRING), ref("Sound"))
    found = node(older, any_of(object_of("type", type=const("text")), ref("Image")), ruled)
    assert isinstance(found, UnionNode)
    (work,) = (case.work for case in found.cases if case.tags == ("sound",))
    return work


def test_an_arm_that_is_gone_has_a_placeholder_meanwhile() -> None:
    assert gone("") == Work(before=Action("placeholder", {"name": "Sound"}))


def test_decision_to_keep_an_arm_leaves_it_alone() -> None:
    assert gone("keep").idle


def test_decision_that_an_arm_is_another_definition_converts_it_to_that() -> None:
    assert gone("as", with_='{ definition = "Image" }') == Work("sound_as_image")


def test_decision_to_replace_an_arm_hands_the_result_to_the_union_again() -> None:
    assert gone("text-block", with_='{ template = "x" }') == Work(
        before=Action("text-block", {"template": "x"}, entry="it"), again=True
    )


def test_decision_to_replace_an_arm_for_good_does_not() -> None:
    found = gone("text-block", with_='{ template = "x", final = true }')
    assert found == Work(before=Action("text-block", {"template": "x"}, entry="it"))


def test_an_arm_finds_itself_by_its_name_where_it_has_no_tag() -> None:
    older, newer = {"It": any_of(ref("A"), STRING)}, {"It": any_of(STRING, ref("A"))}
    way = derivation({**older, "A": object_of("a", a=STRING)}, {**newer, "A": object_of("b", b=INTEGER)})
    way.pair("It", "It")
    assert asked(way) == ["renamed A.a", "required A.b"]


def test_an_arm_in_place_finds_the_one_that_shares_most_with_it() -> None:
    one = object_of("a", a=STRING, b=STRING, c=STRING)
    older, newer = any_of(one, STRING), any_of(object_of("a", a=STRING), object_of("a", a=STRING, b=STRING), STRING)
    assert derive(older, newer).nodes["it_"] == object_node(one, object_of("a", a=STRING, b=STRING))


def test_a_list_finds_a_list_whatever_its_items() -> None:
    assert asked(derive(any_of(STRING, array_of(STRING)), any_of(STRING, array_of(INTEGER)))) == ["narrowed It[]"]


def test_arms_with_one_tag_are_told_apart_by_what_they_need() -> None:
    older = any_of(object_of("a", a=STRING, more=STRING), object_of("b", b=STRING))
    found = node(older, any_of(object_of("a", a=STRING), object_of("b", b=STRING)))
    assert isinstance(found, UnionNode)
    assert [sorted(case.needs) for case in found.cases] == [["a"], ["b"]]


# --- definitions -------------------------------------------------------------------------------------------------


def test_a_definition_that_is_another_by_name_leaves_that_where_it_is() -> None:
    way = derivation({"A": object_of(a=STRING), "B": ref("A")}, {"A": object_of(), "B": ref("A")})
    way.pair("B", "B")
    assert way.nodes["b"] == UnionNode("B", None, (Case("object", Work("a")),))


def test_a_definition_that_refers_to_itself_is_derived_once() -> None:
    shape = object_of(a=STRING, below=ref("Tree"))
    way = derivation({"Tree": shape}, {"Tree": object_of(below=ref("Tree"))})
    assert (way.pair("Tree", "Tree"), list(way.nodes)) == ("tree", ["tree"])


def test_keys_that_are_taken_get_another_ending() -> None:
    older, newer = object_of(a=object_of(b=STRING)), object_of(a=object_of())
    way = derivation({"ItA": older["properties"]["a"], "It": older}, {"ItA": newer["properties"]["a"], "It": newer})
    way.pair("ItA", "ItA")
    way.pair("It", "It")
    assert sorted(way.nodes) == ["it", "it_a", "it_a_"]


def test_an_object_in_place_is_found_by_its_pointer() -> None:
    way = derivation({"It": object_of(a=object_of(b=STRING))}, {"A": object_of()})
    key = way.part("/$defs/It/properties/a", "/$defs/A")
    assert (key, way.nodes["it_a"].label) == ("it_a", "It.a")


def test_a_part_that_is_no_object_has_no_node() -> None:
    assert (
        derivation({"It": object_of(a=STRING)}, {"A": object_of()}).part("/$defs/It/properties/a", "/$defs/A") is None
    )


@pytest.mark.parametrize(
    ("gone", "come", "hint"),
    [
        (STRING, STRING, "b is of the same type: string"),
        (array_of(STRING), array_of(STRING), "b is of the same type: list of string"),
        (ref("Text"), ref("Text"), "b is of the same type: Text"),
        (array_of(ref("Text")), array_of(ref("Text")), "b is of the same type: list of Text"),
        (STRING, INTEGER, "b is new here, of another type: string became integer"),
        (ref("Text"), ref("Sound"), "b is new here, of another type: Text became Sound"),
        (array_of(STRING), array_of(INTEGER), "b is new here, of another type: list of string became list of integer"),
        ({}, {}, "b is new here, of another type: any value became any value"),
    ],
)
def test_a_field_is_asked_about_where_one_comes_beside_it(gone: Schema, come: Schema, hint: str) -> None:
    way = derive(object_of(a=gone), object_of(b=come))
    assert [change.detail for change in way.undecided.values() if change.kind == "renamed"] == [hint]


def test_of_several_new_fields_the_one_of_its_type_is_proposed_and_then_the_one_of_its_name() -> None:
    way = derive(object_of(task=STRING), object_of(a=INTEGER, taskSupport=INTEGER))
    (change,) = way.undecided.values()
    assert (change.instead[1]["new"], "(so are a)" in change.detail) == ("taskSupport", True)
    way = derive(object_of(task=STRING), object_of(a=STRING, taskSupport=INTEGER))
    assert [change.instead[1]["new"] for change in way.undecided.values()] == ["a"]


def test_a_field_that_goes_where_none_comes_is_not_asked_about() -> None:
    assert asked(derive(object_of(a=STRING, c=STRING), object_of(c=STRING))) == []


# --- renames -----------------------------------------------------------------------------------------------------

SHAPE = object_of(a=STRING, b=STRING)


def renames_asked(older: Schema, newer: Schema, overlay: str = "", direction: str = "up") -> list[str]:
    way = derivation({"Old": older}, {"New": newer}, overlay, direction=direction)
    ask_definitions(way, {})
    return asked(way)


def test_a_definition_with_the_fields_of_one_that_is_gone_is_asked_about() -> None:
    assert renames_asked(SHAPE, SHAPE) == ["renamed Old"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (STRING, SHAPE),
        (SHAPE, object_of(a=STRING, c=STRING)),
        (object_of(a=STRING), object_of(a=STRING)),
        (object_of("a", a=const("x"), b=STRING), object_of("a", a=const("y"), b=STRING)),
        (object_of(method=STRING, b=STRING), object_of(method=STRING, b=STRING)),
    ],
)
def test_a_definition_that_differs_is_not_asked_about(older: Schema, newer: Schema) -> None:
    assert renames_asked(older, newer) == []


def test_renames_are_asked_about_on_the_way_up_alone() -> None:
    assert renames_asked(SHAPE, SHAPE, direction="down") == []


def test_a_rename_that_an_entry_names_is_not_asked_about() -> None:
    entry = '[[rename]]\nname = "so"\nwhat = "definition"\nold = "Old"\nnew = "New"\nreason = "So."\n'
    assert renames_asked(SHAPE, SHAPE, entry) == []


def renamed(*names: str, factor: int) -> str:
    old, new = names
    place = f'at = "It"\nfactor = {factor}\nreason = "Because."\n'
    return f'[[rename]]\nname = "so"\nwhat = "field"\nold = "{old}"\nnew = "{new}"\n{place}'


def test_each_renamed_field_has_its_own_factor() -> None:
    older, newer = object_of(s=INTEGER, kilo=INTEGER), object_of(ms=INTEGER, one=INTEGER)
    overlay = renamed("s", "ms", factor=1000) + renamed("kilo", "one", factor=1024)
    works = {name: member.work.before for name, member in object_node(older, newer, overlay).members.items()}
    assert {name: action.arguments["times"] for name, action in works.items() if action} == {"ms": 1000, "one": 1024}


@pytest.mark.parametrize(("older", "newer"), [(STRING, INTEGER), (INTEGER, STRING)])
def test_a_factor_is_for_numbers(older: Schema, newer: Schema) -> None:
    with pytest.raises(UnusedDecision, match="a `factor` is for numbers, not for"):
        node(object_of(s=older), object_of(ms=newer), renamed("s", "ms", factor=1000))
