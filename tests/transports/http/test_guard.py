"""What the guards do about requests that cannot be served: an answer where one can be given, one line, and no trace."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket

import pytest

from dragoman.transports.http import door
from dragoman.transports.http.config import FrontConfig, Limits, Patience
from tests.support.waiting import linger
from tests.transports.http.stage import Stage, on_loop, serving, text_of, until, within
from tests.transports.http.wire import connect, read_reply, request, send_raw

HURRIED = FrontConfig(patience=Patience(headers_s=0.2, body_s=0.2, stall_s=0.3))
OPENING = (
    b"%s /ws HTTP/1.%d\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-protocol: mcp\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n%s\r\n"
)


TWICE = b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def still_serves(stage: Stage) -> None:
    await stage.open()
    assert text_of(await stage.call_and_answer()) == "hello"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"CONNECT example.com:443 HTTP/1.1\r\nhost: localhost\r\n\r\n", "tunnel"),
        (b"GET http://[::: HTTP/1.1\r\nhost: localhost\r\n\r\n", "URL cannot be read"),
        (b"GET http://localhost HTTP/1.1\r\nhost: localhost\r\n\r\n", "URL cannot be read"),
        (b"GET /\xff\xfe HTTP/1.1\r\nhost: localhost\r\n\r\n", ""),
        (b"GET /" + b"a" * 66_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", "URL is longer than 32768 bytes"),
        (OPENING % (b"GET", 1, b"content-length: 5\r\n"), "WebSocket opens with a body"),
        (OPENING % (b"GET", 1, b"transfer-encoding: chunked\r\n"), "WebSocket opens with a body"),
        (OPENING % (b"POST", 1, b""), "WebSocket opens with GET"),
        (OPENING % (b"GET", 0, b""), "WebSocket opens with GET"),
        (OPENING % (b"GET", 1, b"") + b"\x81\x80abcd", "before the answer to its opening"),
    ],
)
@on_loop
async def test_what_cannot_be_read_gets_400_and_one_line(
    said: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(HURRIED) as stage:
        reader, writer = await connect(stage.port)
        writer.write(said)
        answer = await within(reader.read())
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1") == 1
        (line,) = warnings(caplog)
        assert reason in line
        assert "\n" not in line
        writer.close()
        await until(lambda: not stage.connections)
        await still_serves(stage)


@pytest.mark.parametrize(
    ("headers", "status"), [(b"".join(b"x%d: y\r\n" % n for n in range(200)), b"431"), (TWICE, b"400")]
)
@on_loop
async def test_a_websocket_opening_that_is_refused_says_so_once(headers: bytes, status: bytes) -> None:
    async with serving(HURRIED) as stage:
        reader, writer = await connect(stage.port)
        writer.write(OPENING % (b"GET", 1, headers))
        answer = await within(reader.read())
        assert answer.startswith(b"HTTP/1.1 %s " % status)
        assert answer.lower().count(b"\r\nconnection: ") == 1
        writer.close()
        await until(lambda: not stage.connections)


@on_loop
async def test_a_websocket_opening_after_a_request_that_is_not_answered_is_refused() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        stream = f"GET /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {stage.session}\r\n\r\n".encode()
        reader, writer = await connect(stage.port)
        writer.write(stream)
        assert (await read_reply(reader, writer)).status == 200
        writer.write(OPENING % (b"GET", 1, b""))
        (connection,) = (one for one in stage.connections if one.turn is not None and not one.turn.is_complete)
        await until(lambda: connection.flow.is_paused)
        assert (await stage.delete()).status < 300
        stream, _, behind = (await within(reader.read())).partition(b"0\r\n\r\n")
        assert b"HTTP" not in stream
        assert behind.startswith(b"HTTP/1.1 400")


@on_loop
async def test_an_upgrade_that_nobody_knows_is_answered_as_a_request_and_closed() -> None:
    async with serving(HURRIED) as stage:
        asks = b"GET /nothing HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
        reader, writer = await connect(stage.port)
        writer.write(asks)
        assert (await within(reader.read())).startswith(b"HTTP/1.1 404")


@on_loop
async def test_a_defect_in_a_callback_ends_one_connection_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(HURRIED) as stage:
        reader, writer = await connect(stage.port)
        await until(lambda: bool(stage.connections))
        next(iter(stage.connections)).parser = None  # as none of ours ever is: any mistake would do
        writer.write(b"GET / HTTP/1.1\r\n")
        with contextlib.suppress(ConnectionError):
            assert await within(reader.read()) == b""
        (line,) = warnings(caplog)
        assert line.startswith("internal error while a request is read: AttributeError: ")
        await still_serves(stage)


@pytest.mark.parametrize("status", [413, 415, 404])
@on_loop
async def test_a_client_that_is_still_sending_hears_why_it_is_refused(status: int) -> None:
    async with serving(FrontConfig(limits=Limits(body_bytes=100_000))) as stage:
        await stage.open()
        size = 20_000_000
        given = {413: {}, 415: {"content-encoding": "gzip"}, 404: {"mcp-session-id": "another"}}[status]
        headers = {**stage.headers(given), "content-length": str(size), "connection": "close"}
        reply = await request(stage.port, "POST", "/mcp", headers, b"x" * (size - 1))
        assert reply.status == status
        await within(reply.writer.drain())


async def send_on(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x" * 1000)
        await writer.drain()
        await linger(0.01)


@on_loop
async def test_who_never_stops_sending_what_nobody_wants_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.transports.http.closing.LINGER_S", 0.2)
    async with serving(FrontConfig(limits=Limits(body_bytes=1000))) as stage:
        reader, writer = await connect(stage.port)
        writer.write(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n")
        writer.write(b"content-length: 99999999\r\n\r\n")
        assert (await read_reply(reader, writer)).status == 413
        with pytest.raises(ConnectionError):
            await within(send_on(writer))
        await until(lambda: not stage.connections)


@on_loop
async def test_a_websocket_client_that_is_still_sending_hears_why_its_frame_is_refused() -> None:
    async with serving(FrontConfig(limits=Limits(body_bytes=100_000))) as stage:
        reader, writer = await connect(stage.port)
        writer.write(OPENING % (b"GET", 1, b""))
        await within(reader.readuntil(b"\r\n\r\n"))
        size = 20_000_000
        writer.write(b"\x81\xff" + size.to_bytes(8, "big") + b"\0\0\0\0" + b"x" * size)
        closing = await within(reader.read())
        assert closing[:1] == b"\x88"
        assert int.from_bytes(closing[2:4], "big") == 1009
        writer.close()
        await until(lambda: not stage.connections)


@on_loop
async def test_a_connection_too_many_is_told_so_and_those_before_it_are_served(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(door, "SURPLUS", 2)
    async with serving(FrontConfig(limits=Limits(connections=2))) as stage:
        first = await connect(stage.port)
        second = await connect(stage.port)
        await until(lambda: len(stage.connections) == 2)
        ask = b"GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n"
        third = await send_raw(stage.port, ask)
        assert (third.status, third.headers["retry-after"], third.headers["connection"]) == (503, "5", "close")
        fourth = await send_raw(stage.port, OPENING % (b"GET", 1, b""))
        assert (fourth.status, fourth.headers["retry-after"]) == (503, "5")
        third.leave()
        fourth.leave()
        await until(lambda: len(stage.connections) == 2)
        others = [await connect(stage.port) for _ in range(3)]
        assert await within(others[2][0].read()) == b""  # unheard
        for reader, writer in (first, second):
            writer.write(ask)
            assert (await read_reply(reader, writer)).status == 404
    assert any("2 are open, which is the limit" in line for line in warnings(caplog))


@on_loop
async def test_what_is_half_sent_does_not_hold_up_the_end() -> None:
    async with serving() as stage:
        await stage.open()
        asks = [
            b"",
            b"GET /mcp HT",
            OPENING.partition(b"sec-")[0] % (b"GET", 1),
            b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{",
            b"GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n",
            OPENING % (b"GET", 1, b""),
        ]
        clients = [socket.create_connection(("127.0.0.1", stage.port)) for _ in asks]
        for client, said in zip(clients, asks, strict=True):
            client.sendall(said)
        await until(lambda: len(stage.connections) >= len(asks))
        began = asyncio.get_running_loop().time()
        connections = stage.connections
    assert not connections
    assert asyncio.get_running_loop().time() - began < 2.5
    for client in clients:
        client.close()
