"""A front on a free port of this machine, with a proxy behind it for each session and a server that a test plays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

from dragoman.proxy import Proxy, ProxyConfig
from dragoman.status import StatusBoard
from dragoman.transports.base import Transport
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.serve import Address, HttpServer, bind
from dragoman.transports.memory import connect_pair
from tests.support import waiting
from tests.support.waiting import until
from tests.transports.http.wire import PATIENCE_S, Reply, hang_up, request

BOTH = "application/json, text/event-stream"


class Server:
    """A server that a test plays."""

    def __init__(self) -> None:
        self.end, self.far = connect_pair("server", "proxy")
        self.gone: str | None = None
        self.last: Any = None
        self.paused = False
        self._heard: asyncio.Queue[Any] = asyncio.Queue()
        self._rest = b""
        self.end.start_raw(self)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.last = json.loads(line)
            self._heard.put_nowait(self.last)

    def ended(self, reason: str) -> None:
        self.gone = reason

    def broken(self, reason: str) -> None:
        self.gone = reason

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False

    async def hear(self) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return await self._heard.get()

    def hears_nothing(self) -> bool:
        return self._heard.empty()

    def say(self, *frames: Any) -> None:
        self.end.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))

    def answer(self, key: Any, **result: Any) -> None:
        self.say({"jsonrpc": "2.0", "id": key, "result": result})

    def exit(self) -> None:
        self.end.end()


class Stage:
    make: Callable[[Transport], Any]
    """Makes what runs a session."""
    http: HttpServer

    def __init__(self, front: HttpFront, port: int) -> None:
        self.front = front
        self.port = port
        self.servers: list[Server] = []
        self.connections: set[Any] = set()
        self.session = ""
        self.revision = ""

    @property
    def server(self) -> Server:
        return self.servers[-1]

    def connect(self) -> Transport:
        self.servers.append(Server())
        return self.servers[-1].far

    async def open(self, revision: str = "2025-06-18", **headers: str) -> Reply:
        """Do the handshake of Streamable HTTP."""
        task = asyncio.create_task(self.post(initialize(revision), **headers))
        await until(lambda: bool(self.servers))
        server = self.servers[-1]
        offer = await server.hear()
        server.answer(offer["id"], **initialized(revision))
        reply = await task
        assert reply.status == 200
        self.session, self.revision = reply.headers["mcp-session-id"], revision
        noted = await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **headers)
        assert noted.status == 202
        noted.leave()
        await server.hear()
        return reply

    def headers(self, given: dict[str, str]) -> dict[str, str]:
        known = {"accept": BOTH}
        if self.session:
            known |= {"mcp-session-id": self.session, "mcp-protocol-version": self.revision}
        return known | {name.replace("_", "-"): value for name, value in given.items()}

    async def post(self, frame: Any, path: str = "/mcp", **headers: str) -> Reply:
        return await request(self.port, "POST", path, self.headers(headers), frame)

    async def get(self, path: str = "/mcp", **headers: str) -> Reply:
        return await request(self.port, "GET", path, self.headers({"accept": "text/event-stream", **headers}))

    async def delete(self, **headers: str) -> Reply:
        return await request(self.port, "DELETE", "/mcp", self.headers(headers))

    def call(self, key: Any = 2, **params: Any) -> asyncio.Task[Reply]:
        """Call a tool, without waiting for what is answered."""
        return asyncio.create_task(self.post(call(key, **params)))

    async def call_and_answer(self, key: Any = 2, text: str = "hello") -> Any:
        """Call a tool, answer, and give the answer that the client got."""
        calling = self.call(key)
        while (await self.server.hear()).get("id") != key:
            pass
        self.server.answer(key, **content(text))
        return await (await within(calling)).frame()


@asynccontextmanager
async def serving(
    config: FrontConfig | None = None,
    address: Address | None = None,
    tidy: Callable[[], None] | None = None,
    board: StatusBoard | None = None,
    **proxy: Any,
) -> AsyncIterator[Stage]:
    address = address or Address()
    stage: Stage
    front = HttpFront(lambda transport, _: stage.make(transport), config, tidy, board)
    listener = bind(address)
    stage = Stage(front, listener.getsockname()[1])
    stage.make = lambda transport: Proxy(ProxyConfig(**proxy), transport, stage.connect)
    server = HttpServer(front, listener, address)
    stage.http = server
    stage.connections = server.site.connections
    ready = asyncio.Event()
    task = asyncio.create_task(server.run(ready.set))
    await ready.wait()
    try:
        yield stage
    finally:
        await hang_up()
        server.stop("the test is over")
        await task


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test in an event loop of its own."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        waiting.run(test(*arguments, **named))

    return run


async def within(awaitable: Awaitable[Any], patience_s: float = PATIENCE_S) -> Any:
    async with asyncio.timeout(patience_s):
        return await awaitable


def initialize(revision: str = "2025-06-18", key: Any = 1) -> dict[str, Any]:
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": key, "method": "initialize", "params": params}


def initialized(revision: str) -> dict[str, Any]:
    return {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}


def call(key: Any = 2, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": {"name": "echo", **params}}


def log_message(text: str) -> dict[str, Any]:
    params = {"level": "info", "data": text}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


def progress(token: Any, done: int) -> dict[str, Any]:
    params = {"progressToken": token, "progress": done}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def text_of(reply: Any) -> str:
    found: str = reply["result"]["content"][0]["text"]
    return found


def content(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}
