"""A strict MCP client, the same program under four SDK releases: `python client.py [--record FILE] -- SERVER ARG…`.

It starts the server command, or goes to a URL (`--over http -- URL`; also `sse` and `ws`), accepts only the native
revision of the release it runs under, performs every operation that the server offers, and prints one JSON report of
what it got on stdout. An operation's outcome is `{"result": …}`, `{"error": {code, message, data}}`, `{"raised": …}`
when the SDK could not take the answer, or `{"timeout": seconds}`. Which outcome is right is not decided here but in
`expectations.py`. Release differences are in `sdk.py`, transports in `wires.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import sdk
import wires
from mcp import ClientSession, types
from sdk import McpError, ask, dump, speaks, tell

LIMIT_S = 15.0
CANCELLED_LIMIT_S = 6
"""For what may never be answered, since the call was cancelled or the server is gone."""
UNANSWERED_S = 1
"""For a call that was cancelled over Streamable HTTP, which is not answered."""
LAST_LEVEL = "emergency"
"""Of the levels that every server logs, in their order."""
TEXT_URI = "file:///home/user/document.txt"
CALLS: dict[str, dict[str, Any]] = {
    "echo": {"say": "hello", "delay_s": 0},
    "image": {},
    "sound": {},
    "weather": {},
    "bare_structure": {},
    "links": {},
    "embedded": {},
    "failing": {},
    "ping_client": {},
    "gated": {},
    "nonexistent": {},
}
ASKING = ("ask_roots", "ask_sampling", "ask_user")
READS = {
    "document": TEXT_URI,
    "api": "https://example.com/api/resource",
    "unique": "custom://unique-id-12345",
    "pixel": "file:///home/user/pixel.png",
    "nowhere": "file:///nowhere",
}


class Visit:
    """One session with a server: what came in beside the answers, and the operations."""

    over = "stdio"

    def __init__(self, settle_s: float = 0, servers: dict[str, float] | None = None) -> None:
        self.session: Any = None
        self.settle_s = settle_s
        self.servers = servers or {}
        self.report: dict[str, Any] = {"release": sdk.RELEASE, "revision": sdk.REVISION}
        self.notifications: list[Any] = []
        self.stray: list[str] = []
        self.asked: list[Any] = []
        self.offered: dict[str, Any] = {}

    # What the server starts

    async def on_message(self, message: Any) -> None:
        """Note each notification; anything the SDK could not place (an unknown id, bad JSON) is stray."""
        if isinstance(message, Exception):
            self.stray.append(f"{type(message).__name__}: {message}")
        elif isinstance(message, types.ServerNotification):
            self.notifications.append(dump(message.root))

    async def on_sampling(self, context: Any, params: Any) -> Any:
        """Answer in text, in audio when told to sing, in two blocks when asked and able to."""
        self.asked.append(dump(params))
        said = json.dumps(dump(params))
        content: Any = {"type": "text", "text": "I say hello"}
        result = types.CreateMessageResult
        if '"sing"' in said and speaks("2025-03-26"):
            content = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
        elif '"two blocks"' in said and speaks("2025-11-25"):
            content = [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}]
            result = types.CreateMessageResultWithTools
        answer = {"role": "assistant", "content": content, "model": "peer-model", "stopReason": "endTurn"}
        return result.model_validate(answer)

    async def on_elicitation(self, context: Any, params: Any) -> Any:
        """Accept, filling in the form with a fixed answer for each type of field."""
        asked = dump(params)
        self.asked.append(asked)
        fields = asked.get("requestedSchema", {}).get("properties", {})
        content = {name: ["r"] if schema["type"] == "array" else "r" for name, schema in fields.items()}
        return types.ElicitResult(action="accept", content=content or None)

    async def on_roots(self, context: Any) -> Any:
        """Offer one root."""
        self.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/user", name="home")])

    # What the client starts

    def named(self, name: str) -> str:
        """Give what this session knows a tool or a prompt of the server as."""
        return name

    def located(self, uri: str) -> str:
        """Give what it knows a resource or a template as."""
        return uri

    async def request(self, method: str, params: dict[str, Any] | None, result: str) -> dict[str, Any]:
        """Return the outcome of one request."""
        return await outcome(lambda: ask(self.session, method, params, result))

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the outcome of one tool call, by the SDK's own method, which checks structured content."""
        if name not in self.offered and name != "nonexistent":
            return {"absent": f"{name} is not in tools/list"}
        return await outcome(lambda: self.session.call_tool(self.named(name), arguments))

    async def list_tools(self) -> dict[str, Any]:
        """List the tools by name."""
        listed = await self.request("tools/list", None, "ListToolsResult")
        if "result" in listed:
            self.offered = {tool["name"]: tool for tool in listed["result"]["tools"]}
        return self.offered or listed

    async def call_tools(self) -> dict[str, Any]:
        """Call each tool once that does not ask back."""
        return {name: await self.call(name, arguments) for name, arguments in CALLS.items()}

    async def be_asked(self) -> dict[str, Any]:
        """Call the tools that ask back, once for each kind of question that they list."""
        found: dict[str, Any] = {}
        for name in ASKING:
            properties = self.offered.get(name, {}).get("inputSchema", {}).get("properties", {})
            kinds = properties.get("kind", {}).get("enum", [])
            found[name] = {kind: await self.be_asked_once(name, kind) for kind in kinds}
        return found

    async def be_asked_once(self, name: str, kind: str) -> dict[str, Any]:
        """Report what the client was asked and what the server says it got for an answer."""
        start = len(self.asked)
        found = await self.call(name, {"kind": kind})
        with contextlib.suppress(KeyError, ValueError):
            found = {"answer": json.loads(found["result"]["content"][0]["text"])}
        return {"asked": self.asked[start:], **found}

    async def call_at_once(self) -> list[Any]:
        """Call one tool five times at once, so that the first asked answers last."""
        answers: list[Any] = [None] * 5

        async def one(place: int) -> None:
            answers[place] = await self.call("echo", {"say": f"call {place}", "delay_s": 0.05 * (5 - place)})

        async with anyio.create_task_group() as group:
            for place in range(5):
                group.start_soon(one, place)
        return [answer["result"]["content"][0]["text"] if "result" in answer else answer for answer in answers]

    async def list_resources(self) -> list[Any]:
        """List resources page by page, at most five."""
        pages: list[Any] = []
        cursor = None
        while len(pages) < 5:
            params = None if cursor is None else {"cursor": cursor}
            page = await self.request("resources/list", params, "ListResourcesResult")
            pages.append(page)
            cursor = page.get("result", {}).get("nextCursor")
            if cursor is None:
                break
        return pages

    async def read_resources(self) -> dict[str, Any]:
        """Read each resource, and one that does not exist."""
        found = {}
        for name, uri in READS.items():
            found[name] = await self.request("resources/read", {"uri": self.located(uri)}, "ReadResourceResult")
        return found

    async def watch_resource(self) -> dict[str, Any]:
        """Have a resource touched before, during and after a subscription."""
        seen: dict[str, Any] = {}
        for when, verb in (("before", None), ("during", "subscribe"), ("after", "unsubscribe")):
            if verb is not None:
                about = {"uri": self.located(TEXT_URI)}
                seen[verb] = await self.request(f"resources/{verb}", about, "EmptyResult")
            expected = 1 if verb == "subscribe" else 0
            seen[when] = await self.notified_by(
                "touch", {"uri": TEXT_URI}, lambda notes, least=expected: len(notes) >= least
            )
        return seen

    async def notified_by(
        self, name: str, arguments: dict[str, Any], are_all: Callable[[list[Any]], bool] = lambda notes: True
    ) -> list[Any]:
        """Return the notifications that came while a tool ran; the server sends them before its answer.

        One that nobody waits for shows in what is reported next.
        """
        start = len(self.notifications)
        await self.call(name, arguments)
        await self.settle(lambda: are_all(self.notifications[start:]))
        return self.notifications[start:]

    async def settle(self, is_over: Callable[[], bool]) -> None:
        """Wait for what may come on another stream than an answer, and later."""
        with anyio.move_on_after(self.settle_s):
            while not is_over():
                await anyio.sleep(0.01)

    async def get_prompts(self) -> dict[str, Any]:
        """List the prompts and get each, and one that does not exist."""
        return {
            "list": await self.request("prompts/list", None, "ListPromptsResult"),
            "greet": await self.prompt({"name": "greet", "arguments": {"who": "Ada"}}),
            "gallery": await self.prompt({"name": "gallery"}),
            "survey": await self.prompt({"name": "survey"}),
            "nonexistent": await self.prompt({"name": "nonexistent"}),
        }

    async def prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the outcome of prompts/get."""
        known = {**params, "name": self.named(params["name"])}
        return await self.request("prompts/get", known, "GetPromptResult")

    async def complete(self) -> dict[str, Any]:
        """Complete a prompt's argument, with a context where the revision has it, and a template's."""
        prompt = {"ref": {"type": "ref/prompt", "name": self.named("greet")}, "argument": {"name": "who", "value": "A"}}
        template = {"ref": {"type": "ref/resource", "uri": self.located("weather://{city}")}}
        template["argument"] = {"name": "city", "value": "P"}
        if speaks("2025-06-18"):
            prompt["context"] = {"arguments": {"mood": "good"}}
        return {
            "prompt": await self.request("completion/complete", prompt, "CompleteResult"),
            "template": await self.request("completion/complete", template, "CompleteResult"),
        }

    async def set_levels(self) -> dict[str, Any]:
        """Return the levels logged after each level set."""
        seen: dict[str, Any] = {}
        for level in ("warning", "debug"):
            seen[f"set_{level}"] = await self.request("logging/setLevel", {"level": level}, "EmptyResult")
            notes = await self.notified_by("logs", {}, lambda notes: LAST_LEVEL in [level_of(note) for note in notes])
            seen[level] = [note["params"] for note in notes]
        return seen

    async def follow_progress(self) -> dict[str, Any]:
        """Call the slow tool with a progress token that is a string."""
        start = len(self.notifications)
        params = {"name": self.named("slow"), "arguments": {"steps": 3}, "_meta": {"progressToken": "token-1"}}
        found = await self.request("tools/call", params, "CallToolResult")
        await self.settle(lambda: len(self.notifications) >= start + 3)
        return {**found, "progress": [note["params"] for note in self.notifications[start:]]}

    async def cancel(self, limit_s: float = CANCELLED_LIMIT_S) -> dict[str, Any]:
        """Cancel a running call and look whether the server goes on. Last, because some releases exit over it."""
        found: dict[str, Any] = {}
        request_id = self.session._request_id

        async def wait_for_answer() -> None:
            params = {"name": self.named("slow"), "arguments": {"steps": 500}, "_meta": {"progressToken": 77}}
            found["call"] = await outcome(lambda: ask(self.session, "tools/call", params, "CallToolResult"), limit_s)

        async with anyio.create_task_group() as group:
            start = len(self.notifications)
            group.start_soon(wait_for_answer)
            with anyio.move_on_after(LIMIT_S):
                while len(self.notifications) == start:
                    await anyio.sleep(0.01)
            await tell(self.session, "notifications/cancelled", {"requestId": request_id, "reason": "changed my mind"})
        found["afterwards"] = await self.server_saw(CANCELLED_LIMIT_S, lambda seen: seen.get("cancelled", True))
        return found

    async def server_saw(
        self, limit_s: float = LIMIT_S, is_right: Callable[[dict[str, Any]], Any] = lambda seen: True
    ) -> dict[str, Any]:
        """Return the server's own account, as soon as it is right or the time is over."""
        end = anyio.current_time() + limit_s
        while True:
            found = await outcome(lambda: self.session.call_tool(self.named("server_saw"), {}), limit_s)
            with contextlib.suppress(KeyError, ValueError):
                found = json.loads(found["result"]["content"][0]["text"])
            if is_right(found) or anyio.current_time() > end:
                return found
            await anyio.sleep(0.01)

    async def everything(self, session: Any) -> None:
        """Perform all operations in a fixed order, each reported as soon as it is over."""
        if await self.open(session):
            await self.go_round(self.report)
            self.report["cancel"] = await self.cancel(UNANSWERED_S if self.over == "http" else CANCELLED_LIMIT_S)

    async def open(self, session: Any) -> bool:
        """Open the session; say whether the server agreed to."""
        self.session = session
        self.report["initialize"] = await outcome(session.initialize)
        if "result" not in self.report["initialize"]:
            return False
        self.report["ping"] = await self.request("ping", None, "EmptyResult")
        await tell(session, "notifications/roots/list_changed")
        return True

    async def go_round(self, report: dict[str, Any]) -> None:
        """Perform every operation but the cancelling, which some releases do not survive."""
        report["tools"] = await self.list_tools()
        report["server_saw"] = await self.server_saw(is_right=lambda seen: seen.get("roots_changes", True))
        report["offered"] = list(self.offered)
        report["calls"] = await self.call_tools()
        report["asks"] = await self.be_asked()
        report["at_once"] = await self.call_at_once()
        report["pages"] = await self.list_resources()
        templates = await self.request("resources/templates/list", None, "ListResourceTemplatesResult")
        report["templates"] = templates
        report["reads"] = await self.read_resources()
        report["watch"] = await self.watch_resource()
        report["lists"] = [
            note["method"] for note in await self.notified_by("change_lists", {}, lambda notes: len(notes) >= 3)
        ]
        report["prompts"] = await self.get_prompts()
        report["complete"] = await self.complete()
        report["levels"] = await self.set_levels()
        report["progress"] = await self.follow_progress()
        report["stray"] = list(self.stray)


