"""Plans of worlds in which calls become tasks, in the forms of both revisions that have them."""

from __future__ import annotations

import random
from typing import Final

from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS
from tests.world.plan import Act, Plan

_OLDER: Final = HANDSHAKE_REVISIONS[-1]
_NEWER: Final = REVISIONS[-1]
_FOLLOWS: Final = ("poll", "poll", "poll", "wait", "wait", "both", "list", "cancel", "cancel", "leave")
_TAKES: Final = ("tasks/get", "tasks/result", "tasks/cancel", "tasks/update")
_SURE: Final = ("text", "text", "text", "failed", "error", "structured")
_LONG_S: Final = (0.1, 1.0, 3.0, 10.0, 40.0)


def add_tasks(plan: Plan, chance: random.Random) -> None:
    """Let most calls be tasks, and some clients look for those of others."""
    for server in plan.servers:
        server.revisions = list(chance.choice(((_OLDER,), (_OLDER,), (_NEWER,), (_NEWER,), (_OLDER, _NEWER))))
        server.tasks = chance.choice(("optional", "optional", "optional", "required", ""))
    for client in plan.clients:
        both = plan.scope == "client" or plan.front == "http"
        client.revision = chance.choice((_OLDER, _OLDER, _NEWER, _NEWER, client.revision) if both else (_OLDER,))
        client.tasks = chance.random() < 0.9
        client.begins_s = min(client.begins_s, 10.0)
        for act in client.acts:
            if act["do"] == "call" and chance.random() < 0.8:
                _make_task(act, chance)
        if chance.random() < 0.4:
            at_s = client.acts[-1]["at"] + chance.choice((0.5, 2.0, 8.0))
            client.acts.append({"at": at_s, "do": "take", "method": chance.choice(_TAKES), "n": len(client.acts)})


def _make_task(act: Act, chance: random.Random) -> None:
    steps = [step for step in act["steps"] if step[0] != "answer"]
    at = next((n for n, step in enumerate(act["steps"]) if step[0] == "answer"), 0)
    act["steps"] = [["wait", chance.choice(_LONG_S)], *steps[:at], ["answer", chance.choice(_SURE)], *steps[at:]]
    act["follow"] = chance.choice(_FOLLOWS)
