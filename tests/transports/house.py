"""A house with one pool of servers: clients come, each with a proxy of its own, and servers are scripted or by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from dragoman.core.commands import Finish
from dragoman.core.exact_json import encode_line
from dragoman.errors import TransportClosed
from dragoman.host.shared import PoolConfig
from dragoman.pool import Scope, SharedProxy, UpstreamPool
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.base import Transport
from dragoman.transports.memory import MemoryTransport, connect_pair
from tests.proxy.conversation import READY, Peer, initialize, initialized
from tests.support.waiting import until

__all__ = ["Guest", "House", "hear", "say", "settle", "until"]


class House:
    """Servers are in the order in which they were opened; `reachable` False opens none."""

    def __init__(self, scope: Scope, open_upstream: Callable[[], Transport] | None = None, **config: Any) -> None:
        self.servers: list[Peer] = []
        self.reachable = True
        self.pool = UpstreamPool(scope, open_upstream or self._open, PoolConfig(**config))
        self.runs: list[asyncio.Task[Finish]] = []
        self.proxies: dict[str, Any] = {}  # what is decided about them

    def _open(self) -> MemoryTransport:
        if not self.reachable:
            raise TransportClosed("the server", "nobody is there")
        upstream, server_end = connect_pair("proxy", "server")
        self.servers.append(Peer("server", server_end))
        return upstream

    async def enter(self, principal: str | None = None, *, is_per_request: bool = False, **config: Any) -> Guest:
        """Let a client in, or all that open no session."""
        front, client_end = connect_pair("proxy", "client")
        decided = ProxyConfig(**self.proxies | config)
        proxy = self.pool.proxy(decided, front, principal, is_per_request=is_per_request)
        guest = Guest(client_end, proxy)
        self.runs.append(asyncio.create_task(proxy.run()))
        await asyncio.sleep(0)
        return guest

    async def open(self, revision: str = "2025-11-25", principal: str | None = None, **capabilities: Any) -> Guest:
        """Let a client in and open its session; by hand, if its server has not been opened."""
        before = len(self.servers)
        guest = await self.enter(principal)
        guest.say(initialize(revision, **capabilities))
        await settle()
        if len(self.servers) > before:
            offer = await hear(self.servers[-1])
            say(self.servers[-1], initialized(revision, offer["id"]))
        answer = await hear(guest)
        assert answer["result"]["protocolVersion"] == revision
        guest.say(READY)
        await settle()
        return guest

    async def close(self) -> None:
        for run in self.runs:
            if not run.done():
                run.cancel()
        await asyncio.gather(*self.runs, return_exceptions=True)
        await self.pool.close()


class Guest(Peer):
    """A client."""

    def __init__(self, transport: MemoryTransport, proxy: Proxy | SharedProxy) -> None:
        super().__init__("client", transport)
        self.proxy = proxy

    def say(self, frame: Any) -> None:
        say(self, frame)


def say(peer: Peer, frame: Any) -> None:
    peer.transport.write(frame if isinstance(frame, bytes) else encode_line(frame))


async def hear(peer: Peer) -> Any:
    from dragoman.core.exact_json import decode

    return decode(await asyncio.wait_for(peer.lines.get(), 30.0))


async def settle(rounds: int = 12) -> None:
    for _ in range(rounds):
        await asyncio.sleep(0)
