"""`--paths`: each server of a file at a path of its own, beside all of them as one.

Lives here: a router of one server for each path, made when its first client comes. Must not: know HTTP
(`transports.http.app`), or route (`dragoman.router`). Called by `cli.proxy` and `cli.listen`.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.cli.routing import guard_servers, make_router
from dragoman.router.router import before_router

if TYPE_CHECKING:
    from dragoman.config import Configuration
    from dragoman.middlewares.access import Rules
    from dragoman.pool import UpstreamPool
    from dragoman.proxy import ProxyConfig
    from dragoman.router import Router
    from dragoman.transports.base import Transport
    from dragoman.transports.http.app import HttpFront
    from dragoman.transports.http.sessions import Caller, Runner
    from dragoman.transports.warden import Warden


@dataclasses.dataclass(frozen=True, slots=True)
class _ServedPath:
    router: Router
    config: ProxyConfig
    pool: UpstreamPool
    rules: Rules | None


class ServerPaths:
    """The servers of a file, each by itself.

    Args:
        args: Of `dragoman proxy`, with what the file says.
        config: For the proxies before the servers.
        warden: Ends their children should we be killed.
        make_pool: Makes the pool that `--scope` describes.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        config: ProxyConfig,
        warden: Warden,
        make_pool: Callable[[argparse.Namespace, Callable[[], Transport]], UpstreamPool],
    ) -> None:
        self._args = args
        self._config = dataclasses.replace(config, board=None)
        self._warden = warden
        self._make_pool = make_pool
        self._configuration: Configuration = args.configuration
        self._places: dict[str, _ServedPath] = {}
        self._front: HttpFront | None = None

    def begin(self, front: HttpFront) -> None:
        """Have each server served at its path."""
        self._front = front
        self._offer()

    def serve(self, transport: Transport, caller: Caller) -> Runner:
        """Return what runs a session at the path of a server."""
        place = self._places.get(caller.server) or self._make(caller.server)
        is_per_request = caller.is_per_request
        return place.pool.proxy(place.config, transport, caller.principal or None, is_per_request=is_per_request)

    def apply(self, configuration: Configuration) -> None:
        """Take in a file that has changed."""
        self._configuration = configuration
        names = {server.name for server in configuration.enabled}
        for name, place in self._places.items():
            if name in names:
                if place.rules is not None:
                    place.rules.change(configuration.options.rules or ())
                place.router.apply(self._choose(name))
        self._offer()

    async def close(self) -> None:
        """Close every server."""
        await asyncio.gather(*(place.pool.close() for place in self._places.values()))

    def _offer(self) -> None:
        if self._front is not None:
            self._front.offer([server.name for server in self._configuration.enabled])

    def _choose(self, name: str) -> Configuration:
        """Return a configuration with this server alone: nothing needs a prefix there."""
        options = dataclasses.replace(self._configuration.options, name=name, prefix="clash")
        servers = tuple(server for server in self._configuration.servers if server.name == name)
        return dataclasses.replace(self._configuration, servers=servers, options=options)

    def _make(self, name: str) -> _ServedPath:
        args = argparse.Namespace(**{**vars(self._args), "configuration": self._choose(name)})
        router = make_router(args, self._config, self._warden)
        config = guard_servers(args, router, dataclasses.replace(before_router(self._config), server_name=name))
        place = _ServedPath(router, config, self._make_pool(args, router.connect), args.rules)
        self._places[name] = place
        return place
