"""How a WebSocket is asked for, and answers that are not a yes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import TransportError
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connection_pool import ConnectionPool
from dragoman.transports.upstream.upgrade import open_websocket
from dragoman.transports.websocket import WebSocketConnection
from tests.transports.upstream.raw import Line, on_both_loops, raw_server
from tests.transports.upstream.raw_websocket import accept_of, frame_of, read_frame
from tests.transports.upstream.test_tls import certificate, context  # noqa: F401

YES = b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: %s\r\n"


@contextlib.asynccontextmanager
async def opened(url: str, **config: Any) -> AsyncIterator[tuple[WebSocketConnection, str]]:
    pool = ConnectionPool(UpstreamConfig(url.replace("http", "ws", 1), **config))
    try:
        connection, confirmed = await open_websocket(pool, "mcp")
        try:
            yield connection, confirmed
        finally:
            connection.abort()
    finally:
        await pool.close()


async def refusal(answer: bytes, **config: Any) -> str:
    """Give what is said of an answer; `%s` in it stands for what accepts."""

    async def handle(line: Line) -> None:
        head = await line.reader.readuntil(b"\r\n\r\n")
        await line.say(answer.replace(b"%s", accept_of(head)))
        if answer:
            await line.ended()

    async with raw_server(handle) as url:
        with pytest.raises(TransportError) as caught:
            async with opened(url, **config):
                pass
    return caught.value.reason


@on_both_loops
async def test_what_is_asked_is_what_a_handshake_needs() -> None:
    heads: list[bytes] = []

    async def handle(line: Line) -> None:
        heads.append(await line.reader.readuntil(b"\r\n\r\n"))
        await line.say(YES.replace(b"%s", accept_of(heads[0])) + b"Sec-WebSocket-Protocol: mcp\r\n\r\n")
        await line.ended()

    async with (
        raw_server(handle) as url,
        opened(url.replace("//", "//u:p@") + "?a=b", headers=(("X-Key", "k"), ("Cookie", "c=1"))) as (_, confirmed),
    ):
        assert confirmed == "mcp"
    first, *lines = heads[0].decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert first == "GET /mcp?a=b HTTP/1.1"
    assert len(base64.b64decode(headers.pop("sec-websocket-key"))) == 16
    assert headers.pop("host").startswith("127.0.0.1:")
    assert headers == {
        "": "",
        "authorization": "Basic dTpw",
        "x-key": "k",
        "cookie": "c=1",
        "accept": "*/*",
        "accept-encoding": "identity",
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-protocol": "mcp",
    }


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "no WebSocket: it answered 403"),
        (b"HTTP/1.1 401 No\r\n\r\nwithout end", "no WebSocket: it answered 401"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "no WebSocket: it answered 200"),
        (
            b"HTTP/1.1 308 X\r\nLocation: ws://127.0.0.1:1/\r\n\r\n",
            "is not followed: say --url ws://127.0.0.1:1/",
        ),
        (
            YES + b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
            "its answer opens none: no extensions supported",
        ),
        (YES.replace(b"%s", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") + b"\r\n", "invalid Sec-WebSocket-Accept header"),
        (YES.replace(b"websocket", b"h2c") + b"\r\n", "invalid Upgrade header: h2c"),
        (b"HTTP/1.1 101 X\r\nSec-WebSocket-Accept: %s\r\n\r\n", "missing Connection header"),
        (YES + b"Sec-WebSocket-Protocol: chat\r\n\r\n", "unsupported subprotocol: chat"),
        (b"SSH-2.0-x\r\n", "its answer is not HTTP"),
        (b"HTTP/1.1 101 X\r\n" + b"a: b\r\n" * 300, "its answer is not HTTP"),
        (b"", "it closed the connection without an answer"),
    ],
)
@on_both_loops
async def test_an_answer_that_is_not_a_yes_is_named(answer: bytes, reason: str) -> None:
    assert reason in await refusal(answer)


@on_both_loops
async def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    assert "nothing came from it for too long" in await refusal(b"HTTP/1.1 100 Continue\r\n\r\n", connect_timeout_s=0.1)


@pytest.mark.parametrize("pieces", [1, 2, 500])
@on_both_loops
async def test_a_message_right_behind_the_answer_is_not_lost(pieces: int) -> None:
    async def handle(line: Line) -> None:
        head = await line.reader.readuntil(b"\r\n\r\n")
        said = b"HTTP/1.1 103 Early\r\n\r\n" + YES.replace(b"%s", accept_of(head)) + b"\r\n" + frame_of(b"early") * 2
        step = -(-len(said) // pieces)
        for at in range(0, len(said), step):
            await line.say(said[at : at + step])
            await asyncio.sleep(0)
        await line.ended()

    async with raw_server(handle) as url, opened(url) as (connection, confirmed):
        async with asyncio.timeout(10):
            assert [await connection.receive(), await connection.receive()] == [b"early", b"early"]
        assert confirmed == ""


@pytest.mark.parametrize("trusted", [True, False])
@on_both_loops
async def test_wss_is_websocket_over_tls(certificate: Path, trusted: bool) -> None:  # noqa: F811
    async def handle(line: Line) -> None:
        head = await line.reader.readuntil(b"\r\n\r\n")
        await line.say(YES.replace(b"%s", accept_of(head)) + b"\r\n")
        _, body = await read_frame(line)
        await line.say(frame_of(body))
        await line.ended()

    config = {"ca_file": str(certificate)} if trusted else {"verify": False}
    async with raw_server(handle, ssl=context(certificate)) as url, opened(url, **config) as (connection, _):
        async with asyncio.timeout(10):
            connection.write(b"x" * 1_000_000)
            assert len(await connection.receive()) == 1_000_000
