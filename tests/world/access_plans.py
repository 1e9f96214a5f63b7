"""Plans of worlds in which not everybody may everything: rules by principal, limits, little room, files read again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from tests.world.plan import Act, Plan

PRINCIPALS: Final = ("ada", "bob", "cyd")


def _rule(plan: Plan, chance: random.Random) -> Act:
    """Give a rule that takes something away from somebody."""
    whom = {"principals": chance.sample(PRINCIPALS, chance.choice((1, 1, 2)))}
    server = chance.choice(plan.servers).name
    what: Act = chance.choice(
        (
            {"tools": ["*_a"]},
            {"tools": ["*_a", "*_b"], "resources": ["world://*"]},
            {"tools": ["*_b"], "prompts": ["*_p"]},
            {"resources": [f"world://{server}/*"]},
            {"servers": [server]},
        )
    )
    return {"for": whom, "deny": what}


def _rules(plan: Plan, chance: random.Random) -> list[Act]:
    if chance.random() < 0.25:
        everything = {"tools": ["*"], "prompts": ["*"], "resources": ["*"]}
        return [{"for": {"principals": chance.sample(PRINCIPALS, 2)}, "allow": everything}]
    return [_rule(plan, chance) for _ in range(chance.choice((1, 1, 2)))]


def _guarding(plan: Plan, chance: random.Random) -> None:
    """Rules say who may what, and count as long as the world does."""
    plan.access["rules"] = _rules(plan, chance)


def _changing(plan: Plan, chance: random.Random) -> None:
    """Rules change, and servers go and come, while sessions are open."""
    plan.access["rules"] = _rules(plan, chance)
    names = [server.name for server in plan.servers]
    for at_s in sorted(
        chance.choice((0.5, 2.0, 6.0, 15.0)) * chance.uniform(0.5, 2) for _ in range(chance.randint(1, 3))
    ):
        kept = chance.sample(names, chance.randint(1, len(names))) if plan.router else names
        plan.faults.append({"at": round(at_s, 3), "do": "reload", "servers": kept, "rules": _rules(plan, chance)})


def _limiting(plan: Plan, chance: random.Random) -> None:
    """Each principal may make so many calls a minute."""
    plan.access |= {"per_minute": chance.choice((6, 60)), "burst": chance.choice((1, 2))}
    if chance.random() < 0.3:
        plan.access["rules"] = _rules(plan, chance)
    for client in plan.clients:
        client.begins_s = min(client.begins_s, 1.0)


def _narrowing(plan: Plan, chance: random.Random) -> None:
    """There is room for little."""
    pool: dict[str, Any] = {"calls": 1, "subscriptions": 1, "questions": 1, "suspects": 1, "waiting_bytes": 300}
    pool |= {"idle_s": 1.0, "high_water_bytes": 500, "upstreams": 1}
    front: dict[str, Any] = {"streams": 1, "high_water_bytes": 500, "replay_bytes": 300, "replay_events": 2}
    front |= {"sessions": 2, "body_bytes": 700, "memory_bytes": 1000, "connections": 4, "idle_s": 20.0}
    options: dict[str, Any] = {"open_requests": 1, "most_parked": 1, "parked_s": 5.0, "task_s": 5.0}
    for given, all_ in ((plan.pool, pool), (plan.front_options, front), (plan.options, options)):
        names = chance.sample(sorted(all_), chance.randint(0, 3))
        given |= {name: all_[name] for name in names}
    plan.access["is_narrow"] = True


_BENTS: Final[tuple[Callable[[Plan, random.Random], None], ...]] = (
    *(_guarding, _guarding, _changing, _changing),
    *(_limiting, _narrowing, _narrowing, _narrowing),
)


def bend(plan: Plan, chance: random.Random) -> None:
    """Decide what a world of this cell has."""
    chance.choice(_BENTS)(plan, chance)
