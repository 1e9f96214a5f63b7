"""One session with a server, for the commands that ask it something: how it is named, opened, and how it may fail.

Lives here: the options that these commands share, and exit codes. Must not: say what is asked (`list`, `call`, `read`),
nor how a person is asked (`terminal`). The client library, and asyncio with it, is imported only when used.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import dragoman_spec
from dragoman.cli.checks import check_options
from dragoman.cli.child import Launcher, add_child_arguments
from dragoman.cli.ink import complain
from dragoman.cli.known import know_server
from dragoman.cli.options import add_options, add_seconds, explaining
from dragoman.cli.parsing import CommandParser, suggest
from dragoman.cli.progress import ProgressLine, is_watched
from dragoman.cli.signals import raise_on_interrupt
from dragoman.cli.stderr import ServerWords
from dragoman.cli.upstream import add_upstream_arguments, choose_loop, opener_of_server
from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.errors import (
    CapabilityNotSupported,
    ConnectionClosed,
    Error,
    InitializationTimeout,
    McpError,
    RequestTimeout,
)
from dragoman.options import KNOWN, LOG_LEVEL
from dragoman.values import revision_among

if TYPE_CHECKING:
    from dragoman.client.client import Client
    from dragoman.client.connect import Connection
    from dragoman.config import Configuration

EXIT_ERROR: Final = 1
"""The server answered with an error, or the tool with a result that says so."""

EXIT_USAGE: Final = 2
"""The command line is wrong, or does not fit the server."""

EXIT_GONE: Final = 3
"""The server could not be started or reached, or has gone."""

EXIT_UNFIT: Final = 4
"""The server speaks another revision, did not declare what is asked for, or its answer is not valid."""

EXIT_TIMEOUT: Final = 5
"""It did not answer in time."""


_PATIENCE_S: Final = 2.0
"""After how many seconds it is said for whom a command waits, and how often it is looked whether that has changed."""

_SHARE: Final = 0.9
"""How much of the time that a command may wait is for servers: then it is told of those that have answered."""


def add_session_arguments(parser: CommandParser, asked: str) -> None:
    """Describe the options.

    Args:
        parser: Of the command.
        asked: What stands on the command line beside options, for the usage.
    """
    parser.add_argument(
        "--revision",
        type=explaining(revision_among("any", *dragoman_spec.REVISIONS)),
        default="any",
        metavar="any|REV",
        help="revision to speak; a server that speaks another one is an error (default: any, which is the newest, "
        "translated to whatever the server speaks)",
    )
    parser.add_argument("--json", action="store_true", help="print what the server answered as JSON")
    add_seconds(parser, "--timeout", 60, "how long an answer may take, without progress")
    add_options(parser, (LOG_LEVEL, KNOWN))
    add_server_arguments(parser, asked, "all of them, as one")


def add_server_arguments(parser: CommandParser, asked: str, otherwise: str = "the only one") -> None:
    """Describe the options that name a server.

    Args:
        parser: Of the command.
        asked: What stands on the command line beside options, for the usage.
        otherwise: Which server of a configuration file is meant if none is named.
    """
    asked = f" {asked}" if asked else ""
    parser.usage = f"%(prog)s [OPTION ...]{asked} (-- COMMAND [ARG ...] | --url URL | --config FILE [--server NAME])"
    group = parser.add_argument_group("a server of a configuration file")
    group.add_argument("--config", metavar="FILE", help="the file in which a client names its servers")
    whose = f"which server of the file (default: {otherwise}); without --config, of the files of your clients"
    group.add_argument("--server", metavar="NAME", help=whose)
    parser.add_argument(
        "--server-stderr",
        action="store_true",
        help="show what the server writes on its stderr as it comes, not only the end of it where something fails",
    )
    company = {"--url": add_upstream_arguments(parser), "COMMAND": add_child_arguments(parser)}
    parser.hide(one for options in company.values() for one in options if one.dest not in ("headers", "variables"))
    defaults: dict[str, Any] = {"listen": None, "scope": "client", "max_parked": 256, "stderr": None, "watcher": None}
    defaults |= {"no_rules": [], "more_rules": [], "configuration": None}
    parser.set_defaults(
        usage_error=parser.error, company=company, splits_command=True, command=[], owns_process=False, **defaults
    )


def check_server_arguments(args: argparse.Namespace, takes_several: bool = False) -> None:
    """End with a usage error unless the options name one server, or, where that will do, several in one file."""
    if args.server is not None and not (args.command or args.url or args.config):
        from dragoman.cli.named import find_in_clients

        find_in_clients(args)
    check_options(args)
    if args.config is not None:
        from dragoman.cli.named import take_from_config

        take_from_config(args, takes_several)


OwnerOf = Callable[[str, str], str | None]
"""Says which server of a configuration file has a tool, resource, template or prompt of this name."""


class WrongArgument(Exception):
    """What was typed does not fit what the server has: why."""


async def with_progress(
    args: argparse.Namespace, ask: Callable[[Callable[[Any], None]], Awaitable[Any]]
) -> dict[str, Any]:
    """Return what a server answers, and show meanwhile how far it says that it is.

    Args:
        args: Of a command that has a session.
        ask: Asks it, with what is told of its progress.
    """
    try:
        answer: dict[str, Any] = (await ask(args.line.tell)).model_dump()
        return answer
    finally:
        args.line.close()


async def find_listed(client: Client, kind: str, name: str) -> Mapping[str, Any]:
    """Return what a server lists of a tool or a prompt; nothing where it has no such list.

    Raises:
        WrongArgument: There is a list, and the name is not on it.
    """
    names = []
    try:
        async for one in getattr(client, f"{kind}s")():
            if one.name == name:
                found: dict[str, Any] = one.model_dump()
                return found
            names.append(one.name)
    except (CapabilityNotSupported, McpError) as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        return {}
    listed = f"it has: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}" if names else "it has none"
    raise WrongArgument(f"the server has no {kind} {name!r}{suggest(name, names) or f'; {listed}'}")


def run_session(args: argparse.Namespace, work: Callable[[Client, OwnerOf], Awaitable[int]]) -> int:
    """Open a session, do the work in it, and return the exit code."""
    check_server_arguments(args, takes_several=True)
    import asyncio
    import logging

    from dragoman.cli.logs import LOSSES, demote, set_up_logging

    set_up_logging(args.log_level)
    demote(LOSSES)  # a person who looks at a server in its newest form misses none of them
    for name in ("dragoman.proxy", "dragoman.session"):  # how sessions fail: we say so ourselves, once
        demote(name, to="DEBUG")
    raise_on_interrupt()
    words = ServerWords(is_kept=not args.server_stderr)
    if args.owns_process:
        args.stderr = words.carry()
        logging.getLogger("dragoman.waiting").addFilter(words.show_and_go_on)
    args.line = ProgressLine(is_watched())
    try:
        with asyncio.Runner(loop_factory=choose_loop() if args.url or args.configuration else None) as runner:
            code = runner.run(_serve(args, work, words))
    except WrongArgument as error:
        complain(f"dragoman: {error}")
        return EXIT_USAGE
    except BaseException as error:
        words.show()
        if not isinstance(error, Error):
            raise
        complain(f"dragoman: {error}")
        return exit_code_of(error)
    if code:
        words.show()
    return code


def exit_code_of(error: Error) -> int:
    """Return what an error is to the shell."""
    match error:
        case McpError():
            return EXIT_ERROR
        case ConnectionClosed():
            return EXIT_GONE
        case RequestTimeout() | InitializationTimeout():
            return EXIT_TIMEOUT
        case _:
            return EXIT_UNFIT


async def _serve(
    args: argparse.Namespace, work: Callable[[Client, OwnerOf], Awaitable[int]], words: ServerWords
) -> int:
    import asyncio

    from dragoman.cli.terminal import Questions
    from dragoman.client.connect import connect
    from dragoman.config.opening import opener_of
    from dragoman.core.lines import DEFAULT_LIMIT_BYTES

    revision = dragoman_spec.LATEST if args.revision == "any" else args.revision
    can_ask = "elicitation" in dragoman_spec.facts(revision).asked.values()
    connection = connect(
        _with_patience(args) or opener_of_server(args, Launcher(args), DEFAULT_LIMIT_BYTES),
        args.revision,
        know=functools.partial(know_server, args),
        timeout_s=args.timeout,
        init_timeout_s=args.timeout,
        elicitation=Questions(revision, os.isatty(0), args.line.close).answer if can_ask else None,
        open_server=functools.partial(opener_of, stderr=args.stderr),
        trace=args.watcher,
    )
    async with contextlib.AsyncExitStack() as stack:
        saying = asyncio.ensure_future(_say_for_whom(connection))
        stack.callback(saying.cancel)
        try:
            client = await stack.enter_async_context(connection)
        finally:
            words.is_opening = False
        try:
            return await work(client, connection.owner_of)
        except WrongArgument as error:
            absent = dict.fromkeys([*connection.out_of_use, *connection.waited_for])
            raise WrongArgument(
                f"{error}; not asked, or silent: {', '.join(absent)}" if absent else str(error)
            ) from None


def _with_patience(args: argparse.Namespace) -> Configuration | None:
    """Return the servers of a file, all of which are waited for: who lists once may see none of them later."""
    configuration: Configuration | None = args.configuration
    if configuration is None:
        return None
    for_all = replace(configuration.options, list_timeout_s=_SHARE * args.timeout, open_timeout_s=_SHARE * args.timeout)
    servers = (replace(one, options=replace(one.options, list_timeout_s=None)) for one in configuration.servers)
    return replace(configuration, options=for_all, servers=tuple(servers))


async def _say_for_whom(connection: Connection) -> None:
    """Say on stderr which of several servers are waited for, when that takes long, and when it changes."""
    import asyncio

    from dragoman.cli.screen import shown

    said: list[str] = []
    while True:
        await asyncio.sleep(_PATIENCE_S)
        if (waited_for := connection.waited_for) and waited_for != said:
            print(shown(f"dragoman: waiting for {', '.join(waited_for)}"), file=sys.stderr)
        said = waited_for
