"""What the log says of servers that cannot be used: one line when one goes, one when it is back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dragoman.errors import TransportClosed
from dragoman.proxy import ProxyConfig
from dragoman.router import Router
from dragoman.transports.memory import MemoryTransport
from tests.router.made import HANDSHAKE, PER_REQUEST, MadeServer, configured, routing, session
from tests.support.waiting import run, until


class AwayServer(MadeServer):
    """A server that cannot be reached, until it can."""

    def __init__(self, tool: str) -> None:
        super().__init__(tools=[tool])
        self.refusal: str | None = "connection refused"
        self.refused = 0

    def connect(self) -> MemoryTransport:
        if self.refusal is not None:
            self.refused += 1
            raise TransportClosed("b", self.refusal)
        return super().connect()


@pytest.fixture
def servers() -> dict[str, MadeServer]:
    return {"a": MadeServer(tools=["one"]), "b": AwayServer("two")}


@pytest.fixture
def away(servers: dict[str, MadeServer]) -> AwayServer:
    server = servers["b"]
    assert isinstance(server, AwayServer)
    return server


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [line for record in caplog.records if (line := record.getMessage()).startswith("b ")]


Said = Callable[[], list[str]]


def test_attempts_that_fail_alike_are_said_once_and_counted(
    servers: dict[str, MadeServer], away: AwayServer, said: Said
) -> None:
    async def main() -> None:
        async with session(routing(servers, None, ProxyConfig(restarts=5))) as client:
            await until(lambda: away.refused == 3)
            (line,) = said()
            assert line.startswith("b cannot be used: it could not be opened: ")
            assert line.endswith("; the other servers go on")
            assert client.of("notifications/tools/list_changed") == [], "no list has changed"
            away.refusal = None
            await until(lambda: client.of("notifications/tools/list_changed"))
            assert said()[1:] == ["b can be used again, after it failed 3 times"]
            assert await client.call("two") == "two"

    run(main())


def test_a_server_out_of_reach_is_named_once_for_all_sessions(
    servers: dict[str, MadeServer], away: AwayServer, said: Said
) -> None:
    async def main() -> None:
        router = routing(servers)
        for _ in range(4):
            async with session(router) as client:
                assert await client.list() == ["one"]
        assert len(said()) == 1
        away.refusal = None
        async with session(router) as client:
            assert await client.list() == ["one", "two"]
        assert said()[1:] == ["b can be used again, after it failed 4 times"]

    run(main())


def test_another_reason_is_news_a_few_times(servers: dict[str, MadeServer], away: AwayServer, said: Said) -> None:
    async def main() -> None:
        router = routing(servers)
        for number in range(20):
            away.refusal = f"refused for the reason {number}"
            async with session(router):
                pass
        assert len(said()) == 5
        assert "b still cannot be used" in said()[1]

    run(main())


def test_a_session_that_loses_its_server_says_nothing_of_those_of_others(
    servers: dict[str, MadeServer], away: AwayServer, said: Said
) -> None:
    async def main() -> None:
        away.refusal = None
        router = routing(servers)
        async with session(router):
            away.die()
            await until(said)
            async with session(router) as other:
                assert await other.list() == ["one", "two"]
        assert ["cannot" in line for line in said()] == [True], said()

    run(main())


def test_a_server_that_a_session_loses_and_has_again_is_said_to_be_back(
    servers: dict[str, MadeServer], away: AwayServer, said: Said
) -> None:
    async def main() -> None:
        away.refusal = None
        async with session(routing(servers, None, ProxyConfig(restarts=1))) as client:
            away.refusal = "connection refused"
            away.die()
            await until(lambda: any("cannot be used" in line for line in said()))
            away.refusal = None
            await until(lambda: "b can be used again" in said())
            assert await client.list() == ["one", "two"]

    run(main())


def test_a_server_whose_entry_changes_begins_anew(servers: dict[str, MadeServer], away: AwayServer, said: Said) -> None:
    async def main() -> None:
        router: Router = routing(servers)
        async with session(router):
            await until(said)
            router.apply(configured(servers, None, b={"command": "other"}))
            await until(lambda: len(said()) == 2)
            assert "still" not in said()[1]

    run(main())


def test_a_router_is_ready_if_the_next_client_would_be_served() -> None:
    """What an old session has says nothing of a server that has died since."""

    def refuse() -> MemoryTransport:
        raise TransportClosed("b", "connection refused")

    async def main() -> None:
        servers = {"b": MadeServer(tools=["two"])}
        router, connect = routing(servers), servers["b"].connect
        async with session(router) as first:
            assert await first.call("two") == "two"
            servers["b"].connect = refuse  # type: ignore[method-assign]
            async with session(router):
                assert not router.status().ready
                assert router.status().problems == {"b": "it could not be opened: the server: connection refused"}
            assert await first.call("two") == "two"
            assert not router.status().ready
            servers["b"].connect = connect  # type: ignore[method-assign]
            async with session(router):
                assert router.status().ready
                assert router.status().problems == {}

    run(main())


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_a_server_that_is_opening_when_its_session_ends_has_not_failed(
    servers: dict[str, MadeServer], away: AwayServer, said: Said, revision: str
) -> None:
    """`dragoman list` over a file: the others have answered, and nobody waits for this one any more."""

    async def main() -> None:
        away.refusal = None
        away.silent |= {"server/discover", "initialize"}
        async with session(routing(servers, {"listTimeout": 0.05}), revision) as client:
            assert await client.list() == ["one"]
        assert [line for line in said() if "cannot be used" in line] == []

    run(main())
