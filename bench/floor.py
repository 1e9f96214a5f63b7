"""The floor: the least that anything between a client and a server can cost in Python, `python -m bench.floor`.

    python -m bench.floor ss pump SERVER ARG ...      # stdio on both sides
    python -m bench.floor hs peek SERVER ARG ...      # HTTP front: says on stderr where it listens
    python -m bench.floor hh parse PORT               # HTTP upstream: a port of this machine

`pump` passes bytes as they come, `peek` finds the id of each frame and no more, `parse` also decodes and encodes it,
with orjson. HTTP is framed by hand. No errors, no sessions, no limits, and for the well-behaved peers of this benchmark
only: it shows where the limit is, and is not a recipe.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Final, Protocol

import orjson

from bench.framing import Messages
from bench.server import HEAD_BYTES, ID, Reader

POST: Final = (
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json, text/event-stream\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
)
OK: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: floor\r\nContent-Length: %d\r\n\r\n%s"
)
ACCEPTED: Final = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"

Recode = Callable[[bytes], bytes]
"""What is done to a frame on its way."""

_CHILDREN: Final[list[subprocess.Popen[bytes]]] = []
"""Kept, for the pipes of a child close with what stands for it here."""


class Sink(Protocol):
    """Where frames go: one side, as the other side sees it."""

    def put(self, frame: bytes) -> None:
        """Take a frame, without line feed."""


class Input:
    """A descriptor that is read: gives what comes to whoever takes it, and nothing at its end."""

    def __init__(self, fd: int, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._reader = Reader(fd)
        self._fd = fd
        os.set_blocking(fd, False)
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> None:
        data = self._reader.read()
        if not data:
            asyncio.get_running_loop().remove_reader(self._fd)
        self._take(data)


class Output:
    """A descriptor that is written to; what it does not take at once waits."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting: list[bytes] = []
        os.set_blocking(fd, False)

    def write(self, data: bytes) -> None:
        """Write, now or in turn."""
        if self._waiting:
            self._waiting.append(data)
        elif (written := self._try(data)) < len(data):
            self._waiting.append(data[written:])
            asyncio.get_running_loop().add_writer(self._fd, self._go_on)

    def put(self, frame: bytes) -> None:
        """Write a line."""
        self.write(frame + b"\n")

    def _go_on(self) -> None:
        data = b"".join(self._waiting)
        written = self._try(data)
        self._waiting = [data[written:]] if written < len(data) else []
        if not self._waiting:
            asyncio.get_running_loop().remove_writer(self._fd)

    def _try(self, data: bytes) -> int:
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0


class Lines:
    """Gives the lines that come to a sink."""

    def __init__(self, recode: Recode) -> None:
        self.sink: Sink
        self._recode = recode
        self._pending: list[bytes] = []

    def take(self, data: bytes) -> None:
        """Cut lines."""
        if self._pending:
            self._pending.append(data)
            if b"\n" not in data:
                return
            data = b"".join(self._pending)
        *lines, rest = data.split(b"\n")
        self._pending = [rest] if rest else []
        for line in lines:
            self.sink.put(self._recode(line))


class Front(Messages):
    """A connection of a client: what it posts goes on, and waits for its answer by its id."""

    def __init__(self, waiting: dict[bytes, asyncio.Transport], upstream: Sink, recode: Recode) -> None:
        super().__init__()
        self._waiting = waiting
        self._upstream = upstream
        self._recode = recode

    def take(self, head: bytes, body: bytes) -> None:
        """Pass a POST on; anything else is accepted and forgotten."""
        found = ID.search(body, 0, HEAD_BYTES) if body else None
        if found is None:
            self.transport.write(ACCEPTED)
        else:
            self._waiting[found[1]] = self.transport
        if body:
            self._upstream.put(self._recode(body))


class Answers:
    """Gives each answer to the connection whose request it answers."""

    def __init__(self, waiting: dict[bytes, asyncio.Transport]) -> None:
        self._waiting = waiting

    def put(self, frame: bytes) -> None:
        """Answer."""
        found = ID.search(frame, 0, HEAD_BYTES)
        assert found is not None, frame
        self._waiting.pop(found[1]).write(OK % (len(frame), frame))


class Connections:
    """Posts frames to a server, each over a connection that is free, or else a new one."""

    def __init__(self, port: int, recode: Recode, back: Sink) -> None:
        self._back = back
        self._port = port
        self._recode = recode
        self._idle: list[Connection] = []
        self._opening: set[asyncio.Task[None]] = set()

    def put(self, frame: bytes) -> None:
        """Post a frame."""
        if self._idle:
            self._idle.pop().transport.write(POST % (len(frame), frame))
        else:
            task = asyncio.get_running_loop().create_task(self._open(frame))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def take(self, connection: Connection, body: bytes) -> None:
        """Pass an answer on."""
        self._idle.append(connection)
        if body:
            self._back.put(self._recode(body))

    async def _open(self, frame: bytes) -> None:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: Connection(self), "127.0.0.1", self._port)
        connection.transport.write(POST % (len(frame), frame))


class Connection(Messages):
    """A connection to the server."""

    def __init__(self, owner: Connections) -> None:
        super().__init__()
        self._owner = owner

    def take(self, head: bytes, body: bytes) -> None:
        """Pass an answer on."""
        self._owner.take(self, body)


def parse(frame: bytes) -> bytes:
    """Decode and encode a frame."""
    return orjson.dumps(orjson.loads(frame))


def keep(frame: bytes) -> bytes:
    """Give a frame as it came."""
    return frame


async def run(topology: str, depth: str, target: list[str]) -> None:
    """Be the floor until stdin ends, where the front is stdio, or the process is ended."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    recode = parse if depth == "parse" else keep

    def read_stdin(take: Callable[[bytes], None]) -> None:
        Input(0, lambda data: take(data) if data else ended.set_result(None))

    if depth == "pump":
        child = _start(target)
        Input(child[1], Output(1).write)
        read_stdin(Output(child[0]).write)
    elif topology[0] == "s":
        upstream = _open_upstream(topology[1], recode, target, Output(1))
        lines = Lines(recode)
        lines.sink = upstream
        read_stdin(lines.take)
    else:
        waiting: dict[bytes, asyncio.Transport] = {}
        upstream = _open_upstream(topology[1], recode, target, Answers(waiting))
        listener = await loop.create_server(lambda: Front(waiting, upstream, recode), "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        print(f"listening on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
    await ended


def _open_upstream(kind: str, recode: Recode, target: list[str], back: Sink) -> Sink:
    """Give where frames go to the server; its own go back."""
    if kind == "h":
        return Connections(int(target[0]), recode, back)
    child = _start(target)
    lines = Lines(recode)
    lines.sink = back
    Input(child[1], lines.take)
    return Output(child[0])


def _start(command: list[str]) -> tuple[int, int]:
    """Start a server; give where to write to it and where to read from it."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    _CHILDREN.append(child)
    assert child.stdin
    assert child.stdout
    return child.stdin.fileno(), child.stdout.fileno()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], sys.argv[3:]))
