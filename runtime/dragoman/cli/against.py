"""`dragoman check --against FILE`: whether a server's tools would break clients that were made for what it had before.

Lives here: reading the file, and the three ways to print what has changed. Must not: compare (`check.compatibility`).
Called by `cli.check`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.ink import Style, write_painted
from dragoman.cli.list import KINDS, list_all
from dragoman.cli.screen import print_json, shown
from dragoman.cli.session import OwnerOf, run_session

if TYPE_CHECKING:
    from dragoman.check.compatibility import Change
    from dragoman.client.client import Client

EXIT_BREAKING: Final = 1
_MARKS: Final = {r"^breaking\b": Style.ERROR, r"^risky\b": Style.LOSS, r"^safe\b": Style.GOOD}
_GITHUB: Final = {"breaking": "error", "risky": "warning", "safe": "notice"}


def compare_with_file(args: argparse.Namespace) -> int:
    """List what the server offers, hold it against the file, and print what has changed; 1 if something breaks."""
    from dragoman.check.compatibility import Effect, compare_offers

    before = _read(args)

    async def look(client: Client, _: OwnerOf) -> int:
        now = {kind: await list_all(client, kind, is_asked_for=False) for kind in KINDS}
        changes = compare_offers(before, now)
        print_changes(changes, args.error_format, f"since {args.against}")
        return EXIT_BREAKING if any(change.effect is Effect.BREAKING for change in changes) else 0

    return run_session(args, look)


def _read(args: argparse.Namespace) -> dict[str, Any]:
    wanted = "expected what `dragoman list --json` prints"
    try:
        before = json.loads(Path(args.against).read_bytes())
    except OSError as error:
        args.usage_error(f"--against {args.against}: {error.strerror}")
    except ValueError as error:
        args.usage_error(f"--against {args.against}: {wanted}: {error}")
    if not isinstance(before, dict) or not any(isinstance(before.get(kind), list) for kind in KINDS):
        args.usage_error(f"--against {args.against}: {wanted}, an object with {', '.join(KINDS)}")
    found: dict[str, Any] = before
    return found


def print_changes(changes: Sequence[Change], form: str, since: str) -> None:
    """Print changes in one of the forms of `--error-format`; *since* begins the sentence about all of them."""
    match form:
        case "json":
            print_json([change._asdict() for change in changes])
        case "github":
            for change in changes:
                # A workflow command: what would end its line or its properties is written as the page of GitHub says.
                text = f"{change.what}{change.pointer and f' at {change.pointer}'}: {change.text}"
                escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
                print(f"::{_GITHUB[change.effect]} title={change.effect} change::{escaped}")
        case _:
            counts = {effect: sum(change.effect == effect for change in changes) for effect in _GITHUB}
            lines = [f"{one.effect:<9} {one.what}{one.pointer and f' at {one.pointer}'}: {one.text}" for one in changes]
            told = ", ".join(f"{number} {effect}" for effect, number in counts.items())
            lines += ["", f"{since}: {told}"] if changes else [f"nothing has changed {since}"]
            write_painted(shown("\n".join(lines)) + "\n", _MARKS)
