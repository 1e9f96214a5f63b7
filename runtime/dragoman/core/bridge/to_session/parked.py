"""Calls that wait for their clients to come back, at one server: which there are, and who gives a place to another."""

from __future__ import annotations

from collections import Counter

from dragoman.core.bridge.to_session.works import Work
from dragoman.core.places import find_giver


class ParkedCalls:
    """The calls that have asked something, also those whose clients are there.

    Args:
        most: How many there may be.

    Attributes:
        calls: By name; the one whose client was asked last is last.
        gave_way: The names of those that gave their place to another.
    """

    __slots__ = ("_most", "calls", "gave_way")

    def __init__(self, most: int) -> None:
        self.calls: dict[str, Work] = {}
        self.gave_way: dict[str, None] = {}
        self._most = most

    def has_room(self, work: Work) -> bool:
        """Whether this one may be parked, too."""
        return len(self.calls) < self._most or self._find_oldest(work) is not None

    def add(self, work: Work) -> Work | None:
        """Park a call; give the one that has to give it its place."""
        oldest = self._find_oldest(work) if len(self.calls) >= self._most else None
        self.calls[work.name] = work
        if oldest is not None:
            self.gave_way[oldest.name] = None
            if len(self.gave_way) > self._most:
                del self.gave_way[next(iter(self.gave_way))]
        return oldest

    def _find_oldest(self, work: Work) -> Work | None:
        giver = find_giver(work.holder, Counter(one.holder for one in self.calls.values()))
        return next((one for one in self.calls.values() if one.holder == giver and one.request is None), None)
