"""Any split of any byte stream gives the same frames: POST bodies, WebSocket messages, server-sent events."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from dragoman.transports.http.sse import encode_message
from tests.support.lines import PATIENCE_S
from tests.transports.http.stage import Server, initialize, serving
from tests.transports.http.wire import EventReader

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=60)
CUTS = st.lists(st.integers(0, 400), max_size=8)
KEYS = b"0123456789abcdef"


class EchoServer(Server):
    """Answers every request with its params."""

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            frame = json.loads(line)
            if frame.get("method") == "initialize":
                result = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "serverInfo": {"name": "", "version": ""},
                }
                self.answer(frame["id"], **result)
            elif "id" in frame:
                self.answer(frame["id"], echo=frame["params"]["x"])


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A front in a thread of its own, before servers that echo."""
    found: list[int] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        async with serving() as stage:
            stage.connect = lambda: EchoServer().far  # type: ignore[method-assign]
            found.append(stage.port)
            ready.set()
            await over.wait()

    def run() -> None:
        loop.run_until_complete(serve())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(PATIENCE_S), "the front is not there"
    yield found[0]
    loop.call_soon_threadsafe(over.set)
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), "the front does not end"


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(place, len(data)) for place in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def dial(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read_reply(stream: object) -> tuple[dict[str, str], bytes]:
    headers: dict[str, str] = {}
    assert hasattr(stream, "readline")
    assert hasattr(stream, "read")
    stream.readline()
    while line := stream.readline().strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return headers, stream.read(int(headers.get("content-length", "0")))


def write_post(frame: object, session: str) -> bytes:
    body = json.dumps(frame, ensure_ascii=False).encode()
    head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}mcp-session-id: {session}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


INITIALIZE = initialize(key=0)


@pytest.fixture(scope="module")
def session(port: int) -> str:
    with dial(port) as connection, connection.makefile("rb") as stream:
        connection.sendall(write_post(INITIALIZE, "").replace(b"mcp-session-id: \r\n", b""))
        headers, _ = read_reply(stream)
        session = headers["mcp-session-id"]
        connection.sendall(write_post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session))
        read_reply(stream)
    return session


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=3), cuts=CUTS)
def test_posts_in_any_pieces_are_the_same_posts(port: int, session: str, texts: list[str], cuts: list[int]) -> None:
    frames = [{"jsonrpc": "2.0", "id": n, "method": "x", "params": {"x": text}} for n, text in enumerate(texts)]
    with dial(port) as connection, connection.makefile("rb") as stream:
        for piece in cut(b"".join(write_post(frame, session) for frame in frames), cuts):
            connection.sendall(piece)
        for number, text in enumerate(texts):
            _, body = read_reply(stream)
            assert json.loads(body) == {"jsonrpc": "2.0", "id": number, "result": {"echo": text}}


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=3), cuts=CUTS, fragment=st.integers(1, 50), ping=st.booleans())
def test_websocket_messages_in_any_pieces_and_fragments_are_the_same_messages(
    port: int, texts: list[str], cuts: list[int], fragment: int, ping: bool
) -> None:
    head = "GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    key = "sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nsec-websocket-version: 13\r\n"
    data = b""
    requests = [{"jsonrpc": "2.0", "id": n, "method": "x", "params": {"x": text}} for n, text in enumerate(texts)]
    for frame in (INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}, *requests):
        data += b"".join(write_fragments(json.dumps(frame, ensure_ascii=False).encode(), fragment * 10, ping))
    with dial(port) as connection, connection.makefile("rb") as stream:
        connection.sendall(f"{head}{key}sec-websocket-protocol: mcp\r\n\r\n".encode())
        read_reply(stream)
        for piece in cut(data, cuts):
            connection.sendall(piece)
        answers = [json.loads(read_message(stream)) for _ in range(len(texts) + 1)]
    assert [answer["result"]["echo"] for answer in answers[1:]] == texts


def write_fragments(body: bytes, size: int, ping: bool) -> Iterator[bytes]:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    for number, part in enumerate(parts):
        opcode = Opcode.TEXT if number == 0 else Opcode.CONT
        yield Frame(opcode, part, fin=number == len(parts) - 1).serialize(mask=True)
        if ping:
            yield Frame(Opcode.PING, b"p").serialize(mask=True)


def read_message(stream: object) -> bytes:
    assert hasattr(stream, "read")
    while True:
        first, size = stream.read(2)
        if size >= 126:
            size = int.from_bytes(stream.read(2 if size == 126 else 8), "big")
        body: bytes = stream.read(size)
        if first & 0x0F == Opcode.TEXT:
            return body


@settings(max_examples=100, deadline=None)
@given(
    frames=st.lists(st.dictionaries(TEXTS, TEXTS, max_size=3), max_size=4),
    indent=st.sampled_from([None, 1]),
    cuts=CUTS,
)
def test_events_in_any_pieces_are_the_same_events(
    frames: list[dict[str, str]], indent: int | None, cuts: list[int]
) -> None:
    lines = [json.dumps(frame, indent=indent, ensure_ascii=False).replace("\n", "\r\n").encode() for frame in frames]
    data = b"".join(encode_message(line, f"s1-{number}") for number, line in enumerate(lines))
    reader = EventReader()
    events = [event for piece in cut(data, cuts) for event in reader.feed(piece)]
    assert [(event.id, event.frame) for event in events] == [(f"s1-{n}", frame) for n, frame in enumerate(frames)]
