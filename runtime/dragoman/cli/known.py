"""Remembering, from one start to the next, whether a server has a handshake: which server is meant.

Lives here: for the commands that open a server. Must not: remember (`host.known`), which is imported where it is used.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.config.model import CommandTarget, ServerConfig, UrlTarget
    from dragoman.core.settings import ServerMemory


def know_server(args: argparse.Namespace, server: ServerConfig | None = None) -> ServerMemory | None:
    """Return what is remembered of a server of a configuration file, or else of the one that the options name."""
    if args.no_era_cache:
        return None
    if server is not None:
        return know_target(server.target)
    return _know(args.command, args.cwd, args.url, args.upstream, args.variables)


def know_target(target: CommandTarget | UrlTarget) -> ServerMemory | None:
    """Return what is remembered of a server of a configuration file."""
    from dragoman.config.model import UrlTarget

    if isinstance(target, UrlTarget):
        return _know((), None, target.url, target.kind.value)
    return _know(target.command, target.cwd, None, "", target.env)


def _know(
    command: Sequence[str],
    directory: str | None,
    url: str | None,
    kind: str,
    variables: Sequence[tuple[str, str | None]] = (),
) -> ServerMemory | None:
    from dragoman.host.known import know, know_url

    if url is None:
        return know(command, directory, variables)
    return None if kind == "sse" else know_url(url)  # no server of the older transport is of the newer era
