"""Plans in, `steps.py` of each revision out, with the modules that every step calls.

Here lives how a plan is spelled in Python: names, expressions, tables. Layout is in
`templates/dragoman_spec/steps.py.jinja`, and what is to be done in `step_plan`. Called by `regen`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codegen.actions import CHECK, action, declared_actions, declares
from codegen.alike import equal_nodes
from codegen.checks import Checks
from codegen.errors import UnusedDecision
from codegen.layout import environment
from codegen.names import module_name, snake
from codegen.overlay import ErrorCode, Rule
from codegen.plan import Action, ArrayNode, Key, Node, ObjectNode, UnionNode, Work
from codegen.registry import NOTICE, TEMPLATES
from codegen.step_plan import DirectionPlan, StepPlan

MOST_KEYS_ASKED = 6
"""To ask whether an item has none of more keys than this costs as much as the call that it would save."""

MOST_LABELS = 4
OVERLAYS = "codegen/overlays"


def render_steps(plans: list[StepPlan], rules: list[Rule], digests: Mapping[str, str]) -> dict[str, str]:
    """Render the steps and the modules they stand on.

    Args:
        plans: One a step, oldest first.
        rules: The named repair rules of all overlays.
        digests: sha256 of each canonical schema, by revision.

    Returns:
        Unformatted Python by path below `generated/`.
    """
    templates = environment(TEMPLATES)
    revisions = sorted(digests)
    steps = [(plan.older.revision, module_name(plan.newer.revision)) for plan in plans]
    facts = {
        "notice": NOTICE,
        "rules": rules,
        "steps": steps,
        "revisions": revisions,
        "modules": [module_name(r) for r in revisions],
    }
    output = {"dragoman_spec/py.typed": ""}
    for name in ("__init__.py", "rules.py"):
        output[f"dragoman_spec/{name}"] = templates.get_template(f"{name}.jinja").render(**facts)
    template = templates.get_template("steps.py.jinja")
    for plan in plans:
        ways = [_spell(plan, "up"), _spell(plan, "down")]
        output[f"dragoman_spec/{module_name(plan.newer.revision)}/steps.py"] = template.render(
            notice=NOTICE, plan=plan, ways=ways, digests=digests, isinstance=isinstance
        )
    return output


@dataclass(slots=True)
class Way:
    """One direction as the template needs it: functions of both profiles, and their tables."""

    direction: str
    plans: Mapping[str, DirectionPlan]
    checks: Checks
    """Of the target: whether a value may stay."""
    origins: Checks
    """Of the source: which arm of a union a value is."""
    functions: list[Function] = field(default_factory=list)
    names: dict[tuple[str, Key], str] = field(default_factory=dict)

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
class Function:
    """One node as a function; the template asks it for every expression."""

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
        return f"{named}{more}{'' if self.profile == 'strict' else ', only what validity needs'}."

    @property
    def kind(self) -> str:
        """Which template part lays it out."""
        return type(self.node).__name__.removesuffix("Node").lower()

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

    def gone(self, work: Work) -> bool:
        """Whether the work can end in leaving the value out."""
        return can_be_gone(work, self.way.plans[self.profile].nodes)

    def reference(self, work: Work) -> str:
        """A function for the work, to hand to another."""
        if work.before is None and work.node is not None:
            return self.way.names[self.profile, work.node]
        return f"lambda v, at, out: {self.work(work, 'v', 'at')}"

    def enough(self, items: str) -> str:
        """An expression for items of which some may have gone, if enough are left of them."""
        assert isinstance(self.node, ArrayNode)
        return f"do.at_least({items}, at, {self.node.least})" if self.node.least else items

    def from_nothing(self, work: Work) -> str:
        """What the work makes of an empty object, as an expression; empty where only the work itself can tell."""
        node = self.way.plans[self.profile].nodes.get(work.node) if work.node is not None else None
        if not isinstance(node, ObjectNode) or work.before is not None:
            return ""
        if any((node.hooks_before, node.hooks_after, node.moves, node.renames, node.computed, node.demands)):
            return ""
        needed = {key: member for key, member in node.members.items() if member.ensure or not member.optional}
        made = {key: member.ensure and self.from_nothing(member.made or member.work) for key, member in needed.items()}
        if not all(made.values()):
            return ""
        revision = self.way.plans["strict"].target.revision
        made |= dict.fromkeys(node.named_in, f"out.target or {revision!r}")
        made |= {key: repr(value) for key, value in node.facts.items()}
        made |= {key: repr(value) for key, value in node.fills.items() if key not in made}
        return "{" + ", ".join(f"{key!r}: {value}" for key, value in made.items()) + "}"

    def guards(self) -> dict[str, str]:
        """The condition under which each guarded key must go."""
        assert not isinstance(self.node, ArrayNode | UnionNode)
        return {
            key: negate(self.way.checks.expression(type_, f"y[{key!r}]")) for key, type_ in self.node.guards.items()
        }

    @property
    def mending(self) -> dict[str, Action]:
        """The hook before the rest by the guarded key that it mends: it is called only where that would have to go."""
        assert isinstance(self.node, ObjectNode)
        node = self.node
        if len(node.hooks_before) != 1 or node.moves or node.renames or node.computed:
            return {}
        (hook,) = node.hooks_before
        declared = action(hook.name)
        key = declared.facts.get("mends", "") if declared is not None and declared.has("fresh") else ""
        return {key: hook} if key in node.guards and not self.condition(hook, "y") else {}

    def condition(self, action: Action, v: str) -> str:
        """The condition under which a hook before the rest has something to do with *v*; empty if it always may."""
        parts = [f"{action.when!r} in {v}"] if action.when else []
        parts += [f"out.target not in {action.vain_towards!r}"] if action.vain_towards else []
        return " and ".join(parts)

    def untouched(self, v: str) -> str:
        """The condition under which an item passes as it came, without a call; empty where no short one tells."""
        assert isinstance(self.node, ArrayNode)
        work = self.node.item
        item = self.way.plans[self.profile].nodes.get(work.node) if work.node is not None else None
        keys = item.touches() if isinstance(item, ObjectNode) and work.before is None else None
        if keys is None or len(keys) > MOST_KEYS_ASKED:
            return ""
        return " and ".join([f"type({v}) is dict", *(f"{key!r} not in {v}" for key in keys)])

    @property
    def owns_hooked(self) -> bool:
        """Whether what the hooks before the rest give may be changed, and nothing looks at what they were given."""
        node = self.node
        assert isinstance(node, ObjectNode)
        fresh = all(declares(action.name, "fresh") for action in node.hooks_before)
        return fresh and not node.renames and node.extra.idle

    def may_leave(self, action: Action) -> bool:
        """Whether a hook can end in leaving the object out."""
        return declares(action.name, "gone")

    def test(self, case: Any) -> str:
        """The condition under which a value is of a union's case."""
        assert isinstance(self.node, UnionNode)
        if case.json_type == "object":
            return "True"
        if case.json_type == "list":
            return "type(x) is list"
        if case.json_type == "scalar":
            return self.way.origins.expression(case.scalar, "x")
        parts = ["type(x) is dict"]
        if len(case.tags) == 1:
            parts.append(f"x.get({self.node.tag_key!r}) == {case.tags[0]!r}")
        elif case.tags:
            parts.append(f"x.get({self.node.tag_key!r}) in {case.tags!r}")
        for key, type_ in case.needs.items():
            parts += [f"{key!r} in x", f"({self.way.origins.expression(type_, f'x[{key!r}]')})"]
        return " and ".join(part for part in parts if part != "(True)")


def _spell(plan: StepPlan, direction: str) -> Way:
    plans = {profile: plan.ways[direction, profile] for profile in ("strict", "minimal")}
    way = Way(
        direction, plans, Checks(plans["strict"].target, direction), Checks(plans["strict"].source, f"{direction}_from")
    )
    nodes = {(profile, key): node for profile, one in plans.items() for key, node in sorted(one.nodes.items())}
    for alike in equal_nodes(nodes):
        (profile, key), *_ = alike
        name = _function_name(direction, profile, key, set(way.names.values()))
        way.names |= dict.fromkeys(alike, name)
        labels = list(dict.fromkeys(nodes[one].label for one in alike))
        way.functions.append(Function(name, nodes[profile, key], way, profile, labels))
    return way


def _function_name(direction: str, profile: str, key: Key, taken: set[str]) -> str:
    """A name that neither another function nor a predicate has: `ToolMinimal` and `IsTool` may be definitions."""
    key = f"convert_{key}" if key.startswith(("is_", "from_is_")) else key
    name = f"{direction}_{key}" if profile == "strict" else f"{direction}_{key}_minimal"
    while name in taken:
        name += "_"
    return name


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
