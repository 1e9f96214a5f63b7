"""A client that gives up `server/discover` and opens a session elsewhere, as over HTTP: its server is started once."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from dragoman.core.label import LABEL
from dragoman.core.switch.to_session import switch
from dragoman.pool import Scope
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import READY, an_error, error, initialize, initialized, request, result
from tests.proxy.per_request import be_impatient, complete, discovered
from tests.proxy.test_per_request import asks
from tests.support.waiting import run
from tests.transports.house import Guest, House, hear, say, settle, until

D = HANDSHAKE_REVISIONS[-1]
PROBE = "dragoman-discover-1"
GAVE_UP = an_error("d", -32000, "initialize")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "GIVEN_UP_S", 0.0)


def question(key: str = "d", name: str = "test") -> dict[str, Any]:
    """What clients of both eras begin with."""
    frame = asks(key, "server/discover")
    frame["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": name, "version": "1"}
    return frame


async def asked(house: House, principal: str | None = None) -> Guest:
    """Let a client ask, which has its server started."""
    stateless = await house.enter(principal, is_per_request=True)
    stateless.say(question())
    await until(lambda: len(house.servers) == 1)
    assert (await hear(house.servers[0]))["method"] == "server/discover"
    return stateless


async def begins(house: House, principal: str | None = None, **capabilities: Any) -> Guest:
    """Let a client open a session."""
    guest = await house.enter(principal)
    guest.say(initialize(D, **capabilities))
    await settle()
    return guest


@pytest.mark.parametrize(
    ("scope", "principal"),
    [
        (Scope.CLIENT, None),
        (Scope.CLIENT, "ann"),
        (Scope.PRINCIPAL, "ann"),
        (Scope.SHARED, None),
        (Scope.SHARED, "ann"),
    ],
)
def test_the_server_that_is_being_started_gets_the_session(scope: Scope, principal: str | None) -> None:
    async def main() -> None:
        house = House(scope)
        stateless = await asked(house, principal)
        guest = await begins(house, principal)
        assert GAVE_UP(await hear(stateless))
        (server,) = house.servers
        say(server, error(PROBE, -32601))
        offer = await hear(server)
        assert offer["method"] == "initialize"
        assert offer["params"]["clientInfo"]["name"] == ("test" if scope is Scope.CLIENT else "dragoman")
        say(server, initialized(D, offer["id"]))
        assert (await hear(guest))["result"]["protocolVersion"] == D
        guest.say(READY)
        assert await hear(server) == READY
        guest.say(request(1, "tools/list"))
        say(server, result((await hear(server))["id"], {"tools": []}))
        assert (await hear(guest))["id"] == 1
        stateless.say(asks(2, "tools/list"))
        await until(lambda: len(house.servers) == 2)
        await house.close()

    run(main())


def test_one_that_turns_out_to_have_no_handshake_serves_it_too() -> None:
    async def main() -> None:
        house = House(Scope.CLIENT)
        await asked(house)
        guest = await begins(house)
        (server,) = house.servers
        say(server, discovered(PROBE, tools={}))
        assert (await hear(guest))["result"]["protocolVersion"] == D
        guest.say(READY)
        guest.say(request(1, "tools/list"))
        frame = await hear(server)
        assert frame["method"] == "tools/list"
        say(server, complete(frame["id"], tools=[], ttlMs=0, cacheScope="private"))
        assert await hear(guest) == result(1, {"tools": []})
        await house.close()

    run(main())


def test_one_that_stays_silent_is_offered_the_session_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    be_impatient(monkeypatch, 0.3)

    async def main() -> None:
        house = House(Scope.CLIENT)
        await asked(house)
        guest = await begins(house, roots={"listChanged": True})
        (server,) = house.servers
        offer = await hear(server)
        assert offer["method"] == "initialize"
        assert offer["params"]["capabilities"] == {"roots": {"listChanged": True}}
        say(server, initialized(D, offer["id"]))
        assert (await hear(guest))["id"] == 0
        await house.close()

    run(main())


def test_one_that_ends_meanwhile_is_started_once_more() -> None:
    async def main() -> None:
        house = House(Scope.CLIENT)
        await asked(house)
        guest = await begins(house)
        house.servers[0].transport.end()
        await until(lambda: len(house.servers) == 2)
        offer = await hear(house.servers[1])
        assert offer["method"] == "initialize"
        say(house.servers[1], initialized(D, offer["id"]))
        assert (await hear(guest))["id"] == 0
        await house.close()

    run(main())


def test_it_ends_with_the_session_and_not_with_the_requests() -> None:
    async def main() -> None:
        house = House(Scope.CLIENT)
        stateless = await asked(house)
        guest = await begins(house)
        stateless.transport.end()
        await asyncio.wait_for(house.runs[0], 30.0)
        (server,) = house.servers
        assert not server.closed.is_set()
        guest.proxy.stop("enough")
        await asyncio.wait_for(server.closed.wait(), 30.0)
        await house.close()

    run(main())


def test_nobody_has_to_wait_for_what_was_cancelled() -> None:
    async def main() -> None:
        house = House(Scope.CLIENT)
        stateless = await asked(house)
        stateless.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "d"}})
        await settle()
        await begins(house)
        assert len(house.servers) == 1
        await house.close()

    run(main())


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([question("e", "somebody else"), question()], id="somebody else asked first"),
        pytest.param([question(), asks(7, "tools/list")], id="a request waits for it"),
        pytest.param([asks(7, "tools/list")], id="a request alone waits for it"),
    ],
)
def test_one_that_others_wait_for_is_left_to_them(others: list[dict[str, Any]]) -> None:
    async def main() -> None:
        house = House(Scope.CLIENT)
        stateless = await house.enter(is_per_request=True)
        for frame in others:
            stateless.say(frame)
        await until(lambda: len(house.servers) == 1)
        await begins(house)
        await until(lambda: len(house.servers) == 2)
        await house.close()

    run(main())


def test_of_two_clients_that_give_up_the_second_goes_on_with_the_server() -> None:
    async def main() -> None:
        house = House(Scope.CLIENT)
        stateless = await asked(house)
        stateless.say(question("e"))
        await settle()
        await begins(house)
        assert GAVE_UP(await hear(stateless))
        await until(lambda: len(house.servers) == 2)
        second = await begins(house)
        assert an_error("e", -32000, "initialize")(await hear(stateless))
        say(house.servers[0], discovered(PROBE, tools={}))
        assert (await hear(second))["id"] == 0
        assert len(house.servers) == 2
        await house.close()

    run(main())


def test_a_question_of_just_now_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "GIVEN_UP_S", 30.0)

    async def main() -> None:
        house = House(Scope.CLIENT)
        stateless = await asked(house)
        await begins(house)
        await until(lambda: len(house.servers) == 2)
        say(house.servers[0], discovered(PROBE, tools={}))
        frame = await hear(house.servers[0])
        say(house.servers[0], discovered(frame["id"], tools={}))
        assert (await hear(stateless))["id"] == "d"
        await house.close()

    run(main())


def test_a_client_of_another_principal_gets_a_server_of_its_own() -> None:
    async def main() -> None:
        house = House(Scope.CLIENT)
        await asked(house, "ann")
        await begins(house, "ben")
        await until(lambda: len(house.servers) == 2)
        await house.close()

    run(main())


def test_a_session_that_begins_with_a_request_of_its_own_opens_its_own_server() -> None:
    async def main() -> None:
        house = House(Scope.CLIENT)
        await asked(house)
        other = await house.enter()
        await settle()
        assert len(house.servers) == 1, "it may begin with initialize"
        other.say(asks(1, "tools/list"))
        await until(lambda: len(house.servers) == 2)
        await house.close()

    run(main())


def test_what_becomes_of_the_server_is_said_of_the_session_that_has_it() -> None:
    """Its transport was opened for another, whose label its tasks and callbacks have."""
    lines: list[tuple[str, str]] = []

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append((LABEL.get(), record.getMessage()))

    async def main() -> None:
        house = House(Scope.CLIENT)
        LABEL.set("session 1")
        await asked(house)
        LABEL.set("session 2")
        await begins(house)
        LABEL.set("session 1")
        house.servers[0].transport.end()
        await until(lambda: any(message.startswith("server: ") for _, message in lines))
        await house.close()

    logger, notes = logging.getLogger("dragoman.proxy"), Notes()
    logger.addHandler(notes)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        run(main())
    finally:
        logger.removeHandler(notes)
        logger.setLevel(level)
    assert [label for label, message in lines if message.startswith("server: ")] == ["session 2"]
