"""Slow readers on either side bound what waits."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.transports.upstream.config import Kind, UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from dragoman.transports.upstream.lanes import HIGH_WATER_BYTES
from tests.support.frames import sent as frames
from tests.support.waiting import hang, pass_time, until
from tests.transports.recorder import Recorder
from tests.transports.upstream.stage import PATIENCE_S, Reply, Request, on_loop, server, shake_hands
from tests.transports.upstream.test_websocket import echo, socket_server

BLOCK = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"x":"' + b"x" * 65536 + b'"}}\r\n\r\n'
ENOUGH = 24 * 1024 * 1024
"""More than the sockets of both ends hold together."""


def line(method: str, request_id: int | None = None, **params: Any) -> bytes:
    frame = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(frame if request_id is None else {**frame, "id": request_id}).encode() + b"\n"


@asynccontextmanager
async def opened(url: str, **config: Any) -> AsyncIterator[tuple[Any, Recorder]]:
    """Give a transport on which the handshake has been made, and what it tells."""
    transport, recorder = open_upstream(UpstreamConfig(url, close_timeout_s=0.3, **config)), Recorder()
    transport.start(recorder)
    transport.send(frames(line("initialize", 1, protocolVersion="2025-11-25")))
    await recorder.until(lambda: b"serverInfo" in recorder.data)
    transport.send(frames(line("notifications/initialized")))
    transport.send(frames(line("ping", 2)))
    await recorder.until(lambda: b'"id": 2' in recorder.data)
    try:
        yield transport, recorder
    finally:
        await transport.close()


class Flood:
    """A server that sends events for as long as somebody takes them."""

    def __init__(self) -> None:
        self.sent = 0

    async def __call__(self, request: Request, reply: Reply) -> None:
        if request.rpc == "tools/call":
            await reply.stream()
            while True:
                await reply.raw(BLOCK)
                self.sent += len(BLOCK)
        elif request.rpc == "ping":
            await reply.result(request, {})
        else:
            await shake_hands(request, reply)


async def still(count: Callable[[], int]) -> None:
    """Wait until a number does not grow any more."""
    async with asyncio.timeout(PATIENCE_S):
        last = -1
        while last != count():
            last = count()
            await pass_time(0.3)


@on_loop
async def test_a_paused_reader_stops_a_stream() -> None:
    flood = Flood()
    async with server(flood) as url, opened(url) as (transport, recorder):
        transport.send(frames(line("tools/call", 3)))
        await recorder.until(lambda: len(recorder.data) > len(BLOCK))
        transport.pause_reading()
        await still(lambda: flood.sent)
        handed_on, sent = len(recorder.data), flood.sent
        await pass_time(0.3)
        assert len(recorder.data) == handed_on
        assert flood.sent == sent
        assert sent - handed_on < ENOUGH
        transport.resume_reading()
        await recorder.until(lambda: len(recorder.data) > handed_on + ENOUGH)


@on_loop
async def test_a_paused_reader_keeps_an_answer_back() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if not await shake_hands(request, reply):
            await reply.result(request, {})

    async with server(serve) as url, opened(url) as (transport, recorder):
        transport.pause_reading()
        transport.send(frames(line("tools/list", 3)))
        await pass_time(0.2)
        assert b'"id": 3' not in recorder.data
        transport.resume_reading()
        await recorder.until(lambda: b'"id": 3' in recorder.data)


class Large:
    """A server whose answers are large, as JSON or as one event."""

    def __init__(self, kind: str, megabytes: int) -> None:
        self.kind = kind
        self.megabytes = megabytes
        self.whole = 0

    async def __call__(self, request: Request, reply: Reply) -> None:
        if request.rpc == "ping":
            await reply.result(request, {})
        elif not await shake_hands(request, reply):
            head = b'{"jsonrpc":"2.0","id":%d,"result":{"text":"' % request.frame["id"]
            if self.kind == "json":
                size = len(head) + 3 + self.megabytes * MEGABYTE
                await reply.head("200 OK", "Content-Type: application/json", f"Content-Length: {size}")
            else:
                await reply.stream()
            await reply.raw(head if self.kind == "json" else b"data: " + head)
            for _ in range(self.megabytes):
                await reply.raw(FILLING)
            await reply.raw(b'"}}' if self.kind == "json" else b'"}}\n\n')
            self.whole += 1
            if self.kind != "json":
                reply.cut()


MEGABYTE = 2**20
FILLING = b"x" * MEGABYTE
KINDS = pytest.mark.parametrize("kind", ["json", "event"])


@KINDS
@on_loop
async def test_large_answers_stay_in_their_sockets_while_the_client_is_held_back(kind: str) -> None:
    large = Large(kind, 24)
    async with server(large) as url, opened(url, idle_timeout_s=0.5) as (transport, recorder):
        transport.pause_reading()
        tracemalloc.start()
        for number in range(4):
            transport.send(frames(line("tools/call", 10 + number)))
        await pass_time(1.0)  # longer than the server may be silent
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert large.whole == 0
        assert peak < 20 * MEGABYTE
        transport.resume_reading()
        await recorder.until(lambda: len(recorder.data) > 4 * 24 * MEGABYTE, 20)
        assert b"nothing came from it" not in recorder.data


@KINDS
@on_loop
async def test_large_answers_come_one_after_the_other_where_they_are_too_much_together(kind: str) -> None:
    large = Large(kind, 12)
    async with server(large) as url, opened(url, held_bytes=MEGABYTE) as (transport, recorder):
        taken = Taken()
        recorder.received = taken.received  # type: ignore[method-assign]
        tracemalloc.start()
        for number in range(8):
            transport.send(frames(line("tools/call", 10 + number)))
        await until(lambda: taken.count >= 8)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 60 * MEGABYTE


class Taken:
    """A receiver that keeps nothing."""

    def __init__(self) -> None:
        self.count = 0

    def received(self, frames: Sequence[Any]) -> None:
        self.count += len(frames)


@on_loop
async def test_a_server_that_wants_another_answer_read_first_is_not_waited_for_for_ever() -> None:
    other_read = asyncio.Event()
    large = Large("json", 12)

    async def serve(request: Request, reply: Reply) -> None:
        if request.rpc == "resources/read":
            head = b'{"jsonrpc":"2.0","id":%d,"result":{"text":"' % request.frame["id"]
            size = len(head) + 3 + 4 * MEGABYTE
            await reply.head("200 OK", "Content-Type: application/json", f"Content-Length: {size}")
            await reply.raw(head + FILLING + FILLING)
            await other_read.wait()
            await reply.raw(FILLING + FILLING + b'"}}')
        else:
            await large(request, reply)
            if request.rpc == "tools/call":
                other_read.set()

    async with server(serve) as url, opened(url, held_bytes=MEGABYTE) as (transport, recorder):
        transport.send(frames(line("resources/read", 10)))
        await pass_time(0.2)
        transport.send(frames(line("tools/call", 11)))
        await recorder.until(lambda: b'"id":10' in recorder.data and b'"id":11' in recorder.data, 10)


@on_loop
async def test_a_server_that_does_not_read_holds_its_writer_back() -> None:
    let_go = asyncio.Event()

    async def serve(request: Request, reply: Reply) -> None:
        if not await shake_hands(request, reply):
            await let_go.wait()
            if "id" in request.frame:
                await reply.result(request, {})
            else:
                await reply.status("202 Accepted")

    payload = "x" * 4_000_000
    async with server(serve) as url, opened_by_itself(url, let_go) as (transport, recorder):
        let_go.clear()
        for number in range(10):
            transport.send(frames(line("notifications/progress", text=payload, number=number)))
            if recorder.paused:
                break
        assert recorder.paused
        assert number * len(payload) <= HIGH_WATER_BYTES + len(payload)
        let_go.set()
        await recorder.until(lambda: not recorder.paused)


@asynccontextmanager
async def opened_by_itself(url: str, let_go: asyncio.Event) -> AsyncIterator[tuple[Any, Recorder]]:
    let_go.set()
    async with opened(url) as pair:
        yield pair


@on_loop
async def test_many_requests_that_take_long_hold_nobody_back() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if request.rpc == "tools/call":
            await hang()
        elif request.rpc == "ping":
            await reply.result(request, {})
        else:
            await shake_hands(request, reply)

    payload = "x" * 400_000
    async with server(serve) as url, opened(url) as (transport, recorder):
        for number in range(10):
            transport.send(frames(line("tools/call", 100 + number, text=payload)))
            await pass_time(0.02)
        await recorder.until(lambda: not recorder.paused)
        transport.send(frames(line("ping", 3)))
        await recorder.until(lambda: b'"id": 3' in recorder.data)


@on_loop
async def test_a_paused_reader_stops_a_websocket() -> None:
    sent = 0
    text = BLOCK[6:].decode().strip()

    async def flood(socket: Any, frame: dict[str, Any]) -> None:
        nonlocal sent
        if frame["method"] != "tools/call":
            await echo(socket, frame)
            return
        for _ in range(2000):
            await socket.send_str(text)
            sent += len(text)

    async with socket_server(flood) as (url, _), opened(url) as (transport, recorder):
        transport.send(frames(line("tools/call", 3)))
        await recorder.until(lambda: len(recorder.data) > len(text))
        transport.pause_reading()
        await still(lambda: sent)
        handed_on, before = len(recorder.data), sent
        await pass_time(0.3)
        assert len(recorder.data) == handed_on
        assert sent == before
        assert sent - handed_on < ENOUGH
        transport.resume_reading()
        await recorder.until(lambda: len(recorder.data) > handed_on + ENOUGH)


@pytest.mark.parametrize("kind", [Kind.STREAMABLE_HTTP, Kind.SSE])
@on_loop
async def test_closing_while_paused_does_not_hang(kind: Kind) -> None:
    flood = Flood()
    async with server(flood) as url:
        transport = open_upstream(UpstreamConfig(url, kind=kind, close_timeout_s=0.3))
        transport.start(Recorder())
        transport.pause_reading()
        transport.send(frames(line("initialize", 1, protocolVersion="2025-11-25")))
        await pass_time(0.1)
        async with asyncio.timeout(3):
            await transport.close()
