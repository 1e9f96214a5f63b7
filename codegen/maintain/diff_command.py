"""`python -m codegen diff OLD NEW`: what changed between two pulled schemas, for whoever writes an overlay.

Works on `schema/` alone, so that it can be asked before regen; `dragoman diff` is for users and reads what regen wrote.
Must not live here: comparing (`diff`). Called by `codegen.__main__`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from codegen.compare.diff import diff_specs
from codegen.errors import UnknownRevision
from codegen.read.load import load_spec
from codegen.read.pins import check_pins


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `diff`."""
    parser.add_argument("older", metavar="OLD", help="a pulled revision")
    parser.add_argument("newer", metavar="NEW", help="another, usually the next")
    parser.add_argument("--root", type=Path, default=Path(), metavar="DIR", help="the repository (default: here)")


def run(args: argparse.Namespace) -> int:
    """Print one line a change: definition and place, what became of it, details.

    Raises:
        CodegenError: One of them is not pulled, or a schema was changed by hand.
    """
    pins = check_pins(args.root / "schema")
    for revision in (args.older, args.newer):
        if revision not in pins:
            raise UnknownRevision(revision, f"schema/ has {', '.join(pins)}", f"Run `nox -s pull -- {revision}` first.")
    for change in diff_specs(load_spec(args.root, args.older), load_spec(args.root, args.newer)):
        print(f"{change.definition}{change.pointer}: {change.change}: {change.detail}")
    return 0
