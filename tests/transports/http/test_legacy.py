"""HTTP+SSE of 2024-11-05 as a client sees it."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.transports.http.config import FrontConfig, Limits, Paths, Patience
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
)
from tests.transports.http.wire import Reply, request


async def expect_frame(stream: Reply) -> object:
    event = await stream.event()
    assert event is not None, "the stream has ended"
    assert event.name == "message"
    assert event.id is None
    return event.frame


async def open_stream(stage: Stage, method: str = "GET", body: object = None) -> tuple[Reply, str]:
    stream = await request(stage.port, method, "/sse", {"accept": "text/event-stream"}, body)
    assert stream.headers["content-type"] == "text/event-stream"
    event = await stream.event()
    assert event is not None
    assert event.name == "endpoint"
    assert event.data is not None
    return stream, event.data


async def shake_hands(stage: Stage, stream: Reply, endpoint: str) -> None:
    assert (await stage.post(initialize("2024-11-05"), endpoint)).status == 202
    stage.server.answer((await stage.server.hear())["id"], **initialized("2024-11-05"))
    await expect_frame(stream)
    assert (await stage.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, endpoint)).status == 202
    await stage.server.hear()


@on_loop
async def test_everything_comes_over_the_one_stream() -> None:
    async with serving() as stage:
        stream, endpoint = await open_stream(stage)
        await shake_hands(stage, stream, endpoint)
        reply = await stage.post(call(2), endpoint)
        assert (reply.status, await reply.body()) == (202, b"")
        await stage.server.hear()
        stage.server.say({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        stage.server.answer(2, **content("hello"))
        assert await expect_frame(stream) == {"jsonrpc": "2.0", "id": 9, "method": "ping"}
        assert text_of(await expect_frame(stream)) == "hello"
        stream.leave()
        await until(lambda: not len(stage.front.sessions))
        assert stage.server.gone is not None
        assert (await stage.post(call(3), endpoint)).status == 404


@on_loop
async def test_the_variant_that_posts_to_open_works_only_where_it_is_switched_on() -> None:
    async with serving(FrontConfig(post_opens_sse=True)) as stage:
        stream, _ = await open_stream(stage, "POST", initialize("2024-11-05"))
        stage.server.answer((await stage.server.hear())["id"], **initialized("2024-11-05"))
        await expect_frame(stream)
    async with serving() as stage:
        reply = await stage.post(initialize("2024-11-05"), "/sse")
        assert (reply.status, reply.headers["allow"]) == (405, "GET, OPTIONS")


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status"),
    [
        ("POST", "/message", {}, call(2), 400),
        ("POST", "/message?sessionId=guessed", {}, call(2), 404),
        ("GET", "/message", {}, None, 405),
        ("DELETE", "/sse", {}, None, 405),
        ("GET", "/sse", {"accept": "application/json"}, None, 406),
        ("GET", "/elsewhere", {}, None, 404),
    ],
)
@on_loop
async def test_what_is_not_served(method: str, path: str, headers: dict[str, str], body: object, status: int) -> None:
    async with serving() as stage:
        assert (await request(stage.port, method, path, headers, body)).status == status


@on_loop
async def test_what_is_posted_is_checked() -> None:
    async with serving() as stage:
        _, endpoint = await open_stream(stage)
        assert (await stage.post(b"{", endpoint)).status == 400
        assert (await stage.post(call(2), endpoint, content_type="text/plain")).status == 415


@on_loop
async def test_a_server_that_exits_ends_the_stream() -> None:
    async with serving() as stage:
        stream, endpoint = await open_stream(stage)
        await shake_hands(stage, stream, endpoint)
        stage.server.exit()
        assert await stream.event() is None


@on_loop
async def test_only_so_many_posts_wait_for_a_server_that_does_not_read() -> None:
    async with serving(FrontConfig(limits=Limits(streams=2))) as stage:
        stream, endpoint = await open_stream(stage)
        await shake_hands(stage, stream, endpoint)
        session = next(iter(stage.front.sessions.all()))
        session.transport.pause_reading()
        posts = [asyncio.create_task(stage.post(call(key), endpoint)) for key in range(7)]
        await until(lambda: any(post.done() for post in posts))
        await pass_time(0.05)
        assert [post.result().status for post in posts if post.done()] == [429]
        session.transport.resume_reading()
        assert sorted([(await post).status for post in posts]) == [202] * 6 + [429]


@on_loop
async def test_a_slow_reader_holds_the_server_back() -> None:
    async with serving(FrontConfig(limits=Limits(high_water_bytes=100_000))) as stage:
        stream, endpoint = await open_stream(stage)
        await shake_hands(stage, stream, endpoint)
        chatter = log_message("x" * 9000)
        said = 0
        while not stage.server.paused:
            stage.server.say(chatter)
            said += 1
            await asyncio.sleep(0)
            assert said < 10_000, "nothing holds the server back"
        stage.server.answer(1)
        for _ in range(said):
            await expect_frame(stream)
        await until(lambda: not stage.server.paused)


@on_loop
async def test_a_reader_that_takes_nothing_is_cut_off() -> None:
    config = FrontConfig(limits=Limits(high_water_bytes=100_000), patience=Patience(stall_s=0.2))
    async with serving(config) as stage:
        stream, endpoint = await open_stream(stage)
        await shake_hands(stage, stream, endpoint)
        stream.reader._transport.pause_reading()  # type: ignore[attr-defined]
        chatter = {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": "x" * 90000},
        }
        for _ in range(200):
            stage.server.say(chatter)
            await asyncio.sleep(0)
        await until(lambda: not len(stage.front.sessions))


@on_loop
async def test_paths_can_be_changed_and_left_out() -> None:
    async with serving(FrontConfig(paths=Paths(mcp="/a", sse=None, websocket=None))) as stage:
        assert (await request(stage.port, "GET", "/sse")).status == 404
        assert (await request(stage.port, "POST", "/message?sessionId=x", {}, call(1))).status == 404
        assert (await request(stage.port, "POST", "/mcp", {}, call(1))).status == 404
        assert (await request(stage.port, "POST", "/a", {}, call(1))).status == 400
