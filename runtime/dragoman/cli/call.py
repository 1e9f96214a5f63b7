"""`dragoman call`: call a tool. Lives here: its arguments, and its result for a person. Called by `dragoman.cli`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.cli.options import explaining
from dragoman.cli.parsing import suggest
from dragoman.cli.screen import print_json
from dragoman.cli.session import (
    EXIT_ERROR,
    OwnerOf,
    WrongArgument,
    add_session_arguments,
    find_listed,
    run_session,
    with_progress,
)
from dragoman.cli.values import name_type, read_value, signature, texts_of, types_of
from dragoman.values import matching

if TYPE_CHECKING:
    from dragoman.cli.parsing import CommandParser
    from dragoman.client.client import Client


def add_arguments(parser: CommandParser) -> None:
    """Describe the command line of `call`."""
    parser.add_argument("tool", metavar="TOOL", help="its name, as `dragoman list tools` shows it")
    parser.add_argument(
        "pairs",
        nargs="*",
        default=[],
        type=pair,
        metavar="KEY=VALUE",
        help="an argument: JSON where the tool's input schema takes what that gives, text otherwise",
    )
    parser.add_argument(
        "--arguments",
        type=_object,
        metavar="JSON",
        help="arguments as a JSON object, sent as they are; KEY=VALUE adds to it",
    )
    add_session_arguments(parser, "TOOL [KEY=VALUE ...]")


def run(args: argparse.Namespace) -> int:
    """Call the tool and print what it gives."""

    async def call(client: Client, _: OwnerOf) -> int:
        schema = (await find_listed(client, "tool", args.tool)).get("inputSchema", {})
        schema = schema if isinstance(schema.get("properties", {}), dict) else {}
        properties = schema.get("properties") or {}
        check_keys(args.tool, [key for key, _ in args.pairs], schema)
        read = {key: read_value(text, properties.get(key)) for key, text in args.pairs}
        if args.arguments is None:
            check_values(args.tool, read, schema)
        given = {**(args.arguments or {}), **read}
        result = await with_progress(args, lambda tell: client.call(args.tool, given, progress=tell))
        if args.json:
            print_json(result)
        else:
            print(render(result))
        return EXIT_ERROR if result.get("isError") else 0

    return run_session(args, call)


def render(result: Mapping[str, Any]) -> str:
    """Lay a result out for a person; its structured content where there is nothing else."""
    blocks = [render_block(block) for block in result["content"]]
    if not blocks and "structuredContent" in result:
        blocks = [json.dumps(result["structuredContent"], indent=2, ensure_ascii=False)]
    return "\n".join(blocks)


def render_block(block: Mapping[str, Any]) -> str:
    """Lay out one block of content."""
    match block:
        case {"type": "text", "text": text}:
            return str(text)
        case {"type": "resource", "resource": {"text": text}}:
            return str(text)
        case {"type": "resource_link", "uri": uri, "name": name}:
            return f"[{name}]({uri})"
        case {"type": kind, "mimeType": mime_type}:
            return f"[{kind}: {mime_type}]"
        case {"type": "resource", "resource": {"uri": uri}}:
            return f"[resource: {uri}]"
        case _:
            return json.dumps(block, ensure_ascii=False)


def check_keys(tool: str, keys: Sequence[str], schema: Mapping[str, Any]) -> None:
    """Make sure that a tool takes the arguments that a person typed.

    Raises:
        WrongArgument: Its schema names its arguments, and one of these is not among them.
    """
    known = schema.get("properties")
    if not known or schema.get("additionalProperties") or schema.get("patternProperties"):
        return
    for key in keys:
        if key not in known:
            near = suggest(key, known)
            raise WrongArgument(f"{tool} has no argument {key!r}{near}; it is {signature(tool, schema)}")


def check_values(tool: str, given: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Make sure that a tool gets what its schema says that it needs, before it says so in its own words.

    Raises:
        WrongArgument: An argument is missing, or is text where no text will do.
    """
    known = schema.get("properties") or {}
    missing = [key for key in texts_of(schema.get("required")) if key not in given]
    if missing:
        raise WrongArgument(f"{tool} needs {', '.join(missing)}; it is {signature(tool, schema)}")
    for key, value in given.items():
        if isinstance(value, str) and isinstance(known.get(key), dict) and "string" not in types_of(known[key]):
            raise WrongArgument(
                f"{tool} takes {name_type(known[key])} for {key!r}, found {value!r}; it is {signature(tool, schema)}"
            )


pair = explaining(matching(r"(?s)[^=]+=.*", "KEY=VALUE", lambda text: tuple(text.split("=", 1))))
"""How an argument is read."""


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, found {text!r}")
    return value
