"""Sessions that nobody would end but we: the server does not read, or the client never says what it wants."""

from __future__ import annotations

import asyncio
import json

import pytest

from dragoman.transports.http import closing
from dragoman.transports.http.config import FrontConfig, Patience
from tests.support.waiting import pass_time
from tests.transports.http.stage import BOTH, Stage, call, content, on_loop, serving, text_of, until
from tests.transports.http.test_websocket import closed_with, dial, hear, say, shake_hands
from tests.transports.http.wire import connect, hang_up

LARGE = "x" * 200_000
QUICK = FrontConfig(patience=Patience(idle_s=0.4, keepalive_s=0.1, stall_s=5))
PATIENT = FrontConfig(patience=Patience(idle_s=60, keepalive_s=0.1, stall_s=0.3))


def go_deaf(stage: Stage) -> None:
    stage.server.end.pause_reading()


async def is_over(stage: Stage) -> None:
    await until(lambda: not len(stage.front.sessions))
    stage.server.end.resume_reading()
    await until(lambda: stage.server.gone is not None)


@pytest.mark.parametrize("stays", [False, True])
@on_loop
async def test_a_session_whose_server_does_not_read_ends_as_idle_whatever_its_client_does(stays: bool) -> None:
    async with serving(QUICK) as stage:
        await stage.open()
        go_deaf(stage)
        calls = [asyncio.create_task(stage.post(call(key, text=LARGE))) for key in range(2, 7)]
        session = stage.front.sessions.all()[0]
        await until(lambda: not session.transport.readable.is_set() and session.visits >= 5)
        if not stays:
            for one in calls:
                one.cancel()
            await hang_up()
        await is_over(stage)
        for one in calls if stays else ():
            reply = await one
            assert reply.status == 404 or "the server read nothing" in (await reply.frame())["error"]["message"]
        await hang_up()


async def send_two(stage: Stage, accept: str) -> asyncio.StreamWriter:
    """Send a request, and another one behind it on the same connection; return once the first is served."""
    _, writer = await connect(stage.port)
    for key in (2, 3):
        body = json.dumps(call(key)).encode()
        given = {"host": "localhost", "content-type": "application/json", "content-length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in (given | stage.headers({"accept": accept})).items())
        writer.write(b"POST /mcp HTTP/1.1\r\n" + head.encode() + b"\r\n" + body)
    assert (await stage.server.hear())["id"] == 2
    (connection,) = (one for one in stage.connections if one.pipeline)
    await until(lambda: connection.flow.is_paused)
    return writer


@pytest.mark.parametrize("accept", [BOTH, "application/json"])
@on_loop
async def test_a_client_that_vanishes_with_a_request_behind_an_unanswered_one_is_seen_to_have_gone(
    accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closing, "GLANCE_S", 0.05)
    async with serving(QUICK) as stage:
        await stage.open()
        writer = await send_two(stage, accept)
        assert stage.front.sessions.all()[0].visits == 1
        writer.close()
        await is_over(stage)


@on_loop
async def test_the_request_that_is_served_hears_of_the_end_though_others_wait_behind_it() -> None:
    async with serving(PATIENT) as stage:
        await stage.open()
        await send_two(stage, BOTH)
        (session,) = stage.front.sessions.all()
        (connection,) = (one for one in stage.connections if one.pipeline)
        connection.transport.abort()
        await until(lambda: not session.visits)
        assert stage.server.hears_nothing()


@on_loop
async def test_requests_behind_an_unanswered_one_are_served_after_many_glances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "GLANCE_S", 0.01)
    async with serving(PATIENT) as stage:
        await stage.open()
        await send_two(stage, "application/json")
        await pass_time(0.1)  # some glances
        stage.server.answer(2, **content("first"))
        assert (await stage.server.hear())["id"] == 3


@on_loop
async def test_a_websocket_client_that_vanishes_ends_its_session_though_the_server_does_not_read() -> None:
    async with serving(PATIENT, drain_timeout_s=0.1) as stage:
        async with dial(stage) as socket:
            await shake_hands(stage, socket)
            session = stage.front.sessions.all()[0]
            go_deaf(stage)
            for key in range(2, 6):
                await say(socket, call(key, text=LARGE))
            await until(lambda: not session.transport.readable.is_set())
            socket.transport.abort()
        await is_over(stage)


@on_loop
async def test_a_websocket_client_is_not_cut_off_for_pongs_that_nobody_reads() -> None:
    config = FrontConfig(patience=Patience(idle_s=60, keepalive_s=0.05, stall_s=0.1))
    async with serving(config) as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        go_deaf(stage)
        for key in range(2, 6):
            await say(socket, call(key, text=LARGE))
        session = stage.front.sessions.all()[0]
        await until(lambda: not session.transport.readable.is_set())
        await pass_time(0.5)  # some pings, each with the time for its pong
        stage.server.end.resume_reading()
        for key in range(2, 6):
            assert (await stage.server.hear())["id"] == key
        stage.server.answer(5, **content("at last"))
        assert text_of(await hear(socket)) == "at last"


@on_loop
async def test_a_websocket_client_that_stays_is_told_that_the_server_read_nothing() -> None:
    async with serving(QUICK) as stage, dial(stage) as socket:
        await shake_hands(stage, socket)
        go_deaf(stage)
        for key in range(2, 6):
            await say(socket, call(key, text=LARGE))
        assert "the server read nothing" in (await hear(socket))["error"]["message"]
        await is_over(stage)


@on_loop
async def test_a_websocket_client_that_never_initialises_is_closed_with_1011() -> None:
    async with serving(init_timeout_s=0.2) as stage, dial(stage) as socket:
        assert await closed_with(socket) == 1011
        assert socket.close_reason == "initialisation timed out after 0.2 s waiting for the client's initialize"
        await is_over(stage)


@on_loop
async def test_the_stream_of_a_client_that_never_initialises_ends() -> None:
    async with serving(init_timeout_s=0.2) as stage:
        stream = await stage.get("/sse")
        assert await stream.event() is not None
        assert await stream.event() is None
        await is_over(stage)
