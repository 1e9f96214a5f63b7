"""A server that does what a test tells it, byte by byte, and a client in front of the real proxy.

async def serve(request, reply):
    await reply.json({...})

async with server(serve) as url, client(url) as peer:
    answer = await peer.ask("tools/list")
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from dragoman.core.commands import Finish
from dragoman.core.settings import ServerMemory
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.memory import connect_pair
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from tests.support import waiting

PATIENCE_S = 20.0
BLOCK = b"x" * 65536
REVISION = "2025-11-25"


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own, which must be free of tasks at the end."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def main() -> None:
            await test(*args, **kwargs)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, left

        waiting.run(main())

    return run


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def frame(self) -> Any:
        return json.loads(self.body)

    @property
    def rpc(self) -> str | None:
        """The JSON-RPC method, if there is one."""
        return self.frame.get("method") if self.body else None


@dataclass
class Reply:
    writer: asyncio.StreamWriter
    closed: bool = False

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: str, *headers: str) -> None:
        await self.raw("\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode())

    async def status(self, status: str, *headers: str, body: bytes = b"") -> None:
        await self.head(status, f"Content-Length: {len(body)}", *headers)
        await self.raw(body)

    async def json(self, value: Any, *headers: str, status: str = "200 OK") -> None:
        await self.status(status, "Content-Type: application/json", *headers, body=json.dumps(value).encode())

    async def result(self, request: Request, result: Any, *headers: str) -> None:
        await self.json({"jsonrpc": "2.0", "id": request.frame["id"], "result": result}, *headers)

    async def stream(self, *headers: str) -> None:
        """Begin an event stream that ends with the connection."""
        await self.head("200 OK", "Content-Type: text/event-stream", "Connection: close", *headers)

    async def event(self, value: Any = None, name: str = "", event_id: str = "", retry: str = "") -> None:
        data = value if isinstance(value, str) else "" if value is None else json.dumps(value)
        lines = (
            [f"event: {name}"] * bool(name) + [f"id: {event_id}"] * bool(event_id) + [f"retry: {retry}"] * bool(retry)
        )
        await self.raw("\r\n".join([*lines, f"data: {data}", "", ""]).encode())

    def cut(self) -> None:
        """Close the connection, whatever was promised."""
        self.closed = True
        self.writer.close()


Serve = Callable[[Request, Reply], Awaitable[None]]
Misbehave = Serve


@contextlib.asynccontextmanager
async def server(serve: Serve, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve on a loopback port, by default a free one; give the URL of `/mcp` there."""
    writers: set[asyncio.StreamWriter] = set()
    tasks: set[asyncio.Task[Any]] = set()
    failures: list[BaseException] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        writers.add(writer)
        try:
            while (request := await read_request(reader)) is not None:
                reply = Reply(writer)
                await serve(request, reply)
                if reply.closed:
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        except Exception as error:
            failures.append(error)
        finally:
            writer.close()
            tasks.discard(task)

    listener = await asyncio.start_server(connected, "127.0.0.1", port, limit=2**24, ssl=tls)
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.close()
    assert not failures, failures


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, path, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)


async def shake_hands(request: Request, reply: Reply, session: str = "s1", revision: str | None = None) -> bool:
    """Do what every well-behaved server does; whether that was all there was to do."""
    headers = [f"Mcp-Session-Id: {session}"] if session else []
    if request.method == "DELETE":
        await reply.status("200 OK")
    elif request.method == "GET" and "last-event-id" not in request.headers:
        await reply.status("405 Method Not Allowed")
    elif request.method == "POST" and request.rpc == "initialize":
        chosen = revision or request.frame["params"]["protocolVersion"]
        await reply.result(request, hello(chosen), *headers)
    elif request.method == "POST" and request.rpc == "notifications/initialized":
        await reply.status("202 Accepted")
    else:
        return False
    return True


