"""Which server a client gets: its own, or a shared one.

Lives here: the scopes, and the shared servers that are there. Must not: look into frames. For each of its sessions,
an HTTP front gets a `Proxy` or a `SharedProxy` from here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Hashable
from enum import Enum
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from dragoman.core.commands import Finish, Side
from dragoman.core.label import SHARED, log_as
from dragoman.errors import TransportClosed
from dragoman.proxy import Proxy, ProxyConfig, host_settings_of, watched, watched_connect, wiring_of
from dragoman.transports.base import Transport

if TYPE_CHECKING:  # loaded with the first client that shares a server: most proxies have none
    from dragoman.host.host import Opening
    from dragoman.host.shared import Guest, PoolConfig, SharedHost

logger = logging.getLogger("dragoman.shared")


class Scope(Enum):
    """Who shares a server.

    `client`: nobody. `shared`: all clients. `principal`: those with the same authorization.
    """

    CLIENT = "client"
    SHARED = "shared"
    PRINCIPAL = "principal"


_EVERYBODY: Final = object()

CAUTIONS: Final = {
    Scope.SHARED: "one server for all client sessions: what a server keeps per session, every client sees and changes",
}
"""What to mind, by scope."""


class UpstreamPool:
    """The servers behind a front.

    Args:
        scope: Who shares one.
        open_upstream: Opens a transport to the server; called once for each server that is needed.
        config: Limits and patience.
    """

    def __init__(self, scope: Scope, open_upstream: Callable[[], Transport], config: PoolConfig | None = None) -> None:
        self.scope = scope
        self._open = open_upstream
        self._config = config
        self._asks = False
        self._upstreams: dict[Hashable, SharedHost] = {}
        self._left: set[SharedHost] = set()  # those that no client joins any more, and that are not closed
        self._closing: dict[asyncio.Task[None], SharedHost] = {}
        self._cautioned = False
        self._stateless: WeakValueDictionary[str, Proxy] = WeakValueDictionary()  # by principal

    def caution(self) -> None:
        """Log, once, what to mind about the scope: when serving begins, else when the first session comes."""
        if self.scope in CAUTIONS and not self._cautioned:
            logger.warning("%s", CAUTIONS[self.scope])
        self._cautioned = True

    @property
    def upstreams(self) -> list[SharedHost]:
        """The shared servers that are there."""
        return list(self._upstreams.values())

    def proxy(
        self,
        config: ProxyConfig,
        front: Transport,
        principal: Hashable | None = None,
        *,
        is_per_request: bool = False,
    ) -> Proxy | SharedProxy:
        """Make what runs one client's session.

        Args:
            config: For this session; a shared server is opened with that of its first one.
            front: The transport to the client.
            principal: Who the client is, for scope `principal`; None is an unknown client, which never shares a server.
            is_per_request: Whether these are the requests of a principal that opens no session. They have a server of
                their own, for as long as there are any: it keeps what lasts for all of them.
        """
        self.caution()
        shares = self.scope is Scope.SHARED
        who = "" if shares else str(principal or "")
        if is_per_request:
            proxy = self._stateless[who] = Proxy(config, front, self._open, principal=who, shares_server=shares)
            return proxy
        stateless = self._stateless.get(who)
        opening = None if stateless is None else stateless.opening
        if self.scope is Scope.CLIENT or (self.scope is Scope.PRINCIPAL and principal is None):
            return Proxy(config, front, self._open, opening=opening)
        return SharedProxy(self, config, front, _EVERYBODY if self.scope is Scope.SHARED else principal, opening)

    def find(self, key: Hashable, config: ProxyConfig, opening: Opening | None = None) -> SharedHost:
        """Return the shared server for these clients; open it if it is not there, or have it taken over.

        Raises:
            TransportClosed: The server cannot be reached, or there are too many.
        """
        host = self._upstreams.get(key)
        if host is None:
            host = self._upstreams[key] = self._start(key, config, opening)
        return host

    async def close(self) -> None:
        """Close every shared server, and wait until they are gone: all at once, and in a hurry.

        Call it when the sessions are over or about to end.
        """
        for host in [*self.upstreams, *self._left]:
            host.close()
        for host in self._closing.values():
            host.hurry_server()
        await asyncio.gather(*self._closing)

    def _start(self, key: Hashable, config: ProxyConfig, opening: Opening | None) -> SharedHost:
        from dragoman.core.switch.shared.switch import Shared
        from dragoman.host.shared import PoolConfig, SharedHost

        decided = self._config = self._config or PoolConfig()
        if len(self._upstreams) >= decided.upstreams:
            raise TransportClosed("the proxy", f"{decided.upstreams} servers are open, which is the limit")
        asks, is_for_all = self._asks or decided.sharing.asks, self.scope is Scope.SHARED
        sharing = dataclasses.replace(decided.sharing, asks=asks, is_for_all=is_for_all)
        host = SharedHost(
            Shared(wiring_of(config), sharing),
            watched_connect(config, self._open),
            host_settings_of(config),
            decided,
            lambda gone: self._forget(key, gone),
            self._closing,
        )
        host.whose = "" if is_for_all else str(key)
        label = SHARED if is_for_all or not key else f"{SHARED} of {key}"
        log_as(label, host.start, opening)  # what it says is not about the session that happens to come first
        return host

    def _forget(self, key: Hashable, host: SharedHost) -> None:
        if self._upstreams.get(key) is host:
            del self._upstreams[key]
        (self._left.add if host.closing is None else self._left.discard)(host)
        if host.switch.asks:
            self._asks = True


class SharedProxy:
    """What runs the session of a client that shares its server.

    Args:
        pool: Where the server is found.
        config: For this session.
        front: The transport to the client.
        key: Who shares it.
        opening: As for `Proxy`.
    """

    def __init__(
        self, pool: UpstreamPool, config: ProxyConfig, front: Transport, key: Hashable, opening: Opening | None
    ) -> None:
        self._pool = pool
        self._config = config
        self._transport = front
        self._key = key
        self._opening = opening
        self._runner: Guest | Proxy | None = None
        self._stopped: str | None = None

    async def run(self) -> Finish:
        """Serve the client until its session ends."""
        from dragoman.host.shared import Guest

        try:
            host = self._pool.find(self._key, self._config, self._opening)
        except TransportClosed as error:
            self._runner = Proxy(self._config, self._transport, _raise(error))
        else:
            self._runner = Guest(host, watched(self._config, self._transport, Side.CLIENT))
        if self._stopped is not None:
            self._runner.stop(self._stopped)
        return await self._runner.run()

    def drain(self, reason: str) -> None:
        """End the session once what is under way is answered."""
        if self._runner is None:
            self._stopped = reason
        else:
            self._runner.drain(reason)

    def stop(self, reason: str) -> None:
        """End the session now; requests that wait are answered with this reason."""
        if self._runner is None:
            self._stopped = reason
        else:
            self._runner.stop(reason)


def _raise(error: TransportClosed) -> Callable[[], Transport]:
    def connect() -> Transport:
        raise error

    return connect
