"""WebSocket servers, good and bad."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import WSCloseCode, WSMsgType, web

from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.websocket import WebSocketUpstream
from tests.support.waiting import linger, until
from tests.transports.recorder import Recorder
from tests.transports.upstream.raw import Line
from tests.transports.upstream.raw_websocket import CLOSE, NOT_LAST, frame_of, frames_server, read_frame
from tests.transports.upstream.stage import client, hello, on_loop

Say = Callable[[web.WebSocketResponse, dict[str, Any]], Awaitable[None]]


async def echo(socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
    if "id" in frame and "method" in frame:
        result = hello() if frame["method"] == "initialize" else {"echo": frame["method"]}
        await socket.send_json({"jsonrpc": "2.0", "id": frame["id"], "result": result})


@asynccontextmanager
async def socket_server(say: Say = echo, protocols: tuple[str, ...] = ("mcp",)) -> AsyncIterator[tuple[str, list[Any]]]:
    """Serve `say` for each frame; give the URL and what is noted on the way."""
    notes: list[Any] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        notes.append(dict(request.headers))
        if request.path == "/moved":
            return web.Response(status=307, headers={"Location": "http://127.0.0.1:1/ws"})
        if request.path == "/no":
            return web.Response(status=403)
        socket = web.WebSocketResponse(protocols=protocols, autoping=request.path != "/deaf")
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await say(socket, json.loads(message.data))
        notes.append(socket.close_code)
        return socket

    app = web.Application()
    app.router.add_get("/{path}", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}/ws", notes
    finally:
        await runner.cleanup()


@on_loop
async def test_frames_cross_both_ways() -> None:
    async with socket_server() as (url, notes), client(url, headers=(("X-Key", "k"),)) as peer:
        assert (await peer.ask("tools/list"))["result"] == {"echo": "tools/list"}
    assert notes[0]["Sec-WebSocket-Protocol"] == "mcp"
    assert notes[0]["X-Key"] == "k"


@on_loop
async def test_closing_says_goodbye() -> None:
    async with socket_server() as (url, notes):
        async with client(url) as peer:
            await peer.ask("ping")
        await until(lambda: len(notes) >= 2)
        assert notes[1] == WSCloseCode.OK


@on_loop
async def test_a_server_that_does_not_confirm_the_subprotocol_is_served(caplog: pytest.LogCaptureFixture) -> None:
    async with socket_server(protocols=()) as (url, _), client(url) as peer:
        assert "result" in await peer.ask("ping")
    assert "does not confirm the subprotocol mcp" in caplog.text


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/no", "no WebSocket: it answered 403"),
        ("/moved", "a redirect to another origin, which must not get our headers,"),
    ],
)
@on_loop
async def test_a_handshake_that_fails_is_named(path: str, named: str) -> None:
    async with socket_server() as (url, _), client(url.replace("/ws", path), opened=False) as peer:
        assert named in (await peer.initialize())["error"]["message"]


@on_loop
async def test_a_refused_connection_is_named() -> None:
    async with client("ws://127.0.0.1:1/ws", opened=False) as peer:
        assert "no connection: connection refused" in (await peer.initialize())["error"]["message"]


@on_loop
async def test_a_server_that_closes_ends_the_session_and_says_why() -> None:
    async def say(socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        if frame["method"] == "tools/call":
            await socket.close(code=WSCloseCode.GOING_AWAY, message=b"maintenance")
        else:
            await echo(socket, frame)

    async with socket_server(say) as (url, _), client(url) as peer:
        message = (await peer.ask("tools/call"))["error"]["message"]
    assert message == f"{url}: it closed the connection with 1001: maintenance"


@on_loop
async def test_a_message_over_the_limit_ends_the_session() -> None:
    async def say(socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        if frame["method"] == "tools/call":
            await socket.send_str("x" * 10_000)
        else:
            await echo(socket, frame)

    async with socket_server(say) as (url, _), client(url, limit_bytes=2000) as peer:
        message = (await peer.ask("tools/call"))["error"]["message"]
    assert "a frame is larger than the limit of 2000 bytes" in message


@on_loop
async def test_garbage_and_binary_messages_are_passed_over() -> None:
    async def say(socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        await socket.send_str("no json")
        await socket.send_bytes(b"{}")
        await socket.ping()
        await echo(socket, frame)

    async with socket_server(say) as (url, _), client(url) as peer:
        assert "result" in await peer.ask("tools/call")


def answer_to(frame: dict[str, Any]) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":{"text":"a"}}' % frame["id"]


@pytest.mark.parametrize("lost", [1, 2, 10])
@on_loop
async def test_a_message_whose_json_is_cut_fails_the_request(lost: int) -> None:
    async def cut(line: Line, frame: dict[str, Any]) -> None:
        await line.say(frame_of(answer_to(frame)[:-lost]))

    async with frames_server(cut) as url, client(url) as peer:
        assert "is not one whole JSON object" in (await peer.ask("tools/call"))["error"]["message"]
        assert "result" in await peer.ask("ping")


@on_loop
async def test_a_message_without_its_last_fragment_fails_the_request() -> None:
    async def cut(line: Line, frame: dict[str, Any]) -> None:
        await line.say(frame_of(answer_to(frame), NOT_LAST))
        line.writer.close()

    async with frames_server(cut) as url, client(url) as peer:
        assert "it closed the connection" in (await peer.ask("tools/call"))["error"]["message"]


@pytest.mark.parametrize("between", [b"", b" ", b"\n"])
@on_loop
async def test_two_texts_in_one_message_fail_both_requests(between: bytes) -> None:
    frames: list[dict[str, Any]] = []

    async def answer_both(line: Line, frame: dict[str, Any]) -> None:
        frames.append(frame)
        if len(frames) == 2:
            await line.say(frame_of(between.join(answer_to(one) for one in frames)))

    async with frames_server(answer_both) as url, client(url) as peer:
        first, second = peer.start("tools/call"), peer.start("tools/call")
        for one in (first, second):
            assert "is not one whole JSON object" in (await peer.answer(one))["error"]["message"]
        assert "result" in await peer.ask("ping")


@on_loop
async def test_a_question_with_the_id_of_a_request_does_not_stop_the_clock_of_it() -> None:
    async def ask(line: Line, frame: dict[str, Any]) -> None:
        await line.say(frame_of(b'{"jsonrpc":"2.0","id":%d,"method":"roots/list"}' % frame["id"]))

    async with frames_server(ask) as url, client(url, idle_timeout_s=0.3) as peer:
        call = peer.start("tools/call")
        await peer.until(lambda: any(frame.get("method") == "roots/list" for frame in peer.others))
        peer.send({"jsonrpc": "2.0", "id": call, "result": {"roots": []}})
        assert "nothing came from it for 0.3 s" in (await peer.answer(call))["error"]["message"]


@on_loop
async def test_requests_that_cross_a_close_are_answered() -> None:
    async def close(line: Line, frame: dict[str, Any]) -> None:
        if frame["id"] == 51:
            await line.say(frame_of((1011).to_bytes(2, "big"), CLOSE))

    async with frames_server(close) as url, client(url) as peer:
        asked = [peer.start("tools/call") for _ in range(50)]
        for one in asked:
            assert "it closed the connection with 1011" in (await peer.answer(one))["error"]["message"]


@on_loop
async def test_a_server_that_sends_too_much_is_told_1009() -> None:
    said: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def flood(line: Line, frame: dict[str, Any]) -> None:
        line.writer.write(b"\x81\x7f" + (16 * 2**20).to_bytes(8, "big"))
        for _ in range(16):
            await line.say(bytes(2**20))
        while not said.done():
            first, body = await read_frame(line)
            if first == CLOSE:
                said.set_result(body)

    async with frames_server(flood) as url, client(url, limit_bytes=2000) as peer:
        assert "larger than the limit of 2000 bytes" in (await peer.ask("tools/call"))["error"]["message"]
        assert (await asyncio.wait_for(said, 5))[:2] == (1009).to_bytes(2, "big")


@on_loop
async def test_a_silent_server_fails_the_request() -> None:
    async def say(socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        if frame["method"] != "tools/call":
            await echo(socket, frame)

    async with socket_server(say) as (url, _), client(url, idle_timeout_s=0.3) as peer:
        assert "nothing came from it for 0.3 s" in (await peer.ask("tools/call"))["error"]["message"]


@on_loop
async def test_a_long_message_is_a_sign_of_life_before_it_has_ended() -> None:
    async def dribble(line: Line, frame: dict[str, Any]) -> None:
        for byte in frame_of(answer_to(frame)):
            await line.say(bytes([byte]))
            await linger(0.02)

    async with frames_server(dribble) as url, client(url, idle_timeout_s=0.5) as peer:
        assert "result" in await peer.ask("tools/call")


@on_loop
async def test_a_server_that_answers_no_ping_is_gone() -> None:
    async with socket_server() as (url, _):
        transport = WebSocketUpstream(UpstreamConfig(url.replace("/ws", "/deaf")), ping_s=0.05)
        recorder = Recorder()
        transport.start(recorder)
        await recorder.until(lambda: recorder.end is not None)
        assert recorder.end is not None
        assert recorder.end.endswith("it does not answer pings")
        await transport.close()
