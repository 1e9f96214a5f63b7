"""`dragoman prompt`: get a prompt of a server. Lives here: its messages for a person. Called by `dragoman.cli`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dragoman.cli.call import pair, render_block
from dragoman.cli.list import prompt_signature
from dragoman.cli.parsing import suggest
from dragoman.cli.screen import print_json
from dragoman.cli.session import OwnerOf, WrongArgument, add_session_arguments, find_listed, run_session, with_progress

if TYPE_CHECKING:
    from dragoman.cli.parsing import CommandParser
    from dragoman.client.client import Client


def add_arguments(parser: CommandParser) -> None:
    """Describe the command line of `prompt`."""
    parser.add_argument("prompt", metavar="PROMPT", help="its name, as `dragoman list prompts` shows it")
    parser.add_argument("pairs", nargs="*", default=[], type=pair, metavar="KEY=VALUE", help="an argument, as text")
    add_session_arguments(parser, "PROMPT [KEY=VALUE ...]")


def run(args: argparse.Namespace) -> int:
    """Get the prompt and print its messages."""

    async def get(client: Client, _: OwnerOf) -> int:
        given = dict(args.pairs)
        if listed := await find_listed(client, "prompt", args.prompt):
            _check_keys(listed, given)
        result = await with_progress(args, lambda tell: client.prompt(args.prompt, given, progress=tell))
        if args.json:
            print_json(result)
        else:
            print("\n".join(f"{one['role']}: {render_block(one['content'])}" for one in result["messages"]))
        return 0

    return run_session(args, get)


def _check_keys(prompt: Mapping[str, Any], given: Mapping[str, str]) -> None:
    known = [one["name"] for one in prompt.get("arguments") or ()]
    wrong = [key for key in given if key not in known]
    if wrong:
        near = suggest(wrong[0], known)
        raise WrongArgument(f"the prompt has no argument {wrong[0]!r}{near}; it is {prompt_signature(prompt)}")
