"""Nodes that do nothing are struck, in circles too."""

from __future__ import annotations

import pytest

from codegen.plan.nodes import Action, ArrayNode, Case, Member, Node, ObjectNode, UnionNode, Work, prune
from codegen.read.model import Literal

DROPS = ObjectNode("Drops", drops=("a",))
IDLE_CIRCLE: dict[str, Node] = {
    "one": ObjectNode("One", members={"two": Member(Work("two"))}),
    "two": ArrayNode("Two", Work("one")),
}


@pytest.mark.parametrize(
    "node",
    [
        ObjectNode("It", hooks_before=(Action("peek"),)),
        ObjectNode("It", renames={"a": "b"}),
        ObjectNode("It", drops=("a",)),
        ObjectNode("It", guards={"a": Literal(("x",))}),
        ObjectNode("It", fills={"a": 1}),
        ObjectNode("It", computed={"a": Action("digest")}),
        ObjectNode("It", demands=("a",)),
        ObjectNode("It", hooks_after=(Action("peek"),)),
        ObjectNode("It", members={"a": Member(Work(), ensure=True)}),
        ObjectNode("It", extra=Work(before=Action("peek"))),
        ArrayNode("It", Work(before=Action("peek"))),
        UnionNode("It", None, (Case("str", Work(before=Action("peek"))),)),
    ],
)
def test_a_node_that_does_something_stays(node: Node) -> None:
    assert prune({"it": node}) == {"it": node}


def test_nodes_that_do_nothing_in_a_circle_go() -> None:
    assert prune(IDLE_CIRCLE) == {}


def test_nodes_on_the_way_to_work_stay() -> None:
    nodes: dict[str, Node] = {
        **IDLE_CIRCLE,
        "two": UnionNode("Two", None, (Case("dict", Work("drops")),)),
        "drops": DROPS,
    }
    assert prune(nodes) == nodes


def test_references_to_what_went_are_cut() -> None:
    idle = ObjectNode("Idle")
    node = ObjectNode("It", drops=("a",), members={"b": Member(Work("idle"))}, extra=Work("idle"))
    assert prune({"it": node, "idle": idle}) == {"it": ObjectNode("It", drops=("a",))}


def test_items_keep_what_happens_before_a_reference_that_is_cut() -> None:
    nodes: dict[str, Node] = {"it": ArrayNode("It", Work("idle", Action("peek"))), "idle": ObjectNode("Idle")}
    assert prune(nodes) == {"it": ArrayNode("It", Work(None, Action("peek")))}


BUSY, IDLE = Work(before=Action("peek")), Work()


@pytest.mark.parametrize(
    ("first", "stays"),
    [
        (Case("dict", IDLE, ("a",)), False),
        (Case("dict", IDLE, ("b",)), True),
        (Case("dict", IDLE), True),
        (Case("list", IDLE), True),
    ],
)
def test_an_idle_case_stays_where_a_later_one_would_catch_its_values(first: Case, stays: bool) -> None:
    later = Case("dict", BUSY, ("b",))
    (node,) = prune({"it": UnionNode("It", "type", (first, later))}).values()
    assert node == UnionNode("It", "type", (first, later) if stays else (later,))


def test_an_idle_case_of_another_type_goes_where_nothing_asks_for_a_tag() -> None:
    nodes = {"it": UnionNode("It", None, (Case("list", IDLE), Case("dict", BUSY)))}
    assert prune(nodes) == {"it": UnionNode("It", None, (Case("dict", BUSY),))}


def test_an_object_is_touched_where_it_has_a_key_that_is_looked_for() -> None:
    node = ObjectNode(
        "It",
        hooks_before=(Action("peek", when="a"),),
        drops=("a", "b"),
        guards={"c": Literal(("x",))},
        members={"d": Member(Work("it"), optional=True)},
    )
    assert node.touches() == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    "node",
    [
        ObjectNode("It", hooks_before=(Action("peek"),)),
        ObjectNode("It", renames={"a": "b"}),
        ObjectNode("It", fills={"a": 1}),
        ObjectNode("It", computed={"a": Action("digest")}),
        ObjectNode("It", demands=("a",)),
        ObjectNode("It", hooks_after=(Action("peek"),)),
        ObjectNode("It", members={"a": Member(Work("it"))}),
        ObjectNode("It", members={"a": Member(Work("it"), ensure=True, optional=True)}),
        ObjectNode("It", extra=Work("it")),
    ],
)
def test_an_object_can_be_touched_whatever_keys_it_has(node: ObjectNode) -> None:
    assert node.touches() is None
