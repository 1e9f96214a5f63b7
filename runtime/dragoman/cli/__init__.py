"""The command line. Lives here: finding the command and handing over to its module, which is imported only then.

Each module beside this one has `add_arguments(parser)` and `run(args) -> int`, the exit code. Called by the script
`dragoman` and by `python -m dragoman`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final

from dragoman.cli.signals import leave_on_interrupt

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "proxy": "join clients and servers of different revisions, over stdio, HTTP and WebSocket",
        "convert": "convert JSON-RPC frames from one revision to another",
        "diff": "show what changed between two revisions",
        "revisions": "list the revisions",
        "demo": "show a client and a server of different revisions talking through the proxy",
    }
)

EXIT_INTERRUPTED: Final = 130
"""What a shell reports for a program that Ctrl-C ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name.

    Args:
        argv: The arguments; None for those of this process, which SIGINT then ends without another word.

    Returns:
        The exit code.
    """
    if argv is None:
        leave_on_interrupt()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] not in COMMANDS:
        return _explain(arguments)
    try:
        return _run(arguments[0], arguments[1:], owns_process=argv is None)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _run(name: str, arguments: list[str], owns_process: bool) -> int:
    module = import_module(f"dragoman.cli.{name}")
    formatter = import_module("dragoman.cli.options").HelpFormatter
    what = COMMANDS[name]
    description = f"{what[0].upper()}{what[1:]}."
    parser = argparse.ArgumentParser(prog=f"dragoman {name}", description=description, formatter_class=formatter)
    module.add_arguments(parser)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        hint = "; options of the server's command come after `--`" if name == "proxy" and "--" not in arguments else ""
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    options.owns_process = owns_process
    code: int = module.run(options)
    return code


def _explain(arguments: list[str]) -> int:
    listed = "\n".join(f"  {name:<10} {what}" for name, what in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="dragoman",
        usage="dragoman COMMAND ...",
        description="The interpreter between revisions of the Model Context Protocol.",
        epilog=f"commands:\n{listed}\n\n`dragoman COMMAND --help` says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args(arguments)
    if options.version:
        from importlib.metadata import version

        print(f"dragoman {version('dragoman')}")
        return 0
    if options.command is not None:
        parser.error(f"no command {options.command!r}; there are: {', '.join(COMMANDS)}")
    parser.print_help(sys.stderr)
    return 2
