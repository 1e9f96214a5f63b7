"""Per-request clients that declare several things, at a server with a handshake: a session of the server for each."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest

from dragoman.core.switch.to_session import switch
from dragoman.pool import Scope
from tests.proxy.conversation import Peer, an_error, error, initialized, notification, request, result
from tests.proxy.test_per_request import OLD, asks
from tests.proxy.test_per_request_asked import DONE, FORM, elicit
from tests.support.waiting import run
from tests.transports.house import Guest, House, hear, say, settle, until

ROOTS: dict[str, Any] = {"roots": {}}


async def accept(server: Peer, declared: Any) -> None:
    """Let a server open its session, and check what it is told."""
    offer = await hear(server)
    if offer["method"] == "server/discover":
        say(server, error(offer["id"], -32601))
        offer = await hear(server)
    assert offer["params"]["capabilities"] == declared
    say(server, initialized(OLD, offer["id"], tools={}))
    assert (await hear(server))["method"] == "notifications/initialized"
    if "roots" in declared:  # it may want to know them first
        ping = await hear(server)
        assert ping["method"] == "ping"
        say(server, result(ping["id"], {}))


async def enter() -> tuple[House, Guest]:
    house = House(Scope.CLIENT)
    return house, await house.enter()


async def begin_call(house: House, guest: Guest, number: int, declared: Any) -> None:
    """Have a call open a session of its own."""
    guest.say(asks(number, "tools/call", name="t", has=declared))
    await until(lambda: len(house.servers) == number + 1)
    await accept(house.servers[number], declared)


async def call_with(house: House, guest: Guest, key: int, declared: Any) -> None:
    """Have a call answered by the newest server."""
    guest.say(asks(key, "tools/call", name="t", has=declared))
    await until(lambda: not house.servers[-1].lines.empty())
    server = house.servers[-1]
    frame = await hear(server)
    assert frame["method"] == "tools/call"
    say(server, result(frame["id"], DONE))
    assert (await hear(guest))["id"] == key


def test_each_declaration_has_a_session_and_the_same_one_has_the_same() -> None:
    async def main() -> None:
        house, guest = await enter()
        guest.say(asks(1, "tools/list", has=FORM))
        guest.say(asks(2, "tools/list", has=ROOTS))
        guest.say(asks(3, "tools/list", has={"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}))
        await settle()
        assert len(house.servers) == 1, "it is not known yet what the server is"
        await accept(house.servers[0], FORM)
        assert {(await hear(house.servers[0]))["method"] for _ in range(2)} == {"tools/list"}
        await until(lambda: len(house.servers) == 2)
        await accept(house.servers[1], ROOTS)
        assert (await hear(house.servers[1]))["method"] == "tools/list"
        await house.close()

    run(main())


def test_an_answer_goes_to_the_session_that_asked_whatever_its_request_declares() -> None:
    async def main() -> None:
        house, guest = await enter()
        guest.say(asks(1, "tools/call", name="t", has=FORM))
        await until(lambda: house.servers)
        first = house.servers[0]
        await accept(first, FORM)
        say(first, elicit(7))
        asked = (await hear(guest))["result"]
        answers = {"inputResponses": {"question-1": {"action": "decline"}}, "requestState": asked["requestState"]}
        guest.say(asks(2, "tools/call", name="t", has=ROOTS, **answers))
        assert (await hear(first))["method"] == "tools/call"
        assert (await hear(first)) == result(7, {"action": "decline"})
        assert len(house.servers) == 1
        await house.close()

    run(main())


def test_a_session_that_is_lost_fails_its_own_calls_alone() -> None:
    async def main() -> None:
        house, guest = await enter()
        guest.say(asks(1, "tools/call", name="t", has=FORM))
        await until(lambda: house.servers)
        await accept(house.servers[0], FORM)
        guest.say(asks(2, "tools/call", name="t", has=ROOTS))
        await until(lambda: len(house.servers) == 2)
        await accept(house.servers[1], ROOTS)
        await settle()
        house.servers[1].transport.end()
        assert an_error(2, -32000, "closed")(await hear(guest))
        guest.say(asks(3, "tools/call", name="t", has=ROOTS))
        await until(lambda: len(house.servers) == 3)
        await accept(house.servers[2], ROOTS)
        assert (await hear(house.servers[0]))["id"] == 1
        say(house.servers[0], result(1, DONE))
        assert (await hear(guest))["id"] == 1
        await house.close()

    run(main())


async def have_another_session(house: House, guest: Guest, **has: Any) -> Peer:
    """Open two sessions; give the server of the second one, which is at work on nothing."""
    await begin_call(house, guest, 0, {})
    guest.say(asks(1, "prompts/list", has=FORM))
    await until(lambda: len(house.servers) == 2)
    server = house.servers[1]
    say(server, error((await hear(server))["id"], -32601))
    say(server, initialized(OLD, (await hear(server))["id"], tools={}, **has))
    assert (await hear(server))["method"] == "notifications/initialized"
    say(server, result((await hear(server))["id"], {"prompts": []}))
    assert (await hear(guest))["id"] == 1
    return server


def test_a_call_whose_tool_was_still_looked_up_hears_that_its_session_is_lost() -> None:
    async def main() -> None:
        house, guest = await enter()
        server = await have_another_session(house, guest, tasks={"requests": {"tools": {"call": {}}}})
        guest.say(asks(2, "tools/call", name="t", has=FORM))
        assert (await hear(server))["method"] == "tools/list"
        server.transport.end()
        assert an_error(2, -32000, "closed")(await hear(guest))
        await house.close()

    run(main())


def test_a_stream_of_changes_ends_with_its_session() -> None:
    async def main() -> None:
        house, guest = await enter()
        server = await have_another_session(house, guest, resources={"subscribe": True})
        guest.say(asks(2, "subscriptions/listen", has=FORM, notifications={"resourceSubscriptions": ["file:///a"]}))
        assert (await hear(server))["method"] == "resources/subscribe"
        server.transport.end()
        assert (await hear(guest))["method"] == "notifications/subscriptions/acknowledged"
        ended = [await hear(guest), await hear(guest)]
        assert [frame.get("id") for frame in ended] == [None, 2]
        await house.close()

    run(main())


def test_a_call_that_waited_for_its_turn_hears_that_its_session_is_lost() -> None:
    """It waited for one that was to be a task, and that its client had just cancelled."""

    async def main() -> None:
        house = House(Scope.CLIENT)
        guest = await house.enter(questions="task")
        server = await have_another_session(house, guest, tasks={"requests": {"tools": {"call": {}}}})
        guest.say(asks(2, "tools/call", name="t", has=FORM))
        tool = {"name": "t", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
        say(server, result((await hear(server))["id"], {"tools": [tool]}))
        called = await hear(server)
        say(server, elicit(7))  # from here on, calls go one after the other
        assert an_error(7, -32603, "not wanted")(await hear(server))
        assert (await hear(guest))["result"]["isError"]
        say(server, result(called["id"], DONE))
        guest.say(asks(3, "tools/call", name="t", has=FORM))
        assert (await hear(server))["params"]["name"] == "t"
        guest.say(asks(4, "tools/call", name="t", has=FORM))
        guest.say(notification("notifications/cancelled", requestId=3))
        assert (await hear(server))["method"] == "notifications/cancelled"
        server.transport.end()
        assert an_error(4, -32000, "closed")(await hear(guest))
        await house.close()

    run(main())


def test_what_the_server_is_says_the_session_that_is_open_not_one_that_is_being_opened() -> None:
    async def main() -> None:
        house, guest = await enter()
        await begin_call(house, guest, 0, {})
        guest.say(asks(1, "tools/call", name="t", has=FORM))
        await until(lambda: len(house.servers) == 2)
        guest.say(asks(2, "server/discover", has=FORM))
        found = await hear(guest)
        assert (found["id"], "tools" in found["result"]["capabilities"]) == (2, True)
        await house.close()

    run(main())


def test_there_are_so_many_sessions_and_who_needs_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "MOST_SESSIONS", 2)

    async def main() -> None:
        house, guest = await enter()
        for number, declared in enumerate((FORM, ROOTS)):
            await begin_call(house, guest, number, declared)
        for number, declared in ((2, {}), (3, {"sampling": {}})):
            guest.say(asks(number, "tools/call", name="t", has=declared))
            assert an_error(number, -32000, "sessions of the server are in use")(await hear(guest))
        assert len(house.servers) == 2
        await house.close()

    run(main())


def test_a_session_that_nobody_uses_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "MOST_SESSIONS", 2)

    async def main() -> None:
        house, guest = await enter()
        for number, declared in enumerate((FORM, ROOTS, {"sampling": {}})):
            await begin_call(house, guest, number, declared)
            frame = await hear(house.servers[number])
            say(house.servers[number], result(frame["id"], DONE))
            assert (await hear(guest))["id"] == number
        await asyncio.wait_for(house.servers[0].closed.wait(), 30)
        assert not house.servers[1].closed.is_set()
        await house.close()

    run(main())


def ui(number: int) -> dict[str, Any]:
    """Forms, and settings of an extension that nobody else has."""
    return {**FORM, "extensions": {"io.example/ui": {"n": number}}}


async def answer_one(house: House, guest: Guest, number: int, key: int) -> None:
    """Have this server answer a call."""
    frame = await hear(house.servers[number])
    assert frame["method"] == "tools/call"
    say(house.servers[number], result(frame["id"], DONE))
    assert (await hear(guest))["id"] == key


def test_what_a_server_cannot_ask_opens_few_sessions_and_the_rest_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Sixty declarations, each with an extension set in another way: the first three are told, and go on to be."""

    async def main() -> None:
        house, guest = await enter()
        for number in range(3):
            await begin_call(house, guest, number, ui(number))
            await answer_one(house, guest, number, number)
        for key in range(3, 60):
            guest.say(asks(key, "tools/call", name="t", has=ui(key)))
            if key == 3:
                await until(lambda: len(house.servers) == 4)
                await accept(house.servers[3], FORM)
            await answer_one(house, guest, 3, key)
        for key in range(60, 63):
            guest.say(asks(key, "tools/call", name="t", has=ui(key - 60)))
            await answer_one(house, guest, key - 60, key)
        assert len(house.servers) == 4
        assert (guest.proxy.counters.lossy, guest.proxy.counters.losses) == (57, 57)
        await house.close()

    run(main())
    said = [record.getMessage() for record in caplog.records if "is not told" in record.getMessage()]
    assert len(said) == 1
    assert "dropped /capabilities/extensions/io.example~1ui (7 B)" in said[0]


