"""`dragoman call`: call a tool. Lives here: its arguments, and its result for a person. Called by `dragoman.cli`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dragoman.cli.session import EXIT_ERROR, add_session_arguments, run_session
from dragoman.cli.values import read_value

if TYPE_CHECKING:
    from dragoman.client.client import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `call`."""
    parser.add_argument("tool", metavar="TOOL", help="its name")
    parser.add_argument(
        "pairs",
        nargs="*",
        default=[],
        type=_pair,
        metavar="KEY=VALUE",
        help="an argument: JSON where the tool's input schema takes what that gives, text otherwise",
    )
    parser.add_argument(
        "--arguments",
        type=_object,
        default={},
        metavar="JSON",
        help="the arguments as a JSON object; KEY=VALUE adds to it",
    )
    add_session_arguments(parser, "TOOL [KEY=VALUE ...]")


def run(args: argparse.Namespace) -> int:
    """Call the tool and print what it gives."""

    async def call(client: Client) -> int:
        schema = await _schema_of(client, args.tool) if args.pairs else {}
        read = {key: read_value(text, schema.get(key)) for key, text in args.pairs}
        result = (await client.call(args.tool, {**args.arguments, **read})).model_dump()
        print(json.dumps(result, indent=2, ensure_ascii=False) if args.json else render(result))
        return EXIT_ERROR if result.get("isError") else 0

    return run_session(args, call)


def render(result: Mapping[str, Any]) -> str:
    """Lay a result out for a person; its structured content where there is nothing else."""
    from dragoman.cli.terminal import shown

    blocks = [_render_block(block) for block in result["content"]]
    if not blocks and "structuredContent" in result:
        blocks = [json.dumps(result["structuredContent"], indent=2, ensure_ascii=False)]
    text = "\n".join(blocks)
    return shown(text) if sys.stdout.isatty() else text


def _render_block(block: Mapping[str, Any]) -> str:
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


async def _schema_of(client: Client, name: str) -> Mapping[str, Any]:
    async for tool in client.tools():
        if tool.name == name:
            properties = tool.model_dump()["inputSchema"].get("properties", {})
            return properties if isinstance(properties, dict) else {}
    return {}


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, found {text!r}")
    return key, value


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, found {text!r}")
    return value
