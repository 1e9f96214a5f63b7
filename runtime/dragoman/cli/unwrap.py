"""`dragoman unwrap CLIENT [SERVER …]`: take the proxy out of a client's configuration again; the rest is `wrap`'s."""

from __future__ import annotations

import argparse

from dragoman.cli import wrap
from dragoman.cli.wrap import run as run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `unwrap`."""
    wrap.add_arguments(parser)
    parser.set_defaults(take_out=True)
