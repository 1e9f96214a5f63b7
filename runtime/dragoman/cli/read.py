"""`dragoman read`: read a resource. Lives here: writing its contents. Called by `dragoman.cli`."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from typing import TYPE_CHECKING

from dragoman.cli.session import EXIT_UNFIT, add_session_arguments, run_session

if TYPE_CHECKING:
    from dragoman.client.client import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `read`."""
    parser.add_argument("uri", metavar="URI", help="the resource")
    add_session_arguments(parser, "URI")


def run(args: argparse.Namespace) -> int:
    """Read the resource and write its contents one after another: text as text, anything else as its bytes."""

    async def read(client: Client) -> int:
        result = (await client.read(args.uri)).model_dump()
        if args.json:
            print(json.dumps(result, indent=2, ensure_ascii=False))
            return 0
        for contents in result["contents"]:
            if "text" in contents:
                _write_text(contents["text"])
                continue
            try:
                data = base64.b64decode(contents["blob"], validate=True)
            except ValueError:
                print(f"dragoman: the blob of {args.uri} is not base64", file=sys.stderr)
                return EXIT_UNFIT
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        return 0

    return run_session(args, read)


def _write_text(text: str) -> None:
    from dragoman.cli.terminal import shown

    if sys.stdout.isatty():
        print(shown(text))
    else:
        sys.stdout.write(text)
