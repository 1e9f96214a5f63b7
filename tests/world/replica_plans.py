"""What goes wrong where several instances stand behind a balancer: they, and their store, are slow and stopped."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.world.plan import Act, Plan

_SHORT_OR_LONG_S: Final = (1.0, 5.0, 15.0, 60.0)


def _well(plan: Plan, chance: random.Random) -> None:
    """All instances live."""


def _killing(plan: Plan, chance: random.Random) -> None:
    """Instances are killed."""
    plan.faults += [_make_fault("kill", chance) for _ in range(chance.randint(1, 3))]


def _stopping(plan: Plan, chance: random.Random) -> None:
    """Instances stand still, for so short a time that nobody notices, or so long that others take over."""
    plan.faults += [_make_fault("hang", chance) for _ in range(chance.randint(1, 2))]


def _rolling(plan: Plan, chance: random.Random) -> None:
    """One after the other ends in order, and is started again."""
    at_s = chance.choice((1.0, 6.0))
    for number in range(plan.instances):
        plan.faults.append({"at": at_s + 10.0 * number, "do": "retire", "client": number})


def _forgetting(plan: Plan, chance: random.Random) -> None:
    """The store is slow, away or silent, and may have forgotten something when it is back."""
    plan.faults.append({"at": chance.uniform(0.5, 20.0), "do": "save"})
    for _ in range(chance.randint(1, 2)):
        fault = _make_fault(chance.choice(("store", "store", "slow", "silence")), chance)
        plan.faults.append({**fault, "keeps": chance.choice(("all", "nothing", "before"))})


def _everything(plan: Plan, chance: random.Random) -> None:
    """All of that at once."""
    for bent in (_killing, _stopping, _forgetting):
        bent(plan, chance)


def _make_fault(kind: str, chance: random.Random) -> Act:
    at_s = round(chance.choice((0.1, 1.0, 5.0, 20.0)) * chance.uniform(0.5, 2), 3)
    return {"at": at_s, "do": kind, "client": chance.randrange(3), "for_s": chance.choice(_SHORT_OR_LONG_S)}


def keep_events(plan: Plan, chance: random.Random) -> None:
    """Let instances keep events for each other, and streams break while something is to be told on them."""
    plan.events = chance.random() < 0.6
    for client in plan.clients if plan.events else ():
        if chance.random() < 0.5:
            at_s = chance.choice(client.acts)["at"] + chance.choice((0.3, 1.5, 6.0))
            client.acts.append({"at": at_s, "do": "break", "n": len(client.acts) + 100})
            client.acts.sort(key=lambda act: float(act["at"]))
    if plan.events and chance.random() < 0.3:
        _kill_under_a_stream(plan, chance)


def _kill_under_a_stream(plan: Plan, chance: random.Random) -> None:
    """Kill an instance, perhaps that from which a client reads the stream of a call: it goes on at another one."""
    client, server = plan.clients[0], plan.servers[0].name
    client.revision, client.manner, client.begins_s = HANDSHAKE_REVISIONS[-1], "good", 0.0
    steps = [["progress"], ["wait", 30.0], ["answer", "text"]]
    call = {"at": 1.0, "do": "call", "n": 300, "server": server, "progress": True, "steps": steps}
    client.acts.append(call)
    client.acts.sort(key=lambda act: float(act["at"]))
    plan.faults = [fault for fault in plan.faults if fault["do"] not in ("kill", "store", "silence", "hang")]
    plan.faults.append({"at": 8.0, "do": "kill", "client": chance.randrange(plan.instances), "for_s": 15.0})


BENTS_OF_REPLICAS: Final[tuple[Callable[[Plan, random.Random], None], ...]] = (
    *(_well, _killing, _killing, _stopping, _stopping),
    *(_rolling, _forgetting, _forgetting, _everything),
)
