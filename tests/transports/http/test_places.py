"""Whose requests and listens are counted together, where clients open no sessions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.http.config import Admission, FrontConfig, Limits
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from tests.proxy.test_per_request import TASKS, asks
from tests.proxy.test_per_request_asked import ACCEPTED, FORM
from tests.proxy.test_per_request_relay import INTRODUCED
from tests.transports.http.stage import Stage, content, on_loop, serving, text_of, until, within
from tests.transports.http.test_known_requests import Caller
from tests.transports.http.test_per_request import ANN, ASKED, BEN, TOKENS, begin, call, playing, posts
from tests.transports.http.test_per_request_relay import LISTED
from tests.transports.http.wire import Reply, connect
from tests.transports.upstream import stage as upstream


async def opened(stage: Stage, headers: dict[str, str]) -> None:
    """Have the server of these opened, by a call that is answered."""
    servers = len(stage.servers)
    calling = await begin(stage, **headers) if not servers else posts(stage, call(), **headers)
    stage.server.answer((await stage.server.hear())["id"], **content("first"))
    (await within(calling)).leave()


def listens(stage: Stage, key: str, headers: dict[str, str]) -> asyncio.Task[Reply]:
    return posts(stage, asks(key, "subscriptions/listen", notifications={"toolsListChanged": True}), **headers)


async def is_served(stage: Stage, text: str, headers: dict[str, str]) -> None:
    calling = posts(stage, call(text), **headers)
    stage.server.answer((await stage.server.hear())["id"], **content(text))
    assert text_of(await (await within(calling)).frame()) == text


@pytest.mark.parametrize("headers", [{}, ANN])
@on_loop
async def test_listens_count_apart_from_requests(headers: dict[str, str]) -> None:
    admission = Admission(tokens=TOKENS if headers else {})
    async with playing(FrontConfig(limits=Limits(streams=2), admission=admission, shares_requests=True)) as stage:
        await opened(stage, headers)
        open_ones = [await within(listens(stage, key, headers)) for key in ("one", "two")]
        assert [reply.status for reply in open_ones] == [200, 200]
        await is_served(stage, "beside them", headers)
        if headers:
            assert (await within(listens(stage, "three", headers))).status == 429
            other = await within(listens(stage, "of somebody else", BEN))
            assert other.status == 200
            other.leave()
        for reply in open_ones:
            reply.leave()


@on_loop
async def test_requests_count_by_connection_where_nobody_has_a_name() -> None:
    async with playing(FrontConfig(limits=Limits(streams=1))) as stage:
        await opened(stage, {})
        callers = [Caller(stage, *await connect(stage.port)) for _ in range(3)]
        heard: list[Any] = [await caller.begin(key) for key, caller in enumerate(callers)]
        for caller, one in zip(callers, heard, strict=True):
            stage.server.answer(one["id"], **content("served"))
            assert text_of(await caller.frame()) == "served"


@on_loop
async def test_a_connection_has_one_place_at_a_time_where_nobody_has_a_name() -> None:
    """Whatever it sends at once: so one client needs as many connections as there are places to take them all."""
    async with playing(FrontConfig(shares_requests=True)) as stage:
        await opened(stage, {})
        greedy, other = [Caller(stage, *await connect(stage.port)) for _ in range(2)]
        for key in ("one", "two", "three"):
            greedy.write(call(key, arguments={"whose": key}))
        first = await stage.server.hear()
        assert first["params"]["arguments"] == {"whose": "one"}
        second = await other.begin("other", arguments={"whose": "other"})
        assert second["params"]["arguments"] == {"whose": "other"}
        stage.server.answer(second["id"], **content("beside it"))
        assert text_of(await other.frame()) == "beside it"
        stage.server.answer(first["id"], **content("done"))
        assert (await stage.server.hear())["params"]["arguments"] == {"whose": "two"}


class Asked(Caller):
    """A client that is asked something by each call."""

    async def is_asked(self, key: Any) -> Any:
        """Call the tool, whose server asks; give the call to come back with."""
        self.write(call(key, has=FORM))
        heard = await self.stage.server.hear()
        self.stage.server.say({"jsonrpc": "2.0", "id": f"about {key}", "method": "elicitation/create", "params": ASKED})
        assert heard["method"] == "tools/call"
        state = (await self.frame())["result"]["requestState"]
        return call(f"{key} again", has=FORM, inputResponses={"question-1": ACCEPTED}, requestState=state)


@on_loop
async def test_the_connection_with_most_calls_that_wait_gives_its_oldest() -> None:
    async with playing(most_parked=3, questions="park") as stage:
        first = await begin(stage, call(has=FORM))
        stage.server.answer((await stage.server.hear())["id"], **content("first"))
        (await within(first)).leave()
        greedy, modest, other = [Asked(stage, *await connect(stage.port)) for _ in range(3)]
        mine = await modest.is_asked("mine")
        again = [await greedy.is_asked(key) for key in ("one", "two")]
        await other.is_asked("other's")
        assert (await stage.server.hear())["id"] == "about one"  # it gets an error, for nobody answers
        greedy.write(again[0])
        assert (await greedy.frame())["error"]["data"]["reason"] == "call-gave-way"
        modest.write(mine)
        assert await stage.server.hear() == {"jsonrpc": "2.0", "id": "about mine", "result": ACCEPTED}


@on_loop
async def test_no_connection_takes_all_places_of_tasks() -> None:
    """The next question of the same connection parks its call; that of another becomes a task."""
    has = {**FORM, "extensions": TASKS}

    async def ask(caller: Caller, key: str) -> Any:
        caller.write(call(key, has=has))
        await stage.server.hear()
        stage.server.say({"jsonrpc": "2.0", "id": f"about {key}", "method": "elicitation/create", "params": ASKED})
        return (await caller.frame())["result"]["resultType"]

    async with playing(most_parked=3) as stage:
        first = await begin(stage, call(has=has))
        stage.server.answer((await stage.server.hear())["id"], **content("first"))
        (await within(first)).leave()
        greedy, other = [Caller(stage, *await connect(stage.port)) for _ in range(2)]
        assert [await ask(greedy, key) for key in ("one", "two", "three")] == ["task", "task", "input_required"]
        assert await ask(other, "other's") == "task"


@pytest.mark.parametrize("has_handshake", [True, False])
@on_loop
async def test_no_principal_takes_all_places_at_a_shared_server(has_handshake: bool) -> None:
    slow: list[Any] = []
    goes_on = asyncio.Event()

    async def serve(asked: upstream.Request, reply: upstream.Reply) -> None:
        if has_handshake and await upstream.shake_hands(asked, reply):
            return
        if asked.rpc == "server/discover":
            await (reply.status("400 Bad Request") if has_handshake else reply.result(asked, INTRODUCED))
        elif asked.rpc == "tools/list":
            await reply.result(asked, {**LISTED, "tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        elif asked.rpc != "tools/call":
            await reply.status("202 Accepted")
        else:
            if asked.frame["params"].get("arguments"):
                slow.append(asked)
                await goes_on.wait()
            await reply.result(asked, {"resultType": "complete", **content("done")})

    config = FrontConfig(shares_requests=True, admission=Admission(tokens=TOKENS))
    async with upstream.server(serve) as url, serving(config) as stage:
        there = UpstreamConfig(url, open_requests=4)
        stage.make = lambda transport: Proxy(
            ProxyConfig(), transport, lambda: open_upstream(there), principal="", shares_server=True
        )
        calls = [posts(stage, call(key, arguments={"slow": True}), **ANN) for key in range(6)]
        await until(lambda: len(slow) == 2)
        assert text_of(await (await within(posts(stage, call("quick"), **BEN))).frame()) == "done"
        assert len(slow) == 2
        goes_on.set()
        for one in calls:
            assert text_of(await (await within(one)).frame()) == "done"
