"""WebSocket as a client sees it: subprotocol, one frame a message, pings, and with which code it closes."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.typing import Subprotocol

from dragoman.errors import TransportClosed
from dragoman.transports.base import Transport
from dragoman.transports.http.config import Admission, FrontConfig, Limits, Patience
from dragoman.transports.http.websocket import WebSocketFront
from tests.support.waiting import pass_time
from tests.transports.http.stage import (
    Stage,
    call,
    content,
    initialize,
    initialized,
    log_message,
    on_loop,
    serving,
    text_of,
    until,
    within,
)

MCP = [Subprotocol("mcp")]


def dial(stage: Stage, path: str = "/ws", **options: Any) -> connect:
    options = {"subprotocols": MCP, "compression": None, "proxy": None, **options}
    return connect(f"ws://127.0.0.1:{stage.port}{path}", **options)


async def say(socket: ClientConnection, frame: Any) -> None:
    await socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))


async def hear(socket: ClientConnection) -> Any:
    text = await within(socket.recv())
    assert isinstance(text, str)
    return json.loads(text)


async def hear_all(socket: ClientConnection) -> None:
    while True:
        await socket.recv()


async def shake_hands(stage: Stage, socket: ClientConnection, revision: str = "2025-06-18") -> None:
    await say(socket, initialize(revision))
    await until(lambda: bool(stage.servers))
    stage.server.answer((await stage.server.hear())["id"], **initialized(revision))
    await hear(socket)
    await say(socket, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    await stage.server.hear()


async def refused_with(stage: Stage, **options: Any) -> int:
    with pytest.raises(InvalidStatus) as caught:
        async with dial(stage, **options):
            pass
    return caught.value.response.status_code


async def closed_with(socket: ClientConnection) -> int | None:
    await within(socket.wait_closed())
    return socket.close_code


@on_loop
async def test_the_patience_with_requests_does_not_end_an_open_connection() -> None:
    patience = Patience(headers_s=0.1, body_s=0.1)
    async with serving(FrontConfig(patience=patience)) as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        await pass_time(0.4)
        await say(socket, call(2))
        stage.server.answer((await stage.server.hear())["id"], **content("still here"))
        assert text_of(await hear(socket)) == "still here"


@on_loop
async def test_a_message_is_a_frame_both_ways() -> None:
    async with serving() as stage, dial(stage) as socket:
        assert socket.subprotocol == "mcp"
        await shake_hands(stage, socket)
        await say(socket, json.dumps(call(2), indent=2))
        await stage.server.hear()
        stage.server.say({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        stage.server.answer(2, **content("hällo\u2028"))
        assert (await hear(socket))["method"] == "ping"
        assert text_of(await hear(socket)) == "hällo\u2028"
        await socket.close()
        await until(lambda: not len(stage.front.sessions))
        assert stage.server.gone is not None


@on_loop
async def test_pings_are_answered_and_sent() -> None:
    config = FrontConfig(patience=Patience(keepalive_s=0.05, stall_s=0.2))
    async with serving(config) as stage, dial(stage, ping_interval=None) as socket:
        await within(await socket.ping())
        await pass_time(0.4)  # longer than a connection without pongs would live
        await within(await socket.ping())


@on_loop
async def test_pongs_do_not_pile_up_before_a_client_that_reads_nothing() -> None:
    async with serving() as stage, dial(stage, ping_interval=None) as socket:
        await shake_hands(stage, socket)
        server = next(iter(stage.connections))
        socket.transport.pause_reading()  # type: ignore[attr-defined]
        frame = b"\x89\xfd\0\0\0\0" + b"x" * 125
        for _ in range(200):
            socket.transport.write(frame * 1000)  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        await until(lambda: not socket.transport.get_write_buffer_size(), 20)  # type: ignore[attr-defined]
        assert server.transport.get_write_buffer_size() < 2**20


@on_loop
async def test_a_message_of_too_many_fragments_is_refused() -> None:
    async with serving() as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        socket.transport.write(b"\x01\x81\0\0\0\0[" + b"\x00\x80\0\0\0\0" * 20_000)  # type: ignore[attr-defined]
        assert await closed_with(socket) == 1009


@on_loop
async def test_a_refused_connection_is_no_defect_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as stage:
        assert await refused_with(stage, origin="http://evil.example") == 403
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@on_loop
async def test_what_is_no_message_is_answered_with_an_error() -> None:
    async with serving() as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        await say(socket, "{")
        assert (await hear(socket))["error"]["code"] == -32700
        await say(socket, "[" * 300 + "]" * 300)
        assert (await hear(socket))["error"]["code"] == -32600


@pytest.mark.parametrize("between", ["", " ", "\n"])
@on_loop
async def test_two_texts_in_one_message_are_an_error_for_each_request(between: str) -> None:
    async with serving() as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        await say(socket, json.dumps(call(2)) + between + json.dumps(call("b")))
        errors = [await hear(socket), await hear(socket)]
        assert [(error["id"], error["error"]["code"]) for error in errors] == [(2, -32700), ("b", -32700)]
        assert stage.server.hears_nothing()


@on_loop
async def test_half_a_message_before_the_client_leaves_does_not_reach_the_server() -> None:
    async with serving() as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        socket.transport.write(masked(json.dumps(call(2)), first=0x01))  # not the last fragment
        socket.transport.write_eof()
        await until(lambda: not len(stage.front.sessions))
        assert stage.server.hears_nothing()


@on_loop
async def test_binary_messages_close_with_1003() -> None:
    async with serving() as stage, dial(stage) as socket:
        await say(socket, b"{}")
        assert await closed_with(socket) == 1003


@pytest.mark.parametrize(
    ("bytes_", "code"), [(b"\x83\x80mask", 1002), (b"\x81\x81mask" + bytes([0xFF ^ ord("m")]), 1007)]
)
@on_loop
async def test_what_is_no_websocket_closes_with_1002_or_1007(
    bytes_: bytes, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as stage, dial(stage) as socket:
        await until(lambda: len(stage.front.sessions) == 1)
        socket.transport.write(bytes_)
        assert await closed_with(socket) == code
        await until(lambda: not len(stage.front.sessions))
    assert not [record for record in caplog.records if record.exc_info]


@on_loop
async def test_a_message_that_is_too_long_closes_with_1009() -> None:
    async with serving(FrontConfig(limits=Limits(body_bytes=1000))) as stage, dial(stage) as socket:
        await say(socket, "x" * 2000)
        assert await closed_with(socket) == 1009
        await until(lambda: not len(stage.front.sessions))


@on_loop
async def test_a_client_that_reads_only_when_all_is_sent_is_told_1009() -> None:
    async with serving(FrontConfig(limits=Limits(body_bytes=1000))) as stage:
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.port, limit=2**20)
        opening = ["GET /ws HTTP/1.1", f"Host: 127.0.0.1:{stage.port}", "Upgrade: websocket", "Connection: Upgrade"]
        keys = ["Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==", "Sec-WebSocket-Version: 13"]
        writer.write("\r\n".join([*opening, *keys, "Sec-WebSocket-Protocol: mcp", "", ""]).encode())
        await within(reader.readuntil(b"\r\n\r\n"))
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"\x81\xff" + (16 * 2**20).to_bytes(8, "big") + bytes(4))
        for _ in range(16):
            writer.write(bytes(2**20))
            await within(writer.drain())
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        close = await within(reader.read())
        assert close[:1] == b"\x88"
        assert int.from_bytes(close[2:4], "big") == 1009
        writer.close()


def masked(text: str, first: int = 0x81) -> bytes:
    """Write a frame whose mask changes nothing."""
    body = text.encode()
    return bytes([first, 0xFE]) + len(body).to_bytes(2, "big") + bytes(4) + body


@on_loop
async def test_requests_that_cross_the_end_of_the_server_are_answered_before_the_close() -> None:
    async with serving() as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        padded = [masked(json.dumps(call(key, text="x" * 200))) for key in range(2, 60)]
        stage.server.exit()
        socket.transport.write(b"".join(padded))
        answers = [(await hear(socket)) for _ in padded]
        assert sorted(answer["id"] for answer in answers) == list(range(2, 60))
        assert all(answer["error"]["code"] == -32000 for answer in answers)
        assert await closed_with(socket) == 1011


@on_loop
async def test_the_end_of_the_server_closes_with_1011_and_says_so() -> None:
    async with serving() as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        await say(socket, call(2))
        await stage.server.hear()
        stage.server.exit()
        assert "error" in await hear(socket)
        assert await closed_with(socket) == 1011
        assert "server" in (socket.close_reason or "")


@on_loop
async def test_a_server_that_cannot_be_started_closes_with_1011_and_as_much_of_the_reason_as_fits() -> None:
    async with serving() as stage, dial(stage) as first:
        await until(lambda: bool(stage.servers))

        def refuse() -> Transport:
            raise TransportClosed("server", "ä" * 500)

        stage.connect = refuse  # type: ignore[method-assign]
        async with dial(stage) as socket:
            await say(socket, initialize())
            assert "error" in await hear(socket)
            assert await closed_with(socket) == 1011
            assert (socket.close_reason or "").endswith("ää")
        await within(await first.ping())


@on_loop
async def test_a_server_that_does_not_answer_initialize_in_time_closes_with_1011() -> None:
    async with serving(init_timeout_s=0.1) as stage, dial(stage) as socket:
        await say(socket, initialize())
        assert "error" in await hear(socket)
        assert await closed_with(socket) == 1011
        assert "0.1 s" in (socket.close_reason or "")


class Run:
    """What an embedder may give in place of a `Proxy`."""

    def __init__(self, transport: Transport, error: Exception | None) -> None:
        self.transport = transport
        self.error = error

    async def run(self) -> None:
        if self.error is not None:
            raise self.error
        await self.transport.close()

    def stop(self, reason: str) -> None: ...


@pytest.mark.parametrize("is_open", [False, True])
@on_loop
async def test_a_defect_of_ours_is_answered(is_open: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def break_down(_: Any, scope: Any, receive: Any, send: Any, principal: str) -> None:
        if is_open:
            await send({"type": "websocket.accept", "subprotocol": "mcp"})
        raise RuntimeError("secret")

    monkeypatch.setattr(WebSocketFront, "serve", break_down)
    async with serving() as stage:
        if is_open:
            async with dial(stage) as socket:
                assert await closed_with(socket) == 1011
                assert "secret" not in (socket.close_reason or "")
        else:
            assert await within(refused_with(stage)) == 500


@pytest.mark.parametrize(("error", "code"), [(None, 1000), (RuntimeError("secret"), 1011)])
@on_loop
async def test_sessions_that_do_not_say_how_they_ended(error: Exception | None, code: int) -> None:
    async with serving() as stage:
        stage.front.sessions._serve = lambda transport, _: Run(transport, error)
        async with dial(stage) as socket:
            assert await closed_with(socket) == code
            assert "secret" not in (socket.close_reason or "")


@on_loop
async def test_stopping_closes_every_connection_with_1001() -> None:
    stack = AsyncExitStack()
    stage = await stack.enter_async_context(serving())
    async with AsyncExitStack() as clients:
        sockets = [await clients.enter_async_context(dial(stage))]
        await shake_hands(stage, sockets[0])
        sockets += [await clients.enter_async_context(dial(stage)) for _ in range(19)]
        await stack.aclose()
        assert [await closed_with(socket) for socket in sockets] == [1001] * 20
        assert sockets[0].close_reason == "the test is over"


@on_loop
async def test_a_client_that_closes_is_answered_with_its_own_code() -> None:
    async with serving() as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        await socket.close(4001)
        assert await closed_with(socket) == 4001
        await until(lambda: stage.server.gone is not None)


@on_loop
async def test_a_reader_that_takes_nothing_is_cut_off() -> None:
    config = FrontConfig(patience=Patience(stall_s=0.2))
    async with serving(config) as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        socket.transport.pause_reading()  # type: ignore[attr-defined]
        while not stage.server.paused:
            stage.server.say(log_message("x" * 90_000))
            await asyncio.sleep(0)
        await until(lambda: not len(stage.front.sessions) and not stage.connections)
        socket.transport.resume_reading()  # type: ignore[attr-defined]
        with pytest.raises(ConnectionClosedError):
            await within(hear_all(socket))


@on_loop
async def test_a_client_that_answers_no_ping_is_closed_with_1011() -> None:
    config = FrontConfig(patience=Patience(keepalive_s=0.05, stall_s=0.2))
    async with serving(config) as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        socket.transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: not len(stage.front.sessions))
        socket.transport.resume_reading()  # type: ignore[attr-defined]
        assert await closed_with(socket) == 1011


@on_loop
async def test_a_client_that_answers_no_ping_is_cut_off_though_something_waits_for_it() -> None:
    config = FrontConfig(patience=Patience(keepalive_s=0.05, stall_s=1))
    async with serving(config) as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        socket.transport.pause_reading()  # type: ignore[attr-defined]
        (connection,) = stage.connections
        while not connection.transport.get_write_buffer_size():
            stage.server.say(log_message("x" * 20_000))
            await asyncio.sleep(0)
        await until(lambda: not len(stage.front.sessions) and not stage.connections)
        socket.transport.abort()


@on_loop
async def test_a_client_that_never_takes_the_close_frame_is_cut_off() -> None:
    config = FrontConfig(patience=Patience(stall_s=0.2))
    async with serving(config) as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        socket.transport.pause_reading()  # type: ignore[attr-defined]
        (connection,) = stage.connections
        while not connection.transport.get_write_buffer_size():
            stage.server.say(log_message("x" * 20_000))
            await asyncio.sleep(0)
        stage.server.exit()
        await until(lambda: not len(stage.front.sessions) and not stage.connections)
        socket.transport.abort()


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"subprotocols": None}, 400),
        ({"subprotocols": [Subprotocol("graphql-ws")]}, 400),
        ({"path": "/elsewhere"}, 404),
        ({"path": "/mcp"}, 404),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"additional_headers": {"Authorization": "Bearer wrong"}}, 401),
    ],
)
@on_loop
async def test_openings_that_are_refused(options: dict[str, Any], status: int) -> None:
    async with serving(FrontConfig(admission=Admission(tokens={"me": "right"} if status == 401 else {}))) as stage:
        assert await refused_with(stage, **options) == status
        assert not len(stage.front.sessions)


@on_loop
async def test_a_page_that_is_allowed_and_a_token_that_is_known_come_in() -> None:
    admission = Admission(origins=("https://app.example",), tokens={"me": "right"})
    async with serving(FrontConfig(admission=admission)) as stage:
        headers = {"Authorization": "Bearer right"}
        async with dial(stage, origin="https://app.example", additional_headers=headers) as socket:
            await shake_hands(stage, socket)


@on_loop
async def test_connections_beyond_the_cap_are_refused() -> None:
    async with serving(FrontConfig(limits=Limits(sessions=1))) as stage, dial(stage):
        await until(lambda: len(stage.front.sessions) == 1)
        assert await refused_with(stage) == 503


@on_loop
async def test_a_slow_reader_holds_the_server_back() -> None:
    config = FrontConfig(limits=Limits(high_water_bytes=100_000))
    async with serving(config) as stage, dial(stage, max_queue=1) as socket:
        await shake_hands(stage, socket)
        said = 0
        while not stage.server.paused:
            stage.server.say(log_message("x" * 9000))
            said += 1
            await asyncio.sleep(0)
            assert said < 10_000, "nothing holds the server back"
        for _ in range(said):
            await hear(socket)
        await until(lambda: not stage.server.paused)
