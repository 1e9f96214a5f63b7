"""Making a failing world small: parts of its plan are left out, as long as the same rule is still broken."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.world.plan import Plan
from tests.world.streams import Manner

_MOST_TRIES: Final = 600


def make_small(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """Leave out what the failure does not need.

    Args:
        plan: Of a world that fails.
        fails: Says whether a world fails in the same way.

    Returns:
        A plan, no part of which can be left out by itself.
    """
    tries = 0
    smaller = True
    while smaller:
        smaller = False
        for other in _smaller(plan):
            tries += 1
            if tries > _MOST_TRIES:
                return plan
            if fails(other):
                plan, smaller = other, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Give plans that have one part less, the largest parts first."""
    if len(plan.clients) > 1:
        yield from _without_one(plan, ("clients",))
    yield from _without_one(plan, ("faults",))
    for n in range(len(plan.clients)):
        yield from _without_one(plan, ("clients", n, "acts"))
    used = {act.get("server") for client in plan.clients for act in client.acts}
    used |= {None}
    for other in _without_one(plan, ("servers",)):
        if other.servers and used <= {None, *(server.name for server in other.servers)}:
            yield other
    for n, client in enumerate(plan.clients):
        for m, act in enumerate(client.acts):
            if "steps" in act:
                yield from _without_one(plan, ("clients", n, "acts", m, "steps"))
    yield from _plainer(plan)


def _without_one(plan: Plan, place: tuple[Any, ...]) -> Iterator[Plan]:
    for number in reversed(range(len(_at(plan, place)))):
        other = copy.deepcopy(plan)
        del _at(other, place)[number]
        yield other


def _at(plan: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        plan = getattr(plan, key) if isinstance(key, str) and not isinstance(plan, dict) else plan[key]
    return plan


def _plainer(plan: Plan) -> Iterator[Plan]:
    """Give plans in which something is as it mostly is."""
    for kind in ("options", "inner", "pool", "front_options"):
        for name in getattr(plan, kind):
            other = copy.deepcopy(plan)
            del getattr(other, kind)[name]
            yield other
    if plan.network != Manner():
        other = copy.deepcopy(plan)
        other.network = Manner()
        yield other
    for who in ("clients", "servers"):
        for n, peer in enumerate(getattr(plan, who)):
            if peer.manner != "good":
                other = copy.deepcopy(plan)
                getattr(other, who)[n].manner = "good"
                yield other
    for n, client in enumerate(plan.clients):
        if client.begins_s:
            other = copy.deepcopy(plan)
            other.clients[n].begins_s = 0.0
            yield other
    for n, server in enumerate(plan.servers):
        if server.start_s:
            other = copy.deepcopy(plan)
            other.servers[n].start_s = 0.0
            yield other
