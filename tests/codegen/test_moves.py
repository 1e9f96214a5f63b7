"""Where a field goes is said by an entry, and asked where one is gone and one of its name and type came elsewhere."""

from __future__ import annotations

import pytest

from codegen.errors import UnusedDecision
from codegen.plan.moves import arranged, left_and_come, most_like
from codegen.plan.nodes import Moved
from codegen.read.model import Field, Scalar
from codegen.read.overlay import parse_overlay
from tests.support.small_specs import INTEGER, NEWER, STRING, Schema, object_of, plan, ref, spec


def move(old: str, new: str, at: str = "A") -> str:
    ways = [repr(way.split(".")) for way in (old, new)]
    return f'[[move]]\nname = "so"\nat = "{at}"\nold = {ways[0]}\nnew = {ways[1]}\nreason = "Because."\n'


IN, OUT = object_of(x=STRING, b=object_of(y=STRING)), object_of(b=object_of(x=STRING, y=STRING))


@pytest.mark.parametrize(
    ("one", "two", "ways"),
    [
        (IN, OUT, [(("x",), ("b", "x"))]),
        (OUT, IN, [(("b", "x"), ("x",))]),
        (object_of(x=STRING), object_of(c=object_of(x=STRING)), [(("x",), ("c", "x"))]),
        (object_of(c=object_of(x=STRING)), object_of(x=STRING), [(("c", "x"), ("x",))]),
        (IN, object_of(b=object_of(x=INTEGER, y=STRING)), [(("x",), ("b", "x"))]),
        (object_of(taskHint=STRING), object_of(c=object_of(task=STRING)), [(("taskHint",), ("c", "task"))]),
        (IN, object_of(b=object_of(z=STRING, y=STRING)), []),
        (object_of(x=STRING, b=object_of(x=STRING)), object_of(b=object_of(x=STRING)), []),
        (object_of(c=object_of(x=STRING)), object_of(d=object_of(x=STRING)), []),
        (object_of(c=object_of(x=STRING), d=object_of()), object_of(c=object_of(), d=object_of(x=STRING)),
         [(("c", "x"), ("d", "x"))]),
    ],
)  # fmt: skip
def test_ways_that_a_field_may_have_gone(one: Schema, two: Schema, ways: object) -> None:
    older, newer = spec({"A": one}), spec({"A": two}, NEWER)
    shapes = older.definitions["A"], newer.definitions["A"]
    found = left_and_come(older, newer, *shapes, lambda a, b: a == b)  # type: ignore[arg-type]
    assert [(old, new) for old, new, _ in found] == ways


@pytest.mark.parametrize(
    ("two", "hint"),
    [
        (object_of(c=object_of(task=STRING)), "c.task has the same name and type"),
        (object_of(c=object_of(task=INTEGER)), "c.task has the same name and another type: string became integer"),
        (object_of(c=object_of(tasks=STRING)), "c.tasks has a similar name and type"),
    ],
)
def test_a_way_has_a_hint(two: Schema, hint: str) -> None:
    older, newer = spec({"A": object_of(task=STRING)}), spec({"A": two}, NEWER)
    shapes = older.definitions["A"], newer.definitions["A"]
    found = left_and_come(older, newer, *shapes, lambda a, b: a == b)  # type: ignore[arg-type]
    assert [said for _, _, said in found] == [hint]


def test_object_looks_as_if_the_field_stood_where_it_goes() -> None:
    source = spec({"A": object_of("x", x=STRING, b=ref("B")), "B": object_of(y=STRING)})
    found = arranged(parse_overlay(NEWER, move("x", "b.x")), "up", "A", source, source.definitions["A"])  # type: ignore[arg-type]
    assert found.shape == spec({"A": object_of("b", b=object_of("x", x=STRING, y=STRING))}).definitions["A"]
    assert (found.moves, found.owners) == ((Moved(("x",), ("b", "x"), prune=False),), {"b": "B"})


@pytest.mark.parametrize(
    ("container", "field", "needed"), [(["b"], ["x"], True), ([], ["x"], False), (["b"], [], False)]
)
def test_field_that_comes_out_is_needed_if_all_on_the_way_was(
    container: list[str], field: list[str], needed: bool
) -> None:
    source = spec({"A": object_of(*container, b=object_of(*field, x=STRING))})
    found = arranged(parse_overlay(NEWER, move("x", "b.x")), "down", "A", source, source.definitions["A"])  # type: ignore[arg-type]
    assert found.shape.fields["x"].required is needed
    assert found.moves[0].prune is not bool(container)


@pytest.mark.parametrize(("asks", "make"), [([], True), (["y"], False)])
def test_object_that_asks_for_something_else_is_not_made(asks: list[str], make: bool) -> None:
    source = spec({"A": object_of(x=STRING, b=object_of(*asks, y=STRING))})
    found = arranged(parse_overlay(NEWER, move("x", "b.x")), "up", "A", source, source.definitions["A"])  # type: ignore[arg-type]
    assert found.moves[0].make is make


@pytest.mark.parametrize(("asks", "make"), [([], True), (["y"], False)])
def test_object_deeper_on_the_way_that_asks_for_something_else_is_not_made(asks: list[str], make: bool) -> None:
    source = spec({"A": object_of(x=STRING, b=object_of(c=object_of(*asks, y=STRING)))})
    found = arranged(parse_overlay(NEWER, move("x", "b.c.x")), "up", "A", source, source.definitions["A"])  # type: ignore[arg-type]
    assert found.moves[0].make is make


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (move("z", "b.z"), "it matches nothing"),
        (move("x", "b.x", "B"), "it matches nothing"),
        (move("x", "b.x").replace("['x']", '"x"'), "'old' is a list of names, not 'x'"),
        (move("x", "b.x").replace("['x']", "[]"), "a way is a list of names"),
    ],
)
def test_move_of_nothing_is_an_error(entry: str, said: str) -> None:
    with pytest.raises(UnusedDecision, match=said):
        plan({"A": IN}, {"A": OUT}, entry)


def test_move_answers_the_question() -> None:
    assert [str(change).partition(":")[0] for change in plan({"A": IN}, {"A": OUT}).undecided] == ["up moved A.x"]
    assert plan({"A": IN}, {"A": OUT}, move("x", "b.x")).undecided == ()


def test_a_field_that_seems_to_have_moved_is_not_asked_about_again_for_a_new_one_beside_it() -> None:
    two = object_of(z=STRING, b=object_of(x=STRING, y=STRING))
    assert [str(change).partition(":")[0] for change in plan({"A": IN}, {"A": two}).undecided] == ["up moved A.x"]


def test_the_new_field_of_the_same_type_is_proposed_before_the_one_of_the_nearest_name() -> None:
    new = {"a": Field(Scalar(frozenset({"string"}))), "tasks": Field(Scalar(frozenset({"integer"})))}
    found = most_like("task", Field(Scalar(frozenset({"string"}))), new, lambda a, b: a == b)
    assert found is not None
    assert found.name == "a"
    found = most_like("task", Field(Scalar(frozenset({"boolean"}))), new, lambda a, b: a == b)
    assert found is not None
    assert found.name == "tasks"
