"""Which server a client session gets: its own, a shared one, or a fresh one for each request.

Lives here: the scopes, and the servers that are there. Must not: look into frames. An HTTP front asks for one transport
per client session; `dragoman.proxy` cannot tell it from a server's own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Final

from dragoman.errors import TransportClosed
from dragoman.transports.base import Transport
from dragoman.transports.label import LABEL, SHARED
from dragoman.transports.shared import PoolConfig, SharedUpstream
from dragoman.transports.throwaway import ThrowawayServers

logger = logging.getLogger("dragoman.shared")


class Scope(Enum):
    """Who shares a server.

    `client`: nobody. `shared`: all client sessions. `principal`: those with the same authorization. `request`: not even
    two requests of one session.
    """

    CLIENT = "client"
    SHARED = "shared"
    PRINCIPAL = "principal"
    REQUEST = "request"


_EVERYBODY: Final = object()

CAUTIONS: Final = {
    Scope.SHARED: "one server for all client sessions: what a server keeps per session, every client sees and changes",
    Scope.REQUEST: "a fresh server for every request: nothing that a server keeps per session lasts",
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
        self._config = config or PoolConfig()
        self._settings = self._config.sharing
        self._upstreams: dict[Hashable, SharedUpstream] = {}
        self._closing: dict[asyncio.Task[None], SharedUpstream] = {}
        self._cautioned = False

    def caution(self) -> None:
        """Log, once, what to mind about the scope: when serving begins, else when the first session comes."""
        if self.scope in CAUTIONS and not self._cautioned:
            logger.warning("%s", CAUTIONS[self.scope])
        self._cautioned = True

    @property
    def upstreams(self) -> list[SharedUpstream]:
        """The shared servers that are there."""
        return list(self._upstreams.values())

    def connect(self, principal: Hashable | None = None) -> Transport:
        """Give one client session its transport.

        Args:
            principal: Who the client is, for scope `principal`; None is nobody in particular, and shares with nobody.

        Raises:
            TransportClosed: The server cannot be reached, or there are too many.
        """
        self.caution()
        if self.scope is Scope.REQUEST:
            return ThrowawayServers(self._open, self._config.runs, self._config.sharing.limit_bytes).virtual
        if self.scope is Scope.CLIENT or (self.scope is Scope.PRINCIPAL and principal is None):
            return self._open()
        key = _EVERYBODY if self.scope is Scope.SHARED else principal
        upstream = self._upstreams.get(key)
        if upstream is None:
            upstream = self._upstreams[key] = self._start(key)
        return upstream.join()

    async def close(self) -> None:
        """Close every shared server, and wait until they are gone: all at once, and in a hurry.

        For when the sessions are over, or as good as that.
        """
        for upstream in self.upstreams:
            upstream.close()
        for upstream in self._closing.values():
            upstream.hurry()
        await asyncio.gather(*self._closing)

    def _start(self, key: Hashable) -> SharedUpstream:
        if len(self._upstreams) >= self._config.upstreams:
            raise TransportClosed("the proxy", f"{self._config.upstreams} servers are open, which is the limit")
        token = LABEL.set(SHARED)  # what it says is not about the session that happens to come first
        try:
            transport = self._open()
            upstream = SharedUpstream(
                transport, self._config, self._settings, lambda gone: self._forget(key, gone), self._closing
            )
            transport.start(upstream)
        finally:
            LABEL.reset(token)
        return upstream

    def _forget(self, key: Hashable, upstream: SharedUpstream) -> None:
        if self._upstreams.get(key) is upstream:
            del self._upstreams[key]
        if upstream.hub.asks:
            self._settings = dataclasses.replace(self._settings, asks=True)
