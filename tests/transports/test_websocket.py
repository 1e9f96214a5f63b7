"""Frames as they should not come, and connections that end in every way."""

from __future__ import annotations

import asyncio
import contextlib
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.protocol import CLIENT, SERVER, Side

from dragoman.errors import FrameTooLarge, TransportError
from dragoman.transports.websocket import WebSocketConnection
from tests.support.waiting import run
from tests.transports.upstream.raw import PATIENCE_S, Line, on_both_loops, raw_server
from tests.transports.upstream.raw_websocket import CLOSE, NOT_LAST, accept_of, frame_of, read_frame
from tests.transports.upstream.test_upgrade import YES, opened

BINARY, MORE, END, PING, PONG = 0x82, 0x00, 0x80, 0x89, 0x8A
LONG = b"x" * 70_000

Handle = Callable[[Line], Awaitable[None]]


@contextlib.asynccontextmanager
async def joined(
    handle: Callable[[Line], Awaitable[None]], limit_bytes: int = 2**20
) -> AsyncIterator[WebSocketConnection]:
    """Give a connection to a server that does this once it is open."""

    async def open_first(line: Line) -> None:
        head = await line.reader.readuntil(b"\r\n\r\n")
        await line.say(YES.replace(b"%s", accept_of(head)) + b"\r\n")
        await handle(line)

    async with raw_server(open_first) as url, opened(url, limit_bytes=limit_bytes) as (connection, _):
        async with asyncio.timeout(PATIENCE_S):
            yield connection


async def end_of(connection: WebSocketConnection) -> TransportError:
    while True:
        try:
            await connection.receive()
        except TransportError as error:
            return error


def read(pieces: list[bytes], limit_bytes: int = 2**20) -> tuple[list[bytes | None], str]:
    """Give the messages that are made of these pieces, and the end."""

    async def main() -> tuple[list[bytes | None], str]:
        connection, messages = WebSocketConnection("peer", limit_bytes), list[bytes | None]()
        for piece in pieces:
            connection.data_received(piece)
        connection.connection_lost(None)
        try:
            while True:
                messages.append(await connection.receive())
        except TransportError as error:
            return messages, error.reason

    return run(main())


FRAMES = [
    (frame_of(b"one"), b"one"),
    (frame_of(b""), b""),
    (frame_of("é".encode() * 100), "é".encode() * 100),
    (frame_of(LONG), LONG),
    (frame_of(b"a", NOT_LAST) + frame_of(b"?", PING) + frame_of(b"b", MORE) + frame_of(b"", END), b"ab"),
    (frame_of(b"\xc3", NOT_LAST) + frame_of(b"\xa9", END), "é".encode()),
    (frame_of(b"binary", BINARY), None),
    (frame_of(b"", PONG), None),
    (b"\x81\x7e\x00\x03abc", b"abc"),  # a length in more bytes than it needs
]


@given(st.lists(st.sampled_from(FRAMES), max_size=6), st.lists(st.integers(0, 500), max_size=6))
def test_messages_are_the_same_however_they_are_cut(frames: list[tuple[bytes, bytes | None]], cuts: list[int]) -> None:
    whole = b"".join(frame for frame, _ in frames)
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(edges) if start < end]
    expected = [message for frame, message in frames if frame[0] != PONG]
    assert read(pieces) == (expected, "it closed the connection")


@given(st.lists(st.sampled_from(FRAMES), max_size=6))
def test_messages_are_the_same_frame_by_frame(frames: list[tuple[bytes, bytes | None]]) -> None:
    expected = [message for frame, message in frames if frame[0] != PONG]
    assert read([frame for frame, _ in frames])[0] == expected


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"\x81\x81abcdx", 1002),  # masked
        (frame_of(b"x", 0xC1), 1002),
        (frame_of(b"x", 0x83), 1002),
        (frame_of(b"x", END), 1002),
        (frame_of(b"x", NOT_LAST) + frame_of(b"x", NOT_LAST), 1002),
        (frame_of(b"x" * 126, PING), 1002),
        (frame_of(b"\x00", CLOSE), 1002),
        (frame_of(b"\xff"), 1007),
        (frame_of(b"\xff" * 200), 1007),
        (frame_of(b"\xff", NOT_LAST) + frame_of(b"", END), 1007),
    ],
)
@on_both_loops
async def test_what_is_not_websocket_is_told_so(said: bytes, code: int) -> None:
    told: list[bytes] = []

    async def handle(line: Line) -> None:
        await line.say(frame_of(b"before") + said + frame_of(b"after"))
        told.append((await read_frame(line))[1])

    async with joined(handle) as connection:
        assert await connection.receive() == b"before"
        assert "what it sent is not WebSocket" in (await end_of(connection)).reason
        await connection.leave()
    assert told[0][:2] == code.to_bytes(2, "big")


