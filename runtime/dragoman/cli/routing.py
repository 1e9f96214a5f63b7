"""`dragoman proxy --config FILE`: several servers behind one front.

Lives here: the flag, and putting file, router and signals together. Must not: route (`dragoman.router`). Imported only
where there is such a file. Called by `cli.proxy`.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import sys
from typing import TYPE_CHECKING, Final

from dragoman.cli.known import know_server
from dragoman.config import ConfigError, Configuration, ServerConfig, read_config
from dragoman.config.opening import opener_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.cli.reloading import Reloading
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
        from dragoman.router.watch import ConfigWatch

        def open_server(server: ServerConfig) -> Callable[[], Transport]:
            return opener_of(
                server,
                inherit_env="all" if args.listen is None else "safe",
                limit_bytes=config.limit_bytes,
                warden=warden,
                stderr=args.stderr,
                hides_url=args.listen is not None,
            )

        self.router: Router = Router(configuration, config, open_server, functools.partial(know_server, args))
        self._watch = ConfigWatch(args.config, self.router.apply)
        self._watching: asyncio.Task[None] | None = None

    def begin(self, reloading: Reloading) -> None:
        """Watch the file, from within the event loop; SIGHUP has it read at once."""
        self._watching = asyncio.get_running_loop().create_task(self._watch.run())
        reloading.add_at_signal(self._watch.reload)
