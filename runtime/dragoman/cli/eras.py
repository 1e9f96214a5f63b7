"""What may be decided about the bridge between the eras: questions in the middle of a call, tasks, and sealed states.

Lives here: reading the key of the states, and putting the options together. Must not: load the bridge.
"""

from __future__ import annotations

import argparse
import os
import stat
from typing import Any, Final, NamedTuple

from dragoman.cli.options import readable_file

KEY_DIGITS: Final = 64
_MOST_KEYS: Final = 8
_HOW_TO: Final = "openssl rand -hex 32"
_OF_OTHERS: Final = stat.S_IRWXO | stat.S_IWGRP


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
