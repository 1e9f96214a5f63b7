"""What a step need not do when another one follows it on the same way.

Each step is planned alone, so that it is right between neighbours; here all of them are looked at together. Called by
`regen` once every step is planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.plan.actions import declared_actions
from codegen.plan.nodes import Action, Node, ObjectNode
from codegen.plan.plan import DirectionPlan, StepPlan


def spare_copies(plans: Sequence[StepPlan]) -> list[StepPlan]:
    """Mark the hooks that copy a field into an object which the step after theirs drops.

    Args:
        plans: One a step, oldest first.

    Returns:
        The same plans; a hook that was marked names the targets towards which there is nothing to copy.
    """
    return [
        replace(
            plan,
            ways={
                (direction, profile): _spare(way, _after(plan, direction, plans))
                for (direction, profile), way in plan.ways.items()
            },
        )
        for plan in plans
    ]


def _after(plan: StepPlan, direction: str, plans: Sequence[StepPlan]) -> list[StepPlan]:
    """The steps that follow in one direction, the next one first; where two may, the older one."""
    for other in plans:
        here, there = (plan.newer, other.older) if direction == "up" else (plan.older, other.newer)
        if here.revision == there.revision:
            return [other, *_after(other, direction, plans)]
    return []


def _spare(way: DirectionPlan, following: Sequence[StepPlan]) -> DirectionPlan:
    """*way*, marked, where these steps follow on it, the next one first."""
    if not following:
        return way
    ways = [step.ways[way.direction, way.profile] for step in following]
    targets = tuple(sorted(one.target.revision for one in ways))
    return replace(way, nodes={key: _mark(node, ways[0].nodes.get(key), targets) for key, node in way.nodes.items()})


def _mark(node: Node, following: Node | None, targets: tuple[str, ...]) -> Node:
    if not isinstance(node, ObjectNode) or not isinstance(following, ObjectNode) or following.hooks_before:
        return node

    def mark(action: Action) -> Action:
        found = declared_actions().get(action.name)
        place = found.facts.get("copies") if found is not None else None
        dropped = bool(place) and action.arguments[str(place)][0] in following.drops
        return replace(action, vain_towards=targets) if dropped else action

    return replace(node, hooks_before=tuple(map(mark, node.hooks_before)))
