"""Clients that cost as little as Python allows: over the pipes of a process, and over one kept HTTP connection.

Each opens a session and times requests one after another, from the first byte out to the last byte in. Called by
`proxy.py`, with a bare server or with the proxy before it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter_ns
from typing import IO, Any

from bench.framing import LENGTH
from bench.server import READ_BYTES, Reader

SESSION = re.compile(rb"(?im)^mcp-session-id:\s*(\S+)")
ADDRESS = re.compile(r"listening on https?://127\.0\.0\.1:(\d+)")


class Peer:
    """A client of one session; a request at a time. What carries frames is a subclass's affair.

    Attributes:
        pid: Whose client it is.
        capabilities: What it declares.
        number: The id of its last request.
    """

    def __init__(self, pid: int, revision: str) -> None:
        self.pid = pid
        self.capabilities: dict[str, Any] = {}
        self._revision = revision
        self.number = 0

    def open(self) -> None:
        """Open the session."""
        info = {"name": "bench", "version": "1"}
        params = {"protocolVersion": self._revision, "capabilities": self.capabilities, "clientInfo": info}
        answer = json.loads(self.exchange(self.request("initialize", params)))
        assert answer["result"]["protocolVersion"] == self._revision, answer
        self.notify(_encode({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def p50_us(self, method: str, params: dict[str, Any], calls: int) -> float:
        """Give the median time of one request, in microseconds."""
        frames = [self.request(method, params) for _ in range(calls)]
        times = []
        for frame in frames:
            started = perf_counter_ns()
            answer = self.exchange(frame)
            times.append(perf_counter_ns() - started)
        read = json.loads(answer)
        assert read["id"] == self.number, read
        assert "result" in read, read
        return median(times) / 1000

    def exchange(self, frame: bytes) -> bytes:
        """Send a request and give its answer."""
        raise NotImplementedError

    def notify(self, frame: bytes) -> None:
        """Send a notification."""
        raise NotImplementedError

    def next(self) -> bytes:
        """Wait for the next frame, where more than answers can come."""
        raise NotImplementedError

    def request(self, method: str, params: dict[str, Any]) -> bytes:
        """Give the frame of the next request."""
        self.number += 1
        return _encode({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})


class StdioPeer(Peer):
    """A client of a process."""

    def __init__(self, process: subprocess.Popen[bytes], revision: str) -> None:
        super().__init__(process.pid, revision)
        assert process.stdin
        assert process.stdout
        self._stdin = process.stdin.fileno()
        self._reader = Reader(process.stdout.fileno())

    def exchange(self, frame: bytes) -> bytes:
        """Write a line and read one."""
        self.notify(frame)
        chunk = self.read()
        if chunk.endswith(b"\n"):
            return chunk
        chunks = [chunk]
        while not chunk.endswith(b"\n"):
            chunk = self.read()
            chunks.append(chunk)
        return b"".join(chunks)

    def read(self) -> bytes:
        """Read what has come, whole lines or not."""
        data = self._reader.read()
        assert data, "the process ended"
        return data

    def notify(self, frame: bytes) -> None:
        """Write a line."""
        self.write(frame + b"\n")

    def write(self, lines: bytes) -> None:
        """Write lines."""
        written = os.write(self._stdin, lines)
        while written < len(lines):
            lines = lines[written:]
            written = os.write(self._stdin, lines)


class HttpPeer(Peer):
    """A client of `/mcp` on a port of this machine, with a secret or a token if it has one."""

    def __init__(self, port: int, revision: str, pid: int = 0, secret: str = "") -> None:
        super().__init__(pid, revision)
        self._port = port
        self._others: list[HttpPeer] = []
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(READ_BYTES)
        self._view = memoryview(self._buffer)
        accept = b"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        self._head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s" % (port, accept)
        if secret:
            self._head += b"Authorization: Bearer %s\r\n" % secret.encode()
        self._is_open = False

    def exchange(self, frame: bytes) -> bytes:
        """POST a frame and read the answer, whether it comes as JSON or as an event."""
        self.send(frame)
        return self.receive()

    def send(self, frame: bytes) -> None:
        """POST a frame."""
        self._socket.sendall(b"%sContent-Length: %d\r\n\r\n%s" % (self._head, len(frame), frame))

    def receive(self) -> bytes:
        """Wait for the answer to what was sent."""
        head, body = self._receive()
        if not self._is_open:
            self._is_open = True
            self._head += b"MCP-Protocol-Version: %s\r\n" % self._revision.encode()
            if session := SESSION.search(head):
                self._head += b"Mcp-Session-Id: %s\r\n" % session[1]
        return body

    def notify(self, frame: bytes) -> None:
        """POST a frame."""
        self.exchange(frame)

    def _receive(self) -> tuple[bytes, bytes]:
        data = self._more()
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        head, body = data[: end + 2], data[end + 4 :]
        if length := LENGTH.search(head):
            chunks, missing = [body], int(length[1]) - len(body)
            while missing > 0:
                chunks.append(self._more())
                missing -= len(chunks[-1])
            return head, b"".join(chunks)
        if b" 202 " in head[:20] or b" 204 " in head[:20]:
            return head, body
        while not body.endswith(b"0\r\n\r\n"):
            body += self._more()
        return head, _answer_among(_unchunk(body))

    def _more(self) -> bytes:
        data = bytes(self._view[: self._socket.recv_into(self._buffer)])
        assert data, "the server closed the connection"
        return data

    def share_connection(self, other: HttpPeer) -> None:
        """Use the connection of another client, one after the other: the proxy closes those that are idle for long."""
        self._socket.close()
        self._socket = other._socket

    def connections(self, count: int) -> list[HttpPeer]:
        """Give clients of this same session, each with a connection of its own; they are kept."""
        while len(self._others) < count:
            self._others.append(self.at(self._port))
        return self._others[:count]

    def at(self, port: int) -> HttpPeer:
        """Give a client of this same session that asks at a port, of another instance perhaps."""
        other = HttpPeer(port, self._revision, self.pid)
        other._head, other._is_open = self._head, True
        return other

    def fileno(self) -> int:
        """Give what can be waited for."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the connection, and those beside it."""
        for other in self._others:
            other.close()
        self._socket.close()


