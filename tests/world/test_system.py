"""The one place where a world gets its clock and its random numbers: nothing in the runtime reaches past it."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman
from tests.world.system import BEGINS_AT_S, System, installed

RUNTIME = Path(dragoman.__file__).parent
REACHED = {"time": {"time", "monotonic", "monotonic_ns"}, "random": {"random"}, "uuid": {"uuid4"}}
REACHED["os"] = {
    "urandom",
    "pipe",
    "dup",
    "close",
    "read",
    "write",
    "writev",
    "fstat",
    "killpg",
    "waitpid",
    "pidfd_open",
}
REACHED |= {"subprocess": {"Popen"}, "fcntl": {"fcntl", "ioctl"}}
REACHED["secrets"] = {"token_bytes", "token_urlsafe", "token_hex"}
UNKNOWN = {
    "perf_counter",
    "time_ns",
    "uuid1",
    "SystemRandom",
    "getrandom",
    "utcnow",
    "today",
}


def names_of_system(path: Path) -> Iterator[str]:
    """Give the places of a module that would keep what a world replaces, or use what it does not replace."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in REACHED:
            kept = {alias.name for alias in node.names} & (REACHED[node.module] | UNKNOWN)
            yield from (f"{path.name}:{node.lineno}: from {node.module} import {name}" for name in kept)
        if isinstance(node, ast.Attribute) and node.attr in UNKNOWN:
            yield f"{path.name}:{node.lineno}: {node.attr}"


def test_the_runtime_reaches_for_clock_and_chance_by_their_modules() -> None:
    found = [place for path in sorted(RUNTIME.rglob("*.py")) for place in names_of_system(path)]
    assert found == []


def test_a_function_that_was_kept_asks_the_world_while_one_runs_and_the_system_afterwards() -> None:
    with installed(System("a")):
        kept = time.monotonic
        assert kept() == BEGINS_AT_S
    assert kept() != BEGINS_AT_S
    assert abs(kept() - time.monotonic()) < 60


def test_worlds_of_one_seed_have_the_same_random_numbers() -> None:
    def numbers(seed: str) -> list[object]:
        import os
        import secrets
        import uuid

        with installed(System(seed)):
            return [os.urandom(4), secrets.token_urlsafe(8), uuid.uuid4()]

    assert numbers("a") == numbers("a") != numbers("b")


def test_nothing_is_replaced_when_no_world_runs() -> None:
    before = time.time
    with pytest.raises(ValueError, match="it fails"), installed(System("a")):
        raise ValueError("it fails")
    assert time.time is before
