"""`--scope`: which clients of `dragoman proxy --listen` share a server.

Lives here: the pool that the flags describe. Must not: share (`pool`). Called by `cli.proxy` and
`cli.listen`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.pool import UpstreamPool
    from dragoman.transports.base import Transport


def check_scope(args: argparse.Namespace) -> str | None:
    """Say what is wrong with the flags, if anything is."""
    if args.scope != "client" and args.listen is None:
        return f"--scope {args.scope} needs --listen: over stdin and stdout there is one client"
    return None


def make_pool(args: argparse.Namespace, connect: Callable[[], Transport]) -> UpstreamPool:
    """Make the pool from which client sessions get their transports.

    Args:
        args: With the flags above.
        connect: Opens a transport to the server.
    """
    from dragoman.pool import Scope, UpstreamPool

    if args.scope == "client":
        return UpstreamPool(Scope.CLIENT, connect)
    from importlib.metadata import version

    from dragoman.core.switch.shared.desk import SharingSettings
    from dragoman.host.shared import PoolConfig

    sharing = SharingSettings(identity={"name": "dragoman", "version": version("dragoman")})
    return UpstreamPool(Scope(args.scope), connect, PoolConfig(sharing=sharing, idle_s=args.server_idle))