@on_both_loops
async def test_a_single_text_that_is_no_utf_8_is_told_so() -> None:
    told: list[bytes] = []

    async def handle(line: Line) -> None:
        await read_frame(line)
        await line.say(frame_of(b"\xff"))
        told.append((await read_frame(line))[1])

    async with joined(handle) as connection:
        connection.write(b"go on")
        await end_of(connection)
        await connection.leave()
    assert told[0][:2] == (1007).to_bytes(2, "big")
    assert told[0].endswith(b"a text message is not UTF-8")


def test_what_came_before_a_reset_is_read_first() -> None:
    async def main() -> None:
        connection = WebSocketConnection("peer", 2**20)
        connection.data_received(frame_of(b"x" * 1000) * 1000)
        connection.connection_lost(ConnectionResetError())
        for _ in range(1000):
            assert await connection.receive() == b"x" * 1000
        assert (await end_of(connection)).reason == "it reset the connection"

    run(main())


@pytest.mark.parametrize(
    "said",
    [
        frame_of(b"x" * 101),
        b"\x81\x7f" + (2**62).to_bytes(8, "big"),
        frame_of(b"x" * 60, NOT_LAST) + frame_of(b"x" * 60, END),
        frame_of(b"x" * 101, BINARY),
    ],
)
@on_both_loops
async def test_a_message_over_the_limit_is_told_1009(said: bytes) -> None:
    told: list[bytes] = []

    async def handle(line: Line) -> None:
        await line.say(frame_of(b"x" * 100) + said)
        told.append((await read_frame(line))[1])

    async with joined(handle, limit_bytes=100) as connection:
        assert await connection.receive() == b"x" * 100
        assert isinstance(await end_of(connection), FrameTooLarge)
        await connection.leave()
    assert told[0][:2] == (1009).to_bytes(2, "big")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (frame_of((1001).to_bytes(2, "big") + b"bye", CLOSE), "it closed the connection with 1001: bye"),
        (frame_of((1000).to_bytes(2, "big") + b"\x1b[2J", CLOSE), "it closed the connection with 1000"),
        (frame_of(b"", CLOSE), "it closed the connection"),
        (b"", "it closed the connection"),
        (b"\x81", "it closed the connection"),
    ],
)
@on_both_loops
async def test_what_came_before_the_end_is_read_first(said: bytes, reason: str) -> None:
    async def handle(line: Line) -> None:
        await line.say(frame_of(b"last words") * 3 + said)

    async with joined(handle) as connection:
        assert [await connection.receive() for _ in range(3)] == [b"last words"] * 3
        assert (await end_of(connection)).reason == reason
        await connection.leave()


@on_both_loops
async def test_a_close_is_answered_with_its_code() -> None:
    told: list[tuple[int, bytes]] = []

    async def handle(line: Line) -> None:
        await line.say(frame_of((1001).to_bytes(2, "big"), CLOSE))
        told.append(await read_frame(line))

    async with joined(handle) as connection:
        await end_of(connection)
        connection.write(b"too late")
        await connection.leave()
    assert told == [(CLOSE, (1001).to_bytes(2, "big"))]


@on_both_loops
async def test_a_reset_is_named() -> None:
    async def handle(line: Line) -> None:
        line.reset()

    async with joined(handle) as connection:
        assert (await end_of(connection)).reason in ("it reset the connection", "it closed the connection")
        await connection.leave()


@on_both_loops
async def test_a_ping_is_answered() -> None:
    async def handle(line: Line) -> None:
        await line.say(frame_of(b"who", PING))
        first, body = await read_frame(line)
        await line.say(frame_of(b"%d %s" % (first, body)))

    async with joined(handle) as connection:
        assert await connection.receive() == b"%d who" % PONG


