"""How a plan is spelled in Python: names, calls, and the expressions for what becomes of a value.

The statements that they stand in are in `bodies`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codegen.errors import UnusedDecision
from codegen.names import docstring, snake
from codegen.plan.actions import CHECK, declared_actions, declares
from codegen.plan.nodes import Action, ArrayNode, Key, Node, ObjectNode, UnionNode, Work
from codegen.plan.plan import DirectionPlan
from codegen.read.overlay import ErrorCode
from codegen.write.checks import Checks

MOST_LABELS = 4
OVERLAYS = "codegen/overlays"


@dataclass(slots=True)
class Way:
    """One direction: the functions of both profiles, and what they are called."""

    direction: str
    plans: Mapping[str, DirectionPlan]
    checks: Checks
    """Of the target: whether a value may stay."""
    origins: Checks
    """Of the source: which arm of a union a value is."""
    functions: list[Speller] = field(default_factory=list)
    names: dict[tuple[str, Key], str] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """An expression for the revision where the whole chain of steps leads."""
        return f"out.target or {self.plans['strict'].target.revision!r}"

    def table(self, profile: str, entries: Mapping[str, Key]) -> dict[str, str]:
        """Function names by method or definition."""
        return {name: self.names[profile, key] for name, key in entries.items()}

    def call(self, action: Action, v: str, at: str) -> str:
        """An expression that calls an action on the value of an expression at a place."""
        return spell_action(action, v, at, self.checks)

    def error(self, entry: ErrorCode) -> str:
        """An expression that calls an action on an error response; the method stands in the place's stead."""
        return spell_action(Action(entry.do, dict(entry.arguments), entry=entry.name), "x", "method", self.checks)


@dataclass(slots=True)
class Speller:
    """One node as a function, and the expressions that stand in it."""

    name: str
    node: Node
    way: Way
    profile: str
    labels: list[str] = field(default_factory=list)
    """What it converts: all places where the same is to be done."""

    @property
    def title(self) -> str:
        """Its docstring."""
        named = ", ".join(self.labels[:MOST_LABELS])
        more = f" and {len(self.labels) - MOST_LABELS} more" if len(self.labels) > MOST_LABELS else ""
        return f"{docstring(named)}{more}{'' if self.profile == 'strict' else ', only what validity needs'}."

    def work(self, work: Work, v: str, at: str) -> str:
        """An expression for the converted value of *v*."""
        value = v
        if work.before is not None:
            value = self.way.call(work.before, value, at)
            if work.again:
                return f"{self.name}({value}, {at}, out)"
        if work.node is None:
            return value
        name = self.way.names[self.profile, work.node]
        if work.before is not None and declares(work.before.name, "gone"):
            return f"(GONE if (h := {value}) is GONE else {name}(h, {at}, out))"
        return f"{name}({value}, {at}, out)"

    def call(self, action: Action, v: str, at: str) -> str:
        """An expression that calls an action on the value of an expression at a place."""
        return self.way.call(action, v, at)

    def may_go(self, work: Work) -> bool:
        """Whether the work can end in leaving the value out."""
        return can_be_gone(work, self.way.plans[self.profile].nodes)

    def reference(self, work: Work) -> str:
        """A function for the work, to hand to another."""
        if work.before is None and work.node is not None:
            return self.way.names[self.profile, work.node]
        return f"lambda v, at, out: {self.work(work, 'v', 'at')}"

    def node_of(self, work: Work) -> Node | None:
        """The node that the work leads to."""
        return self.way.plans[self.profile].nodes.get(work.node) if work.node is not None else None

    def from_nothing(self, work: Work) -> str:
        """What the work makes of an empty object, as an expression; empty where only the work itself can tell."""
        node = self.node_of(work)
        if not isinstance(node, ObjectNode) or work.before is not None:
            return ""
        if any((node.hooks_before, node.hooks_after, node.moves, node.renames, node.computed, node.demands)):
            return ""
        needed = {key: member for key, member in node.members.items() if member.ensure or not member.optional}
        made = {key: member.ensure and self.from_nothing(member.made or member.work) for key, member in needed.items()}
        if not all(made.values()):
            return ""
        made |= dict.fromkeys(node.named_in, self.way.last)
        made |= {key: repr(value) for key, value in node.facts.items()}
        made |= {key: repr(value) for key, value in node.fills.items() if key not in made}
        return "{" + ", ".join(f"{key!r}: {value}" for key, value in made.items()) + "}"


def negate(condition: str) -> str:
    """The opposite of an expression, as a person would write it."""
    if re.fullmatch(r"type\(\S+\) is \w+", condition):
        return condition.replace(") is ", ") is not ")
    return f"not ({condition})"


def can_be_gone(work: Work, nodes: Mapping[Key, Node]) -> bool:
    """Whether the work can end in leaving the value out."""
    if work.before is not None and declares(work.before.name, "gone"):
        return True
    node = nodes.get(work.node) if work.node is not None else None
    if node is None or isinstance(node, ArrayNode):
        return False
    if isinstance(node, UnionNode):
        return any(can_be_gone(case.work, nodes) for case in node.cases if case.work.node != work.node)
    return any(declares(action.name, "gone") for action in (*node.hooks_before, *node.hooks_after))


def spell_action(action: Action, v: str, at: str, checks: Checks) -> str:
    """A call of an action with its constant arguments.

    Raises:
        UnusedDecision: There is no such action, or it takes other arguments.
    """
    found = declared_actions().get(action.name)
    where = action.entry or action.name
    if found is None:
        known = ", ".join(declared_actions())
        raise UnusedDecision(OVERLAYS, where, f"there is no action {action.name!r}; there are {known}")
    given = {key.replace("-", "_") for key in action.arguments} - {CHECK}
    odd = [f"no {name!r}" for name in sorted(given - found.arguments)]
    odd += [f"{name!r} as well" for name in sorted(found.needed - given)]
    if odd:
        takes = ", ".join(sorted(found.arguments)) or "nothing"
        raise UnusedDecision(OVERLAYS, where, f"{action.name} takes {takes} in `with`: {' and '.join(odd)}")
    arguments = "".join(
        f", {key.replace('-', '_')}={_argument(value, checks)}" for key, value in action.arguments.items()
    )
    return f"{found.module}.{snake(action.name)}({v}, {at}, out{arguments})"


def _argument(value: Any, checks: Checks) -> str:
    if type(value) in (str, int, float, bool, dict, list, tuple):
        return repr(list(value) if isinstance(value, tuple) else value)
    return checks.function(value, f"wanted {len(checks.functions)}")
