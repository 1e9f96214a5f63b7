"""Plans of worlds in which the proxy signs in at its servers, for its clients."""

from __future__ import annotations

import random
from typing import Final

from tests.world.plan import Plan

HOSTILE: Final = (
    *("other-issuer", "leads-away", "no-endpoints", "no-register", "wrong-state", "wrong-iss"),
    *("html", "repeats", "refuses", "steps", "other-resource", "late"),
)
"""How an authorization server, or a server, may not behave."""

_LATER_S: Final = (1.0, 5.0, 20.0, 60.0, 120.0)


def add_sign_in(plan: Plan, chance: random.Random) -> None:
    """Decide what servers want, who signs in, and what becomes of it."""
    for server in plan.servers:
        server.link = "http"
    is_hostile = chance.random() < 0.3
    plan.signin = {
        "lives_s": chance.choice((60, 60, 200, 3600)),
        "refresh": chance.random() < 0.7,
        "rotates": chance.random() < 0.6,
        "refreshes": chance.random() < 0.85,
        "steps": chance.random() < 0.2,
        "secret": chance.choice(("", "", "client_secret_post", "client_secret_basic")),
        "person": chance.choice(("yes",) * 6 + ("slow", "slow", "no", "never", "late", "nobody")),
        "hostile": chance.choice(HOSTILE) if is_hostile else "",
        "apart": plan.scope == "client" and chance.random() < 0.4,
        "far": plan.front == "http" and chance.random() < 0.5,
    }
    if plan.signin["far"]:
        plan.signin["apart"] = False
    for client in plan.clients:
        client.visits = chance.choice(("goes", "goes", "goes", "hands on", "declines", "", "ignores"))
        at_s = client.acts[-1]["at"]
        for n in range(chance.choice((0, 1, 2, 3))):  # by then its token may have ended
            at_s += chance.choice((20.0, 50.0, 100.0, 250.0))
            steps = [["wait", chance.choice((0.1, 5.0))], ["answer", "text"]]
            name = chance.choice(plan.servers).name
            client.acts.append(
                {"at": at_s, "do": "call", "n": 50 + n, "server": name, "progress": False, "steps": steps}
            )
        if client.manner == "again":
            client.manner = "good"
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        fault = {"at": chance.choice(_LATER_S), "do": "sign-in", "whom": chance.choice(plan.servers).name}
        how = chance.choice(("withdraw", "withdraw", "forget", "away", "ill"))
        plan.faults.append({**fault, "how": how, "for_s": chance.choice((1.0, 30.0, 100.0))})
