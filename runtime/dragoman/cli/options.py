"""Command-line options that several commands share, and how their values are checked.

Only what argparse needs: no command's logic. Called by the modules beside it.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable

import dragoman_spec


class HelpFormatter(argparse.HelpFormatter):
    """Lays help out without breaking names at their hyphens, so that they can be copied."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


def revision_among(*allowed: str) -> Callable[[str], str]:
    """Make the check of an option that names a revision, for argparse.

    Args:
        allowed: Revisions, and words such as `auto`.
    """

    def check(text: str) -> str:
        if text in allowed:
            return text
        why = f"there is no revision {text!r}"
        if text in dragoman_spec.REVISIONS:
            why = f"{text} has no handshake: a client of it says so with each request"
        raise argparse.ArgumentTypeError(f"{why}; choose from: {', '.join(allowed)}")

    return check


revision = revision_among(*dragoman_spec.REVISIONS)
"""The check where any revision will do."""


def rule_name(text: str) -> str:
    """Check the name of a repair rule, for argparse.

    Raises:
        argparse.ArgumentTypeError: none of ours; the text names those there are.
    """
    if text not in dragoman_spec.RULES:
        raise argparse.ArgumentTypeError(f"there is no rule {text!r}; the rules are: {', '.join(dragoman_spec.RULES)}")
    return text


def add_translation_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--profile`, `--no-rule` and `--rule`, which say how to translate."""
    parser.add_argument(
        "--profile",
        choices=("strict", "minimal"),
        default="strict",
        help="strict drops every field that the target revision does not name, minimal only what validity needs "
        "(default: %(default)s)",
    )
    defaults = dragoman_spec.DEFAULT_RULES
    for option, dest, verb, names in (
        ("--no-rule", "no_rules", "off", [name for name in dragoman_spec.RULES if name in defaults]),
        ("--rule", "more_rules", "on", [name for name in dragoman_spec.RULES if name not in defaults]),
    ):
        parser.add_argument(
            option,
            dest=dest,
            action="append",
            default=[],
            type=rule_name,
            metavar="NAME",
            help=f"turn {verb} a repair rule; may be repeated ({', '.join(names)})",
        )


def chosen_rules(args: argparse.Namespace) -> frozenset[str]:
    """Give the repair rules that are on: those on by default, without `--no-rule`, with `--rule`."""
    return frozenset(dragoman_spec.DEFAULT_RULES).difference(args.no_rules).union(args.more_rules)


def whole_number(text: str) -> int:
    """Read a number of things, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not one, or below zero.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, found {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """Read a duration, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not a number, or not above zero.
    """
    try:
        duration_s = float(text)
    except ValueError:
        duration_s = 0.0
    if not 0 < duration_s < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, found {text!r}")
    return duration_s


def add_seconds(parser: argparse._ActionsContainer, option: str, default_s: float, says: str) -> None:
    """Add an option that takes a duration.

    Args:
        parser: Or a group of options in it.
        option: Such as `--timeout`.
        default_s: What counts without it, in seconds.
        says: For the help.
    """
    parser.add_argument(option, type=seconds, default=default_s, metavar="S", help=f"{says} (default: {default_s:g})")


def add_log_level(parser: argparse._ActionsContainer) -> None:
    """Add `--log-level`."""
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error", "critical"),
        default="warning",
        help="the least important lines of the log that go to stderr (default: %(default)s)",
    )


def count(text: str) -> int:
    """Read a number of things, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is not a number, or not above zero.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return int(text)
