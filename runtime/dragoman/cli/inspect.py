"""`dragoman inspect`: the page for a trace that was written, or of a proxy that runs; and playing a trace back.

Lives here: flags and exit codes. Must not: serve, read a trace or play one (`dragoman.inspect`). Called by
`dragoman.cli`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dragoman.cli.checks import check_page
from dragoman.cli.ink import complain
from dragoman.cli.inspecting import CannotShow, bind_page, make_key, open_browser, tell_where
from dragoman.cli.names import own_names
from dragoman.cli.options import add_options
from dragoman.cli.screen import shown
from dragoman.options import PAGE, TLS, Option

if TYPE_CHECKING:
    from dragoman.inspect.capture import Capture, Side

EXIT_CANNOT_SHOW: Final = 1
EXIT_DIFFERENT: Final = 1
EXIT_NO_CAPTURE: Final = 3

_WHERE: Final = Option(
    "at", "page", "where the page is", "http://127.0.0.1:6300", note="or another port if that is taken"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `inspect`."""
    lines = ("[OPTION ...] TRACE|URL", "TRACE --serve", "TRACE --play -- COMMAND [ARG ...]")
    parser.usage = "\n       ".join(f"%(prog)s {line}" for line in lines)
    parser.epilog = (
        "TRACE is a file that `dragoman proxy --trace` has written, or still writes; URL is the address that "
        "`dragoman proxy --inspect` has printed, which is opened in the browser. "
        "exit status: 0; 1 if an answer differs from the recorded one (--play), or the page cannot be shown; "
        "3 if there is nothing to be played"
    )
    parser.add_argument("what", metavar="TRACE|URL", help="what to show")
    add_options(parser, (_WHERE, *(option for option in PAGE if option.name != "inspect"), *TLS))
    play = parser.add_argument_group("playing a trace back")
    choice = play.add_mutually_exclusive_group()
    choice.add_argument(
        "--serve",
        action="store_true",
        help="be the server of the trace, over stdin and stdout: answer each request as it was answered then",
    )
    choice.add_argument(
        "--play",
        action="store_true",
        help="be the client of the trace: say what it said to COMMAND, and report answers that differ",
    )
    play.add_argument(
        "--connection", type=int, metavar="N", help="which connection of the trace (default: the first that fits)"
    )
    parser.set_defaults(usage_error=parser.error, splits_command=True)


def run(args: argparse.Namespace) -> int:
    """Show it, or play it back."""
    if args.play != bool(args.command):
        args.usage_error("--play needs the command of a server after `--`, and nothing else does")
    if args.what.startswith(("http://", "https://")):
        if args.serve or args.play:
            args.usage_error("expected the file of a trace to play back, found a URL")
        return 0 if open_browser(args.what) else _fail("there is no browser to open it in; open the address by hand")
    path = Path(args.what)
    if not path.is_file() or not os.access(path, os.R_OK):
        wanted = "expected a file that `dragoman proxy --trace` has written"
        return _fail(f"there is no trace at {args.what} that you may read: {wanted}")
    if args.serve:
        return _serve(args, path)
    return _play(args, path) if args.play else _show(args, path)


def _show(args: argparse.Namespace, path: Path) -> int:
    import asyncio

    from dragoman.cli.signals import raise_on_interrupt
    from dragoman.inspect.viewer import Viewing, view_file
    from dragoman.transports.http.serve import Address

    check_page(args, "at")
    try:
        listener, url, certificate = bind_page(args.at, args)
    except CannotShow as error:
        return _fail(str(error))
    key = make_key()
    about = {"what": "trace", "file": path.name}
    viewing = Viewing(listener, Address("", 0, *certificate), key, own_names(args.at[0]), args.inspect_memory, about)
    raise_on_interrupt()
    tell_where(url, key, opens=args.open)
    try:
        asyncio.run(view_file(viewing, path))
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        return _fail(f"cannot read {args.what}: {error.strerror}")
    return 0


def _serve(args: argparse.Namespace, path: Path) -> int:
    """Be the server of a trace."""
    from dragoman.inspect.mock import MockServer

    capture = _read(args, path, "server")
    if capture is None:
        return EXIT_NO_CAPTURE
    MockServer(capture, sys.stdout.buffer).run(sys.stdin.buffer)
    return 0


def _play(args: argparse.Namespace, path: Path) -> int:
    """Be the client of a trace."""
    from dragoman.inspect.play import play

    capture = _read(args, path, "client")
    if capture is None:
        return EXIT_NO_CAPTURE
    differences = 0
    for line, differs in play(capture, args.command):
        print(shown(line).replace("\n", " "), flush=True)
        differences += differs
    return EXIT_DIFFERENT if differences else 0


def _read(args: argparse.Namespace, path: Path, side: Side) -> Capture | None:
    from dragoman.inspect.capture import NoCapture, read_capture

    try:
        with path.open("rb") as file:
            return read_capture(file, side, args.connection)
    except (NoCapture, OSError) as error:
        complain(f"dragoman inspect: {args.what}: {error}")
        return None


def _fail(reason: str) -> int:
    complain(f"dragoman inspect: {reason}")
    return EXIT_CANNOT_SHOW