@contextmanager
def over_stdio(command: tuple[str, ...], revision: str) -> Iterator[Peer]:
    """Start a process and open a session with it; end it afterwards."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        peer = StdioPeer(process, revision)
        peer.open()
        yield peer
        assert process.stdin
        process.stdin.close()


@contextmanager
def over_http(port: int, revision: str, pid: int = 0) -> Iterator[Peer]:
    """Open a session with whoever listens on a port: the process with this id, if its CPU time is wanted."""
    peer = HttpPeer(port, revision, pid)
    peer.open()
    yield peer
    peer.close()


@contextmanager
def listening(command: tuple[str, ...]) -> Iterator[int]:
    """Start a process that says on stderr where it listens; give the port."""
    with started(command) as (_, port):
        yield port


@contextmanager
def started(command: tuple[str, ...]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a process that says on stderr where it listens; give it with the port."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr
        line = process.stderr.readline().decode()
        found = ADDRESS.search(line)
        assert found, line
        threading.Thread(target=_pass_on, args=(process.stderr,), daemon=True).start()
        try:
            yield process, int(found[1])
        finally:
            process.terminate()
            process.wait()


def _pass_on(stderr: IO[bytes]) -> None:
    """Show what a process says on stderr later: it would stop at a pipe that nobody reads."""
    with contextlib.suppress(ValueError, OSError):  # it is closed when the process has ended
        for line in stderr:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()


def _encode(frame: dict[str, Any]) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode()


def _unchunk(body: bytes) -> bytes:
    parts = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        parts.append(rest[:length])
        body = rest[length + 2 :]
    return b"".join(parts)


def _answer_among(events: bytes) -> bytes:
    if not events.startswith((b"event:", b"id:", b"data:", b":", b"retry:")):
        return events
    lines = [line[5:].strip() for line in events.splitlines() if line.startswith(b"data:")]
    return [line for line in lines if line][-1]
