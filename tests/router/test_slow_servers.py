"""Servers of a router that are slow to start: each is answered for from what it said the last time."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.host import greeting
from dragoman.host.known import KnownAnswers, KnownServer
from dragoman.proxy import ProxyConfig
from dragoman.router import Router
from tests.router.made import HANDSHAKE, PER_REQUEST, MadeServer, configured, session
from tests.router.test_outages import AwayServer
from tests.support.waiting import pass_time, run, until

CHANGED = "notifications/tools/list_changed"


@pytest.fixture(autouse=True)
def all_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(greeting, "SLOW_S", -1.0)


def remembering(servers: dict[str, MadeServer], folder: Path, restarts: int = 0) -> Router:
    known = {
        name: KnownServer(str(folder / name), answers=KnownAnswers(str(folder / "said"), name)) for name in servers
    }
    return Router(
        configured(servers),
        ProxyConfig(greets=True, restarts=restarts),
        lambda server: servers[server.name].connect,
        lambda server: known[server.name],
    )


def two(revision: str) -> dict[str, MadeServer]:
    return {"a": MadeServer(revision, tools=["one"]), "b": MadeServer(revision, tools=["two"])}


@pytest.mark.parametrize("of_client", [HANDSHAKE, PER_REQUEST])
@pytest.mark.parametrize("of_servers", [HANDSHAKE, PER_REQUEST])
def test_all_tools_are_listed_at_once_and_nothing_has_changed(tmp_path: Path, of_client: str, of_servers: str) -> None:
    async def main() -> None:
        router = remembering(servers := two(of_servers), tmp_path)
        async with session(router, of_client) as client:
            assert await client.list() == ["one", "two"]
        question = "initialize" if of_servers == HANDSHAKE else "server/discover"
        for server in servers.values():
            server.heard.clear()
        servers["b"].silent.add(question)
        async with session(router, of_client) as client:
            assert await client.list() == ["one", "two"]
            assert await client.call("one") == "one"
            call = client.begin("tools/call", {"name": "two", "arguments": {}})
            assert not client.has_answer_to(call)
            servers["b"].silent.clear()
            (opening,) = servers["b"].of(question)
            servers["b"].take(opening)
            assert (await client.answer_to(call))["result"]["content"][0]["text"] == "two"
            assert len(servers["b"].of("tools/list")) == 1, "it was asked whether that is still so"
            assert client.of(CHANGED) == []

    run(main())


def test_what_a_server_has_more_of_than_the_last_time_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        router = remembering(servers := two(HANDSHAKE), tmp_path)
        async with session(router) as client:
            assert await client.list() == ["one", "two"]
        servers["b"].tools.append("three")
        servers["b"].silent.add("initialize")
        async with session(router) as client:
            assert await client.list() == ["one", "two"]
            servers["b"].silent.clear()
            servers["b"].take(servers["b"].of("initialize")[-1])
            await until(lambda: client.of(CHANGED))
            assert await client.list() == ["one", "two", "three"]

    run(main())


def test_a_server_that_does_not_come_is_left_out(tmp_path: Path) -> None:
    async def main() -> None:
        router = remembering(servers := two(HANDSHAKE), tmp_path)
        async with session(router) as client:
            assert await client.list() == ["one", "two"]
        servers["b"].silent.add("initialize")
        async with session(router) as client:
            assert await client.list() == ["one", "two"]
            call = client.begin("tools/call", {"name": "two", "arguments": {}})
            await until(lambda: len(servers["b"].of("initialize")) == 2)
            servers["b"].die()
            answer = await client.answer_to(call)
            assert answer["error"]["code"] == -32000
            await until(lambda: client.of(CHANGED))
            assert await client.list() == ["one"]

    run(main())


def test_a_server_that_is_tried_again_is_waited_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with session(remembering(servers := two(HANDSHAKE), tmp_path)) as client:
            assert await client.list() == ["one", "two"]
        async with session(remembering(servers, tmp_path, restarts=3)) as client:
            assert await client.list() == ["one", "two"]
            await until(lambda: len(servers["b"].of("tools/list")) == 2)
            servers["b"].silent.add("initialize")
            opened = servers["b"].opened
            servers["b"].die()
            await until(lambda: servers["b"].opened > opened and len(servers["b"].of("initialize")) == 3)
            call = client.begin("tools/call", {"name": "two", "arguments": {}})
            await pass_time(0.1)
            assert not client.has_answer_to(call)
            servers["b"].silent.clear()
            servers["b"].take(servers["b"].of("initialize")[-1])
            assert "result" in await client.answer_to(call)

    run(main())


def test_a_server_that_could_not_be_started_is_waited_for_when_it_is_tried_again(tmp_path: Path) -> None:
    async def main() -> None:
        away = AwayServer("two")
        away.refusal = None
        servers = {"a": MadeServer(tools=["one"]), "b": away}
        async with session(remembering(servers, tmp_path)) as client:
            assert await client.list() == ["one", "two"]
        away.refusal = "no such command"
        away.silent.add("initialize")
        opened = away.opened
        async with session(remembering(servers, tmp_path, restarts=9)) as client:
            assert await client.list() == ["one"]
            away.refusal = None
            await until(lambda: away.opened > opened and len(away.of("initialize")) == 2)
            await pass_time(0.1)
            assert client.of(CHANGED) == []
            away.silent.clear()
            away.take(away.of("initialize")[-1])
            await until(lambda: client.of(CHANGED))
            assert await client.list() == ["one", "two"]

    run(main())


def test_what_is_kept_from_clients_is_kept_from_them_from_memory(tmp_path: Path) -> None:
    async def main() -> None:
        servers = {"a": MadeServer(tools=["one", "hidden"])}
        known = KnownServer(str(tmp_path / "era"), answers=KnownAnswers(str(tmp_path / "said"), "a"))

        def make(**entry: list[str]) -> Router:
            return Router(
                configured(servers, None, a=entry),
                ProxyConfig(greets=True),
                lambda server: servers[server.name].connect,
                lambda _: known,
            )

        async with session(make()) as client:
            assert await client.list() == ["one", "hidden"]
        servers["a"].silent.add("initialize")
        async with session(make(excludeTools=["hidden"])) as client:
            assert await client.list() == ["one"]
        servers["a"].silent.clear()
        async with session(make(excludeTools=["hidden"])) as client:
            assert await client.list() == ["one"]
            await until(lambda: len(servers["a"].of("tools/list")) == 2)
            await pass_time(0.05)
            assert client.of(CHANGED) == []
        servers["a"].silent.add("initialize")
        async with session(make()) as client:
            assert await client.list() == ["one", "hidden"], "what was remembered is what the server said"

    run(main())
