"""Messages that have begun to come in, and what they may hold together."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from dragoman.transports.http.config import Admission, FrontConfig, Limits, Patience
from dragoman.transports.http.exchange import HttpRequest, RequestRefused, Wire
from dragoman.transports.http.site import FREE_BYTES, Budget, Excess, Hold
from tests.transports.http.stage import Stage, on_loop, serving, text_of, until, within
from tests.transports.http.test_websocket import closed_with, dial, hear, say, shake_hands
from tests.transports.http.wire import Reply, connect, read_reply, request

SMALL = Limits(body_bytes=300_000, memory_bytes=1_000_000)
LARGE = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": "y" * 280_000}}


def test_one_client_may_hold_half() -> None:
    budget = Budget(1000, 100)
    mine, other = Hold(budget, "mine"), Hold(budget, "other")
    mine.resize(400)
    Hold(budget, "mine").resize(100)
    with pytest.raises(Excess) as caught:
        mine.resize(401)
    assert (caught.value.status, mine.size, budget.taken) == (429, 400, 500)
    other.resize(500)
    with pytest.raises(Excess) as caught:
        Hold(budget, "third").resize(1)
    assert caught.value.status == 503
    mine.resize(300)
    mine.release()
    other.release()
    assert (budget.taken, budget.of("mine")) == (100, 100)


def test_one_message_of_the_longest_always_has_room() -> None:
    Hold(Budget(10, 100), "mine").resize(100)


def test_what_is_held_moves_to_whoever_it_turns_out_to_be() -> None:
    budget = Budget(1000, 100)
    hold = Hold(budget, "10.0.0.1")
    hold.resize(80)
    hold.belong("ada")
    hold.belong("ada")
    assert (budget.of("10.0.0.1"), budget.of("ada"), budget.taken) == (0, 80, 80)


async def begin_post(stage: Stage, size: int = 240_000, length: int = 300_000, **headers: str) -> Any:
    """Send half a body, and wait until it is counted or refused."""
    reader, writer = await connect(stage.port)
    given = {"host": "localhost", "content-type": "application/json", "content-length": str(length)}
    if stage.session:
        given["mcp-session-id"] = stage.session
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    before = stage.front.budget.taken
    writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + b'"' + b"x" * size)
    answer = asyncio.create_task(read_reply(reader, writer))
    await until(lambda: stage.front.budget.taken >= before + size or answer.done())
    return answer


@on_loop
async def test_half_sent_bodies_of_a_session_are_bounded_in_sum_and_by_client() -> None:
    async with serving(FrontConfig(limits=SMALL)) as stage:
        await stage.open()
        kept = [await begin_post(stage) for _ in range(2)]
        refused: Reply = await within(await begin_post(stage))
        assert (refused.status, refused.headers["retry-after"], refused.headers["connection"]) == (429, "5", "close")
        assert stage.front.budget.taken <= 500_002
        assert not any(answer.done() for answer in kept)
        assert text_of(await stage.call_and_answer("small ones get through")) == "hello"
        for answer in kept:
            answer.cancel()


@on_loop
async def test_principals_are_counted_each_and_all_together() -> None:
    admission = Admission(tokens={name: f"secret-of-{name}" for name in ("ada", "bob", "eve")})
    async with serving(FrontConfig(limits=SMALL, admission=admission)) as stage:
        sessions = {}
        for name in ("ada", "bob", "eve"):
            stage.session = ""
            stage.servers.clear()
            await stage.open(authorization=f"Bearer secret-of-{name}")
            sessions[name] = stage.session
        answers = []
        for name in ("ada", "ada", "bob", "bob"):
            stage.session = sessions[name]
            answers.append(await begin_post(stage, 240_000, authorization=f"Bearer secret-of-{name}"))
        assert not any(answer.done() for answer in answers)
        stage.session = sessions["eve"]
        refused = await within(await begin_post(stage, authorization="Bearer secret-of-eve"))
        assert refused.status == 503
        for answer in answers:
            answer.cancel()


@on_loop
async def test_what_was_held_is_given_back_however_it_ends() -> None:
    limits = Limits(body_bytes=300_000, memory_bytes=300_000)
    async with serving(FrontConfig(limits=limits, patience=Patience(body_s=0.2))) as stage:
        await stage.open()
        budget = stage.front.budget
        assert (await within(await begin_post(stage))).status == 408
        assert not budget.taken
        for _ in range(3):
            assert (await stage.post(LARGE)).status == 202
            assert not budget.taken
            await stage.server.hear()
        answer = await begin_post(stage)
        answer.cancel()
        for connection in list(stage.connections):
            connection.transport.abort()
        await until(lambda: not budget.taken)


async def begin_message(stage: Stage, socket: ClientConnection, size: int = 250_000) -> None:
    """Send half a WebSocket message, and wait until it is counted or refused."""
    before = stage.front.budget.taken
    header = b"\x81\xff" + (280_000).to_bytes(8, "big") + b"\0\0\0\0"
    socket.transport.write(header + b"x" * size)  # type: ignore[attr-defined]
    await until(lambda: stage.front.budget.taken >= before + size or socket.close_code is not None)


@on_loop
async def test_half_sent_websocket_messages_without_initialize_are_bounded_in_sum() -> None:
    async with serving(FrontConfig(limits=SMALL)) as stage:
        kept = [await dial(stage), await dial(stage)]
        for socket in kept:
            await begin_message(stage, socket)
        async with dial(stage) as third:
            await begin_message(stage, third)
            assert await closed_with(third) == 1013
        assert stage.front.budget.taken <= 500_100
        async with dial(stage) as socket:
            await say(socket, {"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert "result" in await hear(socket)
        for socket in kept:
            socket.transport.abort()  # type: ignore[attr-defined]
        await until(lambda: not stage.front.budget.taken)


@on_loop
async def test_a_websocket_message_that_never_ends_is_closed_with_1008() -> None:
    async with serving(FrontConfig(limits=SMALL, patience=Patience(body_s=0.2))) as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        await begin_message(stage, socket)
        assert await closed_with(socket) == 1008
        assert not stage.front.budget.taken


@on_loop
async def test_fragments_and_messages_that_nobody_takes_count_too() -> None:
    async with serving(FrontConfig(limits=SMALL)) as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        session = next(iter(stage.front.sessions.all()))
        session.transport.pause_reading()
        text = json.dumps(LARGE)
        await say(socket, {**LARGE, "params": {}})  # by the reader that waits already
        await stage.server.hear()
        await socket.send([text[:90_000], text[90_000:180_000], text[180_000:]])
        await until(lambda: stage.front.budget.taken >= len(text))
        session.transport.resume_reading()
        assert (await stage.server.hear())["params"] == LARGE["params"]
        await until(lambda: not stage.front.budget.taken)


@on_loop
async def test_a_text_message_that_is_not_utf_8_closes_with_1007() -> None:
    async with serving() as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        await socket.send(b"\xff\xfe", text=True)
        assert await closed_with(socket) == 1007


@on_loop
async def test_bodies_are_counted_where_another_server_runs_the_front() -> None:
    budget = Budget(200_000, 200_000)
    parts = [{"type": "http.request", "body": b"x" * FREE_BYTES, "more_body": True} for _ in range(2)]

    async def receive() -> Any:
        return parts.pop()

    async def send(_: Any) -> None:
        raise AssertionError

    other = Hold(budget, "")
    other.resize(100_000)
    reading = HttpRequest(Wire({"method": "POST"}, receive, send), Hold(budget, "")).read_body(200_000, 5.0)
    assert not isinstance(reading, bytes)
    with pytest.raises(RequestRefused) as caught:
        await reading
    assert caught.value.status == 503


@on_loop
async def test_one_client_can_send_a_body_of_the_longest_and_no_memory_is_left_to_it() -> None:
    limits = Limits(body_bytes=4_000_000, memory_bytes=1)
    async with serving(FrontConfig(limits=limits)) as stage:
        await stage.open()
        body = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"%s"}}'
        whole = body % (b"y" * (4_000_000 - len(body) + 2))
        assert len(whole) == 4_000_000
        for chunked in (False, True):
            headers = stage.headers({})
            if chunked:
                headers |= {"content-length": "", "transfer-encoding": "chunked"}
            sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(whole), whole) if chunked else whole
            assert (await request(stage.port, "POST", "/mcp", headers, sent)).status == 202
            await stage.server.hear()
        async with dial(stage, max_size=None) as socket:
            await shake_hands(stage, socket)
            await socket.send(whole.decode())
            assert (await stage.server.hear())["method"] == "notifications/x"
        assert not stage.front.budget.taken
