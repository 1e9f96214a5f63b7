"""Which options of `dragoman proxy` go together: combinations that would be ignored without a word."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Final

MESSAGES_PATH: Final = "/message"
"""Where HTTP+SSE clients post; `transports.http.config.Paths` has it, too."""


def check_named(args: argparse.Namespace) -> str | None:
    """Say what is wrong with how a server is named; None if nothing is."""
    named = sum((bool(args.command), args.url is not None, args.config is not None))
    if named != 1:
        found = ("", "", "; found both", "; found all three")[named]
        return f"expected a server: either `-- COMMAND`, `--url URL` or `--config FILE`{found}"
    return "--server means nothing without --config" if args.server is not None and args.config is None else None


def check_company(args: argparse.Namespace, needed: str, options: Iterable[argparse.Action]) -> str | None:
    """Say which option was given without the one that gives it a meaning, if any was.

    Args:
        args: What was given.
        needed: The other option, such as `--listen`, or `COMMAND`.
        options: Those that need it.
    """
    if getattr(args, needed.removeprefix("--").lower()) not in (None, []):
        return None
    for option in options:
        if getattr(args, option.dest) != option.default:
            return f"{option.option_strings[0]} means nothing without {needed}"
    return None


def check_listen(args: argparse.Namespace) -> str | None:
    """Say which options of `--listen` do not go together, if any do not."""
    if args.listen is None:
        return None
    if (args.listen[2] == "https") != (args.tls_cert is not None):
        return "expected --tls-cert with https:// in --listen, and only then"
    if args.tls_key is not None and args.tls_cert is None:
        return "--tls-key means nothing without --tls-cert"
    taken = [args.mcp_path, *((args.sse_path, MESSAGES_PATH) if args.sse_path else ())]
    if len(set(taken)) < len(taken):
        return f"expected different paths for Streamable HTTP and HTTP+SSE, found {', '.join(taken)}"
    return None


def check_upstream(args: argparse.Namespace) -> str | None:
    """Say which options of `--url` do not go together, if any do not."""
    if args.upstream != "auto" and str(args.url).lower().startswith(("ws:", "wss:")):
        return "--upstream chooses between the HTTP transports, and means nothing with a WebSocket URL"
    if args.listen is None and args.oauth_redirect_url is not None:
        return "--oauth-redirect-url means nothing without --listen"
    if args.client_key is not None and args.client_cert is None:
        return "--client-key means nothing without --client-cert"
    return None
