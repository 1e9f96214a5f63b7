"""How much work something is, on any machine: a multiple of work that is known, done at the same time.

A limit in seconds fails on a machine that is slow or has other work to do. What is compared here is processor time, and
of both works the least of a few tries, in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

UNIT: Final = """
def unit():
    table = {}
    for number in range(200_000):
        table[number % 1000] = table.get(number % 1000, 0) + number
"""
"""The work that is known, some 20 ms of it; as a text, for what is measured in a process of its own."""

_names: dict[str, Callable[[], None]] = {}
exec(UNIT, _names)  # type: ignore[arg-type]

_TRIES: Final = 3


def seconds(work: Callable[[], object]) -> float:
    """Give the processor time that this thread needs for it."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def effort(work: Callable[[], object]) -> float:
    """Give how many times the unit it is."""
    tries = [(seconds(_names["unit"]), seconds(work)) for _ in range(_TRIES)]
    return min(spent for _, spent in tries) / min(unit for unit, _ in tries)
