"""A strict MCP client that visits several servers behind a router: `python among.py --servers JSON -- ROUTER ARG…`.

JSON has the name of each server, and how many seconds its notifications may come later than an answer. In one session
the client performs what `client.py` does with each server in turn, and knows everything by the names that the router
gives it: `a_echo`, `a+file:///…`. The report of each server stands under its name and is like that of `client.py`,
without what is said once for all of them. Which outcome is right is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from client import LIMIT_S, Visit, run

UNANSWERED_S = 0.5
"""How long to wait for the answer to a call that was cancelled: a router hands on none."""


class VisitAmong(Visit):
    """One session with several servers."""

    server = ""

    def named(self, name: str) -> str:
        """Give what this session knows a tool or a prompt of the server as."""
        return f"{self.server}_{name}"

    def located(self, uri: str) -> str:
        """Give what it knows a resource or a template as."""
        return f"{self.server.lower()}+{uri}"

    async def list_tools(self) -> dict[str, Any]:
        """List the tools of the server, by the names that it gave them."""
        listed = await self.request("tools/list", None, "ListToolsResult")
        own = self.named("")
        tools = listed.get("result", {}).get("tools", [])
        self.offered = {tool["name"].removeprefix(own): tool for tool in tools if tool["name"].startswith(own)}
        return self.offered or listed

    async def notified_by(
        self, name: str, arguments: dict[str, Any], are_all: Callable[[list[Any]], bool] = lambda notes: True
    ) -> list[Any]:
        """Wait longer for changes of lists: a router tells of each kind twice a second at most."""
        before, self.settle_s = self.settle_s, LIMIT_S if name == "change_lists" else self.settle_s
        try:
            return await super().notified_by(name, arguments, are_all)
        finally:
            self.settle_s = before

    async def everything(self, session: Any) -> None:
        """Visit each server in turn, then all at once; last what some do not survive."""
        if not await self.open(session):
            return
        for server, settle_s in self.servers.items():
            self.server, self.settle_s = server, settle_s
            self.report[server] = {}
            await self.go_round(self.report[server])
        self.report["all at once"] = await self.call_all_at_once()
        for server in self.servers:
            self.server = server
            self.report[server]["cancel"] = await self.cancel(UNANSWERED_S)

    async def call_all_at_once(self) -> dict[str, Any]:
        """Let every server wait for the same person at once, and answer in the other order."""
        answers: dict[str, Any] = {}

        async def one(place: int, server: str) -> None:
            params = {"say": server, "delay_s": 0.1 * (len(self.servers) - place)}
            asked = {"name": f"{server}_echo", "arguments": params}
            found = await self.request("tools/call", asked, "CallToolResult")
            answers[server] = found["result"]["content"][0]["text"] if "result" in found else found

        async with anyio.create_task_group() as group:
            for place, server in enumerate(self.servers):
                group.start_soon(one, place, server)
        return answers


if __name__ == "__main__":
    run(VisitAmong)
