"""`dragoman tokens`: list the servers that there are tokens for, and never a token."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

from dragoman.cli.screen import print_json, shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `tokens`."""
    parser.add_argument("--json", action="store_true", help="print them as JSON")


def run(args: argparse.Namespace) -> int:
    """List them."""
    from dragoman.signin.authority import find_folder
    from dragoman.signin.store import list_files

    entries = [entry for _, written in list_files(find_folder()) if (entry := _describe(written))]
    if args.json:
        print_json(entries)
        return 0
    for entry in entries:
        print(shown(f"{entry['url']}\n  from {entry['issuer']}, {_say_until(entry)}"))
        print(shown(f"  for {entry['scope'] or 'whatever its authorization server allows'}"))
    if not entries:
        print("There are no tokens. `dragoman login URL` gets some.")
    return 0


def _describe(written: Mapping[str, Any]) -> dict[str, Any]:
    """Say what the tokens of a file are for; nothing where it holds none."""
    from dragoman.signin.store import find_current
    from dragoman.transports.upstream.config import describe_url

    found = find_current(written)
    if found is None:
        return {}
    tokens = found.tokens
    about = {"url": describe_url(written["url"]), "issuer": found.server.issuer, "client": found.client.id}
    return {**about, "scope": tokens.scope, "expires_at": tokens.expires_at, "refreshes": bool(tokens.refresh)}


def _say_until(entry: Mapping[str, Any]) -> str:
    if entry["refreshes"]:
        return "refreshed as needed"
    if entry["expires_at"] is None:
        return "until they are refused"
    is_over = entry["expires_at"] < time.time()
    until = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry["expires_at"]))
    return f"over since {until}" if is_over else f"until {until}"
