"""`dragoman read`: read a resource. Lives here: writing its contents. Called by `dragoman.cli`."""

from __future__ import annotations

import argparse
import base64
import sys
from typing import TYPE_CHECKING

from dragoman.cli.ink import complain
from dragoman.cli.screen import print_json
from dragoman.cli.session import EXIT_UNFIT, OwnerOf, add_session_arguments, run_session, with_progress

if TYPE_CHECKING:
    from dragoman.cli.parsing import CommandParser
    from dragoman.client.client import Client


def add_arguments(parser: CommandParser) -> None:
    """Describe the command line of `read`."""
    parser.add_argument("uri", metavar="URI", help="the resource")
    add_session_arguments(parser, "URI")


def run(args: argparse.Namespace) -> int:
    """Read the resource and write its contents one after another: text as text, anything else as its bytes."""

    async def read(client: Client, _: OwnerOf) -> int:
        result = await with_progress(args, lambda tell: client.read(args.uri, progress=tell))
        if args.json:
            print_json(result)
            return 0
        for contents in result["contents"]:
            if "text" in contents:
                _write_text(contents["text"])
                continue
            try:
                data = base64.b64decode(contents["blob"], validate=True)
            except ValueError:
                complain(f"dragoman: the blob of {args.uri} is not base64")
                return EXIT_UNFIT
            _write_bytes(data, args.uri)
        return 0

    return run_session(args, read)


def _write_text(text: str) -> None:
    """Write text as it is; on a terminal with an end to its last line."""
    print(text, end="\n" if sys.stdout.isatty() and not text.endswith("\n") else "")


def _write_bytes(data: bytes, uri: str) -> None:
    """Write bytes exactly; on a terminal only those of a text."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:  # as tools for text tell what is not
        size = f"{len(data)} byte{'' if len(data) == 1 else 's'}"
        complain(f"dragoman: {uri} is not text ({size}): send it to a file with > FILE")
    else:
        _write_text(text)
