"""`dragoman list`: what a server offers. Lives here: the lists, as a table or as JSON. Called by `dragoman.cli`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.session import add_session_arguments, run_session
from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.errors import CapabilityNotSupported, McpError

if TYPE_CHECKING:
    from dragoman.client.client import Client

KINDS: Final = {"tools": "name", "resources": "uri", "templates": "uriTemplate", "prompts": "name"}
"""What can be listed, and the member that a person names it by."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `list`."""
    parser.add_argument("kinds", nargs="*", type=_kind, metavar="KIND", help=f"{', '.join(KINDS)} (default: all)")
    add_session_arguments(parser, "[KIND ...]")


def run(args: argparse.Namespace) -> int:
    """List what the server offers."""

    async def look(client: Client) -> int:
        found = {kind: await _list(client, kind, bool(args.kinds)) for kind in args.kinds or KINDS}
        server = {} if client.server_info is None else client.server_info.model_dump()
        if args.json:
            about = {"server": server, "revision": client.server_revision}
            print(json.dumps({**about, **found}, indent=2, ensure_ascii=False))
        else:
            print(render(server, client.server_revision, found), end="")
        return 0

    return run_session(args, look)


async def _list(client: Client, kind: str, is_asked_for: bool) -> list[dict[str, Any]]:
    """Give all of a kind; none where the server has no such list, unless a person asked for just that."""
    try:
        return [one.model_dump() async for one in getattr(client, kind)()]
    except (CapabilityNotSupported, McpError) as error:
        if is_asked_for or error.code != METHOD_NOT_FOUND:
            raise
        return []


def render(server: dict[str, Any], revision: str, found: dict[str, list[dict[str, Any]]]) -> str:
    """Lay everything out for a person."""
    from dragoman.cli.terminal import shown

    named = f"{server['name']} {server['version']}".rstrip() if server else "a server that does not say its name"
    lines = [f"{named}, revision {revision}"]
    for kind, ones in found.items():
        width = min(40, max((len(one[KINDS[kind]]) for one in ones), default=0))
        lines += [f"{kind}: {len(ones) or 'none'}"]
        for one in ones:
            about = (one.get("description") or one.get("title") or "").strip().partition("\n")[0]
            lines.append(f"  {one[KINDS[kind]]:<{width}}  {about}".rstrip())
    return shown("\n".join(lines)) + "\n"


def _kind(text: str) -> str:
    if text not in KINDS:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(KINDS)}, found {text!r}")
    return text