@pytest.mark.parametrize(
    ("declared", "asked"),
    [
        ({"vendor": 1}, {}),
        ({"sampling": {"vendor": 1}}, {"sampling": {}}),
        ({"sampling": {"tools": {"vendor": 1}}}, {"sampling": {"tools": {}}}),
    ],
)
def test_each_kind_of_what_a_server_cannot_ask_is_left_out(
    declared: dict[str, Any], asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch, "MOST_VARIANTS", 1)

    async def main() -> None:
        house, guest = await enter()
        await begin_call(house, guest, 0, {"other": {}})
        await begin_call(house, guest, 1, FORM)  # what can be asked is still told apart
        guest.say(asks(2, "tools/call", name="t", has=declared))
        await until(lambda: len(house.servers) == 3)
        await accept(house.servers[2], asked)
        assert (await hear(house.servers[2]))["method"] == "tools/call"
        await house.close()

    run(main())


def test_no_session_ends_for_what_a_server_cannot_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "MOST_SESSIONS", 2)

    async def main() -> None:
        house, guest = await enter()
        for number, declared in enumerate((FORM, ROOTS)):
            await begin_call(house, guest, number, declared)
            await answer_one(house, guest, number, number)
        guest.say(asks(2, "tools/call", name="t", has=ui(2)))
        await answer_one(house, guest, 0, 2)
        assert not house.servers[1].closed.is_set()
        await house.close()

    run(main())


