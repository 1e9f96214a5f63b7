"""A strict MCP client that visits a server which is not ours: `python tour.py [--over http] -- SERVER ARG… | URL`.

Performs what the official npm server offers, under every SDK release, and prints a report like that of `client.py`.
"""

from __future__ import annotations

from typing import Any

from client import Visit, outcome, run

CALLS: dict[str, dict[str, Any]] = {
    "echo": {"message": "hello"},
    "get-sum": {"a": 2, "b": 3},
    "get-tiny-image": {},
    "get-structured-content": {"location": "New York"},
    "get-resource-links": {"count": 2},
    "get-annotated-message": {"messageType": "success"},
    "get-resource-reference": {"resourceType": "Text", "resourceId": 1},
    "trigger-long-running-operation": {"duration": 0.2, "steps": 2},
    "trigger-sampling-request": {"prompt": "hello", "maxTokens": 10},
    "nonexistent": {},
}


class Tour(Visit):
    """What any server can be asked for, and the tools of this one."""

    async def everything(self, session: Any) -> None:
        """Perform all operations in a fixed order, each reported as soon as it is over."""
        self.session = session
        report = self.report
        report["initialize"] = await outcome(session.initialize)
        if "result" not in report["initialize"]:
            return
        report["ping"] = await self.request("ping", None, "EmptyResult")
        report["tools"] = await self.list_tools()
        report["calls"] = {name: await self.call(name, arguments) for name, arguments in CALLS.items()}
        report["pages"] = await self.list_resources()
        report["templates"] = await self.request("resources/templates/list", None, "ListResourceTemplatesResult")
        first = report["pages"][0]["result"]["resources"][0]["uri"]
        report["read"] = await self.request("resources/read", {"uri": first}, "ReadResourceResult")
        report["prompts"] = await self.request("prompts/list", None, "ListPromptsResult")
        report["prompt"] = await self.prompt({"name": "simple-prompt"})
        report["stray"] = list(self.stray)


if __name__ == "__main__":
    run(Tour)
