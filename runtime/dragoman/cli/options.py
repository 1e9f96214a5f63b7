"""Flags, made of the tables of `dragoman.options`.

Only what argparse needs: no command's logic.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import Any, Final

import dragoman_spec
from dragoman import values
from dragoman.options import TRANSLATION, Option
from dragoman.values import READERS, Reader

_WIDTH: Final = 78

DEFAULT_PAGE: Final = ("127.0.0.1", 6300, "http")
"""Where `--inspect` shows its page, if nobody says where: there, or at any port of this machine."""


class HelpFormatter(argparse.HelpFormatter):
    """Lays help out without breaking names at their hyphens, so that they can be copied.

    argparse makes one for each option that is added, and asks what takes long to load how wide the terminal is; where
    stdout is none, it gets the width that it would be told.
    """

    def __init__(self, prog: str) -> None:
        is_none = "COLUMNS" not in os.environ and not os.isatty(1)
        super().__init__(prog, width=_WIDTH if is_none else None)

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


def add_options(parser: argparse._ActionsContainer, options: Iterable[Option]) -> list[argparse.Action]:
    """Make flags of options."""
    return [_add(parser, option) for option in options]


def _add(parser: argparse._ActionsContainer, option: Option) -> argparse.Action:
    flag, about, default = f"--{option.name}", option.about, option.default
    if option.kind == "switch":
        return parser.add_argument(flag, action="store_true", dest=option.argument, help=about)
    if isinstance(option.kind, tuple):
        said: dict[str, Any] = {"choices": option.kind, "metavar": option.placeholder or None}
    else:
        read, metavar = explaining(READERS[option.kind]), METAVARS[option.kind]
        said = {"type": read, "metavar": option.placeholder or metavar}
        default = read(default) if isinstance(default, str) else default
        if option.kind == "page":
            said |= {"nargs": "?", "const": DEFAULT_PAGE}
    if default == ():
        return parser.add_argument(
            flag, action="append", dest=option.argument, default=[], help=f"{about}; may be repeated", **said
        )
    if default is not None:
        note = f", {option.note}" if option.note else ""
        about = f"{about} (default: {option.default}{note})"
    return parser.add_argument(flag, dest=option.argument, default=default, help=about, **said)


def add_group(
    parser: argparse.ArgumentParser, title: str, options: Iterable[Option], first: str = ""
) -> list[argparse.Action]:
    """Make flags of options that belong together; return those that mean nothing without the first, if there is one."""
    return [action for action in add_options(parser.add_argument_group(title), options) if action.dest != first]


def add_seconds(parser: argparse._ActionsContainer, option: str, default_s: float, says: str) -> None:
    """Add an option of one command that takes a duration.

    Args:
        parser: Or a group of options in it.
        option: Such as `--timeout`.
        default_s: What counts without it, in seconds.
        says: For the help.
    """
    _add(parser, Option(option.removeprefix("--"), "seconds", says, default_s))


def add_translation_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--profile`, `--no-rule` and `--rule`, which say how to translate."""
    for action in add_options(parser, TRANSLATION):
        if action.metavar == METAVARS["rule"]:
            is_on = action.dest == "no_rules"
            names = [name for name in dragoman_spec.RULES if (name in dragoman_spec.DEFAULT_RULES) is is_on]
            action.help = f"{action.help} ({', '.join(names)})"


def chosen_rules(args: argparse.Namespace) -> frozenset[str]:
    """Return the repair rules that are on: those on by default, without `--no-rule`, with `--rule`."""
    return frozenset(dragoman_spec.DEFAULT_RULES).difference(args.no_rules).union(args.more_rules)


def explaining(read: Reader) -> Reader:
    """Return what reads as this does, for argparse, which shows what its errors say."""

    def check(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return check


revision, seconds, url = map(explaining, (values.revision, values.seconds, values.url))

METAVARS: Final = {
    "text": "TEXT",
    "seconds": "S",
    "number": "N",
    "count": "N",
    "size": "BYTES",
    "port": "PORT",
    "pairs": "NAME=VALUE",
    "revision": "auto|REV",
    "handshake-revision": "auto|REV",
    "rule": "NAME",
    "address": "URL",
    "page": "URL",
    "path": "PATH",
    "path-or-none": "PATH",
    "host": "HOST",
    "origin": "ORIGIN",
    "file": "FILE",
    "directory": "DIR",
    "certificates": "FILE",
    "state-keys": "FILE",
    "variable": "NAME[=VALUE]",
    "url": "URL",
    "header": "NAME=VALUE",
    "proxy": "URL",
    "implied": "BROAD=NARROW",
}
"""What stands for a value of each kind in the help."""
