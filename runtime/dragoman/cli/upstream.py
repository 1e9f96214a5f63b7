"""The options that say where a server is on the network, and how it is reached.

Lives here: putting the options together; `dragoman.transports.upstream.config` says what they mean. Must not:
connect; what connects, and whatever else stdio does without, is imported only when used. Called by `cli.proxy`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.oauth import add_sign_in_arguments, read_sign_in
from dragoman.cli.options import add_group, chosen_rules
from dragoman.options import UPSTREAM

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from dragoman.cli.child import Launcher
    from dragoman.transports.base import Transport
    from dragoman.transports.spawn import Process
    from dragoman.transports.upstream.config import UpstreamConfig


def add_upstream_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Add `--url` and what goes with it; return what means nothing without it."""
    # what a configuration file says beside, and `--listen` has
    parser.set_defaults(injected=None, invitations=None, tell_callers=None, scope="client")
    group = add_group(parser, "a server on the network, in place of COMMAND", UPSTREAM, "url")
    return [*group, *add_sign_in_arguments(parser)]


def configure_upstream(args: argparse.Namespace) -> UpstreamConfig:
    """Put the options together."""
    from dragoman.signin.authority import sign_in_for
    from dragoman.transports.callers import callers_of
    from dragoman.transports.upstream.config import Kind, UpstreamConfig

    injected = () if args.injected is None else args.injected.headers
    named = (*(name for name, _ in args.headers), *injected)
    return UpstreamConfig(
        url=args.url,
        headers=tuple(args.headers),
        kind=Kind(args.upstream),
        ca_file=args.ca_file,
        client_cert=args.client_cert,
        client_key=args.client_key,
        proxy=args.proxy,
        verify=not args.insecure,
        connect_timeout_s=args.connect_timeout,
        idle_timeout_s=args.idle_timeout,
        parked_requests=args.max_parked,
        end_session=not args.no_delete,
        restore_ids="restore-id-type" in chosen_rules(args),
        renews_sessions="forgotten-session" in chosen_rules(args),
        name=None if args.listen is None else "the server",  # whose URL is no business of clients over the network
        header_middleware=() if args.injected is None else (args.injected.headers_to_server,),
        authority=sign_in_for(args.url, named, read_sign_in(args), invitations=args.invitations),
        tells=None if args.tell_callers is None else callers_of(*args.tell_callers).tell,
        caller="" if args.scope == "shared" else None,
    )


def opener_of_server(
    args: argparse.Namespace,
    launcher: Launcher,
    limit_bytes: int,
    process: Process | None = None,
) -> Callable[[], Transport]:
    """Return what opens a transport to the server that the options name.

    All that is opened to a URL shares its connections.

    Args:
        args: With the flags of `--url` and COMMAND.
        launcher: Starts the command.
        limit_bytes: The longest line accepted from it.
        process: One that runs already, for the first who asks.
    """
    if args.url is None:
        running = [] if process is None else [process]
        return lambda: launcher.connect(limit_bytes, running.pop() if running else None)
    from dragoman.transports.upstream.connect import open_upstream

    config = configure_upstream(args)
    return lambda: open_upstream(config)


def configure_way(args: argparse.Namespace) -> UpstreamConfig:
    """Put together how a server is reached by what is not a proxy."""
    from dragoman.transports.upstream.config import UpstreamConfig

    return UpstreamConfig(args.url, ca_file=args.ca_file, proxy=args.proxy, verify=not args.insecure)


def choose_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the event loop: uvloop's where there is one, which saves HTTP a fifth and pipes nothing."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
