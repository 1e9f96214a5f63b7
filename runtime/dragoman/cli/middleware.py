"""`--middleware MODULE:NAME` and `--notice-middleware`: the options.

Lives here: the flags. Must not: load anything (`cli.loading`, which is imported only where one is given). Called by
`cli.proxy`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.middleware import Middleware, NoticeMiddleware


def add_middleware_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    for option, around in (("--middleware", "each request"), ("--notice-middleware", "each notification")):
        parser.add_argument(
            option,
            dest=option.removeprefix("--").replace("-", "_"),
            action="append",
            default=[],
            metavar="MODULE:NAME",
            help=f"put your own code around {around}: an importable module or FILE.py, a colon and the name, with "
            "arguments where it has to be made, as 'dragoman.middlewares:RateLimit(per_minute=60)'; may be repeated, "
            "the first is the outermost",
        )


def find_middleware(
    args: argparse.Namespace,
) -> tuple[tuple[Middleware, ...], tuple[NoticeMiddleware, ...]]:
    """Give what the options name: what is around requests, and what is around notifications."""
    if not args.middleware and not args.notice_middleware:
        return (), ()
    from dragoman.cli.loading import load_middleware

    try:
        return load_middleware(args.middleware, args.notice_middleware)
    except ValueError as error:
        args.usage_error(f"--middleware: {error}")
        raise
