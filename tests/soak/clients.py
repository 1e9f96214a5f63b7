"""Blocking clients for the soak, one a front, on top of the benchmark's: they open, ask, and leave, politely or not."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import random
import socket
import struct
from collections.abc import Iterator
from typing import Any

from bench.peers import HttpPeer, Peer

LIMIT_S = 60


class PoliteHttpPeer(HttpPeer):
    """A client of `/mcp` that can end its session."""

    def __init__(self, port: int, revision: str, secret: str = "") -> None:
        super().__init__(port, revision)
        self._socket.settimeout(LIMIT_S)
        for name, value in shown(secret).items():
            self._head += f"{name}: {value}\r\n".encode()

    def delete(self) -> None:
        """End the session."""
        self._socket.sendall(self._head.replace(b"POST", b"DELETE", 1) + b"\r\n")
        head, _ = self._receive()
        assert head[9:11] == b"20", head

    def babble(self) -> None:
        """Send what must be refused, which also costs the connection nothing."""
        for frame in (b"[", b'{"jsonrpc":"2.0","id":{},"method":"x"}', b"\xff\xfe"):
            self.exchange(frame)


class SsePeer(Peer):
    """A client of `/sse`."""

    def __init__(self, port: int, revision: str, secret: str = "") -> None:
        super().__init__(0, revision)
        self._shown = shown(secret)
        self._reading = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        self._reading.request("GET", "/sse", headers={"Accept": "text/event-stream", **self._shown})
        self._stream = self._reading.getresponse()
        self._writing = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        self._endpoint = self.next().decode()

    def exchange(self, frame: bytes) -> bytes:
        """POST a frame and read the next event."""
        self.notify(frame)
        return self.next()

    def notify(self, frame: bytes) -> None:
        """POST a frame."""
        self._writing.request("POST", self._endpoint, frame, {"Content-Type": "application/json", **self._shown})
        answer = self._writing.getresponse()
        answer.read()
        assert answer.status == 202, answer.status

    def close(self) -> None:
        """Close both connections; there is no other way to end a session."""
        self._stream.close()
        self._reading.close()
        self._writing.close()

    def next(self) -> bytes:
        """Wait for the next frame."""
        while line := self._stream.readline():
            if line.startswith(b"data:"):
                return line[5:].strip()
        raise ConnectionError("the stream ended")


class WebSocketPeer(Peer):
    """A client of `/ws`, for frames below 64 bits of length and without extensions."""

    def __init__(self, port: int, revision: str, secret: str = "") -> None:
        super().__init__(0, revision)
        self._socket = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in shown(secret).items())
        head += f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: mcp\r\n\r\n"
        self._socket.sendall(head.encode())
        self._file = self._socket.makefile("rb")
        assert b" 101 " in self._file.readline()
        while self._file.readline().strip():
            pass

    def exchange(self, frame: bytes) -> bytes:
        """Send a message and read the next."""
        self.notify(frame)
        return self.next()

    def next(self) -> bytes:
        """Wait for the next frame."""
        while True:
            opcode, payload = self._receive()
            if opcode == 1:
                return payload
            if opcode == 9:
                self._send(10, payload)
            assert opcode != 8, "the server closed"

    def notify(self, frame: bytes) -> None:
        """Send a message."""
        self._send(1, frame)

    def goodbye(self) -> None:
        """Close as the protocol has it."""
        self._send(8, struct.pack(">H", 1000))
        while self._receive()[0] != 8:
            pass  # what was on its way

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def _send(self, opcode: int, payload: bytes) -> None:
        size = len(payload)
        if size < 126:
            length = bytes([0x80 | size])
        elif size <= 0xFFFF:
            length = struct.pack(">BH", 0xFE, size)
        else:
            length = struct.pack(">BQ", 0xFF, size)
        # A mask of zeros is a mask: the payload goes as it is.
        self._socket.sendall(bytes([0x80 | opcode]) + length + b"\0\0\0\0" + payload)

    def _receive(self) -> tuple[int, bytes]:
        message, kind = b"", 0
        while True:
            first, size = self._file.read(2)
            if size == 126:
                (size,) = struct.unpack(">H", self._file.read(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._file.read(8))
            payload = self._file.read(size)
            if first & 0x0F >= 8:
                return first & 0x0F, payload
            kind, message = kind or first & 0x0F, message + payload
            if first & 0x80:
                return kind, message


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "call": ("tools/call", {"name": "tool_1", "arguments": {"text": "x" * 200}}),
    "list": ("tools/list", {}),
    "1m": ("tools/call", {"name": "tool_1", "arguments": {"text": "x" * 1_000_000}}),
}
WEIGHTS = (20, 6, 1)


def ask(peer: Peer, chance: random.Random) -> int:
    """Ask up to 20 things, and check each answer's id; return how many."""
    count = chance.randint(1, 20)
    for kind in chance.choices(tuple(CALLS), WEIGHTS, k=count):
        peer.p50_us(*CALLS[kind], calls=1)
    return count


def visit(port: int, front: str, revision: str, chance: random.Random) -> int:
    """Open a session over a front, ask, and leave politely or not; return how many requests were answered."""
    make: Any = {"http": PoliteHttpPeer, "sse": SsePeer, "ws": WebSocketPeer}[front]
    with contextlib.closing(make(port, revision)) as peer:
        peer.open()
        count = ask(peer, chance)
        if chance.random() < 0.5:
            for parting in ("babble", "delete", "goodbye"):
                getattr(peer, parting, lambda: None)()
    return count


def abandon(port: int, chance: random.Random) -> None:
    """Begin things that are never finished: half a request, and a stream that nobody reads."""
    half = socket.create_connection(("127.0.0.1", port), LIMIT_S)
    half.sendall(
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    unread = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    unread.request("GET", "/sse", headers={"Accept": "text/event-stream"})
    unread.getresponse().close()
    unread.close()
    if chance.random() < 0.5:
        half.shutdown(socket.SHUT_RDWR)
    half.close()


def shown(secret: str) -> dict[str, str]:
    """Give the headers that show a secret; none for none."""
    return {"Authorization": f"Bearer {secret}"} if secret else {}


def lines_of(text: str) -> Iterator[Any]:
    """Read a file of JSON lines; the last one may be half written."""
    return (json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines())
