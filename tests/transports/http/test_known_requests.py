"""Requests of the stateless era on one connection whose heads are the same bytes: answered without a task each."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman.transports.http.config import Admission, FrontConfig, Limits, Patience
from tests.proxy.test_per_request import NEW, asks
from tests.support.waiting import linger, until
from tests.transports.http.stage import BOTH, Stage, content, log_message, on_loop, progress, text_of, within
from tests.transports.http.test_per_request import TOKENS, begin, call, playing
from tests.transports.http.wire import connect, read_reply


class Caller:
    """A client with one connection, which calls the same tool each time."""

    connection: Any

    def __init__(
        self, stage: Stage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str = ""
    ) -> None:
        self.token = token
        self.stage, self.reader, self.writer = stage, reader, writer

    def write(self, frame: Any, name: str = "echo") -> None:
        body = json.dumps(frame).encode()
        lines = [
            "POST /mcp HTTP/1.1",
            *("host: localhost", f"accept: {BOTH}", "content-type: application/json"),
            *(f"mcp-protocol-version: {NEW}", f"mcp-method: {frame['method']}", f"mcp-name: {name}"),
            *([f"authorization: Bearer {self.token}"] if self.token else []),
            *(f"content-length: {len(body)}", "", ""),
        ]
        self.writer.write("\r\n".join(lines).encode() + body)

    async def begin(self, key: Any, **how: Any) -> Any:
        """Call the tool; give what the server hears of it."""
        self.write(call(key, **how))
        return await self.stage.server.hear()

    async def read(self) -> Any:
        return await within(read_reply(self.reader, self.writer))

    async def frame(self) -> Any:
        reply = await self.read()
        assert reply.headers["content-type"] == "application/json"
        return json.loads(b"".join([part async for part in reply.parts()]))

    async def call(self, key: Any, **how: Any) -> None:
        heard = await self.begin(key, **how)
        self.stage.server.answer(heard["id"], **content(f"answer {key}"))
        frame = await self.frame()
        assert (frame["id"], text_of(frame)) == (key, f"answer {key}")


async def calling(stage: Stage, token: str = "") -> Caller:
    """Have the server opened, and a connection whose head is known by now."""
    first = await begin(stage, **({"authorization": f"Bearer {token}"} if token else {}))
    stage.server.answer((await stage.server.hear())["id"], **content("first"))
    (await within(first)).leave()
    caller = Caller(stage, *await connect(stage.port), token)
    await caller.call(3)
    port = caller.writer.get_extra_info("sockname")[1]
    (caller.connection,) = (one for one in stage.connections if one.known is not None and one.client[1] == port)
    await caller.call(4)
    return caller


def under_way(stage: Stage) -> dict[Any, int]:
    counted: dict[Any, int] = stage.front.streamable._per_request._under_way
    return counted


@on_loop
async def test_many_calls_of_one_connection_get_their_answers() -> None:
    async with playing() as stage:
        caller = await calling(stage)
        for key in (*range(5, 30), "a text", "a text"):
            await caller.call(key, text="x" * 10 * len(str(key)))
        assert under_way(stage) == {}


@on_loop
async def test_callers_with_the_same_id_get_their_own_answers() -> None:
    async with playing() as stage:
        one, other = await calling(stage), Caller(stage, *await connect(stage.port))
        await other.call(3)
        heard = await one.begin(7), await other.begin(7)
        assert heard[0]["id"] != heard[1]["id"]
        stage.server.answer(heard[1]["id"], **content("the other's"))
        stage.server.answer(heard[0]["id"], **content("the one's"))
        assert text_of(await one.frame()) == "the one's"
        assert text_of(await other.frame()) == "the other's"


@pytest.mark.parametrize(
    ("frame", "name", "status", "code"),
    [
        (asks(5, "tools/call", name="other"), "echo", 400, -32020),
        (asks(5, "tools/call", name="echo"), "other", 400, -32020),
        ({**call(5), "params": {"name": "echo"}}, "echo", 400, -32602),
        (asks(5, "ping"), "echo", 404, -32601),
    ],
)
@on_loop
async def test_what_is_wrong_is_refused_and_the_next_is_served(frame: Any, name: str, status: int, code: int) -> None:
    async with playing() as stage:
        caller = await calling(stage)
        caller.write(frame, name)
        reply = await caller.read()
        body = json.loads(b"".join([part async for part in reply.parts()]))
        assert (reply.status, body["error"]["code"]) == (status, code)
        await caller.call(6)


@on_loop
async def test_an_error_of_the_server_is_an_answer() -> None:
    async with playing() as stage:
        caller = await calling(stage)
        heard = await caller.begin(5)
        stage.server.say({"jsonrpc": "2.0", "id": heard["id"], "error": {"code": -32602, "message": "no"}})
        assert (await caller.frame())["error"]["code"] == -32602
        await caller.call(6)


@on_loop
async def test_a_client_that_leaves_cancels_its_call() -> None:
    async with playing(FrontConfig(patience=Patience(stream_after_s=600))) as stage:  # before a stream would notice
        caller = await calling(stage)
        heard = await caller.begin(5)
        caller.writer.close()
        told = await stage.server.hear()
        assert (told["method"], told["params"]["requestId"]) == ("notifications/cancelled", heard["id"])
        await until(lambda: under_way(stage) == {})
        await until(lambda: caller.connection not in stage.connections)


@on_loop
async def test_a_call_that_takes_long_becomes_a_stream() -> None:
    async with playing(FrontConfig(patience=Patience(stream_after_s=0.05))) as stage:
        caller = await calling(stage)
        for key in (5, 6):
            heard = await caller.begin(key)
            reply = await caller.read()
            assert reply.headers["content-type"] == "text/event-stream"
            stage.server.answer(heard["id"], **content("late"))
            (frame,) = await within(reply.frames())
            assert (frame["id"], text_of(frame)) == (key, "late")
        await caller.call(7)
        assert under_way(stage) == {}


@on_loop
async def test_a_notice_in_the_middle_makes_a_stream_of_it() -> None:
    async with playing() as stage:
        caller = await calling(stage)
        heard = await caller.begin(5, meta={"progressToken": "mine"})
        stage.server.say(progress(heard["params"]["_meta"]["progressToken"], 1), log_message("not wanted"))
        reply = await caller.read()
        assert reply.headers["content-type"] == "text/event-stream"
        stage.server.answer(heard["id"], **content("done"))
        first, last = await within(reply.frames())
        assert (first["params"]["progressToken"], text_of(last)) == ("mine", "done")
        await caller.call(6)


@on_loop
async def test_there_is_a_limit_to_what_is_under_way() -> None:
    admission = Admission(tokens=TOKENS)
    async with playing(FrontConfig(limits=Limits(streams=2), admission=admission)) as stage:
        token = TOKENS["ann"]
        caller = await calling(stage, token)
        others = [Caller(stage, *await connect(stage.port), token) for _ in range(2)]
        for other in others:
            await other.call(3)
        heard = [await one.begin(9) for one in (caller, others[0])]
        others[1].write(call(9))
        assert (await others[1].read()).status == 429
        stage.server.answer(heard[0]["id"], **content("first"))
        stage.server.answer(heard[1]["id"], **content("second"))
        assert text_of(await caller.frame()) == "first"
        assert text_of(await others[0].frame()) == "second"
        await caller.call(10)


@on_loop
async def test_a_server_that_goes_fails_the_call() -> None:
    async with playing() as stage:
        caller = await calling(stage)
        await caller.begin(5)
        stage.server.exit()
        reply = await caller.read()
        assert reply.status in (200, 503)
        assert b"error" in b"".join([part async for part in reply.parts()])
        await until(lambda: under_way(stage) == {})


@on_loop
async def test_a_request_before_the_answer_to_the_one_before_waits() -> None:
    async with playing() as stage:
        caller = await calling(stage)
        first = await caller.begin(5)
        caller.write(call(6))
        await linger(0.02)
        assert stage.server.hears_nothing()
        stage.server.answer(first["id"], **content("one"))
        assert text_of(await caller.frame()) == "one"
        second = await stage.server.hear()
        stage.server.answer(second["id"], **content("two"))
        assert text_of(await caller.frame()) == "two"
        await caller.call(7)
