"""From a server over HTTP to a client over HTTP: what comes on a stream of a call goes out on that of its POST."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import ProxyConfig
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from tests.proxy.conversation import notification, request, result
from tests.transports.http import stage as front
from tests.transports.http.stage import Stage, on_loop, serving, within
from tests.transports.http.wire import Reply as Answer
from tests.transports.upstream.stage import Reply, Request, server, shake_hands

REVISION = "2025-11-25"
SCOPES = pytest.mark.parametrize("scope", [Scope.CLIENT, Scope.SHARED, Scope.PRINCIPAL])


class Asking:
    """Speaks and asks on the stream of each call once so many are with it; ends each when its question is answered."""

    def __init__(self, calls: int) -> None:
        self.all_there = asyncio.Barrier(calls)
        self.answers: dict[Any, asyncio.Future[Any]] = {}

    async def __call__(self, said: Request, reply: Reply) -> None:
        if await shake_hands(said, reply):
            return
        if said.rpc == "tools/call":
            await reply.stream()
            name, key = said.frame["params"]["name"], said.frame["id"]
            self.answers[key] = asyncio.get_running_loop().create_future()
            await self.all_there.wait()
            await reply.event(notification("notifications/message", level="info", data=name))
            await reply.event(notification("notifications/tools/list_changed"))
            await reply.event(request(key, "elicitation/create", message=name, requestedSchema={"type": "object"}))
            await reply.event(result(key, {"content": [], "said": await self.answers[key]}))
            reply.cut()
        else:
            if "method" not in said.frame:
                self.answers[said.frame["id"]].set_result(said.frame["result"])
            await reply.status("202 Accepted")


@asynccontextmanager
async def joined(url: str, scope: Scope, **config: Any) -> AsyncIterator[Stage]:
    """Serve clients over HTTP with a server over HTTP."""
    pool = UpstreamPool(scope, lambda: open_upstream(UpstreamConfig(url, close_timeout_s=0.5)))

    async with serving(FrontConfig(**config)) as stage:
        stage.make = lambda transport: pool.proxy(ProxyConfig(), transport, "ann")
        hello = front.initialize(REVISION)
        hello["params"]["capabilities"] = {"elicitation": {}}
        opened = await stage.post(hello)
        stage.session, stage.revision = opened.headers["mcp-session-id"], REVISION
        opened.leave()
        (await stage.post(notification("notifications/initialized"))).leave()
        yield stage
    await pool.close()


async def take(answer: Answer) -> Any:
    """Give the next frame of a stream."""
    while True:
        event = await answer.event()
        assert event is not None, "the stream is over"
        if event.data:
            return event.frame


@SCOPES
@on_loop
async def test_of_several_calls_each_hears_what_belongs_to_it(scope: Scope) -> None:
    async with server(Asking(calls=3)) as url, joined(url, scope) as stage:
        names = {2: "ann", 3: "ben", "x": "cat"}
        calling = {key: stage.call(key, name=name) for key, name in names.items()}
        for key, name in names.items():
            reply = await within(calling[key])
            frames = [await take(reply) for _ in range(3)]
            question = next(frame for frame in frames if frame.get("method") == "elicitation/create")
            told = [frame for frame in frames if frame.get("method") == "notifications/message"]
            assert question["params"]["message"] == name
            assert [frame["params"]["data"] for frame in told] == [name]
            (await stage.post(result(question["id"], {"action": "accept", "content": {"by": name}}))).leave()
            answer = await take(reply)
            assert (answer["id"], answer["result"]["said"]["content"]) == (key, {"by": name})
            reply.leave()


@on_loop
async def test_a_call_that_is_answered_with_json_leaves_its_question_to_the_get_stream() -> None:
    async with server(Asking(calls=2)) as url, joined(url, Scope.CLIENT) as stage:
        plain = asyncio.create_task(stage.post(front.call(2, name="ann"), accept="application/json"))
        other = stage.call(3, name="ben")
        standing = await stage.get()
        streamed = await within(other)
        heard = [await take(streamed) for _ in range(3)]
        assert heard[0]["params"]["data"] == "ben"
        assert heard[2]["params"]["message"] == "ben"
        asked = [await take(standing) for _ in range(3)]
        assert (asked[0]["params"]["data"], asked[2]["params"]["message"]) == ("ann", "ann")
        for question in (heard[2], asked[2]):
            (await stage.post(result(question["id"], {"action": "decline"}))).leave()
        assert (await (await within(plain)).frame())["id"] == 2
        streamed.leave()
        standing.leave()
