"""`--scope`: which clients of `dragoman proxy --listen` share a server.

Lives here: the flags and the pool that they describe. Must not: share (`pool`). Called by `cli.proxy` and
`cli.listen`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dragoman.cli.options import add_seconds

if TYPE_CHECKING:
    from dragoman.pool import UpstreamPool
    from dragoman.transports.base import Transport

SCOPES: Final = ("client", "shared", "principal")


def add_scope_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Describe the flags, and give them."""
    group = parser.add_argument_group("servers behind --listen")
    group.add_argument(
        "--scope",
        choices=SCOPES,
        default="client",
        help="a server for each client session, one shared by all, or one for each principal, by its secret (default: "
        "%(default)s)",
    )
    add_seconds(group, "--server-idle", 60, "close a shared server after S seconds without use")
    return group._group_actions


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