@on_both_loops
async def test_goodbye_drops_what_still_comes() -> None:
    async def handle(line: Line) -> None:
        await line.say(frame_of(LONG) * 20)
        while (await read_frame(line))[0] != CLOSE:
            pass
        await line.say(frame_of(LONG) * 20 + frame_of((1000).to_bytes(2, "big"), CLOSE))

    async with joined(handle) as connection:
        connection.write(b"x")
        connection.say_goodbye()
        await connection.until_end()
        assert "with 1000" in (await end_of(connection)).reason
        await connection.leave()


@pytest.mark.parametrize("size", [0, 1, 5000])
@on_both_loops
async def test_a_server_that_floods_is_held_back(size: int) -> None:
    block, sent = frame_of(b"x" * size) * (1_000_000 // (size + 2)), 0

    async def flood(line: Line) -> None:
        nonlocal sent
        while sent < 24_000_000:
            await line.say(block)
            sent += len(block)

    async with joined(flood) as connection:
        await connection.receive()
        tracemalloc.start()
        for _ in range(50):
            await asyncio.sleep(0)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert connection.waiting_bytes < 2_000_000
        assert held < 8_000_000
        for _ in range(1000):
            assert await connection.receive() == b"x" * size


@on_both_loops
async def test_pongs_do_not_pile_up_for_a_server_that_reads_none() -> None:
    over = asyncio.Event()

    async def ping(line: Line) -> None:
        line.writer.transport.pause_reading()
        for _ in range(20):
            await line.say(frame_of(b"x" * 125, PING) * 4000)
        await line.say(frame_of(b"done"))
        await over.wait()

    async with joined(ping) as connection:
        assert await connection.receive() == b"done"
        assert connection._transport is not None
        assert connection._transport.get_write_buffer_size() < 1_000_000
        over.set()


@on_both_loops
async def test_sending_waits_for_a_server_that_does_not_read() -> None:
    free = asyncio.Event()

    async def wait(line: Line) -> None:
        line.writer.transport.pause_reading()
        await free.wait()
        line.writer.transport.resume_reading()
        while (await read_frame(line))[1] != b"last":
            pass
        await line.say(frame_of(b"read"))

    async with joined(wait) as connection:

        async def send() -> None:
            for _ in range(30):
                connection.write(b"x" * 1_000_000)
                await connection.until_room()
            connection.write(b"last")

        sending = asyncio.ensure_future(send())
        assert not (await asyncio.wait({sending}, timeout=0.2))[0]
        free.set()
        assert await connection.receive() == b"read"
        await sending


@on_both_loops
async def test_a_binary_message_does_not_hide_the_next() -> None:
    first = asyncio.Event()

    async def handle(line: Line) -> None:
        await read_frame(line)
        await line.say(frame_of(b"{}", BINARY) + frame_of(b"", PONG))
        await read_frame(line)
        await line.say(frame_of(b"text"))

    async with joined(handle) as connection:
        connection.on_bytes = first.set
        connection.write(b"begin")
        await asyncio.wait_for(first.wait(), PATIENCE_S)
        connection.write(b"go on")
        assert [await connection.receive(), await connection.receive()] == [None, b"text"]


@pytest.mark.parametrize("side", [CLIENT, SERVER])
@pytest.mark.parametrize("first", [0x81, BINARY, PING, PONG, MORE])
def test_others_have_their_turn_while_a_peer_sends_tiny_frames_without_end(first: int, side: Side) -> None:
    mask = bytes(4) if side is SERVER else b""
    tiny, begin, end = (bytes([one, 0x80 if mask else 0]) + mask for one in (first, NOT_LAST, END))
    flood = tiny * 9000

    async def main() -> int:
        connection = WebSocketConnection("peer", 2**20, side)
        turns, heard = 0, 0

        async def wait_for_turns() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        neighbour = asyncio.ensure_future(wait_for_turns())
        connection.data_received(begin + flood + end if first == MORE else flood)
        connection.connection_lost(None)
        with contextlib.suppress(TransportError):
            while True:
                await connection.receive()
                heard += 1
        neighbour.cancel()
        assert heard == {MORE: 1, PING: 0, PONG: 0}.get(first, 9000)
        return turns

    frames_a_turn = 700
    assert run(main()) >= 9000 / frames_a_turn
