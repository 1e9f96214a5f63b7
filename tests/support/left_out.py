"""What a message may lose on the way up: found in the plans of the steps, not listed here.

A release whose schema or overlay takes something away brings its own entries along. Used by the laws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise

from codegen.plan.nodes import Node, ObjectNode, Work
from codegen.plan.plan import DirectionPlan, StepPlan, plan_step
from codegen.read.load import load_spec
from codegen.read.overlay import read_overlay
from dragoman_spec import REVISIONS
from tests.support.judge import ROOT


@cache
def plans() -> Mapping[str, StepPlan]:
    """The plan of each step, by the newer revision."""
    specs = [load_spec(ROOT, revision) for revision in REVISIONS]
    found = [plan_step(one, two, read_overlay(ROOT, two.revision)) for one, two in pairwise(specs)]
    return {plan.newer.revision: plan for plan in found}


@cache
def left_out_on_the_way_up(source: str, target: str) -> frozenset[str]:
    """The fields of frames that some step from one revision up to another drops, narrows or has an action for."""
    steps = REVISIONS[REVISIONS.index(source) + 1 : REVISIONS.index(target) + 1]
    return frozenset(name for step in steps for name in lossy_fields(plans()[step].ways["up", "strict"]))


def lossy_fields(way: DirectionPlan) -> Iterator[str]:
    """The fields of frames that one direction of a step does not carry whole."""
    for key in reached(way):
        node = way.nodes[key]
        if isinstance(node, ObjectNode):
            yield from node.drops
            yield from (name for name, member in node.members.items() if _acts(way, member.work, set()))
            for move in node.moves:
                yield from move.old
            for hook in (*node.hooks_before, *node.hooks_after):
                yield from (value for value in hook.arguments.values() if isinstance(value, str))


def reached(way: DirectionPlan) -> set[str]:
    """The nodes that frames of some method come by."""
    left = [*way.requests.values(), *way.notifications.values(), *way.results.values()]
    found: set[str] = set()
    while left:
        key = left.pop()
        if key not in found:
            found.add(key)
            left += [work.node for work in way.nodes[key].works() if work.node is not None]
    return found


def _acts(way: DirectionPlan, work: Work, seen: set[str]) -> bool:
    """Whether an action is called on a value, on an item of it, or on one of the things that it can be."""
    if work.before is not None:
        return True
    if work.node is None or work.node in seen:
        return False
    node: Node = way.nodes[work.node]
    inner = () if isinstance(node, ObjectNode) else node.works()
    return any(_acts(way, one, seen | {work.node}) for one in inner)
