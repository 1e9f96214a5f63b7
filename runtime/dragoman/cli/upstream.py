"""The options that say where a server is on the network, and how it is reached.

Lives here: flags and how their values are checked; `dragoman.transports.upstream.config` says what they mean. Must not:
connect; what connects, and whatever else stdio does without, is imported only when used. Called by `cli.proxy`.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final

from dragoman.cli.checks import certificates
from dragoman.cli.oauth import add_sign_in_arguments, read_sign_in
from dragoman.cli.options import add_seconds, chosen_rules

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from dragoman.transports.upstream.config import UpstreamConfig

_KINDS: Final = ("auto", "streamable-http", "sse")


def add_upstream_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Add `--url` and what goes with it; give what means nothing without it."""
    group = parser.add_argument_group("a server on the network, in place of COMMAND")
    group.add_argument(
        "--url",
        type=url,
        metavar="URL",
        help="http(s): Streamable HTTP, or HTTP+SSE if it is that; ws(s): WebSocket",
    )
    group.add_argument(
        "--header",
        dest="headers",
        type=_header,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="send this header along, to this server only; also as 'NAME: VALUE'; "
        "$VARIABLE in VALUE comes from the environment, where other "
        "users of the machine do not see it; may be repeated",
    )
    group.add_argument(
        "--upstream",
        choices=_KINDS,
        default=_KINDS[0],
        help="the transport for an http URL (default: auto, which tries Streamable HTTP first)",
    )
    group.add_argument(
        "--ca-file",
        type=certificates,
        metavar="FILE",
        help="the authority that signed the server's certificate, as PEM",
    )
    group.add_argument(
        "--client-cert",
        type=certificates,
        metavar="FILE",
        help="our own certificate, for a server that wants one, as PEM",
    )
    group.add_argument(
        "--client-key", metavar="FILE", help="the key of that certificate, if it is in a file of its own"
    )
    group.add_argument(
        "--proxy",
        type=proxy_url,
        metavar="URL",
        help="the HTTP proxy on the way to the server, or none (default: what HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and "
        "NO_PROXY say; never for this machine)",
    )
    group.add_argument("--insecure", action="store_true", help="do not check the server's certificate at all")
    add_seconds(group, "--connect-timeout", 10, "how long a connection to the server may take")
    add_seconds(group, "--idle-timeout", 300, "how long a server may send nothing at all while it owes an answer")
    group.set_defaults(injected=None)  # what a configuration file says beside
    group.add_argument("--no-delete", action="store_true", help="do not tell the server when a session is over")
    group.add_argument("--no-sign-in", action="store_true", help="ask nobody to sign in: it has to do without a token")
    return [*(action for action in group._group_actions if action.dest != "url"), *add_sign_in_arguments(parser)]


def configure_upstream(args: argparse.Namespace) -> UpstreamConfig:
    """Put the options together."""
    from dragoman.signin.authority import sign_in_for
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
        end_session=not args.no_delete,
        restore_ids="restore-id-type" in chosen_rules(args),
        name=None if args.listen is None else "the server",  # whose URL is no business of clients over the network
        header_middleware=() if args.injected is None else (args.injected.headers_to_server,),
        authority=sign_in_for(args.url, named, read_sign_in(args)),
    )


def choose_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Give what makes the event loop: uvloop's where there is one, which saves HTTP a fifth and pipes nothing."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def url(text: str) -> str:
    """Read where a server is, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is no URL of a server.
    """
    from dragoman.transports.upstream.config import check_url

    try:
        return check_url(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _header(text: str) -> tuple[str, str]:
    from dragoman.transports.upstream.config import parse_header

    try:
        return parse_header(text, os.environ)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def proxy_url(text: str) -> str:
    """Read the URL of a proxy on the way, or `none`, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is neither.
    """
    from dragoman.transports.upstream.proxies import DIRECT, parse_proxy

    try:
        if text != DIRECT:
            parse_proxy(text, "a proxy")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