def test_an_extension_goes_with_each_set_of_what_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "MOST_VARIANTS", 1)

    async def main() -> None:
        house, guest = await enter()
        await begin_call(house, guest, 0, ui(1))
        await begin_call(house, guest, 1, {**ui(1), **ROOTS})
        await house.close()

    run(main())


def test_a_long_declaration_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients could fill memory with what is kept to find sessions faster."""

    async def main() -> None:
        house, guest = await enter()
        await begin_call(house, guest, 0, {})
        await answer_one(house, guest, 0, 0)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for key in range(1, 40):
            guest.say(asks(key, "tools/call", name="t", has={"experimental": {"x": {f"{key}": "x" * 100_000}}}))
            await answer_one(house, guest, 0, key)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert grown < 1_000_000
        await house.close()

    run(main())


def test_a_session_that_was_not_used_for_long_ends_but_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "IDLE_S", 0.05)

    async def main() -> None:
        house, guest = await enter()
        for number, declared in enumerate((FORM, ROOTS)):
            await begin_call(house, guest, number, declared)
            frame = await hear(house.servers[number])
            say(house.servers[number], result(frame["id"], DONE))
            assert (await hear(guest))["id"] == number
        await asyncio.wait_for(house.servers[0].closed.wait(), 30)
        await call_with(house, guest, 7, ROOTS)
        await house.close()

    run(main())


def test_a_call_goes_on_if_the_server_takes_back_what_it_asked_first() -> None:
    async def main() -> None:
        house, guest = await enter()
        guest.say(asks(1, "tools/call", name="t", has=ROOTS))
        await until(lambda: house.servers)
        server = house.servers[0]
        say(server, error((await hear(server))["id"], -32601))
        say(server, initialized(OLD, (await hear(server))["id"], tools={}))
        assert (await hear(server))["method"] == "notifications/initialized"
        ping = await hear(server)
        say(server, request("r", "roots/list"))
        say(server, result(ping["id"], {}))
        say(server, notification("notifications/cancelled", requestId="r"))
        called = await hear(server)
        assert called["method"] == "tools/call"
        say(server, result(called["id"], DONE))
        assert (await hear(guest))["result"]["content"] == DONE["content"]
        await house.close()

    run(main())


def test_a_call_that_ends_because_of_a_garbled_first_question_is_not_made() -> None:
    async def main() -> None:
        house, guest = await enter()
        guest.say(asks(1, "tools/call", name="first", has=ROOTS))
        await until(lambda: house.servers)
        server = house.servers[0]
        say(server, error((await hear(server))["id"], -32601))
        say(server, initialized(OLD, (await hear(server))["id"], tools={}))
        assert (await hear(server))["method"] == "notifications/initialized"
        ping = await hear(server)
        say(server, {**request("r", "roots/list"), "params": 5})
        say(server, result(ping["id"], {}))
        assert an_error(1, -32603, "cannot be asked")(await hear(guest))
        guest.say(asks(2, "tools/call", name="second", has=ROOTS))
        assert an_error("r", -32602, "params")(await hear(server))
        assert (await hear(server))["params"]["name"] == "second"
        await house.close()

    run(main())


@pytest.mark.parametrize("answers_ping", [True, False])
def test_roots_that_are_asked_for_first_are_put_with_the_first_call_which_waits_for_them(answers_ping: bool) -> None:
    async def main() -> None:
        house, guest = await enter()
        guest.say(asks(1, "tools/list", has=ROOTS))
        guest.say(asks(2, "tools/call", name="t", has=ROOTS))
        await until(lambda: house.servers)
        server = house.servers[0]
        offer = await hear(server)
        say(server, error(offer["id"], -32601))
        say(server, initialized(OLD, (await hear(server))["id"], tools={}))
        assert (await hear(server))["method"] == "notifications/initialized"
        ping = await hear(server)
        assert ping["method"] == "ping"
        say(server, request("r", "roots/list"))
        if answers_ping:
            say(server, result(ping["id"], {}))
        assert (await hear(server))["method"] == "tools/list"
        asked = await hear(guest)
        assert (asked["id"], asked["result"]["inputRequests"]) == (2, {"question-1": {"method": "roots/list"}})
        home = {"roots": [{"uri": "file:///home"}]}
        again = {"inputResponses": {"question-1": home}, "requestState": asked["result"]["requestState"]}
        guest.say(asks(3, "tools/call", name="t", has=ROOTS, **again))
        assert (await hear(server)) == result("r", home)
        called = await hear(server)
        assert called["method"] == "tools/call"
        say(server, result(called["id"], DONE))
        assert (await hear(guest))["id"] == 3
        await house.close()

    run(main())
