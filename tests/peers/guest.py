"""A strict MCP client that is not alone at its server: `python guest.py [--over http] -- URL`.

Two of these, of different releases, are at one server at the same time and do the same things, each in its own name.
PEER_NAME is that name, PEER_FOLDER where they wait for each other, PEER_CANCELS whether this one also cancels a call,
PEER_HEARS_NO_LOG whether no line of the log is expected, so that none is waited for.
Prints a report like that of `client.py`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
from client import LAST_LEVEL, TEXT_URI, Visit, outcome, run
from mcp import types

NAME = os.environ["PEER_NAME"]
FOLDER = Path(os.environ["PEER_FOLDER"])
ROUNDS = 5
IS_FIRST = NAME == "first"
LEVEL = "warning" if IS_FIRST else "debug"
HEARS_NO_LOG = "PEER_HEARS_NO_LOG" in os.environ


class Guest(Visit):
    """What can be mixed up between two sessions."""

    async def on_sampling(self, context: Any, params: Any) -> Any:
        """Answer in its own name."""
        self.asked.append("sampling")
        content = {"type": "text", "text": NAME}
        return types.CreateMessageResult.model_validate({"role": "assistant", "content": content, "model": "m"})

    async def on_elicitation(self, context: Any, params: Any) -> Any:
        """Fill in its own name."""
        self.asked.append("elicitation")
        return types.ElicitResult(action="accept", content={"city": NAME})

    async def everything(self, session: Any) -> None:
        """Open, meet the other, do everything in rounds beside it, and part together."""
        self.session = session
        report = self.report
        report["initialize"] = await outcome(session.initialize)
        if "result" not in report["initialize"]:
            return
        await self.list_tools()
        if IS_FIRST:
            # From here on the proxy knows that this server asks, and lets one session at a time call it.
            report["alone"] = await self.be_asked_once("ask_sampling", "text")
            report["subscribed"] = await self.request("resources/subscribe", {"uri": TEXT_URI}, "EmptyResult")
        report["level"] = await self.request("logging/setLevel", {"level": LEVEL}, "EmptyResult")
        await self.meet("opened")
        report["rounds"] = [await self.go_round(number) for number in range(ROUNDS)]
        await self.meet("done")
        await self.settle(lambda: not IS_FIRST or self.touched() >= 2 * ROUNDS)
        report["touched"] = self.touched()
        if os.environ.get("PEER_CANCELS"):
            report["cancel"] = await self.cancel()
        await self.meet("cancelled")
        report["after"] = await self.call("echo", {"say": NAME, "delay_s": 0})
        report["stray"] = list(self.stray)
        await self.meet("parting")

    async def go_round(self, number: int) -> dict[str, Any]:
        """Do once what the other does at the same time."""
        found: dict[str, Any] = {"echo": await self.call("echo", {"say": f"{NAME} {number}", "delay_s": 0.01})}
        found["sampling"] = await self.be_asked_once("ask_sampling", "text")
        if "ask_user" in self.offered:
            found["elicitation"] = await self.be_asked_once("ask_user", "form")
        start = len(self.notifications)
        found["logs"] = await self.call("logs", {})
        begun = start
        if not HEARS_NO_LOG:
            found["logged"] = await self.notes_since(start, "notifications/message", "level", LAST_LEVEL)
        start = len(self.notifications)
        params = {"name": "slow", "arguments": {"steps": 3}, "_meta": {"progressToken": "the same"}}
        found["slow"] = await self.request("tools/call", params, "CallToolResult")
        found["progress"] = await self.notes_since(start, "notifications/progress", "progress", 3)
        found["touch"] = await self.call("touch", {"uri": TEXT_URI})
        if HEARS_NO_LOG:  # by now what came astray has come
            found["logged"] = self.said_since(begun, "notifications/message", "level")
        return found

    async def notes_since(self, start: int, method: str, name: str, last: Any) -> list[Any]:
        """Return what the notifications of a method said since then, until the last one."""
        await self.settle(lambda: last in self.said_since(start, method, name))
        return self.said_since(start, method, name)

    def said_since(self, start: int, method: str, name: str) -> list[Any]:
        """Return what the notifications of a method said since then."""
        return [note["params"][name] for note in self.notifications[start:] if note["method"] == method]

    def touched(self) -> int:
        """Count what it heard of the resource."""
        return sum(note["method"] == "notifications/resources/updated" for note in self.notifications)

    async def meet(self, where: str) -> None:
        """Wait until both have come here."""
        (FOLDER / f"{where}-{NAME}").touch()
        with anyio.fail_after(40):
            while len(list(FOLDER.glob(f"{where}-*"))) < 2:
                await anyio.sleep(0.02)


if __name__ == "__main__":
    run(Guest)
