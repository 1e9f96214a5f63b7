"""Places that several share: who gets another one, and who gives one back for somebody else.

A place that is soon free again is not given to whoever has as many as are left, so one is left. What is held for long
may be taken back: then all places may be one's, and whoever has most gives one to another. And tables that forget.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def has_place(holder: Hashable, holders: Iterable[Hashable], taken: int, most: int) -> bool:
    """Whether one more may be taken.

    Args:
        holder: Who wants it; empty where nobody has a share.
        holders: Who has the others.
        taken: How many these are.
        most: How many there are.
    """
    left = most - taken
    return taken < left or (left > 0 and not (holder and sum(one == holder for one in holders) >= left))


def find_giver(holder: Hashable, taken: Mapping[Hashable, int]) -> Hashable:
    """Find out who gives a place to another of this holder's where all are taken: who would have most then.

    Who has one more than the holder gives none: they would only change places.

    Args:
        holder: Who wants it.
        taken: How many each has.
    """
    giver = max(taken, key=taken.__getitem__, default=holder)
    return giver if taken.get(giver, 0) > taken.get(holder, 0) + 1 else holder


def keep_latest(table: dict[K, V], key: K, value: V, most: int) -> None:
    """Put something into a table of so many, as the latest; the oldest is forgotten for it."""
    table.pop(key, None)
    table[key] = value
    if len(table) > most:
        del table[next(iter(table))]
