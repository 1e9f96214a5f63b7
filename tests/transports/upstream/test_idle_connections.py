"""Connections that several sessions use, one after the other: whose they may be, and for how long."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import replace
from typing import Any

import pytest

from dragoman.transports.upstream import connection as connections
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connection_pool import ConnectionPool
from tests.support.waiting import linger, until
from tests.transports.upstream.raw import OK, Line, ask, on_both_loops, raw_server

COOKIE = OK.replace(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n")


async def lines_of(configs: list[UpstreamConfig], lines: list[int]) -> list[int]:
    """Send a request in a session of each, then again, while all of them are open."""
    wires = [ConnectionPool(config) for config in configs]
    for wire in (*wires, *wires):
        await ask(wire)
    for wire in wires:
        await wire.close()
    return lines


async def served(change: Any, answer: bytes = OK) -> list[int]:
    """The numbers of the connections over which two sessions, made of one value by *change*, send two requests each."""
    lines: list[int] = []

    async def handle(line: Line) -> None:
        while await line.request():
            lines.append(line.number)
            await line.say(answer)

    async with raw_server(handle) as url:
        config = UpstreamConfig(url)
        return await lines_of([config, change(config)], lines)


@on_both_loops
async def test_sessions_of_one_server_share_a_connection() -> None:
    assert await served(lambda config: config) == [1, 1, 1, 1]


@on_both_loops
async def test_sessions_with_other_credentials_do_not() -> None:
    assert await served(lambda config: replace(config, headers=(("Authorization", "Bearer b"),))) == [1, 2, 1, 2]


@on_both_loops
async def test_sessions_with_cookies_keep_to_their_own() -> None:
    assert await served(lambda config: config, COOKIE) == [1, 2, 1, 2]


@on_both_loops
async def test_sessions_whose_headers_come_from_middleware_keep_to_their_own() -> None:
    assert await served(lambda config: replace(config, header_middleware=(lambda: {"X": "1"},))) == [1, 2, 1, 2]


@on_both_loops
async def test_connections_are_closed_when_the_last_session_has_left() -> None:
    ended = asyncio.Event()

    async def handle(line: Line) -> None:
        while await line.request():
            await line.say(OK)
        ended.set()

    async with raw_server(handle) as url:
        config = UpstreamConfig(url)
        first, second = ConnectionPool(config), ConnectionPool(config)
        await ask(first)
        await first.close()
        assert await ask(second) == (200, b"ok")
        assert not ended.is_set()
        await second.close()
        await ended.wait()


@on_both_loops
async def test_a_session_in_another_event_loop_closes_its_connections_before_that_ends() -> None:
    async def handle(line: Line) -> None:
        while await line.request():
            await line.say(OK)

    async with raw_server(handle) as url:
        config = UpstreamConfig(url)

        async def live() -> None:
            inner = ConnectionPool(config)
            await ask(inner)
            await inner.close()

        wire = ConnectionPool(config)
        await ask(wire)
        await asyncio.to_thread(asyncio.run, live())
        assert await ask(wire) == (200, b"ok")
        await wire.close()


@on_both_loops
async def test_a_session_with_middleware_that_gets_a_cookie_leaves_no_connection_behind() -> None:
    both, first_is_read, ended = asyncio.Event(), asyncio.Event(), [asyncio.Event(), asyncio.Event()]

    async def handle(line: Line) -> None:
        while await line.request():
            if line.number == 1:
                await both.wait()
                await line.say(OK)
            else:
                both.set()
                await first_is_read.wait()
                await line.say(COOKIE)
        ended[line.number - 1].set()

    async with raw_server(handle) as url:
        wire = ConnectionPool(UpstreamConfig(url, header_middleware=(lambda: {"X": "1"},)))
        asking = [asyncio.ensure_future(ask(wire)) for _ in range(2)]
        await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        first_is_read.set()
        await asyncio.gather(*asking)
        await wire.close()
        await asyncio.gather(*(one.wait() for one in ended))


@on_both_loops
async def test_no_more_are_kept_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST", 2)
    gone: list[int] = []
    here = asyncio.Barrier(4)

    async def handle(line: Line) -> None:
        while await line.request():
            await here.wait()
            await line.say(OK)
        gone.append(line.number)

    async with raw_server(handle) as url:
        wire = ConnectionPool(UpstreamConfig(url))
        await asyncio.gather(*(ask(wire) for _ in range(4)))
        await until(lambda: len(gone) == 2)
        await wire.close()


@on_both_loops
async def test_a_server_that_closes_idle_connections_early_is_not_met_while_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_LEAST_S", 0.05)
    lines: list[int] = []
    closes = asyncio.Event()

    async def handle(line: Line) -> None:
        while await line.request():
            lines.append(line.number)
            await line.say(OK)
            if line.number == 1:
                await closes.wait()
                return

    async with raw_server(handle) as url:
        wire = ConnectionPool(UpstreamConfig(url))
        await ask(wire)
        await linger(0.2)
        closes.set()
        await until(lambda: wire._shelf.keep_s < 60)
        learned_s = wire._shelf.keep_s
        assert 0.05 <= learned_s < 60
        await ask(wire)
        await until(lambda: not wire._shelf.kept)  # dropped by us, long before a minute has passed
        await wire.close()
    assert lines == [1, 2]


@on_both_loops
async def test_a_server_that_closes_a_connection_as_it_is_taken_is_not_met_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who calls as often as the server closes would meet it again and again."""
    monkeypatch.setattr(connections, "_LEAST_S", 0.0)
    closes = asyncio.Event()

    async def handle(line: Line) -> None:
        while await line.request():
            await line.say(OK)
            if line.number == 1:
                await closes.wait()
                return

    async with raw_server(handle) as url:
        wire = ConnectionPool(UpstreamConfig(url))
        await ask(wire)
        [connection] = wire._shelf.kept
        connection.pause()  # what the loop has not read yet
        closes.set()
        await until(lambda: not connection.is_usable(60.0))
        assert wire._shelf.keep_s == 60
        assert await ask(wire) == (200, b"ok")
        learned_s = wire._shelf.keep_s
        assert 0 < learned_s < 60
        await wire.close()


@on_both_loops
async def test_a_connection_that_closed_a_moment_ago_is_not_used() -> None:
    """Its end is here, and the loop has not read it."""
    lines: list[Line] = []

    async def handle(line: Line) -> None:
        lines.append(line)
        while await line.request():
            await line.say(OK)

    async with raw_server(handle) as url:
        wire = ConnectionPool(UpstreamConfig(url))
        await ask(wire)
        with socket.socket(fileno=os.dup(lines[0].writer.get_extra_info("socket").fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)
        assert await ask(wire) == (200, b"ok")
        await wire.close()
    assert len(lines) == 2
