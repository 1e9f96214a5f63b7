"""Two proxies of ours in a row: the one behind opens its server with what the client of the one in front declares."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.commands import Finish
from dragoman.host.known import KnownServer
from dragoman.pool import Scope
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.memory import MemoryTransport, connect_pair
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import READY, client, error, expect_to_server, hold, initialize, initialized, result
from tests.proxy.test_per_request import asks
from tests.support.waiting import run
from tests.transports.house import House, hear, say, until

D = HANDSHAKE_REVISIONS[-1]
META = "io.modelcontextprotocol/"
HAS: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}, "sampling": {}}


def is_question(declared: Any, name: str) -> Any:
    def matches(frame: Any) -> bool:
        meta = frame["params"]["_meta"]
        about = meta[META + "clientCapabilities"], meta[META + "clientInfo"]["name"]
        return frame["method"] == "server/discover" and about == (declared, name)

    return matches


def test_the_server_is_asked_in_the_name_of_the_request() -> None:
    hold([client(asks(1, "tools/list", has=HAS)), expect_to_server(is_question(HAS, "dragoman"))])
    named = {META + "clientInfo": {"name": "ann", "version": "3"}}
    hold([client(asks(1, "tools/list", has=HAS, meta=named)), expect_to_server(is_question(HAS, "ann"))])


@pytest.mark.parametrize("how", ["known", "said"])
def test_the_server_is_asked_in_the_name_of_a_client_with_a_handshake(how: str, tmp_path: Path) -> None:
    known = KnownServer(str(tmp_path / "one"))
    known.note(has_handshake=False)
    told = {**HAS, "roots": {}}
    config: dict[str, Any] = {"known": known} if how == "known" else {"server_revision": "2026-07-28"}
    hold([client(initialize(D, **HAS)), expect_to_server(is_question(told, "test"))], **config)


@pytest.mark.parametrize("first", [asks(1, "tools/list", has=HAS), asks(1, "server/discover", has=HAS)])
@pytest.mark.parametrize("then", [asks(2, "tools/list", has=HAS), asks(2, "resources/list", has=HAS)])
def test_the_last_server_is_started_once(first: Any, then: Any) -> None:
    inner = House(Scope.CLIENT)
    runs: list[asyncio.Task[Finish]] = []

    def open_inner() -> MemoryTransport:
        here, there = connect_pair("outer", "inner")
        runs.append(asyncio.create_task(Proxy(ProxyConfig(), there, inner._open).run()))
        return here

    async def main() -> None:
        outer = House(Scope.CLIENT, open_inner)
        guest = await outer.enter()
        guest.say(first)
        await until(lambda: len(inner.servers) == 1)
        (server,) = inner.servers
        say(server, error((await hear(server))["id"], -32601))
        offer = await hear(server)
        assert offer["params"]["capabilities"] == {**HAS, "roots": {}}
        say(server, initialized(D, offer["id"], tools={}, resources={}))
        assert await hear(server) == READY
        say(server, result((await hear(server))["id"], {}))  # a ping: it may want to know the roots
        if first["method"] == "tools/list":
            say(server, result((await hear(server))["id"], {"tools": []}))
        assert "result" in await hear(guest)
        guest.say(then)
        frame = await hear(server)
        assert frame["method"] == then["method"]
        say(server, result(frame["id"], {then["method"].split("/")[0]: []}))
        assert "result" in await hear(guest)
        assert len(inner.servers) == 1
        await outer.close()
        await asyncio.wait(runs)

    run(main())
