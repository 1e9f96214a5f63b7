"""Plans of worlds in which clients show tokens of an authorization server, and servers have paths of their own."""

from __future__ import annotations

import random
from typing import Final

from tests.world.plan import Plan

_SHOWS: Final = (
    *("token",) * 8,
    "old token",
    "old token",
    "secret",
    "secret",
    "nothing",
    "forged",
    "foreign",
    "elsewhere",
)
_LATER_S: Final = (1.0, 5.0, 20.0, 100.0)


def add_guard(plan: Plan, chance: random.Random) -> None:
    """Decide how tokens are looked at, who shows which, and what becomes of them."""
    plan.guard = {
        "asks": chance.random() < 0.5,
        "lives_s": chance.choice((90, 90, 200, 3600)),
        "paths": plan.router and chance.random() < 0.7,
    }
    plan.faults = [fault for fault in plan.faults if fault["do"] != "clock" or chance.random() < 0.2]
    for client in plan.clients:
        client.shows = chance.choice(_SHOWS)
        client.way = chance.choice(("websocket", "", "", ""))
        if client.way and client.revision == "2026-07-28":
            client.way = ""
        if plan.guard["paths"] and not client.way and chance.random() < 0.7:
            client.path = chance.choice(plan.servers).name
            for act in client.acts:
                if "server" in act:
                    act["server"] = client.path
        at_s = client.acts[-1]["at"]
        for n in range(chance.choice((0, 2, 3))):  # somebody who comes back later has another token, or an old one
            at_s += chance.choice((20.0, 50.0, 100.0))
            steps = [["wait", chance.choice((0.1, 5.0))], ["answer", "text"]]
            later = {"at": at_s, "do": "call", "n": 50 + n, "server": client.path or plan.servers[0].name}
            client.acts.append({**later, "progress": False, "steps": steps})
        if client.manner == "again":
            client.manner = "good"
    _add_faults(plan, chance)


def _add_faults(plan: Plan, chance: random.Random) -> None:
    for client in plan.clients:
        if chance.random() < 0.25:
            plan.faults.append({"at": chance.choice(_LATER_S), "do": "withdraw", "whom": client.name})
    kind = chance.choice(("", "", "rotate", "rotate", "issuer", "issuer", "both"))
    if kind in ("rotate", "both"):
        plan.faults.append({"at": chance.choice(_LATER_S), "do": "rotate"})
    if kind in ("issuer", "both"):
        away = {"at": chance.choice((0.0, *_LATER_S)), "do": "issuer", "for_s": chance.choice((1.0, 30.0, 400.0))}
        plan.faults.append({**away, "how": chance.choice(("away", "ill"))})
    if chance.random() < 0.3:
        plan.faults.append({"at": chance.choice(_LATER_S), "do": "revoke", "principal": plan.clients[0].principal})
    if chance.random() < 0.3:
        plan.faults.append({"at": chance.choice(_LATER_S), "do": "steal", "principal": plan.clients[0].principal})
