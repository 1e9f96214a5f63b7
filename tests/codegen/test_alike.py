"""Things are the same if they say the same and lead to the same, however long the way."""

from __future__ import annotations

from codegen.plan.nodes import Member, ObjectNode, Work
from codegen.write.alike import equal_nodes, told_apart


def test_things_that_lead_to_themselves_are_told_apart_by_what_they_say() -> None:
    leads = {"a": ("x", "b"), "b": ("x", "a"), "c": ("x", "d"), "d": ("y", "c"), "e": ("x", "e")}
    numbers = told_apart(leads, lambda name, of: f"{leads[name][0]} {of[leads[name][1]]}")
    assert numbers == {"a": 0, "b": 0, "c": 1, "d": 2, "e": 0}


def test_nodes_are_equal_only_if_what_they_refer_to_is() -> None:
    top = ObjectNode("Top", members={"a": Member(Work("below"))})
    one = {"top": top, "below": ObjectNode("Below", drops=("x",)), "same": ObjectNode("Same")}
    two = {"top": top, "below": ObjectNode("Below", drops=("y",)), "same": ObjectNode("Same"), "more": top}
    nodes = {("strict", key): node for key, node in one.items()} | {("minimal", key): node for key, node in two.items()}
    assert equal_nodes(nodes) == [
        [("strict", "top")],
        [("strict", "below")],
        [("strict", "same"), ("minimal", "same")],
        [("minimal", "top"), ("minimal", "more")],
        [("minimal", "below")],
    ]
