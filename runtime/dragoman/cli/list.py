"""`dragoman list`: what a server offers. Lives here: the lists, as a table or as JSON. Called by `dragoman.cli`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.ink import REVISIONS, Style, write_painted
from dragoman.cli.parsing import suggest
from dragoman.cli.screen import columns, lay_out, print_json
from dragoman.cli.session import OwnerOf, add_session_arguments, run_session
from dragoman.cli.values import signature
from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.errors import CapabilityNotSupported, McpError

if TYPE_CHECKING:
    from dragoman.cli.parsing import CommandParser
    from dragoman.client.client import Client
    from dragoman.core.commands import Side
    from dragoman.core.translate import Crossing
    from dragoman.trace.lines import Entry
    from dragoman.transports.base import Transport

KINDS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "tools": lambda one: signature(one["name"], one.get("inputSchema")),
    "resources": lambda one: str(one["uri"]),
    "templates": lambda one: str(one["uriTemplate"]),
    "prompts": lambda one: prompt_signature(one),
}
"""What can be listed, and how a person names it."""

_MARKS: Final = {**REVISIONS, rf"^(?:{'|'.join(KINDS)}):": Style.HEADING}

NAMED_BY: Final = {"tools": "name", "resources": "uri", "templates": "uriTemplate", "prompts": "name"}


def add_arguments(parser: CommandParser) -> None:
    """Describe the command line of `list`."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="|".join(("NAME", *KINDS)),
        help="a server in the files of your clients, in place of --config; what to list (default: all)",
    )
    parser.set_defaults(known_words=tuple(KINDS))
    add_session_arguments(parser, "[NAME] [KIND ...]")


def run(args: argparse.Namespace) -> int:
    """List what the server offers."""
    words = [f"{word}s" if f"{word}s" in KINDS else word for word in args.words]  # `list tool` is `list tools`
    args.kinds = [word for word in words if word in KINDS]
    named = [word for word in words if word not in KINDS]
    if len(named) > 1 or (named and (args.server is not None or args.command or args.url is not None)):
        one = "" if args.command or args.url is not None else "one name of a server beside "
        meant = next(filter(None, (suggest(word, KINDS) for word in named)), "")
        args.usage_error(f"expected {one}{', '.join(KINDS)}, found {', '.join(map(repr, named))}{meant}")
    args.server = named[0] if named else args.server

    supports = args.watcher = TaskSupports()

    async def look(client: Client, owner_of: OwnerOf) -> int:
        found = {kind: await list_all(client, kind, bool(args.kinds)) for kind in args.kinds or KINDS}
        server = {} if client.server_info is None else client.server_info.model_dump()
        if args.json:
            print_json({"server": server, "revision": client.server_revision, **found})
        else:
            for tool in found.get("tools", ()):
                supports.mark(tool, owner_of("tool", tool["name"]) or "")
            write_painted(render(server, client.server_revision, found, owner_of, columns()), _MARKS)
        return 0

    return run_session(args, look)


class TaskSupports:
    """Reads off the lists of servers which tools run as tasks: the newest revision says that of no tool."""

    def __init__(self, server: str = "", found: dict[tuple[str, str], str] | None = None) -> None:
        self._server = server
        self._found = {} if found is None else found

    def watch(self, transport: Transport, side: Side) -> Transport:
        """Leave it alone: what matters here is translated."""
        return transport

    def behind(self, server: str) -> TaskSupports:
        """Return what reads the lists of one of several servers."""
        return TaskSupports(server, self._found)

    def put(self, entry: Entry) -> None:
        """Nothing of it matters here."""

    def translated(self, crossing: Crossing) -> None:
        """Read a list of tools, as the server gave it."""
        from dragoman.core.exact_json import decode
        from dragoman.core.rules.tasks import read_support
        from dragoman.core.unchecked import find

        if crossing.method == "tools/list" and crossing.before.kind == "result":
            tools = find(decode(crossing.before.raw), "result", "tools")
            for tool in tools if isinstance(tools, list) else ():
                if (support := read_support(tool)) != "forbidden":
                    self._found[self._server, str(find(tool, "name"))] = support

    def mark(self, tool: dict[str, Any], server: str) -> None:
        """Put into its description how a tool runs; of a server of several it may have another name here."""
        from dragoman.core.rules.tasks import read_support

        names = (name for whose, name in self._found if whose == server and tool["name"].endswith(f"_{name}"))
        found = self._found.get((server, tool["name"])) or self._found.get((server, next(names, "")))
        support = found or read_support(tool)
        if support != "forbidden":
            tool["description"] = f"[taskSupport: {support}] {tool.get('description') or tool.get('title') or ''}"


async def list_all(client: Client, kind: str, is_asked_for: bool) -> list[dict[str, Any]]:
    """Return all of a kind; none where the server has no such list, unless a person asked for just that."""
    try:
        return [one.model_dump() async for one in getattr(client, kind)()]
    except (CapabilityNotSupported, McpError) as error:
        if is_asked_for or error.code != METHOD_NOT_FOUND:
            raise
        return []


def render(
    server: dict[str, Any],
    revision: str,
    found: dict[str, list[dict[str, Any]]],
    owner_of: OwnerOf = lambda kind, name: None,
    width: int | None = None,
) -> str:
    """Lay everything out for a person."""
    from dragoman.cli.screen import shown

    named = f"{server['name']} {server['version']}".rstrip() if server else "a server that does not say its name"
    lines = [f"{named}, revision {revision}"]
    for kind, ones in found.items():
        owners = [owner_of(kind.removesuffix("s"), one[NAMED_BY[kind]]) or "" for one in ones]
        column = max(map(len, owners), default=0)
        lines += [f"{kind}: {len(ones) or 'none'}"]
        rows = []
        for one, owner in zip(ones, owners, strict=True):
            about = (one.get("description") or one.get("title") or "").strip().partition("\n")[0]
            rows.append((f"{owner:<{column}}  {KINDS[kind](one)}" if column else KINDS[kind](one), about))
        lines += lay_out(rows, width)
    return shown("\n".join(lines)) + "\n"


def prompt_signature(prompt: Mapping[str, Any]) -> str:
    """Show a prompt with its arguments, which are all text: `greet(who, how?)`."""
    arguments = (f"{one['name']}{'' if one.get('required') else '?'}" for one in prompt.get("arguments") or ())
    return f"{prompt['name']}({', '.join(arguments)})"
