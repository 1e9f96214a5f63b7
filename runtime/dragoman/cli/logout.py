"""`dragoman logout URL`: forget the tokens of a server."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from dragoman.cli.screen import shown
from dragoman.cli.upstream import url

_EXIT_NOTHING: Final = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `logout`."""
    parser.add_argument("url", type=url, metavar="URL", help="the server, as `dragoman tokens` shows it")


def run(args: argparse.Namespace) -> int:
    """Remove what is kept of the server."""
    from dragoman.signin.authority import find_folder
    from dragoman.signin.store import list_files
    from dragoman.transports.upstream.config import describe_url

    meant = {args.url, describe_url(args.url)}
    kept = [(file, written["url"]) for file, written in list_files(find_folder())]
    files = [file for file, url in kept if meant & {url, describe_url(url)}]
    for file in files:
        file.remove()
    if not files:
        print(shown(f"dragoman: there are no tokens for {describe_url(args.url)}"), file=sys.stderr)
        return _EXIT_NOTHING
    print(shown(f"Forgotten: {describe_url(args.url)}."))
    return 0