def level_of(note: Any) -> Any:
    """Give the level of a log message."""
    return note["params"].get("level") if "params" in note else None


async def outcome(operation: Callable[[], Awaitable[Any]], limit_s: float = LIMIT_S) -> dict[str, Any]:
    """Perform an operation and say how it ended; see the module's docstring."""
    try:
        with anyio.fail_after(limit_s):
            return {"result": dump(await operation())}
    except McpError as error:
        return {"error": dump(error.error)}
    except TimeoutError:
        return {"timeout": limit_s}
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"}


def options(visit: Visit) -> dict[str, Any]:
    """Return the callbacks that this release takes."""
    found: dict[str, Any] = {
        "sampling_callback": visit.on_sampling,
        "list_roots_callback": visit.on_roots,
        "message_handler": visit.on_message,
    }
    if speaks("2025-06-18"):
        found["elicitation_callback"] = visit.on_elicitation
    if speaks("2025-11-25"):
        found["sampling_capabilities"] = sdk.make("SamplingCapability", tools=types.SamplingToolsCapability())
    return found


async def main(over: str, target: list[str], record: str | None, visit: Visit) -> None:
    """Visit the server and print the report."""
    complete = False
    try:
        visit.over = over
        with open(record, "a", encoding="utf-8") if record else contextlib.nullcontext() as sink:
            async with (
                wires.connect(over, target) as streams,
                sdk.recorded(streams, sink) as (read, write),
                ClientSession(read, write, **options(visit)) as session,
            ):
                await visit.everything(session)
                complete = True
    except Exception as error:
        # Some releases raise from their own shutdown; the report is complete by then.
        if not complete:
            visit.report["crashed"] = "; ".join(causes(error))
    print(json.dumps(visit.report))


def causes(error: BaseException) -> list[str]:
    """Return what a group of exceptions is made of, each in one line."""
    nested = getattr(error, "exceptions", None)
    if nested is None:
        return [" ".join(f"{type(error).__name__}: {error}".split())[:500]]
    return [cause for one in nested for cause in causes(one)]


def run(kind: type[Visit] = Visit) -> None:
    """Read the command line and make one visit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--over", choices=["stdio", "http", "sse", "ws"], default="stdio")
    parser.add_argument(
        "--settle", type=float, default=0, help="longest wait in seconds for what comes on other streams"
    )
    parser.add_argument("--servers", type=json.loads, help="who is behind a router: see among.py")
    parser.add_argument("server", nargs="+", help="a command, or for every transport but stdio a URL")
    chosen = parser.parse_args()
    sdk.make_client_strict()
    anyio.run(main, chosen.over, chosen.server, chosen.record, kind(chosen.settle, chosen.servers))


if __name__ == "__main__":
    run()
