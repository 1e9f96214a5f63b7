"""A small HTTP/1.1 client over asyncio streams: what goes over the wire is what a test says, and what comes is read as
it comes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

PATIENCE_S = 20.0


@dataclass
class Event:
    name: str = "message"
    data: str | None = None
    id: str | None = None
    retry: int | None = None

    @property
    def frame(self) -> Any:
        assert self.data is not None
        return json.loads(self.data)


class EventReader:
    """Cuts a stream of server-sent events, in pieces of any size, into events."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Event]:
        self._rest += data
        *blocks, self._rest = self._rest.split(b"\n\n")
        return [event for block in blocks if (event := _read_event(block.decode())) is not None]


def _read_event(block: str) -> Event | None:
    event = Event()
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                event.name = value
            case "data":
                event.data = value if event.data is None else f"{event.data}\n{value}"
            case "id":
                event.id = value
            case "retry":
                event.retry = int(value)
    return None if event == Event() else event


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    _over: bool = False
    _events: list[Event] = field(default_factory=list)
    _cut: EventReader = field(default_factory=EventReader)

    async def __aenter__(self) -> Reply:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self.leave()

    def leave(self) -> None:
        """Disconnect, whatever there is still to read."""
        self.writer.close()

    async def parts(self) -> AsyncIterator[bytes]:
        if "transfer-encoding" not in self.headers:
            length = int(self.headers.get("content-length", "0"))
            if length:
                yield await self.reader.readexactly(length)
            return
        while not self._over:
            size = int(await self.reader.readline(), 16)
            part = (await self.reader.readexactly(size + 2))[:-2]
            self._over = not size
            if part:
                yield part

    async def body(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            body = b"".join([part async for part in self.parts()])
        self.leave()
        return body

    async def frame(self) -> Any:
        return json.loads(await self.body())

    async def event(self) -> Event | None:
        """Give the next event; None at the end of the stream."""
        async with asyncio.timeout(PATIENCE_S):
            while not self._events:
                async for part in self.parts():
                    self._events += self._cut.feed(part)
                    break
                else:
                    return None
        return self._events.pop(0)

    async def frames(self) -> list[Any]:
        """Give the frames of all events to the end of the stream."""
        frames = []
        while (event := await self.event()) is not None:
            if event.data:
                frames.append(event.frame)
        return frames


_opened: list[asyncio.StreamWriter] = []


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    _opened.append(writer)
    return reader, writer


async def hang_up() -> None:
    """Close every connection that a test has opened."""
    for writer in _opened:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    _opened.clear()


async def send_raw(port: int, data: bytes) -> Reply:
    reader, writer = await connect(port)
    writer.write(data)
    return await read_reply(reader, writer)


async def read_reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Reply:
    async with asyncio.timeout(PATIENCE_S):
        status = int((await reader.readline()).split()[1])
        headers: dict[str, str] = {}
        while (line := (await reader.readline()).strip()) != b"":
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
    return Reply(status, headers, reader, writer)


async def request(port: int, method: str, path: str, headers: dict[str, str] | None = None, body: Any = None) -> Reply:
    """Send a request; a body that is no bytes goes as JSON."""
    given = {"host": f"127.0.0.1:{port}", **(headers or {})}
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    if body is not None:
        given.setdefault("content-length", str(len(data)))
        given.setdefault("content-type", "application/json")
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
    return await send_raw(port, f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + data)
