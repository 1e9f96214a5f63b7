"""`dragoman demo`: a client and a server of two revisions, joined by the real proxy, and what they said.

Lives here: flags, errors and exit codes. The conversation and its telling are `dragoman.demo`'s. Called by
`dragoman.cli`.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from typing import TYPE_CHECKING, Final

import dragoman_spec
from dragoman.cli.checks import check_page
from dragoman.cli.ink import complain, takes_colour
from dragoman.cli.inspecting import CannotShow, open_feed
from dragoman.cli.options import add_options, revision
from dragoman.cli.screen import columns, fit, write_styled
from dragoman.options import PAGE, TLS

if TYPE_CHECKING:
    from dragoman.inspect.feed import Feed
    from dragoman.trace.trace import Watcher

DEFAULT_CLIENT: Final = dragoman_spec.REVISIONS[-1]
DEFAULT_SERVER: Final = dragoman_spec.HANDSHAKE_REVISIONS[-2]

EXIT_FAILED: Final = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `demo`."""
    parser.epilog = f"revisions: {', '.join(dragoman_spec.REVISIONS)}. NO_COLOR=1 turns colour off."
    for side, default in (("client", DEFAULT_CLIENT), ("server", DEFAULT_SERVER)):
        parser.add_argument(
            f"--{side}",
            type=revision,
            default=default,
            metavar="REV",
            help=f"what the {side} speaks (default: %(default)s)",
        )
    add_options(parser, (*PAGE, *TLS))
    parser.set_defaults(stderr=None, usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Show the conversation; 0 if it came to its end, 1 if it did not."""
    import asyncio

    from dragoman.cli.signals import raise_on_interrupt
    from dragoman.demo.across import narrate_across
    from dragoman.demo.crossings import Record
    from dragoman.demo.ink import choose_ink, fit_encoding
    from dragoman.demo.narrate import narrate
    from dragoman.demo.stage import perform, try_directly

    check_page(args)
    raise_on_interrupt()
    feeds: list[Feed] = []

    def watch(record: Watcher) -> Watcher:
        if args.inspect is None:
            return record
        about = {"what": "demo", "server": f"a client of {args.client} and a server of {args.server}"}
        feeds.append(open_feed(args, record, about))
        return feeds[0]

    async def show() -> tuple[Record, str]:
        if args.client == args.server:
            return await perform(args.client, args.server, watch), ""
        beside = asyncio.create_task(try_directly(args.client, args.server))
        return await perform(args.client, args.server, watch), await beside

    try:
        record, directly = asyncio.run(show())
    except CannotShow as error:
        complain(f"dragoman demo: {error}")
        return EXIT_FAILED
    eras = {revision in dragoman_spec.HANDSHAKE_REVISIONS for revision in (args.client, args.server)}
    tell = narrate if eras == {True} else narrate_across
    lines = tell(record, directly, choose_ink(sys.stdout, takes_colour(sys.stdout))).split("\n")
    told = "\n".join(line if "\x1b" in line else fit(line, 2, columns()) for line in lines)
    write_styled(fit_encoding(told, sys.stdout), sys.stdout)
    sys.stdout.flush()
    if record.problem:
        complain(f"dragoman demo: {record.problem}")
        return EXIT_FAILED
    for feed in feeds:
        _stay(feed)
    return 0


def _stay(feed: Feed) -> None:
    """Keep the page until the user has seen enough."""
    print("The page stays until you press Ctrl-C.", file=sys.stderr, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(3600)
    feed.close()
