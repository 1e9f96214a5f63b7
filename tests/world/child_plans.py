"""Plans of worlds in which servers are child processes: how these go, and what a process alone can do wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.world.plan import Act, Plan
from tests.world.programs import GOINGS

_ROOMS: Final = (4096, 64 * 1024, 1024 * 1024)
_MANY: Final = (1, 3, 150, 500)


def _nothing(plan: Plan, chance: random.Random) -> None:
    """They do nothing else."""


def _talking(plan: Plan, chance: random.Random) -> None:
    """They write lines on stderr, more than anybody wants to read now and then."""
    for act in _calls(plan):
        if chance.random() < 0.6:
            act["steps"].insert(chance.randint(0, len(act["steps"]) - 1), ["stderr", chance.choice(_MANY)])


def _closing(plan: Plan, chance: random.Random) -> None:
    """They close their output in the middle of something, and live on."""
    plan.options["restarts"] = chance.randint(1, 3)
    for act in _calls(plan):
        if chance.random() < 0.3:
            act["steps"] = [["wait", chance.choice((0.0, 0.5, 3.0))], ["closes"], ["stderr", 1], ["answer", "text"]]


def _not_reading(plan: Plan, chance: random.Random) -> None:
    """They read nothing any more, and are found out by that they do not answer."""
    plan.options |= {"health_s": 20.0, "restarts": chance.randint(1, 3)}
    for act in _calls(plan):
        if chance.random() < 0.3:
            act["steps"] = [["stops reading"], *act["steps"]]
    for client in plan.clients:
        at_s, server = client.acts[-1]["at"], chance.choice(plan.servers).name
        steps = [["wait", 1.0], ["answer", "text"]]
        for n in range(chance.choice((0, 4, 12))):
            text = "x" * chance.choice((10, 3000))
            more: Act = {"server": server, "progress": False, "steps": [["stderr", 1], *steps], "text": text}
            client.acts.append({"at": at_s + n * 0.2, "do": "call", "n": 400 + n, **more})


def _crashing(plan: Plan, chance: random.Random) -> None:
    """They crash while they say something long, or much; some cannot be started again at once."""
    plan.options["restarts"] = chance.randint(1, 3)
    for act in _calls(plan):
        if chance.random() < 0.4:
            said: list[list[Any]] = [["log", "info", chance.choice((10, 2000, 30_000))] for _ in range(3)]
            act["steps"] = [*said, ["progress"], ["die"]]
    for server in plan.servers:
        if chance.random() < 0.4:
            fault = {"at": chance.choice((2.0, 8.0)), "do": "die", "whom": server.name}
            plan.faults.append({**fault, "for_s": chance.choice((0.0, 0.5, 5.0, 100.0))})


_BENTS: Final[tuple[Callable[[Plan, random.Random], None], ...]] = (
    *(_nothing, _talking, _talking, _closing, _not_reading, _crashing),
)


def _calls(plan: Plan) -> list[Act]:
    return [act for client in plan.clients for act in client.acts if act["do"] == "call"]


def add_children(plan: Plan, chance: random.Random) -> None:
    """Make servers that are reached by lines child processes."""
    plan.children = {"room": chance.choice(_ROOMS)}
    for server in plan.servers:
        server.link = "lines"
        server.going = chance.choice(GOINGS)
    for client in plan.clients:
        client.way = chance.choice(("", "", "websocket")) if plan.front == "http" else ""
        if client.way and (client.manner == "again" or client.revision not in HANDSHAKE_REVISIONS):
            client.way = ""
    chance.choice(_BENTS)(plan, chance)
