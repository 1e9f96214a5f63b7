"""`--middleware MODULE:NAME` and `--notice-middleware`: what they name.

Must not: load anything (`cli.loading`, which is imported only where one is given). Called by
`cli.proxy`.
"""

from __future__ import annotations

import argparse
from typing import Any


def find_middleware(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the options name, as `ProxyConfig` calls it; next to the server, what a file hides of its tools."""
    found = _load_named(args)
    if args.tool_filters:
        found["middleware"] = (*found.get("middleware", ()), *(one.around_request for one in args.tool_filters))
    return found


def _load_named(args: argparse.Namespace) -> dict[str, Any]:
    if not args.middleware and not args.notice_middleware:
        return {}
    from dragoman.cli.loading import load_middleware

    try:
        loaded = load_middleware(args.middleware, args.notice_middleware)
        if loaded["header_middleware"] and args.url is None:
            raise ValueError(_nowhere_for_headers(args))
    except ValueError as error:
        args.usage_error(f"--middleware: {error}")
        raise
    return loaded


def _nowhere_for_headers(args: argparse.Namespace) -> str:
    if args.server is not None:
        return f"headers go to a server at a URL, and {args.server!r} is a command"
    if args.command:
        return "headers go to a server at a URL, and this one is a command: give it its secrets with --env NAME"
    return (
        "headers go to one server, and --config names several: write them into the file, as "
        '"dragoman": {"servers": {"NAME": {"headers": {"Authorization": "Bearer ${file:PATH}"}}}}'
    )
