"""`dragoman proxy --config FILE`: several servers behind one front.

Lives here: the flag, and putting file, router and signals together. Must not: route (`dragoman.router`). Imported only
where there is such a file. Called by `cli.proxy`.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import functools
import logging
import sys
from typing import TYPE_CHECKING, Final

from dragoman.cli.ink import complain
from dragoman.cli.known import know_server
from dragoman.cli.reloading import Reloading, say
from dragoman.config import ConfigError, Configuration, ServerConfig, read_config
from dragoman.config.opening import opener_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.middlewares.access import Rules
    from dragoman.proxy import ProxyConfig
    from dragoman.router import Router
    from dragoman.transports.base import Transport
    from dragoman.transports.warden import Warden

EXIT_CONFIG: Final = 2


def read_or_explain(path: str) -> Configuration | None:
    """Read a configuration file; where it cannot be used, say why on stderr and give None."""
    try:
        configuration = read_config(path)
    except ConfigError as error:
        for problem in error.problems:
            complain(f"dragoman proxy: {path}: {problem}")
        return None
    for remark in configuration.remarks:
        print(f"dragoman proxy: {path}: {remark}", file=sys.stderr)
    return configuration


def make_router(args: argparse.Namespace, config: ProxyConfig, warden: Warden) -> Router:
    """Make what stands before the servers of a file.

    Args:
        args: Of `dragoman proxy`, with what the file says.
        config: For the proxy before each server.
        warden: Ends its children should we be killed.
    """
    from dragoman.router import Router

    def open_server(server: ServerConfig) -> Callable[[], Transport]:
        return opener_of(
            server,
            inherit_env="all" if args.listen is None else "safe",
            limit_bytes=config.limit_bytes,
            parked_requests=config.most_parked,
            restore_ids=config.rules is None or "restore-id-type" in config.rules,
            renews_sessions=config.rules is None or "forgotten-session" in config.rules,
            warden=warden,
            stderr=args.child_words or args.stderr,
            hides_url=args.listen is not None,
            invitations=args.invitations,
            caller="" if args.scope == "shared" else None,
        )

    return Router(args.configuration, config, open_server, functools.partial(know_server, args))


def guard_servers(args: argparse.Namespace, router: Router, config: ProxyConfig) -> ProxyConfig:
    """Put the rules of a file, if it has some, before a router that clients over HTTP are served by."""
    given = args.configuration.options.rules
    args.rules = None
    if given is None or args.listen is None:
        return config
    from dragoman.middlewares.access import Rules

    args.rules = rules = Rules(given, router.find, router.servers.keys)
    return with_rules(config, rules)


def guard_server(args: argparse.Namespace, config: ProxyConfig) -> ProxyConfig:
    """Put the rules of a file before the only server of it that is used."""
    from dragoman.middlewares.access import Rules

    return with_rules(config, Rules(args.access, lambda kind, name: (args.server, name), lambda: (args.server,)))


def with_rules(config: ProxyConfig, rules: Rules) -> ProxyConfig:
    """Put rules before all other middleware."""
    return dataclasses.replace(
        config,
        middleware=(rules.around_request, *config.middleware),
        notice_middleware=(rules.around_notice, *config.notice_middleware),
    )


def watch_file(args: argparse.Namespace, router: Router, reloading: Reloading) -> None:
    """Have a configuration file read again when it changes."""

    def apply(configuration: Configuration) -> None:
        given = configuration.options.rules
        if args.listen is not None and (given is None) is not (args.rules is None):
            raise ValueError("dragoman.rules, there or not, is as it was at the start until the proxy is started again")
        if args.rules is not None:
            args.rules.change(given)
        router.apply(configuration)
        args.configuration = configuration
        if args.by_path is not None:
            args.by_path.apply(configuration)

    reloading.add(functools.partial(read_again, args.config, apply), args.config)


async def read_again(path: str, apply: Callable[[Configuration], None]) -> str:
    """Read a configuration file beside the calls, and apply what it says."""
    configuration = await asyncio.to_thread(read_config, path)
    apply(configuration)
    say(logging.WARNING, path, configuration.remarks)
    return f"{len(configuration.enabled)} servers are used"
