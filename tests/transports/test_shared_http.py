"""A server over HTTP that several sessions share: its streams say whose a question is, so nobody has to wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.pool import Scope
from dragoman.proxy import ProxyConfig
from dragoman.transports.http.app import HttpFront
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from dragoman.transports.upstream.mounted import mount
from tests.proxy.conversation import READY, an_error, initialize, initialized, notification, request, result
from tests.support.waiting import until
from tests.transports.house import House, hear, say
from tests.transports.upstream.stage import Reply, Request, hello, on_loop, server, shake_hands
from tests.transports.upstream.test_per_request import Stateless


class Asking:
    """Asks on the stream of each call, once so many calls are with it, and waits for the answer."""

    def __init__(self, calls: int) -> None:
        self.all_there = asyncio.Barrier(calls)
        self.answers: dict[int, asyncio.Future[Any]] = {}

    async def __call__(self, said: Request, reply: Reply) -> None:
        if await shake_hands(said, reply):
            return
        if "method" not in said.frame:
            self.answers[said.frame["id"]].set_result(said.frame["result"])
            await reply.status("202 Accepted")
        elif said.rpc == "tools/call":
            await reply.stream()
            await self.all_there.wait()
            name, key = said.frame["params"]["name"], said.frame["id"]
            self.answers[key] = asyncio.get_running_loop().create_future()
            await reply.event(notification("notifications/message", level="info", data=name))
            await reply.event(request(key, "elicitation/create", message=name, requestedSchema={"type": "object"}))
            await reply.event(result(key, {"content": [], "said": await self.answers[key]}))
            reply.cut()
        else:
            await reply.status("202 Accepted")


@on_loop
async def test_the_stream_of_a_call_says_whose_question_it_is() -> None:
    async with server(Asking(calls=3)) as url:
        config = UpstreamConfig(url, close_timeout_s=0.5)
        house = House(Scope.SHARED, lambda: open_upstream(config))
        guests = {name: await house.open(elicitation={}) for name in ("ann", "ben", "cat")}
        for name, guest in guests.items():
            guest.say(request(1, "tools/call", name=name))
        for name, guest in guests.items():
            assert (await hear(guest))["params"]["data"] == name
            question = await hear(guest)
            assert question["params"]["message"] == name
            guest.say(result(question["id"], {"action": "accept", "content": {"by": name}}))
            answer = await hear(guest)
            assert (answer["id"], answer["result"]["said"]["content"]) == (1, {"by": name})
        assert not house.pool.upstreams[0].switch.asks
        await house.close()


@pytest.mark.parametrize("has_handshake", [True, False])
@on_loop
async def test_no_session_takes_all_places(has_handshake: bool) -> None:
    slow: list[Any] = []
    goes_on = asyncio.Event()

    async def serve(said: Request, reply: Reply) -> None:
        if has_handshake and await shake_hands(said, reply):
            return
        if said.rpc != "tools/call":
            await reply.status("202 Accepted")
            return
        if said.frame["params"]["name"] == "slow":
            slow.append(said)
            await goes_on.wait()
        await reply.result(said, {"resultType": "complete", "content": []})

    async with server(serve if has_handshake else Stateless(serve)) as url:
        config = UpstreamConfig(url, open_requests=4)
        house = House(Scope.SHARED, lambda: open_upstream(config))
        greedy, modest = [await house.open() for _ in range(2)]
        for key in range(6):
            greedy.say(request(key, "tools/call", name="slow"))
        await until(lambda: len(slow) == 2)
        modest.say(request(1, "tools/call", name="quick"))
        assert (await hear(modest))["id"] == 1
        assert len(slow) == 2
        goes_on.set()
        assert {(await hear(greedy))["id"] for _ in range(6)} == set(range(6))
        await house.close()


@on_loop
async def test_no_session_holds_others_back_by_what_waits_of_it() -> None:
    slow: list[Any] = []
    goes_on = asyncio.Event()

    async def serve(said: Request, reply: Reply) -> None:
        if await shake_hands(said, reply):
            return
        if said.rpc != "tools/call":
            await reply.status("202 Accepted")
            return
        if said.frame["params"]["name"] == "slow":
            slow.append(said)
            await goes_on.wait()
        await reply.result(said, {"content": []})

    async with server(serve) as url:
        config = UpstreamConfig(url, open_requests=4)
        house = House(Scope.SHARED, lambda: open_upstream(config))
        greedy, modest = [await house.open() for _ in range(2)]
        large = {"text": "x" * 400_000}
        for key in range(8):
            greedy.say(request(key, "tools/call", name="slow", arguments=large))
        await until(lambda: len(slow) == 2)
        modest.say(request(1, "tools/call", name="quick"))
        assert (await hear(modest))["id"] == 1
        refused = [await hear(greedy) for _ in range(4)]
        assert all(an_error(frame["id"], -32000, "wait for the server")(frame) for frame in refused)
        goes_on.set()
        assert {(await hear(greedy))["id"] for _ in range(4)} | {frame["id"] for frame in refused} == set(range(8))
        await house.close()


class Late:
    """Never answers the call of `ann`, and asks on its GET stream once the call of `ben` is with it."""

    def __init__(self) -> None:
        self.busy = asyncio.Event()
        self.said: asyncio.Queue[Any] = asyncio.Queue()

    async def __call__(self, said: Request, reply: Reply) -> None:
        if said.method == "GET":
            await reply.stream()
            await self.busy.wait()
            await reply.event(request("late", "elicitation/create", message="ann?", requestedSchema={}))
            await asyncio.Event().wait()
        elif await shake_hands(said, reply):
            return
        elif said.rpc == "tools/call" and said.frame["params"]["name"] == "ann":
            await asyncio.Event().wait()
        elif said.rpc == "tools/call":
            self.busy.set()
            await reply.stream()
            answer = await self.said.get()
            await reply.event(result(said.frame["id"], {"heard": answer}))
            reply.cut()
        else:
            if said.rpc is None:
                self.said.put_nowait(said.frame)
            await reply.status("202 Accepted")


@on_loop
async def test_a_question_about_a_call_that_timed_out_is_not_given_to_the_only_call() -> None:
    async with server(Late()) as url:
        config = UpstreamConfig(url, close_timeout_s=0.5, idle_timeout_s=0.3)
        house = House(Scope.SHARED, lambda: open_upstream(config))
        ann, ben = await house.open(elicitation={}), await house.open(elicitation={})
        ann.say(request(1, "tools/call", name="ann"))
        assert an_error(1, -32000, "")(await hear(ann))
        ben.say(request(1, "tools/call", name="ben"))
        answer = await hear(ben)
        assert answer["id"] == 1, "the question of the other call came here"
        assert an_error("late", -32603, "2 sessions")(answer["result"]["heard"])
        await house.close()


class Forgetful:
    """Forgets its session at the first call of each name, and opens another one unless it is told not to."""

    def __init__(self) -> None:
        self.sessions = 0
        self.refuses = False
        self.names: set[str] = set()
        self.heard: list[str] = []

    async def __call__(self, said: Request, reply: Reply) -> None:
        if said.rpc == "initialize":
            if self.refuses:
                await reply.status("503 Service Unavailable")
                return
            self.sessions += 1
            await reply.result(said, hello(), f"Mcp-Session-Id: s{self.sessions}")
        elif said.rpc == "tools/call":
            name = said.frame["params"]["name"]
            if name not in self.names or said.headers["mcp-session-id"] != f"s{self.sessions}":
                self.names.add(name)
                await reply.status("404 Not Found")
            else:
                self.heard.append(name)
                await reply.result(said, {"content": [], "session": said.headers["mcp-session-id"]})
        elif not await shake_hands(said, reply):
            await reply.result(said, {})


@on_loop
@pytest.mark.parametrize("scope", [Scope.SHARED, Scope.PRINCIPAL])
async def test_a_session_that_is_dropped_is_opened_again_in_every_scope(scope: Scope) -> None:
    forgetful = Forgetful()
    async with server(forgetful) as url:
        house = House(scope, lambda: open_upstream(UpstreamConfig(url, close_timeout_s=0.5)))
        ann, ben = await house.open(principal="one"), await house.open(principal="one")
        for guest, name in ((ann, "ann"), (ben, "ben")):
            before = forgetful.sessions
            guest.say(request(1, "tools/call", name=name))
            answer = await hear(guest)
            assert answer["id"] == 1
            assert answer["result"]["session"] == f"s{forgetful.sessions}"
            assert forgetful.sessions == before + 1
        assert forgetful.heard == ["ann", "ben"]
        assert ann.lines.empty()
        await house.close()


@on_loop
async def test_a_shared_server_that_refuses_a_new_session_fails_the_call_and_is_asked_again_at_the_next() -> None:
    forgetful = Forgetful()
    async with server(forgetful) as url:
        house = House(Scope.SHARED, lambda: open_upstream(UpstreamConfig(url, close_timeout_s=0.5)))
        ann, ben = await house.open(), await house.open()
        forgetful.refuses = True
        ann.say(request(1, "tools/call", name="ann"))
        assert an_error(1, -32000, "503 Service Unavailable")(await hear(ann))
        forgetful.refuses = False
        ben.say(request(1, "tools/call", name="ann"))
        assert (await hear(ben))["result"]["session"] == "s2"
        await house.close()


@on_loop
async def test_a_proxy_behind_a_proxy_does_not_say_whose_it_is_where_it_does_not_know() -> None:
    """The inner one sees one client. The stream that it chooses would be taken for proof by the outer one."""
    inner = House(Scope.CLIENT)
    front = HttpFront(lambda transport, caller: inner.pool.proxy(ProxyConfig(), transport, None))
    async with mount(front, "/mcp") as connect:
        house = House(Scope.SHARED, connect)
        ann = await house.enter()
        ann.say(initialize("2025-11-25", elicitation={}))
        await until(lambda: inner.servers)
        server = inner.servers[0]
        offer = await hear(server)
        say(server, initialized("2025-11-25", offer["id"]))
        await hear(ann)
        ann.say(READY)
        ben = await house.open(elicitation={})
        ann.say(request(1, "tools/call", name="ann"))
        await hear_method(server, "tools/call")
        ann.proxy.stop("it has left")
        await hear_method(server, "notifications/cancelled")
        ben.say(request(1, "tools/call", name="ben"))
        called = await hear_method(server, "tools/call")
        say(server, notification("notifications/message", level="info", data="about ann"))
        say(server, request(9, "elicitation/create", message="about ann", requestedSchema={"type": "object"}))
        refused = await hear(server)
        assert (refused["id"], "may be about any of 2" in refused["error"]["message"]) == (9, True)
        say(server, result(called["id"], {"content": []}))
        assert await hear(ben) == result(1, {"content": []}), "and nothing else"
        await house.close()
        await inner.close()
        await front.close()


async def hear_method(peer: Any, method: str) -> Any:
    """Return the next frame with this method."""
    while (frame := await hear(peer)).get("method") != method:
        pass
    return frame
