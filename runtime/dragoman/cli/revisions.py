"""`dragoman revisions`: which revisions there are and what Dragoman can do with each.

Only reads the registry and the method tables, so it imports no pydantic. Called by `dragoman.cli`.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

import dragoman_spec

PROXY_TRANSPORTS: Final = {"handshake": ("stdio", "http", "websocket"), "per_request": ("stdio", "http")}
"""The transports over which `dragoman proxy` speaks an era to its peers."""

COLUMNS: Final = ("revision", "era", "methods", "definitions", "proxy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `revisions`."""
    parser.add_argument("--json", action="store_true", help="print a JSON array instead of a table")


def run(args: argparse.Namespace) -> int:
    """Print the table of revisions, oldest first."""
    rows = [describe(revision) for revision in dragoman_spec.REVISIONS]
    sys.stdout.write(json.dumps(rows, indent=2) + "\n" if args.json else table(rows))
    return 0


def describe(revision: str) -> dict[str, Any]:
    """Tell what there is of one revision, as a JSON object."""
    module = dragoman_spec.load(revision)
    era = dragoman_spec.era(revision)
    return {
        "revision": revision,
        "era": era,
        "methods": len(module.METHODS),
        "definitions": len(module.DEFINITIONS),
        "proxy": list(PROXY_TRANSPORTS[era]),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Lay rows out as aligned text with a heading."""
    texts = [[column.upper() for column in COLUMNS]]
    texts += [[_cell(row[column]) for column in COLUMNS] for row in rows]
    widths = [max(len(text[index]) for text in texts) for index in range(len(COLUMNS))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(text, widths, strict=True)).rstrip() + "\n" for text in texts
    )


def _cell(value: Any) -> str:
    return (", ".join(value) or "not yet") if isinstance(value, list) else str(value)
