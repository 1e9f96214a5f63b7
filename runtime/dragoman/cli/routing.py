"""`dragoman proxy --config FILE`: several servers behind one front.

Lives here: the flag, and putting file, router and signals together. Must not: route (`dragoman.router`). Imported only
where there is such a file. Called by `cli.proxy`.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import logging
import sys
from typing import TYPE_CHECKING, Final

from dragoman.cli.known import know_server
from dragoman.cli.reloading import Reloading, say
from dragoman.config import ConfigError, Configuration, ServerConfig, read_config
from dragoman.config.opening import opener_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.proxy import ProxyConfig
    from dragoman.router import Router
    from dragoman.transports.base import Transport
    from dragoman.transports.warden import Warden

EXIT_CONFIG: Final = 2


def read_or_explain(path: str, command: str) -> Configuration | None:
    """Read a configuration file; where it cannot be used, say why on stderr and give None."""
    try:
        configuration = read_config(path)
    except ConfigError as error:
        for problem in error.problems:
            print(f"dragoman {command}: {path}: {problem}", file=sys.stderr)
        return None
    for remark in configuration.remarks:
        print(f"dragoman {command}: {path}: {remark}", file=sys.stderr)
    return configuration


class Routing:
    """The servers of a file, for one process.

    Args:
        args: Of `dragoman proxy`.
        configuration: What the file says.
        config: For the proxy before each server.
        warden: Ends its children should we be killed.
    """

    def __init__(
        self, args: argparse.Namespace, configuration: Configuration, config: ProxyConfig, warden: Warden
    ) -> None:
        from dragoman.router import Router

        def open_server(server: ServerConfig) -> Callable[[], Transport]:
            return opener_of(
                server,
                inherit_env="all" if args.listen is None else "safe",
                limit_bytes=config.limit_bytes,
                parked_requests=config.most_parked,
                warden=warden,
                stderr=args.stderr,
                hides_url=args.listen is not None,
                invitations=args.invitations,
            )

        self.router: Router = Router(configuration, config, open_server, functools.partial(know_server, args))
        self._path: str = args.config

    def begin(self, reloading: Reloading) -> None:
        """Have the file read again when it changes."""
        reloading.add(functools.partial(read_again, self._path, self.router.apply), self._path)


async def read_again(path: str, apply: Callable[[Configuration], None]) -> str:
    """Read a configuration file beside the calls, and apply what it says."""
    configuration = await asyncio.to_thread(read_config, path)
    apply(configuration)
    say(logging.WARNING, path, configuration.remarks)
    return f"{len(configuration.enabled)} servers are used"
