"""Servers that several client sessions share, with a proxy for each session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.core.switch.shared.desk import SharingSettings
from dragoman.pool import Scope
from tests.proxy.conversation import READY, Peer, an_error, initialize, initialized, notification, request, result
from tests.support import waiting
from tests.transports.house import Guest, House, hear, say, settle, until


def run(main: Callable[[House], Awaitable[None]], scope: Scope = Scope.SHARED, **config: Any) -> None:
    async def live() -> None:
        house = House(scope, **config)
        try:
            await main(house)
        finally:
            await house.close()

    waiting.run(live())


async def flood(guest: Guest, server: Peer, count: int) -> None:
    """Let a client ask for much and then not read it."""
    for key in range(count):
        guest.say(request(key, "tools/list"))
    asked = [(await hear(server))["id"] for _ in range(count)]
    guest.transport.pause_reading()
    for key in asked:
        say(server, result(key, {"tools": [], "x": "y" * 100_000}))
    await settle(60)


def test_two_sessions_of_two_revisions_share_one_server() -> None:
    async def main(house: House) -> None:
        new, old = await house.open("2025-11-25"), await house.enter()
        [server] = house.servers
        assert await hear(server) == READY
        old.say(initialize("2024-11-05", key="i"))
        assert (await hear(old))["result"]["protocolVersion"] == "2024-11-05"
        old.say(READY)
        for guest, key in ((new, 1), (old, 1), (old, "1")):
            guest.say(request(key, "tools/list"))
            asked = await hear(server)
            tool = {"name": "t", "inputSchema": {"type": "object"}, "icons": [{"src": "x:y"}]}
            say(server, result(asked["id"], {"tools": [tool]}))
            answer = await hear(guest)
            assert (answer["id"], type(answer["id"])) == (key, type(key))
            assert ("icons" in answer["result"]["tools"][0]) is (guest is new)

    run(main)


def test_a_dying_server_fails_what_waits_and_the_next_session_gets_a_fresh_one() -> None:
    async def main(house: House) -> None:
        one, other = await house.open(), await house.open()
        one.say(request(1, "tools/list"))
        other.say(request("x", "tools/list"))
        await settle()
        await house.servers[0].transport.close()
        assert an_error(1, -32000, "closed")(await hear(one))
        assert an_error("x", -32000, "closed")(await hear(other))
        ends = await asyncio.gather(*house.runs)
        assert [end.outcome for end in ends] == [Outcome.SERVER_CLOSED] * 2
        await house.open()
        assert len(house.servers) == 2

    run(main)


def test_an_idle_server_is_closed_and_one_in_use_is_not() -> None:
    async def main(house: House) -> None:
        guest = await house.open()
        guest.proxy.stop("enough")
        await house.runs[0]
        again = await house.open()
        await waiting.pass_time(0.1)
        assert len(house.servers) == 1
        assert not house.servers[0].closed.is_set()
        again.proxy.stop("enough")
        await until(house.servers[0].closed.is_set)
        assert house.pool.upstreams == []

    run(main, idle_s=0.05)


def test_a_server_that_never_opened_is_closed_with_its_last_session() -> None:
    async def main(house: House) -> None:
        guest = await house.enter()
        guest.say(initialize("2025-11-25"))
        await settle()
        guest.proxy.stop("enough")
        await until(house.servers[0].closed.is_set)

    run(main, idle_s=1000)


def test_a_server_that_cannot_be_reached_is_said_to_each_session_until_it_can() -> None:
    async def main(house: House) -> None:
        house.reachable = False
        guest = await house.enter()
        guest.say(initialize("2025-11-25", key=1))
        assert an_error(1, -32000, "nobody is there")(await hear(guest))
        house.reachable = True
        await house.open()

    run(main)


def test_a_server_that_dies_of_the_first_offer_is_started_again_for_all() -> None:
    async def main(house: House) -> None:
        guests = [await house.enter() for _ in range(2)]
        for guest in guests:
            guest.say(initialize("2024-11-05"))
        offer = await hear(house.servers[0])
        say(
            house.servers[0],
            {"jsonrpc": "2.0", "id": offer["id"], "error": {"code": -32602, "message": "Unsupported protocol version"}},
        )
        await settle()
        await house.servers[0].transport.close()
        await until(lambda: len(house.servers) == 2)
        offer = await hear(house.servers[1])
        assert offer["params"]["protocolVersion"] == "2024-11-05"
        say(house.servers[1], initialized("2024-11-05", offer["id"]))
        for guest in guests:
            assert (await hear(guest))["result"]["protocolVersion"] == "2024-11-05"

    run(main)


def test_a_slow_session_delays_the_others_for_a_while_only() -> None:
    async def main(house: House) -> None:
        slow, quick = await house.open(), await house.open()
        [server] = house.servers
        await hear(server)
        await flood(slow, server, 12)
        quick.say(request(1, "tools/list"))
        say(server, result((await hear(server))["id"], {"tools": []}))
        await settle()
        assert quick.lines.empty(), "the server should not be read any more"
        assert (await hear(quick))["id"] == 1
        await until(lambda: house.runs[0].done())
        assert "took nothing" in house.runs[0].result().reason
        quick.say(request(2, "tools/list"))
        while "id" not in (asked := await hear(server)):
            assert asked["method"] == "notifications/cancelled"
        say(server, result(asked["id"], {"tools": []}))
        assert (await hear(quick))["id"] == 2

    run(main, high_water_bytes=500_000, stall_s=0.1, tick_s=0.05)


def test_a_session_that_pauses_and_goes_on_loses_nothing() -> None:
    async def main(house: House) -> None:
        guest = await house.open()
        [server] = house.servers
        await hear(server)
        await flood(guest, server, 20)
        guest.transport.resume_reading()
        assert [(await hear(guest))["id"] for _ in range(20)] == list(range(20))

    run(main, high_water_bytes=500_000)


def test_a_server_that_does_not_read_holds_back_its_clients() -> None:
    async def main(house: House) -> None:
        guest = await house.open()
        [server] = house.servers
        server.transport.pause_reading()
        for key in range(30):
            guest.say(request(key, "tools/call", name="t", arguments={"x": "y" * 100_000}))
            await settle()
        assert guest.transport._peer is not None
        assert len(guest.transport._peer._inbox) > 20
        late = await house.enter()
        late.say(initialize("2025-11-25"))
        await settle(30)
        server.transport.resume_reading()
        heard = [await hear(server) for _ in range(31)]
        assert sum(frame["method"] == "tools/call" for frame in heard) == 30

    run(main)


def test_the_clock_lets_go_of_turns_that_nobody_gives_back() -> None:
    async def main(house: House) -> None:
        one, other = await house.open(), await house.open()
        one.say(request(1, "tools/call", name="t"))
        other.say(request(1, "tools/call", name="u"))
        [server] = house.servers
        heard = [await hear(server) for _ in range(3)]
        assert [frame["params"]["name"] for frame in heard if frame["method"] == "tools/call"] == ["t", "u"]

    run(main, tick_s=0.02, sharing=SharingSettings(asks=True, turn_s=0.05))


def test_what_was_learned_of_a_server_is_known_of_the_next_one() -> None:
    async def main(house: House) -> None:
        guest = await house.open(elicitation={})
        say(house.servers[0], request(1, "elicitation/create", message="?", requestedSchema={}))
        await settle()
        await house.servers[0].transport.close()
        await house.runs[0]
        assert (await hear(guest))["method"] == "elicitation/create"
        await house.open()
        [upstream] = house.pool.upstreams
        assert upstream.switch.asks

    run(main)


def test_principals_do_not_share_and_nobody_in_particular_shares_with_nobody() -> None:
    async def main(house: House) -> None:
        for principal, servers in (("ann", 1), ("ben", 2), ("ann", 2), (None, 3), (None, 4)):
            await house.open(principal=principal)
            assert len(house.servers) == servers

    run(main, Scope.PRINCIPAL)


def test_there_is_a_limit_to_servers() -> None:
    async def main(house: House) -> None:
        await house.open(principal="ann")
        guest = await house.enter("ben")
        guest.say(initialize("2025-11-25", key=1))
        assert an_error(1, -32000, "limit")(await hear(guest))

    run(main, Scope.PRINCIPAL, upstreams=1)


def test_by_default_every_session_has_a_server_of_its_own() -> None:
    async def main(house: House) -> None:
        await house.open()
        await house.open()
        assert len(house.servers) == 2

    run(main, Scope.CLIENT)


@pytest.mark.parametrize(("scope", "said"), [(Scope.SHARED, 1), (Scope.CLIENT, 0)])
def test_a_scope_that_loses_state_is_warned_of_once(scope: Scope, said: int, caplog: pytest.LogCaptureFixture) -> None:
    async def main(house: House) -> None:
        house.pool.caution()
        assert caplog.text.count("per session") == said
        await house.open()
        await house.open()

    with caplog.at_level(logging.WARNING, "dragoman"):
        run(main, scope)
    assert caplog.text.count("per session") == said


def test_who_embeds_the_pool_is_warned_with_the_first_session(caplog: pytest.LogCaptureFixture) -> None:
    async def main(house: House) -> None:
        assert caplog.text == ""
        await house.open()

    with caplog.at_level(logging.WARNING, "dragoman"):
        run(main, Scope.SHARED)
    assert caplog.text.count("per session") == 1


def test_news_and_questions_cross_to_the_right_session() -> None:
    async def main(house: House) -> None:
        one, other = await house.open(elicitation={}), await house.open(elicitation={})
        [server] = house.servers
        await hear(server)
        changed = notification("notifications/tools/list_changed")
        say(server, changed)
        assert [await hear(one), await hear(other)] == [changed, changed]
        other.say(request(1, "tools/call", name="t"))
        call = await hear(server)
        question = request(9, "elicitation/create", message="?", requestedSchema={"type": "object", "properties": {}})
        say(server, question)
        assert await hear(other) == question
        other.say(result(9, {"action": "decline"}))
        assert await hear(server) == result(9, {"action": "decline"})
        say(server, result(call["id"], {"content": []}))
        assert (await hear(other))["id"] == 1
        assert one.lines.empty()

    run(main)


def test_what_sessions_say_at_once_is_written_to_their_server_at_once() -> None:
    async def main(house: House) -> None:
        guests = [await house.open() for _ in range(3)]
        upstream = house.servers[0].transport._peer
        assert upstream is not None
        written: list[bytes] = []
        upstream.write = written.append  # type: ignore[method-assign]
        for guest in guests:
            guest.say(request(1, "tools/list"))
        await settle()
        assert [data.count(b"tools/list") for data in written] == [3]

    run(main)


def test_what_was_said_just_before_a_server_is_closed_reaches_it() -> None:
    async def main(house: House) -> None:
        guest = await house.open()
        [server] = house.servers
        assert await hear(server) == READY
        guest.say(request(1, "vendor/say"))
        async with asyncio.timeout(2):
            while not house.pool.upstreams[0]._written:
                await asyncio.sleep(0)
        await house.pool.close()
        assert (await hear(server))["method"] == "vendor/say"

    run(main)


@pytest.mark.parametrize("leaves", [False, True])
def test_a_late_question_about_a_call_that_was_left_is_refused_whoever_calls_now(leaves: bool) -> None:
    async def main(house: House) -> None:
        ann, ben = await house.open(elicitation={}), await house.open(elicitation={})
        [server] = house.servers
        assert await hear(server) == READY
        ann.say(request(1, "tools/call", name="ann"))
        assert (await hear(server))["params"]["name"] == "ann"
        if leaves:
            ann.proxy.stop("enough")
            await house.runs[0]
        else:
            ann.say(notification("notifications/cancelled", requestId=1))
        assert (await hear(server))["method"] == "notifications/cancelled"
        await until(lambda: not house.pool.upstreams[0].switch.needs_clock)
        ben.say(request(1, "tools/call", name="ben"))
        asked = await hear(server)
        say(server, request("late", "elicitation/create", message="ann?", requestedSchema={}))
        say(server, notification("notifications/message", level="info", data="of ann"))
        assert an_error("late", -32603, "2 sessions")(await hear(server))
        say(server, result(asked["id"], {"content": []}))
        assert await hear(ben) == result(1, {"content": []})

    run(main, tick_s=0.01, sharing=SharingSettings(grace_s=0.02))
