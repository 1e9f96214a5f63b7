"""Servers and clients made for these tests: in one event loop with the router, over memory, each told what to do."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from dragoman.config import Configuration, ServerConfig, parse_config
from dragoman.core.commands import Finish
from dragoman.core.exact_json import decode
from dragoman.pool import UpstreamPool
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.router import Router
from dragoman.router.router import before_router
from dragoman.transports.memory import MemoryTransport, connect_pair
from tests.support.waiting import until

HANDSHAKE = "2025-11-25"
PER_REQUEST = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
Body = dict[str, Any]


class MadeServer:
    """A server with the tools, prompts and resources that it is given.

    Attributes:
        silent: Methods that it does not answer.
        heard: The frames that it got, of all its sessions.
        lines: Of its last session.
    """

    def __init__(self, revision: str = HANDSHAKE, **lists: list[Any]) -> None:
        self.revision = revision
        self.tools: list[str] = lists.get("tools", [])
        self.prompts: list[str] = lists.get("prompts", [])
        self.resources: list[str] = lists.get("resources", [])
        self.templates: list[str] = lists.get("templates", [])
        self.capabilities: Body = {"tools": {"listChanged": True}}
        if self.prompts:
            self.capabilities |= {"prompts": {}, "completions": {}}
        if self.resources or self.templates:
            self.capabilities["resources"] = {"subscribe": True}
        self.page_size = 1000
        self.silent: set[str] = set()
        self.heard: list[Body] = []
        self.instructions: str | None = None
        self.answers: dict[str, Callable[[Body], Body | None]] = {}
        self.opened = 0
        self.lines: Connection | None = None

    def connect(self) -> MemoryTransport:
        ours, theirs = connect_pair("the server", "proxy")
        self.opened += 1
        self.lines = Connection(ours, self.take)
        return theirs

    def say(self, body: Body) -> None:
        assert self.lines is not None
        self.lines.say(body)

    def die(self) -> None:
        assert self.lines is not None
        self.lines.transport.end()

    def of(self, method: str) -> list[Body]:
        return [frame for frame in self.heard if frame.get("method") == method]

    def take(self, frame: Body) -> None:
        self.heard.append(frame)
        method = frame.get("method")
        if method is None or "id" not in frame or method in self.silent:
            return
        result = self.answers[method](frame) if method in self.answers else self.result(method, frame)
        if result is not None:
            named = {"error": result["error"]} if "error" in result else {"result": self.complete(result)}
            self.say({"id": frame["id"], **named})

    def complete(self, result: Body) -> Body:
        return {"resultType": "complete", **result} if self.revision == PER_REQUEST else result

    def result(self, method: str, frame: Body) -> Body | None:
        params = frame.get("params") or {}
        match method:
            case "initialize" if self.revision != PER_REQUEST:
                info = {"name": "made", "version": "1"}
                said = {"protocolVersion": self.revision, "capabilities": self.capabilities, "serverInfo": info}
                return said | ({"instructions": self.instructions} if self.instructions else {})
            case "server/discover" if self.revision == PER_REQUEST:
                kept = {"ttlMs": 0, "cacheScope": "private"}
                return {"supportedVersions": [PER_REQUEST], "capabilities": self.capabilities, **kept}
            case "tools/list":
                return self.page(
                    "tools", [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools], params
                )
            case "prompts/list":
                return self.page("prompts", [{"name": name} for name in self.prompts], params)
            case "resources/list":
                return self.page("resources", [{"uri": uri, "name": uri} for uri in self.resources], params)
            case "resources/templates/list":
                return self.page("resourceTemplates", [{"uriTemplate": t, "name": t} for t in self.templates], params)
            case "tools/call":
                return {"content": [{"type": "text", "text": params["name"]}]}
            case "prompts/get":
                return {"messages": [{"role": "user", "content": {"type": "text", "text": params["name"]}}]}
            case "resources/read":
                kept = {"ttlMs": 0, "cacheScope": "private"} if self.revision == PER_REQUEST else {}
                return {"contents": [{"uri": params["uri"], "text": params["uri"]}], **kept}
            case "completion/complete":
                return {"completion": {"values": [params["argument"]["value"] + "!"]}}
            case "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" | "ping":
                return {}
        return {"error": {"code": -32601, "message": f"there is no {method}"}}

    def page(self, member: str, entries: list[Body], params: Body) -> Body:
        start = int(params.get("cursor", 0))
        end = start + self.page_size
        said: Body = {member: entries[start:end]}
        if end < len(entries):
            said["nextCursor"] = str(end)
        return said | ({"ttlMs": 0, "cacheScope": "private"} if self.revision == PER_REQUEST else {})


class Connection:
    """One end of a memory transport, as JSON objects."""

    def __init__(self, transport: MemoryTransport, take: Callable[[Body], None]) -> None:
        self.transport = transport
        self.is_over = False
        self._take = take
        self._rest = b""
        transport.start_raw(self)

    def say(self, body: Body) -> None:
        self.transport.write(json.dumps({"jsonrpc": "2.0", **body}).encode() + b"\n")

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(decode(line))

    def ended(self, reason: str) -> None:
        self.is_over = True
        self.transport.end()

    def broken(self, reason: str) -> None:
        self.is_over = True

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class MadeClient:
    """A client of a revision, in front of the router.

    Attributes:
        heard: The notifications and requests that it got.
        finish: How the session ended, once it has.
        connection: To the router.
    """

    def __init__(
        self, router: Router, revision: str, config: ProxyConfig | None = None, pool: UpstreamPool | None = None
    ) -> None:
        ours, theirs = connect_pair("client", "proxy")
        self.revision = revision
        self.heard: list[Body] = []
        self.answers: dict[str, Callable[[Body], Body]] = {}
        self.capabilities: Body = {}
        self._answers: dict[Any, Body] = {}
        self._last = 0
        self.connection = Connection(ours, self._take)
        before = before_router(config or ProxyConfig())
        self.proxy = Proxy(before, theirs, router.connect) if pool is None else pool.proxy(before, theirs)
        self.task: asyncio.Task[Finish] = asyncio.ensure_future(self.proxy.run())

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Body:
        return await self.answer_to(self.begin(method, params))

    def begin(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        self._last += 1
        said = dict(params or {})
        if self.revision == PER_REQUEST:
            own = {f"{PREFIX}protocolVersion": PER_REQUEST, f"{PREFIX}clientCapabilities": self.capabilities}
            said["_meta"] = {**own, **said.get("_meta", {})}
        self.connection.say({"id": self._last, "method": method, **({"params": said} if said else {})})
        return self._last

    async def answer_to(self, request: int) -> Body:
        await until(lambda: request in self._answers)
        return self._answers.pop(request)

    def has_answer_to(self, request: int) -> bool:
        return request in self._answers

    def tell(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.connection.say({"method": method, **({"params": dict(params)} if params else {})})

    async def open(self) -> Body:
        if self.revision == PER_REQUEST:
            return await self.ask("server/discover")
        info = {"name": "made", "version": "1"}
        opened = await self.ask(
            "initialize", {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": info}
        )
        self.tell("notifications/initialized")
        return opened

    async def list(self, what: str = "tools") -> list[str]:
        """Give what is listed, page by page, by name or URI."""
        member = "resourceTemplates" if what == "resources/templates" else what
        found: list[str] = []
        params: Body = {}
        while True:
            result = (await self.ask(f"{what}/list", params))["result"]
            found += [one.get("uri") or one.get("uriTemplate") or one["name"] for one in result[member]]
            if "nextCursor" not in result:
                return found
            params = {"cursor": result["nextCursor"]}

    async def call(self, tool: str) -> str:
        answer = await self.ask("tools/call", {"name": tool, "arguments": {}})
        text: str = answer["result"]["content"][0]["text"] if "result" in answer else answer["error"]["message"]
        return text

    def of(self, method: str) -> list[Body]:
        return [frame for frame in self.heard if frame.get("method") == method]

    async def close(self) -> Finish:
        self.connection.transport.end()
        return await self.task

    def _take(self, frame: Body) -> None:
        if "method" not in frame:
            self._answers[frame.get("id")] = frame
            return
        self.heard.append(frame)
        if "id" in frame and frame["method"] in self.answers:
            self.connection.say({"id": frame["id"], "result": self.answers[frame["method"]](frame)})


def configured(servers: Mapping[str, MadeServer], options: Body | None = None, **entries: Body) -> Configuration:
    """Give a configuration that names these servers, with more in the entries of some."""
    listed = {name: {"command": name, **entries.get(name, {})} for name in servers}
    return parse_config(json.dumps({"mcpServers": listed, "dragoman": options or {}}))


def routing(
    servers: Mapping[str, MadeServer], options: Body | None = None, config: ProxyConfig | None = None, **entries: Body
) -> Router:
    """Give a router before these servers, which may change."""

    def open_server(server: ServerConfig) -> Callable[[], MemoryTransport]:
        return lambda: servers[server.name].connect()

    return Router(configured(servers, options, **entries), config or ProxyConfig(), open_server)


@contextlib.asynccontextmanager
async def session(
    router: Router, revision: str = HANDSHAKE, capabilities: Body | None = None
) -> AsyncIterator[MadeClient]:
    """Open a client's session with a router."""
    client = MadeClient(router, revision)
    client.capabilities = capabilities or {}
    try:
        await client.open()
        yield client
    finally:
        await client.close()
