"""Plans broken on purpose, one thing each, to show that the laws see it; and how to run a broken step in the place of
the good one.

A `Break` takes away what a node does with one key or value, or lets through what should stop. Only nodes that frames of
some method reach
count: what typed models alone need is tried in `tests/laws/test_definitions.py`. Used by
`tests/laws/test_mutations.py`.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from codegen.names import module_name
from codegen.plan.nodes import Node, ObjectNode, UnionNode, Work
from codegen.plan.plan import DirectionPlan, StepPlan
from codegen.write.steps import render_steps
from dragoman_spec import REVISIONS, translation
from tests.support.left_out import plans

Change = Callable[[DirectionPlan], DirectionPlan]


@dataclass(frozen=True, slots=True)
class Break:
    """One thing broken in the strict plan of one direction of the step into a revision."""

    revision: str
    direction: str
    what: str
    methods: frozenset[tuple[str, str]]
    change: Change

    def __str__(self) -> str:
        return f"{self.revision} {self.direction}: {self.what}"


@cache
def breaks() -> tuple[Break, ...]:
    """Everything that is broken, in a fixed order."""
    found: list[Break] = []
    for revision, plan in plans().items():
        for direction in ("up", "down"):
            way = plan.ways[direction, "strict"]
            reached = _reached(way)
            for key, node in sorted(way.nodes.items()):
                if key in reached:
                    for what, broken in _broken(node):
                        change = _with_node(key, broken)
                        found.append(Break(revision, direction, what, frozenset(reached[key]), change))
            found += _opened(revision, direction, way)
    return tuple(found)


def _broken(node: Node) -> Iterator[tuple[str, Node]]:
    """The node with one thing less, each way."""
    match node:
        case ObjectNode():
            for key in node.drops:
                yield f"{node.label} keeps {key}", replace(node, drops=tuple(k for k in node.drops if k != key))
            for key in node.guards:
                guards = {k: check for k, check in node.guards.items() if k != key}
                yield f"{node.label} does not guard {key}", replace(node, guards=guards)
            for key in node.fills:
                fills = {k: value for k, value in node.fills.items() if k != key}
                yield f"{node.label} does not fill in {key}", replace(node, fills=fills)
            for key, member in node.members.items():
                members = {k: m for k, m in node.members.items() if k != key}
                yield f"{node.label} does not convert {key}", replace(node, members=members)
                if member.work.idle or member.ensure:
                    continue
                yield f"{node.label} drops {key} as well", replace(node, members=members, drops=(*node.drops, key))
        case UnionNode():
            for case in node.cases:
                if not case.work.idle:
                    cases = tuple(c if c is not case else replace(c, work=Work()) for c in node.cases)
                    yield f"{node.label} does not convert {case.tags or case.json_type}", replace(node, cases=cases)


def _opened(revision: str, direction: str, way: DirectionPlan) -> Iterator[Break]:
    """Methods that the target lacks, let through."""
    for method in way.refused:
        refused = {name: refusal for name, refusal in way.refused.items() if name != method}
        yield _opening(revision, direction, "request", method, {"refused": refused})
    for method in way.swallowed:
        swallowed = tuple(name for name in way.swallowed if name != method)
        yield _opening(revision, direction, "notification", method, {"swallowed": swallowed})


def _opening(revision: str, direction: str, kind: str, method: str, fields: Mapping[str, Any]) -> Break:
    what = f"{method} goes through"
    return Break(revision, direction, what, frozenset({(kind, method)}), lambda way: replace(way, **fields))


def _with_node(key: str, node: Node) -> Change:
    return lambda way: replace(way, nodes={**way.nodes, key: node})


def _reached(way: DirectionPlan) -> dict[str, set[tuple[str, str]]]:
    """For each node the kinds and methods whose frames come by it."""
    found: dict[str, set[tuple[str, str]]] = {}
    tables = {"request": way.requests, "notification": way.notifications, "result": way.results}
    for kind, table in tables.items():
        for method, start in table.items():
            left, seen = [start], set()
            while left:
                key = left.pop()
                if key not in seen:
                    seen.add(key)
                    found.setdefault(key, set()).add((kind, method))
                    left += [work.node for work in way.nodes[key].works() if work.node is not None]
    return found


@contextlib.contextmanager
def in_place(broken: Break) -> Iterator[None]:
    """Translate by the broken step while inside."""
    plan = plans()[broken.revision]
    way = broken.change(plan.ways[broken.direction, "strict"])
    name = f"dragoman_spec.{module_name(broken.revision)}.steps"
    with _module(name, replace(plan, ways={**plan.ways, (broken.direction, "strict"): way})):
        yield


@contextlib.contextmanager
def _module(name: str, plan: StepPlan) -> Iterator[None]:
    good = sys.modules.get(name)
    text = render_steps([plan], dict.fromkeys(REVISIONS, ""))[f"{name.replace('.', '/')}.py"]
    module = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
    sys.modules[name] = module
    translation._translator.cache_clear()
    try:
        yield
    finally:
        del sys.modules[name]
        if good is not None:
            sys.modules[name] = good
        translation._translator.cache_clear()
