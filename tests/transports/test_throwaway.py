"""A fresh server for every request of a session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.pool import Scope
from dragoman.transports.memory import MemoryTransport
from tests.proxy.conversation import (
    READY,
    Peer,
    an_error,
    error,
    initialize,
    initialized,
    notification,
    request,
    result,
)
from tests.proxy.per_request import complete, discovered
from tests.support import waiting
from tests.transports.house import Guest, House, hear, say, settle, until
from tests.transports.test_shared import run

REVISION = "2025-11-25"


async def opened(server: Peer) -> Any:
    """Open a fresh server; give the request that it is for."""
    offer = await hear(server)
    assert offer["method"] == "initialize"
    say(server, initialized(REVISION, offer["id"]))
    assert await hear(server) == READY
    return await hear(server)


async def ask(house: House, guest: Guest, frame: Any) -> tuple[Peer, Any]:
    """Let a client ask; give the server that was opened for it, and what it is asked."""
    number = len(house.servers)
    guest.say(frame)
    await until(lambda: len(house.servers) > number)
    return house.servers[number], await opened(house.servers[number])


def test_every_request_has_a_server_of_its_own_which_is_closed_after_it() -> None:
    async def main(house: House) -> None:
        guest = await house.open(REVISION)
        await until(house.servers[0].closed.is_set)
        for key in (1, "2"):
            server, asked = await ask(house, guest, request(key, "tools/list"))
            assert asked == request(key, "tools/list")
            say(server, result(key, {"tools": []}))
            assert await hear(guest) == result(key, {"tools": []})
            await until(server.closed.is_set)
        assert len(house.servers) == 3

    run(main, Scope.REQUEST)


def test_what_needs_a_lasting_server_is_neither_offered_nor_served() -> None:
    async def main(house: House) -> None:
        guest = await house.enter()
        guest.say(initialize(REVISION))
        await settle()
        offer = await hear(house.servers[0])
        capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True, "x": 1}, "logging": {}}
        say(house.servers[0], initialized(REVISION, offer["id"], **capabilities))
        answer = await hear(guest)
        assert answer["result"]["capabilities"] == {"tools": {}, "resources": {"x": 1}, "logging": {}}
        guest.say(READY)
        guest.say(request(1, "resources/subscribe", uri="x:1"))
        assert an_error(1, -32601, "lasts")(await hear(guest))
        guest.say(request(2, "ping"))
        assert await hear(guest) == result(2, {})
        assert len(house.servers) == 1

    run(main, Scope.REQUEST)


def test_the_log_level_is_set_again_on_each() -> None:
    async def main(house: House) -> None:
        guest = await house.open(REVISION)
        server, asked = await ask(house, guest, request(1, "logging/setLevel", level="error"))
        say(server, result(asked["id"], {}))
        await hear(guest)
        server, asked = await ask(house, guest, request(2, "tools/list"))
        assert (asked["method"], asked["params"]) == ("logging/setLevel", {"level": "error"})
        assert (await hear(server))["method"] == "tools/list"
        say(server, result(asked["id"], {}))
        say(server, result(2, {"tools": []}))
        assert await hear(guest) == result(2, {"tools": []})

    run(main, Scope.REQUEST)


def test_questions_of_two_servers_with_the_same_id_are_kept_apart() -> None:
    async def main(house: House) -> None:
        guest = await house.open(REVISION, elicitation={})
        servers = [(await ask(house, guest, request(key, "tools/call", name="t")))[0] for key in (1, 2)]
        for server in servers:
            say(server, request(0, "elicitation/create", message="?", requestedSchema={}, _meta={"progressToken": 7}))
        first, second = await hear(guest), await hear(guest)
        assert first["id"] != second["id"]
        guest.say(result(second["id"], {"action": "accept"}))
        assert await hear(servers[1]) == result(0, {"action": "accept"})
        guest.say(notification("notifications/progress", progressToken=7, progress=1))
        assert (await hear(servers[0]))["method"] == "notifications/progress"
        say(servers[1], notification("notifications/message", level="info", data="x"))
        assert (await hear(guest))["method"] == "notifications/message"
        say(servers[1], request("p", "ping"))
        await hear(servers[1])
        assert await hear(servers[1]) == result("p", {})

    run(main, Scope.REQUEST)


def test_a_cancelled_request_loses_its_server() -> None:
    async def main(house: House) -> None:
        guest = await house.open(REVISION)
        server, _ = await ask(house, guest, request(1, "tools/call", name="t"))
        cancelled = notification("notifications/cancelled", requestId=1)
        guest.say(cancelled)
        assert await hear(server) == cancelled
        await until(server.closed.is_set)

    run(main, Scope.REQUEST)


def test_a_server_that_dies_or_refuses_fails_its_request_alone() -> None:
    async def main(house: House) -> None:
        guest = await house.open(REVISION)
        server, _ = await ask(house, guest, request(1, "tools/call", name="t"))
        await server.transport.close()
        assert an_error(1, -32000, "closed")(await hear(guest))
        guest.say(request(2, "tools/list"))
        await until(lambda: len(house.servers) == 3)
        offer = await hear(house.servers[2])
        say(house.servers[2], error(offer["id"], -32603, "busy"))
        assert an_error(2, -32000, "busy")(await hear(guest))
        house.reachable = False
        guest.say(request(3, "tools/list"))
        assert an_error(3, -32000, "nobody is there")(await hear(guest))

    run(main, Scope.REQUEST)


def test_a_server_that_does_not_read_has_a_moment_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.host.port.BROKEN_GRACE_S", 0.05)

    async def main(house: House) -> None:
        guest = await house.open(REVISION)
        server, _ = await ask(house, guest, request(1, "tools/list"))
        server.transport._peer._receiver.broken("broken pipe")
        say(server, result(1, {"tools": []}))
        assert await hear(guest) == result(1, {"tools": []})
        other, _ = await ask(house, guest, request(2, "tools/list"))
        other.transport._peer._receiver.broken("broken pipe")
        assert an_error(2, -32000, "the server closed its input")(await hear(guest))

    run(main, Scope.REQUEST)


def test_there_is_a_limit_to_requests_at_once() -> None:
    async def main(house: House) -> None:
        guest = await house.open(REVISION)
        await ask(house, guest, request(1, "tools/call", name="t"))
        guest.say(request(2, "tools/list"))
        assert an_error(2, -32000, "more than 1")(await hear(guest))

    run(main, Scope.REQUEST, runs=1)


def test_who_asks_and_cancels_without_end_does_not_start_servers_without_end() -> None:
    let_go = asyncio.Event()

    def open_stubborn(house: House) -> MemoryTransport:
        transport = house._open()
        close = transport.close

        async def close_late() -> None:
            await let_go.wait()
            await close()

        transport.close = close_late  # type: ignore[method-assign]
        return transport

    async def live() -> None:
        house = House(Scope.REQUEST, lambda: open_stubborn(house), runs=2)
        guest = await house.open(REVISION)
        for key in range(20):
            guest.say(request(key, "tools/list"))
            await settle()
            guest.say(notification("notifications/cancelled", requestId=key))
            await settle()
        assert an_error(7, -32000, "8 servers", "not gone yet")(await hear(guest))
        assert len(house.servers) == 8
        let_go.set()
        await settle()
        await ask(house, guest, request("later", "tools/list"))
        await house.close()

    waiting.run(live())


def test_a_session_that_ends_takes_its_servers_with_it() -> None:
    async def main(house: House) -> None:
        guest = await house.open(REVISION)
        server, _ = await ask(house, guest, request(1, "tools/call", name="t"))
        guest.proxy.stop("enough")
        await house.runs[0]
        await until(server.closed.is_set)

    run(main, Scope.REQUEST)


def test_a_client_that_does_not_read_holds_back_its_servers() -> None:
    async def main(house: House) -> None:
        guest = await house.open(REVISION)
        server, _ = await ask(house, guest, request(1, "tools/call", name="t"))
        guest.transport.pause_reading()
        for _ in range(40):
            say(server, notification("notifications/message", level="info", data="y" * 100_000))
            await settle(4)
        assert server.transport._peer is not None
        assert len(server.transport._peer._inbox) > 20
        guest.transport.resume_reading()
        for _ in range(40):
            await hear(guest)

    run(main, Scope.REQUEST)


def test_a_server_without_a_handshake_serves_one_request_after_the_other() -> None:
    async def main(house: House) -> None:
        guest = await house.enter()
        guest.say(initialize(REVISION))
        await until(lambda: bool(house.servers))
        [server] = house.servers
        say(server, error((await hear(server))["id"], -32601))
        say(server, discovered((await hear(server))["id"], tools={}))
        assert (await hear(guest))["result"]["serverInfo"]["name"] == "stateless"
        guest.say(READY)
        for key in (1, 2):
            guest.say(request(key, "tools/call", name="x"))
            say(server, complete((await hear(server))["id"], content=[]))
            assert await hear(guest) == result(key, {"content": []})
        assert house.servers == [server]

    run(main, Scope.REQUEST)
