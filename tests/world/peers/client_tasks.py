"""What a client does about a task that its call has become: the argument `follow` of the call says which of these.

| follow | what the client does |
|---|---|
| `poll` | asks how it stands until it has ended, answers what it is asked, and fetches the result |
| `wait` | fetches the result at once, where its revision can wait for it; else as `poll` |
| `both` | asks how it stands while it waits; fetches the result twice |
| `list` | asks which tasks there are, and then as `poll` |
| `cancel` | cancels it after a moment, and asks how it stands |
| `leave` | does nothing more about it |
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from tests.world.peers.words import PER_REQUEST, answer, text_of
from tests.world.record import Body

if TYPE_CHECKING:
    from tests.world.peers.client import Client

_PAUSES_S: Final = (1.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)
"""How long it waits before it asks again; after the last it gives up."""

SINCE: Final = "2025-11-25"
"""The revision whose clients ask for a task; the newest has an extension, and its server decides."""

OVER: Final = frozenset({"completed", "failed", "cancelled"})


def task_of(asked: Body, said: Any) -> Body | None:
    """Give the task that a call was answered with; None for any other answer."""
    if asked["method"] != "tools/call" or not isinstance(said, dict):
        return None
    if said.get("resultType") == "task":
        return said
    task = said.get("task")
    return task if isinstance(task, dict) else None


async def follow(client: Client, asked: Body, task: Body) -> None:
    """Do what the call says about its task."""
    how = asked["params"]["arguments"].get("follow", "poll")
    name = task.get("taskId")
    is_new = client.plan.revision == PER_REQUEST
    if how == "leave":
        return
    if how == "cancel":
        await asyncio.sleep(2.0)
        await client.ask("tasks/cancel", {"taskId": name})
    if how == "list" and not is_new:
        await client.ask("tasks/list", {})
    waiting = None
    if how in ("wait", "both") and not is_new:
        waiting = asyncio.ensure_future(client.ask("tasks/result", {"taskId": name}))
        if how == "wait":
            await waiting
            return
    try:
        status = await _poll(client, name)
        if waiting is not None:
            await waiting
    finally:
        if waiting is not None:
            waiting.cancel()  # whoever is cut off waits for nothing more
    if status in OVER and not is_new:
        await client.ask("tasks/result", {"taskId": name})
    elif status in OVER and how == "both":
        await client.ask("tasks/get", {"taskId": name})


async def _poll(client: Client, name: Any) -> str:
    """Ask how a task stands until it has ended, and answer what it asks."""
    answered: set[str] = set()
    for pause_s in _PAUSES_S:
        frame = await client.ask("tasks/get", {"taskId": name})
        told = (frame or {}).get("result")
        if not isinstance(told, dict) or told.get("status") in OVER:
            return str((told or {}).get("status"))
        new = {key: one for key, one in (told.get("inputRequests") or {}).items() if key not in answered}
        if new:
            answers = {}
            for key, one in new.items():
                method, params = one["method"], one.get("params") or {}
                if await client.consider(method, text_of(method, params)):
                    answers[key] = answer(method, text_of(method, params), client.name)
            answered |= new.keys()
            if answers:
                await client.ask("tasks/update", {"taskId": name, "inputResponses": answers})
        await asyncio.sleep(pause_s)
    return ""
