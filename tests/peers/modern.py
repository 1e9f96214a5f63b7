"""A client that speaks only 2026-07-28: `python modern.py [--url URL | -- SERVER ARG…]`, under release 2.x of the SDK.

It performs the operations that every server of this folder offers, and prints one JSON report of what it got: for each
its result, or `{"error": {code, message}}`. With `--servers JSON`, as for `among.py`, it does so with each server
behind a router, and prints the report of each under its name. Which is right is for the tests to say.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from mcp import Client, MCPError, StdioServerParameters, types

REVISION = "2026-07-28"
LIMIT_S = 15
OPENING_LIMIT_S = 60
"""For the first request: on a busy machine a server is slow to start, and an old one may be started twice."""
DOCUMENT = "file:///home/user/document.txt"
CALLS: dict[str, dict[str, Any]] = {
    "echo": {"say": "hello"},
    "weather": {},
    "failing": {},
    "ping_client": {},
    "nonexistent": {},
}
ASKING = ("ask_roots", "ask_sampling", "ask_user")
KINDS = ("all", "once", "text", "two_blocks", "blocks", "tools", "form", "titled", "multi", "url", "three", "two")


class Visit:
    """What came in, and the operations."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.logged: list[str] = []
        self.client: Any = None
        self.server: str | None = None

    def named(self, name: str) -> str:
        """Give what a router calls a tool or a prompt of the server; without one it has its own name."""
        return f"{self.server}_{name}" if self.server else name

    def located(self, uri: str) -> str:
        """Give what it calls a resource."""
        return f"{self.server.lower()}+{uri}" if self.server else uri

    async def on_log(self, params: Any) -> None:
        self.logged.append(params.level)

    async def on_roots(self, context: Any) -> Any:
        self.asked.append("roots/list")
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/user", name="home")])

    async def on_sampling(self, context: Any, params: Any) -> Any:
        self.asked.append("sampling/createMessage")
        content = types.TextContent(type="text", text="I say hello")
        return types.CreateMessageResult(role="assistant", model="small", content=content)

    async def on_elicitation(self, context: Any, params: Any) -> Any:
        self.asked.append(f"elicitation/create {params.mode}")
        if params.mode == "url":
            return types.ElicitResult(action="accept")
        fields = params.requested_schema["properties"]
        content = {name: ["r"] if schema["type"] == "array" else "r" for name, schema in fields.items()}
        return types.ElicitResult(action="accept", content=content)

    async def tour(self) -> dict[str, Any]:
        """Perform every operation."""
        client = self.client
        listed = await outcome(client.list_tools, OPENING_LIMIT_S)
        assert "tools" in listed, listed
        own = self.named("")
        tools = {t["name"].removeprefix(own): t for t in listed["tools"] if t["name"].startswith(own)}
        report: dict[str, Any] = {
            "revision": client.protocol_version,
            "introduced": await client.session.send_discover(REVISION)
            if client.protocol_version == REVISION
            else dump(client.session.initialize_result),
            "tools": sorted(tools),
            "calls": {name: await self.call(name, arguments) for name, arguments in CALLS.items()},
            "at once": await self.call_at_once(),
            "asked": {name: await self.be_asked(tools, name) for name in ASKING},
            "resources": await self.list_resources(),
            "read": await outcome(lambda: client.read_resource(self.located(DOCUMENT))),
            "nowhere": await outcome(lambda: client.read_resource(self.located("file:///nowhere"))),
            "prompts": await outcome(client.list_prompts),
            "prompt": await outcome(lambda: client.get_prompt(self.named("greet"), {"who": "Ada"})),
            "survey": await self.survey(),
            "heard": await self.listen(),
            "progress": await self.count(),
        }
        start = len(self.logged)
        await self.call("logs", {})
        return {**report, "logged": self.logged[start:], "saw": await self.call("server_saw", {})}

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return await outcome(lambda: self.client.call_tool(self.named(name), arguments))

    async def be_asked(self, tools: dict[str, Any], name: str) -> dict[str, Any]:
        """Call a tool that asks back, once for each kind of question."""
        properties = tools.get(name, {}).get("inputSchema", {}).get("properties", {})
        kinds = [kind for kind in properties.get("kind", {}).get("enum", []) if kind in KINDS]
        found = {}
        for kind in kinds:
            start = len(self.asked)
            answer = await self.call(name, {"kind": kind})
            found[kind] = {"asked": self.asked[start:], "answer": answer}
        return found

    async def call_at_once(self) -> list[Any]:
        """Call one tool five times at once, so that the first asked answers last."""
        answers: list[Any] = [None] * 5

        async def one(place: int) -> None:
            answer = await self.call("echo", {"say": f"call {place}", "delay_s": 0.05 * (5 - place)})
            answers[place] = answer["content"][0]["text"] if "content" in answer else answer

        async with anyio.create_task_group() as group:
            for place in range(5):
                group.start_soon(one, place)
        return answers

    async def list_resources(self) -> list[str]:
        """List resources, page by page, at most five: servers on release 1.6.0 never get beyond the first."""
        found: list[str] = []
        cursor = None
        for _ in range(5):
            page = await self.client.list_resources(cursor=cursor)
            found += [resource.name for resource in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def survey(self) -> Any:
        """Get the prompt that asks first."""
        start = len(self.asked)
        answer = await outcome(lambda: self.client.get_prompt(self.named("survey")))
        if "error" in answer:
            answer = await outcome(lambda: self.client.get_prompt(self.named("gallery")))
        return {"asked": self.asked[start:], "answer": answer}

    async def listen(self) -> Any:
        """Have all lists changed, and a resource touched, while listening."""
        heard: list[str] = []
        document = self.located(DOCUMENT)
        async with self.client.listen(tools_list_changed=True, resource_subscriptions=[document]) as events:
            await self.call("change_lists", {})
            await self.call("touch", {"uri": DOCUMENT})
            with anyio.move_on_after(LIMIT_S):
                async for event in events:
                    heard.append(type(event).__name__)
                    if len(heard) == 2:
                        break
        return sorted(heard)

    async def count(self) -> list[float]:
        """Have a tool tell its progress."""
        seen: list[float] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        await self.client.call_tool(self.named("slow"), {"steps": 3}, progress_callback=note)
        return seen


async def outcome(ask: Callable[[], Awaitable[Any]], limit_s: float = LIMIT_S) -> Any:
    """Give a result as JSON, or the error."""
    try:
        with anyio.fail_after(limit_s):
            return dump(await ask())
    except MCPError as error:
        return {"error": {"code": error.code, "message": error.message}}
    except TimeoutError:
        return {"timeout": limit_s}


def dump(model: Any) -> Any:
    """Give an object of the SDK as JSON."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True) if model is not None else None


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--mode", default=REVISION)
    parser.add_argument("--servers", type=json.loads, default={})
    parser.add_argument("command", nargs="*")
    args = parser.parse_args()
    server = args.url or StdioServerParameters(command=args.command[0], args=args.command[1:])
    visit = Visit()
    async with Client(
        server,
        mode=args.mode,
        log_level="warning",
        logging_callback=visit.on_log,
        list_roots_callback=visit.on_roots,
        sampling_callback=visit.on_sampling,
        elicitation_callback=visit.on_elicitation,
    ) as client:
        visit.client = client
        report: dict[str, Any] = {}
        for visit.server in args.servers:
            report[visit.server] = await visit.tour()
        print(json.dumps(report or await visit.tour()), flush=True)


anyio.run(main)
