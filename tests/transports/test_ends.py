"""Ends that cross: of a session while its server opens, answers or starts again, and of some sessions among others."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.core.edges.front import FrontEdge
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.memory import connect_pair
from tests.proxy.conversation import Peer, an_error, initialize, initialized, request, result
from tests.support import waiting
from tests.transports.house import Guest, House, hear, say, settle, until
from tests.transports.test_shared import flood, run

REVISION = "2025-06-18"


class Leaving:
    """A transport to a server that has time for last words: it takes a second to close."""

    def __init__(self) -> None:
        self.inner, end = connect_pair("proxy", "server")
        self.peer = Peer("server", end)
        self.closings = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def close(self) -> None:
        self.closings += 1
        self.inner.end()
        await waiting.pass_time(1.0)
        await self.inner.close()


def reject(server: Peer, offer: Any) -> None:
    data = {"supported": ["2024-11-05"], "requested": offer["params"]["protocolVersion"]}
    refusal = {"code": -32602, "message": "Unsupported protocol version", "data": data}
    say(server, {"jsonrpc": "2.0", "id": offer["id"], "error": refusal})


def alone(main: Callable[[Guest, list[Leaving], asyncio.Task[Any]], Awaitable[None]], **config: Any) -> None:
    """Serve one client whose servers take their time to go."""

    async def live() -> None:
        servers: list[Leaving] = []

        def connect() -> Any:
            servers.append(Leaving())
            return servers[-1]

        front, end = connect_pair("proxy", "client")
        proxy = Proxy(ProxyConfig(**config), front, connect)
        serving = asyncio.create_task(proxy.run())
        guest = Guest(end, proxy)
        guest.say(initialize(REVISION))
        await settle()
        await main(guest, servers, serving)

    waiting.run(live())


def test_a_server_that_rejects_an_offer_when_the_session_is_over_is_not_started_again() -> None:
    async def main(guest: Guest, servers: list[Leaving], serving: asyncio.Task[Any]) -> None:
        offer = await hear(servers[0].peer)
        guest.proxy.stop("enough")
        await settle()
        reject(servers[0].peer, offer)
        servers[0].peer.transport.end()
        assert (await serving).outcome is Outcome.STOPPED
        assert len(servers) == 1
        assert servers[0].peer.lines.empty()  # no other offer either

    alone(main)


def test_a_client_is_read_on_when_the_server_that_did_not_read_is_started_again() -> None:
    async def main(guest: Guest, servers: list[Leaving], serving: asyncio.Task[Any]) -> None:
        first = servers[0].peer
        offer = await hear(first)
        first.transport.pause_reading()
        for key in range(6):  # the answers to these are more than waits
            say(first, request(f"{key}{'x' * 60_000}", "ping"))
        await settle(30)
        reject(first, offer)
        first.transport.end()
        await until(lambda: len(servers) == 2)
        again = servers[1].peer
        say(again, initialized(REVISION, (await hear(again))["id"]))
        await hear(guest)
        guest.say(request(1, "ping"))
        assert (await asyncio.wait_for(hear(guest), 5.0))["id"] == 1
        guest.proxy.stop("enough")
        await serving

    alone(main)


def test_a_server_that_cannot_be_started_again_ends_the_sessions_that_share_it() -> None:
    async def main(house: House) -> None:
        guests = [await house.enter() for _ in range(2)]
        for guest in guests:
            guest.say(initialize(REVISION, key=1))
        await settle()
        [server] = house.servers
        offer = await hear(server)
        house.reachable = False
        reject(server, offer)
        server.transport.end()
        for guest in guests:
            assert an_error(1, -32000, "nobody is there")(await hear(guest))
        ends = await asyncio.gather(*house.runs)
        assert [end.outcome for end in ends] == [Outcome.SERVER_NOT_STARTED] * 2
        await until(lambda: all(guest.closed.is_set() for guest in guests))
        house.reachable = True
        await house.open()
        assert len(house.servers) == 2

    run(main)


def test_a_shared_server_that_is_started_again_is_offered_one_thing_once() -> None:
    async def main(house: House) -> None:
        guest = await house.enter()
        guest.say(initialize(REVISION, key=1))
        await settle()
        [first] = house.servers
        reject(first, await hear(first))
        first.transport._peer._inbox[-1] = first.transport._peer._inbox[-1].rstrip(b"\n")  # type: ignore[union-attr]
        first.transport.end()  # a last line without a line feed: the rejection and the end come at once
        await until(lambda: len(house.servers) == 2)
        again = house.servers[1]
        say(again, initialized("2024-11-05", (await hear(again))["id"]))
        assert "result" in await hear(guest)
        await settle()
        assert again.lines.empty()

    run(main)


def test_a_session_that_is_stopped_before_it_is_served_does_not_end_others() -> None:
    async def main(house: House) -> None:
        await house.open(REVISION)
        front, _ = connect_pair("proxy", "client")
        stopped = house.pool.proxy(ProxyConfig(), front)
        stopped.stop("too early")
        finish = await stopped.run()
        assert (finish.outcome, finish.reason) == (Outcome.STOPPED, "too early")
        await house.open(REVISION)
        assert len(house.servers) == 1
        assert not any(serving.done() for serving in house.runs)

    run(main)


@pytest.mark.parametrize("how", ["stopped", "deaf"])
def test_a_shared_server_is_read_on_when_the_client_that_held_it_up_is_gone(how: str) -> None:
    async def main(house: House) -> None:
        slow, other = await house.open(), await house.open()
        server = house.servers[0]
        await hear(server)
        await flood(slow, server, 12)
        if how == "stopped":
            slow.proxy.stop("enough")
        else:
            await slow.transport.close()
            slow.transport._peer._receiver.broken("it is gone")  # type: ignore[union-attr]
        await house.runs[0]
        other.say(request("o", "tools/list"))
        asked = await hear(server)
        while asked.get("method") != "tools/list":
            asked = await hear(server)
        say(server, result(asked["id"], {"tools": []}))
        answer = await asyncio.wait_for(hear(other), 5.0)
        while "id" not in answer:
            answer = await asyncio.wait_for(hear(other), 5.0)
        assert answer["id"] == "o"

    run(main, high_water_bytes=200_000, stall_s=1000)


def test_what_a_session_at_a_shared_server_held_is_given_back_without_the_collector() -> None:
    async def main(house: House) -> None:
        staying, leaving = await house.open(REVISION), await house.open(REVISION)
        server = house.servers[0]
        await hear(server)
        gc.collect()
        gc.disable()
        before = _count_fronts()
        try:
            leaving.say(request(1, "tools/list"))
            say(server, result((await hear(server))["id"], {"tools": []}))
            assert (await hear(leaving))["id"] == 1
            leaving.transport.end()
            await house.runs.pop()
            leaving.proxy = staying.proxy
            await settle()
            assert _count_fronts() == before - 1
        finally:
            gc.enable()

    run(main)


def _count_fronts() -> int:
    return sum(isinstance(found, FrontEdge) for found in gc.get_objects())
