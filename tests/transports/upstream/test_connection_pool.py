"""Connections, patience and pressure: what becomes of requests, on asyncio and on uvloop."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from dragoman.errors import TransportError
from dragoman.transports.upstream import connection as connections
from dragoman.transports.upstream.connection_pool import ConnectionPool
from tests.support.waiting import hang, linger, pass_time, until
from tests.transports.upstream.raw import CHUNKED, OK, Line, ask, on_both_loops, raw_server, wire_to


async def given_up(wire: ConnectionPool) -> None:
    """Wait until no connection is kept for later."""
    await until(lambda: not wire._shelf.kept)


@on_both_loops
async def test_requests_at_once_go_on_connections_of_their_own_which_are_used_again() -> None:
    lines: set[int] = set()
    all_arrived = asyncio.Barrier(4)

    async def handle(line: Line) -> None:
        while await line.request():
            lines.add(line.number)
            await all_arrived.wait()
            await line.say(OK)

    async with raw_server(handle) as url, wire_to(url) as wire:
        for _ in range(3):
            await asyncio.gather(*(ask(wire) for _ in range(4)))
    assert lines == {1, 2, 3, 4}


@on_both_loops
async def test_an_answer_that_is_not_read_to_its_end_costs_its_connection() -> None:
    async def handle(line: Line) -> None:
        while await line.request():
            await line.say(OK[:-1] if line.number == 1 else OK)

    async with raw_server(handle) as url, wire_to(url) as wire:
        (await wire.send("POST", url, {}, b"{}")).close()
        assert await ask(wire) == (200, b"ok")


@on_both_loops
async def test_a_request_that_is_cancelled_costs_its_connection() -> None:
    ended = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        if line.number == 2:
            await line.say(OK)
        elif await line.ended():
            ended.set()

    async with raw_server(handle) as url, wire_to(url) as wire:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await ask(wire)
        await ended.wait()
        assert await ask(wire) == (200, b"ok")


@on_both_loops
async def test_what_is_said_unasked_is_no_answer_to_the_next_request() -> None:
    heard = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(OK)
        await heard.wait()
        await line.say(OK.replace(b"ok", b"no"))
        if await line.request():
            await line.say(OK.replace(b"ok", b"ok" if line.number > 1 else b"no"))

    async with raw_server(handle) as url, wire_to(url) as wire:
        assert await ask(wire) == (200, b"ok")
        heard.set()
        await given_up(wire)
        assert await ask(wire) == (200, b"ok")


@on_both_loops
async def test_a_connection_that_was_closed_while_idle_is_not_used() -> None:
    async def handle(line: Line) -> None:
        await line.request()
        await line.say(OK)

    async with raw_server(handle) as url, wire_to(url) as wire:
        for _ in range(3):
            assert await ask(wire) == (200, b"ok")
            await given_up(wire)


@on_both_loops
async def test_a_connection_that_is_being_closed_is_not_used() -> None:
    async def handle(line: Line) -> None:
        while await line.request():
            await line.say(OK)

    async with raw_server(handle) as url, wire_to(url) as wire:
        assert await ask(wire) == (200, b"ok")
        [connection] = wire._shelf.kept
        connection.drop()
        assert await ask(wire) == (200, b"ok")


@pytest.mark.parametrize(("method", "repeats"), [("POST", False), ("POST", True), ("GET", False), ("DELETE", False)])
@pytest.mark.parametrize("at_once", [False, True])
@on_both_loops
async def test_a_request_on_a_connection_that_dies_is_repeated_only_if_it_changes_nothing(
    method: str, repeats: bool, at_once: bool
) -> None:
    asked: list[bytes] = []

    async def handle(line: Line) -> None:
        while request := await line.request():
            asked.append(request.split()[0])
            if len(asked) == 2:
                return
            await line.say(OK)

    async with raw_server(handle) as url, wire_to(url) as wire:
        await ask(wire)
        begun = wire.post_at_once(url, {}, b"{}", lambda: None, None) if at_once and method == "POST" else None
        is_safe = repeats or method != "POST"
        if is_safe:
            assert await ask(wire, method, begun=begun, repeats=repeats) == (200, b"ok")
        else:
            with pytest.raises(TransportError, match="it closed the connection without an answer"):
                await ask(wire, begun=begun)
    assert asked == [b"POST", *[method.encode()] * (2 if is_safe else 1)]


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1"])
@on_both_loops
async def test_a_request_on_a_fresh_connection_or_with_half_an_answer_is_not_repeated(said: bytes) -> None:
    asked = 0

    async def handle(line: Line) -> None:
        nonlocal asked
        while await line.request():
            asked += 1
            if said and asked == 1:
                await line.say(OK)
            else:
                await line.say(said)
                return

    async with raw_server(handle) as url, wire_to(url) as wire:
        if said:
            await ask(wire)
        with pytest.raises(TransportError, match="it closed the connection"):
            await ask(wire, "GET", repeats=True)
    assert asked == (2 if said else 1)


@on_both_loops
async def test_idle_connections_are_closed_before_the_server_does() -> None:
    ended: list[int] = []

    async def handle(line: Line) -> None:
        while await line.request():
            await line.say(OK)
        ended.append(line.number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "_KEEP_S", 0.1)
        async with raw_server(handle) as url, wire_to(url) as wire:
            await asyncio.gather(ask(wire), ask(wire))
            await until(lambda: len(ended) == 2)
            assert await ask(wire) == (200, b"ok")


@on_both_loops
async def test_a_connection_that_has_been_idle_for_too_long_is_not_used() -> None:
    lines: list[int] = []

    async def handle(line: Line) -> None:
        while await line.request():
            lines.append(line.number)
            await line.say(OK)

    async with raw_server(handle) as url, wire_to(url) as wire:
        await ask(wire)
        wire._shelf.keep_s = 0.0
        await ask(wire)
    assert lines == [1, 2]


@on_both_loops
async def test_a_large_body_goes_out_whole_and_says_when() -> None:
    body = bytes(range(256)) * 8192
    got: list[bytes] = []
    sent: list[bool] = []

    async def handle(line: Line) -> None:
        got.append(await line.request())
        await line.say(OK)

    async with raw_server(handle) as url, wire_to(url) as wire:
        assert await ask(wire, body=body, on_sent=lambda: sent.append(True)) == (200, b"ok")
    assert got[0].partition(b"\r\n\r\n")[2] == body
    assert sent == [True]


@on_both_loops
async def test_a_body_that_is_not_taken_is_not_written() -> None:
    go, sent = asyncio.Event(), asyncio.Event()
    body = b"x" * 16_000_000

    async def handle(line: Line) -> None:
        await line.reader.readuntil(b"\r\n\r\n")
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await go.wait()
        line.writer.transport.resume_reading()  # type: ignore[attr-defined]
        await line.reader.readexactly(len(body))
        await line.say(OK)

    async with raw_server(handle) as url, wire_to(url) as wire:
        asking = asyncio.create_task(ask(wire, body=body, on_sent=sent.set))
        await pass_time(0.2)
        assert not sent.is_set()
        go.set()
        assert await asking == (200, b"ok")
        assert sent.is_set()


@pytest.mark.parametrize("closes", [True, False])
@on_both_loops
async def test_an_answer_that_comes_before_the_request_is_over_is_heard(closes: bool) -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"

    async def handle(line: Line) -> None:
        if line.number > 1:
            await line.request()
            await line.say(OK)
            return
        await line.reader.readuntil(b"\r\n\r\n")
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await line.say(refusal)
        if not closes:
            await hang()

    async with raw_server(handle) as url, wire_to(url) as wire:
        assert await ask(wire, body=b"x" * 16_000_000) == (413, b"big")
        assert await ask(wire) == (200, b"ok")


@on_both_loops
async def test_a_body_is_written_on_while_its_answer_comes() -> None:
    body = b"x" * 4_000_000

    async def handle(line: Line) -> None:
        await line.reader.readuntil(b"\r\n\r\n")
        await line.say(CHUNKED)
        size = len(await line.reader.readexactly(len(body)))
        await line.say(b"7\r\n%7d\r\n0\r\n\r\n" % size)

    async with raw_server(handle) as url, wire_to(url) as wire:
        assert await ask(wire, body=body) == (200, b"4000000")


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200", OK[:-1], CHUNKED + b"2\r\nok\r\n", b"HTTP/1.1 100 C\r\n\r\n"])
@on_both_loops
async def test_silence_is_not_waited_out(said: bytes) -> None:
    async def handle(line: Line) -> None:
        await line.request()
        await line.say(said)
        await line.ended()

    async with raw_server(handle) as url, wire_to(url) as wire:
        with pytest.raises(TransportError, match="nothing came from it for too long"):
            await ask(wire, idle_s=0.1)


@on_both_loops
async def test_a_server_that_never_takes_a_large_body_is_not_waited_for() -> None:
    async def handle(line: Line) -> None:
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await hang()

    async with raw_server(handle) as url, wire_to(url) as wire:
        with pytest.raises(TransportError, match="nothing came from it for too long"):
            await ask(wire, body=b"x" * 16_000_000, idle_s=0.2)


@on_both_loops
async def test_a_server_that_takes_a_large_body_slowly_is_waited_for() -> None:
    body = b"x" * 16_000_000

    async def handle(line: Line) -> None:
        await line.reader.readuntil(b"\r\n\r\n")
        for _ in range(8):
            await linger(0.1)
            await line.reader.readexactly(len(body) // 8)
        await line.say(OK)

    async with raw_server(handle, limit=2**20) as url, wire_to(url) as wire:
        assert await ask(wire, body=body, idle_s=0.4) == (200, b"ok")


@on_both_loops
async def test_every_byte_is_a_sign_of_life_and_every_request_has_its_own_patience() -> None:
    async def handle(line: Line) -> None:
        await line.request()
        await line.say(OK)
        for slow in (True, False):
            await line.request()
            for byte in OK if slow else b"":
                await line.say(bytes([byte]))
                await linger(0.01)
        await line.ended()

    async with raw_server(handle) as url, wire_to(url) as wire:
        assert await ask(wire, idle_s=60.0) == (200, b"ok")
        assert await ask(wire, idle_s=0.3) == (200, b"ok")
        with pytest.raises(TransportError, match="nothing came from it for too long"):
            await ask(wire, idle_s=0.1)


@on_both_loops
async def test_who_is_not_read_sends_no_more_and_is_not_silent() -> None:
    sent, block, blocks = 0, b"x" * 65536, 512

    async def handle(line: Line) -> None:
        nonlocal sent
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(blocks):
            await line.say(block)
            sent += len(block)

    async with raw_server(handle) as url, wire_to(url) as wire:
        answer = await wire.send("POST", url, {}, b"{}", idle_s=0.2)
        await pass_time(0.6)
        before = sent
        await pass_time(0.3)
        assert sent == before < blocks * len(block)
        size = 0
        while part := await answer.some():
            size += len(part)
        answer.close()
    assert size == blocks * len(block)


@on_both_loops
async def test_a_large_body_of_known_length_is_read_whole() -> None:
    body = bytes(range(256)) * 16384

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    async with raw_server(handle) as url, wire_to(url) as wire:
        answer = await wire.send("POST", url, {}, b"{}")
        await pass_time(0.05)
        assert await answer.whole() == body
        answer.close()


@on_both_loops
async def test_closing_ends_what_is_under_way() -> None:
    ended = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED)
        await line.ended()
        ended.set()

    async with raw_server(handle) as url:
        async with wire_to(url) as wire:
            answer = await wire.send("GET", url, {})
        with pytest.raises(TransportError, match="closed the connection"):
            await answer.some()
        answer.close()
        await ended.wait()


@pytest.mark.parametrize(("scheme", "brings"), [("http", False), ("https", False), ("ws", True)])
def test_websockets_is_imported_for_websockets_only(scheme: str, brings: bool) -> None:
    program = f"""
import asyncio, sys
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from dragoman.transports.upstream.connection_pool import ConnectionPool
from tests.support.waiting import hang, linger, pass_time, until
open_upstream(UpstreamConfig("{scheme}://127.0.0.1:1/"))
print("websockets" in sys.modules, "dragoman.transports.upstream.cookies" in sys.modules)
"""
    output = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    assert output.split() == [str(brings), "False"]
