"""`dragoman prompt`: get a prompt of a server. Lives here: its messages for a person. Called by `dragoman.cli`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dragoman.cli.call import pair, render_block
from dragoman.cli.list import prompt_signature
from dragoman.cli.parsing import suggest
from dragoman.cli.screen import print_json
from dragoman.cli.session import OwnerOf, WrongArgument, add_session_arguments, run_session
from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.errors import CapabilityNotSupported, McpError

if TYPE_CHECKING:
    from dragoman.client.client import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `prompt`."""
    parser.add_argument("prompt", metavar="PROMPT", help="its name, as `dragoman list prompts` shows it")
    parser.add_argument("pairs", nargs="*", default=[], type=pair, metavar="KEY=VALUE", help="an argument, as text")
    add_session_arguments(parser, "PROMPT [KEY=VALUE ...]")


def run(args: argparse.Namespace) -> int:
    """Get the prompt and print its messages."""

    async def get(client: Client, _: OwnerOf) -> int:
        await _check(client, args.prompt, dict(args.pairs))
        result = (await client.prompt(args.prompt, dict(args.pairs))).model_dump()
        if args.json:
            print_json(result)
        else:
            print("\n".join(f"{one['role']}: {render_block(one['content'])}" for one in result["messages"]))
        return 0

    return run_session(args, get)


async def _check(client: Client, name: str, given: Mapping[str, str]) -> None:
    """Make sure that there is such a prompt, and that it takes these arguments.

    Raises:
        WrongArgument: The server lists its prompts, and not this one, or not with these arguments.
    """
    names = []
    try:
        async for prompt in client.prompts():
            if prompt.name == name:
                _check_keys(prompt.model_dump(), given)
                return
            names.append(prompt.name)
    except (CapabilityNotSupported, McpError) as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        return
    listed = f"; it has: {', '.join(names)}" if names else "; it has none"
    raise WrongArgument(f"the server has no prompt {name!r}{suggest(name, names) or listed}")


def _check_keys(prompt: dict[str, Any], given: Mapping[str, str]) -> None:
    known = [one["name"] for one in prompt.get("arguments") or ()]
    wrong = [key for key in given if key not in known]
    if wrong:
        near = suggest(wrong[0], known)
        raise WrongArgument(f"the prompt has no argument {wrong[0]!r}{near}; it is {prompt_signature(prompt)}")
