"""POSTs that are answered without a task of their own, and what makes them take one."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from typing import Any

import pytest

from dragoman.transports.http.config import Admission, FrontConfig, Patience
from tests.support.waiting import until
from tests.transports.http.stage import Stage, call, content, log_message, on_loop, serving, text_of, within
from tests.transports.http.wire import connect

LARGE = "x" * 100_000


def tasks_of(stage: Stage) -> int:
    """Give how many tasks serve requests."""
    return len({task for connection in stage.connections for task in connection.site.tasks})


@on_loop
async def test_a_call_that_waits_has_no_task() -> None:
    async with serving() as stage:
        await stage.open()
        await until(lambda: not tasks_of(stage))
        calling = stage.call(2)
        await stage.server.hear()
        assert tasks_of(stage) == 0
        assert stage.front.sessions.all()[0].visits == 1
        stage.server.answer(2, **content("done"))
        assert text_of(await (await within(calling)).frame()) == "done"
        assert stage.front.sessions.all()[0].visits == 0


@pytest.mark.parametrize("size", [10, len(LARGE)])
@on_loop
async def test_answers_of_any_size_follow_each_other_on_one_connection(size: int) -> None:
    async with serving() as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        for key in (2, 3, 4):
            await post(stage, writer, call(key))
            await stage.server.hear()
            stage.server.answer(key, **content("x" * size))
            head = (await within(reader.readuntil(b"\r\n\r\n"))).lower()
            assert head.startswith(b"http/1.1 200 ok\r\n")
            assert b"\r\ndate: " in head
            length = int(head.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0])
            frame = json.loads(await within(reader.readexactly(length)))
            assert (frame["id"], len(text_of(frame))) == (key, size)
        writer.close()


@on_loop
async def test_a_connection_closes_after_its_answer_where_the_client_asks_for_that() -> None:
    async with serving() as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        await post(stage, writer, call(2), connection="close")
        await stage.server.hear()
        stage.server.answer(2, **content("done"))
        head, _, body = (await within(reader.read())).partition(b"\r\n\r\n")
        assert b"\r\nconnection: close" in head.lower()
        assert text_of(json.loads(body)) == "done"
        writer.close()


@on_loop
async def test_a_page_may_read_an_answer_that_is_written_at_once() -> None:
    page = "https://app.example"
    async with serving(FrontConfig(admission=Admission(origins=(page,)))) as stage:
        await stage.open()
        calling = asyncio.create_task(stage.post(call(2), origin=page))
        await stage.server.hear()
        stage.server.answer(2, **content("done"))
        reply = await within(calling)
        assert reply.headers.get("access-control-allow-origin") == page
        reply.leave()


@on_loop
async def test_what_is_said_first_makes_the_answer_a_stream_of_which_a_task_takes_care() -> None:
    async with serving() as stage:
        await stage.open()
        calling = stage.call(2)
        await stage.server.hear()
        stage.server.say(log_message("meanwhile"))
        reply = await within(calling)
        assert tasks_of(stage) == 1
        stage.server.answer(2, **content("done"))
        assert [frame.get("method") for frame in await reply.frames()] == ["notifications/message", None]
        await until(lambda: not stage.front.sessions.all()[0].visits)


@on_loop
async def test_a_client_that_leaves_is_not_served_any_more_once_its_answer_comes() -> None:
    async with serving(FrontConfig(patience=Patience(stream_after_s=60))) as stage:
        await stage.open()
        _, writer = await connect(stage.port)
        await post(stage, writer, call(2))
        await stage.server.hear()
        session = stage.front.sessions.all()[0]
        connections = len(stage.connections)
        writer.close()
        await until(lambda: len(stage.connections) < connections)
        stage.server.answer(2, **content("done"))
        await until(lambda: not session.visits and not tasks_of(stage))
        assert text_of(await stage.call_and_answer(3)) == "hello"


async def post(stage: Stage, writer: asyncio.StreamWriter, frame: Any, **headers: str) -> None:
    body = json.dumps(frame).encode()
    given = {"host": "localhost", "content-type": "application/json", "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in (given | stage.headers(headers)).items())
    writer.write(b"POST /mcp HTTP/1.1\r\n" + lines.encode() + b"\r\n" + body)
    await writer.drain()


@pytest.mark.parametrize("text", ["short", LARGE])
@on_loop
async def test_a_connection_that_has_ended_leaves_nothing_for_the_collector(text: str) -> None:
    async with serving() as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        await post(stage, writer, call(2, text=text))
        await stage.server.hear()
        stage.server.answer(2, **content("done"))
        await within(reader.readuntil(b"\r\n\r\n"))
        port = writer.get_extra_info("sockname")[1]
        ended = next(weakref.ref(one) for one in stage.connections if one.client[1] == port)
        gc.collect()
        gc.disable()
        try:
            writer.close()
            await until(lambda: ended() is None)
        finally:
            gc.enable()
