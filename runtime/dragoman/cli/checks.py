"""Which options that name and reach a server go together: combinations that would be ignored without a word."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Final

from dragoman.cli.certificate import find_nonsense_of_certificate
from dragoman.cli.names import is_loopback

MESSAGES_PATH: Final = "/message"
"""Where HTTP+SSE clients post; `transports.http.config.Paths` has it, too."""


def check_options(args: argparse.Namespace) -> None:
    """End with a usage error if options do not go together."""
    nonsense = next(_find_nonsense(args), None)
    if nonsense is not None:
        args.usage_error(nonsense)


def check_page(args: argparse.Namespace, option: str = "inspect") -> None:
    """End with a usage error if the options about a page, or about certificates, do not go together.

    Args:
        args: The options.
        option: Which of them says where the page is.
    """
    nonsense = next(_find_nonsense_of_page(args, option), None)
    if nonsense is not None:
        args.usage_error(nonsense)


def _find_nonsense(args: argparse.Namespace) -> Iterator[str]:
    """Say what does not go together; what comes later may rely on what was asked before."""
    named = sum((bool(args.command), args.url is not None, args.config is not None))
    if named != 1:
        found = ("", "", "; found both", "; found all three")[named]
        yield f"expected a server: either `-- COMMAND`, `--url URL` or `--config FILE`{found}"
    if args.server is not None and args.config is None:
        yield "--server means nothing without --config"
    if args.scope != "client" and args.listen is None:
        yield f"--scope {args.scope} needs --listen: over stdin and stdout there is one client"
    page = getattr(args, "inspect", None)
    also = ("tls_cert", "tls_key") if page is not None and page[2] == "https" else ()
    for needed, options in args.company.items():
        if getattr(args, needed.removeprefix("--").lower()) in (None, []):
            given = (one for one in options if getattr(args, one.dest) != one.default and one.dest not in also)
            yield from (f"{option.option_strings[0]} means nothing without {needed}" for option in given)
    if args.listen is not None:
        from dragoman.cli.guard import find_nonsense_of_guard

        yield from _find_nonsense_of_listen(args)
        yield from find_nonsense_of_guard(args)
    yield from _find_nonsense_of_upstream(args)
    for name, value in args.variables:
        if value is None and name not in os.environ:
            yield f"--env {name}: there is no variable {name} in our environment"


def _find_nonsense_of_listen(args: argparse.Namespace) -> Iterator[str]:
    if args.paths and (args.config is None or args.server is not None):
        yield "--paths means nothing without --config, and with --server there is one server"
    taken = [args.mcp_path, *((args.sse_path, MESSAGES_PATH) if args.sse_path else ())]
    if len(set(taken)) < len(taken):
        yield f"expected different paths for Streamable HTTP and HTTP+SSE, found {', '.join(taken)}"


def _find_nonsense_of_page(args: argparse.Namespace, option: str) -> Iterator[str]:
    yield from find_nonsense_of_certificate(args)
    wanted = getattr(args, option)
    if wanted is None:
        if args.open or args.inspect_anywhere:
            yield f"--{'open' if args.open else 'inspect-anywhere'} means nothing without --inspect"
        return
    host, _, scheme = wanted
    if scheme == "http" and not is_loopback(host) and not args.inspect_anywhere:
        yield (
            f"--{option} http://{host}: what crosses would be sent to other machines in plain text; use https:// with "
            "--tls-cert, or --inspect-anywhere"
        )


def _find_nonsense_of_upstream(args: argparse.Namespace) -> Iterator[str]:
    if args.upstream != "auto" and str(args.url).lower().startswith(("ws:", "wss:")):
        yield "--upstream chooses between the HTTP transports, and means nothing with a WebSocket URL"
    if args.tell_callers is not None and args.url is None:
        yield "--tell-callers means nothing without --url; a configuration file has tellCallers for each server"
    if args.listen is None and args.oauth_redirect_url is not None:
        yield "--oauth-redirect-url means nothing without --listen"
    if args.client_key is not None and args.client_cert is None:
        yield "--client-key means nothing without --client-cert"