def hello(revision: str = REVISION) -> dict[str, Any]:
    return {"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "s", "version": "0"}}


@dataclass
class Client:
    """A client whose other end is the proxy."""

    write: Callable[[bytes], None]
    finished: asyncio.Task[Finish]
    answers: dict[Any, Any] = field(default_factory=dict)
    others: list[Any] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    end: str | None = None
    last_id: int = 0
    _kept: bytes = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._kept = (self._kept + data).split(b"\n")
        for line in lines:
            frame = json.loads(line)
            if isinstance(frame, dict) and "method" not in frame and frame.get("id") is not None:
                assert frame["id"] not in self.answers, f"answered twice: {frame}"
                self.answers[frame["id"]] = frame
            else:
                self.others.append(frame)
        self.changed.set()

    def ended(self, reason: str) -> None:
        self.end = reason
        self.changed.set()

    def broken(self, reason: str) -> None:
        """Nothing: the proxy reads to the end."""

    def pause_writing(self) -> None:
        """Nothing: what a test writes is bounded."""

    def resume_writing(self) -> None:
        """Nothing: see above."""

    def send(self, frame: Any) -> None:
        self.write(json.dumps(frame).encode() + b"\n")

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def start(self, method: str, **params: Any) -> int:
        self.last_id += 1
        self.send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        return self.last_id

    async def answer(self, request_id: Any) -> Any:
        await self.until(lambda: request_id in self.answers)
        return self.answers[request_id]

    async def ask(self, method: str, **params: Any) -> Any:
        return await self.answer(self.start(method, **params))

    async def initialize(self, revision: str = REVISION) -> Any:
        info = {"name": "c", "version": "0"}
        answer = await self.ask("initialize", protocolVersion=revision, capabilities={}, clientInfo=info)
        if "result" in answer:
            self.notify("notifications/initialized")
        return answer

    async def until(self, condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        async with asyncio.timeout(patience_s):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


@contextlib.asynccontextmanager
async def client(
    url: str, *, revision: str = REVISION, opened: bool = True, known: ServerMemory | None = None, **config: Any
) -> AsyncIterator[Client]:
    """Join a client to a server through the proxy; `opened` does the handshake first."""
    ours, front = connect_pair()
    upstream = UpstreamConfig(url, **{"close_timeout_s": 0.5, **config})
    decided = ProxyConfig(drain_timeout_s=1.0, rules=frozenset(), known=known)
    proxy = Proxy(decided, front, lambda: open_upstream(upstream))
    peer = Client(ours.write, asyncio.get_running_loop().create_task(proxy.run()))
    ours.start_raw(peer)
    try:
        if opened:
            answer = await peer.initialize(revision)
            assert "result" in answer, answer
        yield peer
    finally:
        await ours.close()
        async with asyncio.timeout(PATIENCE_S):
            await peer.finished


def after_handshake(misbehave: Misbehave) -> Misbehave:
    """Shake hands, then misbehave."""

    async def serve(request: Request, reply: Reply) -> None:
        if request.rpc == "ping":
            await reply.result(request, {})
        elif not await shake_hands(request, reply):
            await misbehave(request, reply)

    return serve


async def call(misbehave: Misbehave, **config: Any) -> dict[str, Any]:
    """Give the error that a call of a misbehaving server ends with; the session has to go on after it."""
    async with server(after_handshake(misbehave)) as url, client(url, **config) as peer:
        answer = await peer.ask("tools/call")
        assert "result" in await peer.ask("ping")
    error: dict[str, Any] = answer["error"]
    return error


async def open_with(serve: Misbehave, **config: Any) -> dict[str, Any]:
    """Give the error that `initialize` ends with, and the session with it."""
    async with server(serve) as url, client(url, opened=False, **config) as peer:
        answer = await peer.initialize()
        await peer.until(lambda: peer.end is not None)
    error: dict[str, Any] = answer["error"]
    return error


def answer_to(request: Request, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request.frame["id"], "result": result}
