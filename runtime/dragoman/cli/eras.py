"""What may be decided about the bridge between the eras: questions in the middle of a call, tasks, and sealed states.

Lives here: the flags, and reading the key of the states. Must not: load the bridge. Called by `cli.proxy`.
"""

from __future__ import annotations

import argparse
import os
import stat
from typing import Any, Final, NamedTuple

from dragoman.cli.checks import readable_file
from dragoman.cli.options import add_seconds, count, seconds

QUESTIONS: Final = ("auto", "task", "park", "replay", "refuse")
"""As `core.bridge.strategy.SETTINGS` has it; that is not loaded for a command line."""

KEY_DIGITS: Final = 64
_MOST_KEYS: Final = 8
_HOW_TO: Final = "openssl rand -hex 32"
_OF_OTHERS: Final = stat.S_IRWXO | stat.S_IWGRP


def add_era_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the flags."""
    group = parser.add_argument_group("clients without a handshake, with servers that have one")
    group.add_argument(
        "--questions",
        choices=QUESTIONS,
        default="auto",
        help="how a client is asked if the server has a question in the middle of a call: in a "
        "task, by parking the call until the client comes back, by making it twice, or not "
        "at all (default: %(default)s, which is a task if the client takes tasks, "
        "else parking)",
    )
    group.add_argument(
        "--repeatable",
        action="append",
        default=[],
        metavar="TOOL",
        help="a tool that may run twice so that its question can be asked, beside those whose "
        "annotations say so; may be repeated",
    )
    add_seconds(group, "--answer-timeout", 600, "how long a parked call waits for its client to come back")
    group.add_argument(
        "--max-parked",
        type=count,
        default=256,
        metavar="N",
        help="how many calls, and how many tasks, may wait for clients (default: 256)",
    )
    add_seconds(group, "--task-ttl", 3600, "how long a task is kept from its beginning")
    group.add_argument(
        "--roots-ttl",
        type=seconds,
        metavar="S",
        help="how long the roots that a client has named are given to servers without asking it "
        "again (default: not at all)",
    )
    group.add_argument(
        "--state-key-file",
        type=state_key_file,
        metavar="FILE",
        help=f"{KEY_DIGITS} hexadecimal digits that seal what clients carry for us, so that it is good after a restart "
        f"and in other proxies with this key: {_HOW_TO}; keys on further lines only open what they sealed before (made "
        "at start if absent)",
    )
    group.add_argument(
        "--server-name",
        metavar="NAME",
        help="what clients are told that the server is called, if it does not say; states are good under this name "
        "alone",
    )


class StateKeys(NamedTuple):
    """What is in the file of the keys."""

    file: str
    keys: tuple[bytes, ...]


def state_key_file(text: str) -> StateKeys:
    """Read the keys of a file, for argparse; no message shows what is in it.

    Raises:
        argparse.ArgumentTypeError: It has none, or others can read or change it.
    """
    readable_file(text)
    with open(text, "rb") as file:
        found = os.fstat(file.fileno())
        raw = file.read((_MOST_KEYS + 1) * (KEY_DIGITS + 2))
    if stat.S_ISREG(found.st_mode) and found.st_mode & _OF_OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise argparse.ArgumentTypeError(f"{text} can be used by others (mode {mode:03o}): chmod 600 {text}")
    lines = raw.decode("latin-1").split()
    wrong = [line for line in lines or [""] if len(line) != KEY_DIGITS]
    if wrong or len(lines) > _MOST_KEYS:
        found_so = f"{len(wrong[0])} characters" if wrong else f"more than {_MOST_KEYS} keys"
        raise argparse.ArgumentTypeError(
            f"expected {KEY_DIGITS} hexadecimal digits in {text}, found {found_so}; make a key with: {_HOW_TO}"
        )
    try:
        return StateKeys(text, tuple(map(bytes.fromhex, lines)))
    except ValueError:
        reason = f"expected hexadecimal digits alone in {text}; make a key with: {_HOW_TO}"
        raise argparse.ArgumentTypeError(reason) from None


def chosen_bridging(args: argparse.Namespace) -> dict[str, Any]:
    """Give the part of `ProxyConfig` that the flags decide."""
    return {
        "questions": args.questions,
        "repeatable": frozenset(args.repeatable),
        "parked_s": args.answer_timeout,
        "most_parked": args.max_parked,
        "task_s": args.task_ttl,
        "roots_ttl_s": args.roots_ttl or 0.0,
        "state_key": None if args.state_key_file is None else args.state_key_file.keys,
        "server_name": args.server_name or "",
    }
