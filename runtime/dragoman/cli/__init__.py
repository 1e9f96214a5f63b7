"""The command line. Lives here: finding the command and handing over to its module, which is imported only then.

Each module beside this one has `add_arguments(parser)` and `run(args) -> int`, the exit code. Called by
`dragoman.start`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dragoman.cli.ink import complain
from dragoman.cli.screen import protect_terminals
from dragoman.cli.signals import leave_on_interrupt

if TYPE_CHECKING:
    from dragoman.cli.parsing import CommandParser
    from dragoman.transports.early import Early

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "proxy": "join clients and servers of different revisions, over stdio, HTTP and WebSocket",
        "list": "list what a server offers",
        "call": "call a tool of a server",
        "read": "read a resource of a server",
        "prompt": "get a prompt of a server",
        "status": "show the status of a proxy and its servers",
        "inspect": "show a trace in the browser, or play it back",
        "check": "report where a server breaks the specification",
        "config": "check a configuration file, and the servers in it",
        "wrap": "put the proxy before the servers of a desktop client",
        "unwrap": "take the proxy out of a desktop client's configuration again",
        "login": "sign in to a server, so that a proxy need not ask later",
        "logout": "forget the tokens of a server",
        "tokens": "list the servers that there are tokens for",
        "convert": "convert JSON-RPC frames from one revision to another",
        "diff": "show what changed between two revisions",
        "explain": "show what works between a client and a server, what is emulated, and what is lost",
        "revisions": "list the revisions",
        "demo": "show a client and a server of different revisions talking through the proxy",
        "completion": "write a script that completes command lines in bash, zsh or fish",
    }
)

EXIT_CANNOT_WRITE: Final = 1
EXIT_INTERRUPTED: Final = 130
"""What a shell reports for a program that Ctrl-C ended."""

EXIT_PIPE: Final = 141
"""What a shell reports for a program that died of a closed pipe."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Why what takes our output may take no more."""


def main(argv: Sequence[str] | None = None, early: Early | None = None) -> int:
    """Run the command that the arguments name.

    Args:
        argv: The arguments; None for those of this process, which SIGINT then ends without another word.
        early: The server that they name, if it was started already.

    Returns:
        The exit code.
    """
    if argv is None:
        leave_on_interrupt()
        protect_terminals()
    arguments = [*(sys.argv[1:] if argv is None else argv)]  # `list` is a module of this package, once it is used
    name = f"dragoman {arguments[0]}" if arguments and arguments[0] in COMMANDS else "dragoman"
    try:
        return _run_to_the_end(arguments, owns_process=argv is None, early=early)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return EXIT_PIPE
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        _forget_output()
        with contextlib.suppress(OSError):
            complain(f"{name}: cannot write: {error.strerror}")
        _forget_output()
        return EXIT_CANNOT_WRITE


def _run_to_the_end(arguments: list[str], **about: object) -> int:
    """Run the command, and write out what it has said: what goes wrong with that belongs to it."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # closed by whoever started us: nobody wants to read
    try:
        if arguments[:1] == ["help"]:
            arguments = [*arguments[1:2], "--help"]
        if not arguments or arguments[0] not in COMMANDS:
            return _explain(arguments)
        return _run(arguments[0], arguments[1:], about)
    finally:
        sys.stdout.flush()


def _forget_output() -> None:
    """Let go of what cannot be written: the interpreter tries once more when it ends, and must not fail again."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(name: str, arguments: list[str], about: Mapping[str, object]) -> int:
    options = make_parser(name).parse_args(arguments)
    vars(options).update(about)
    code: int = import_module(f"dragoman.cli.{name}").run(options)
    return code


def make_parser(name: str) -> CommandParser:
    """Return the parser of a command."""
    from dragoman.cli.options import HelpFormatter
    from dragoman.cli.parsing import CommandParser

    what = COMMANDS[name]
    description = f"{what[0].upper()}{what[1:]}."
    parser = CommandParser(prog=f"dragoman {name}", description=description, formatter_class=HelpFormatter)
    import_module(f"dragoman.cli.{name}").add_arguments(parser)
    return parser


def _explain(arguments: list[str]) -> int:
    import argparse

    from dragoman.cli.parsing import CommandParser, suggest

    listed = "\n".join(f"  {name:<11} {what}" for name, what in COMMANDS.items())
    parser = CommandParser(
        prog="dragoman",
        usage="dragoman COMMAND ...",
        description="The interpreter between revisions of the Model Context Protocol.",
        epilog=f"commands:\n{listed}\n\n`dragoman help COMMAND` says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    parser.add_argument("--verbose", action="store_true", help="with --version: what is supported, and what is here")
    if arguments and not arguments[0].startswith("-"):
        near = suggest(arguments[0], COMMANDS)
        parser.error(f"no command {arguments[0]!r}; there are: {', '.join(COMMANDS)}{near}")
    options = parser.parse_args(arguments)
    if options.version:
        from dragoman.cli.versions import show_version

        print(show_version(options.verbose))
        return 0
    parser.print_help(sys.stderr)
    return 2
