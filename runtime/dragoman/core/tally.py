"""Counting what may come as a flood, so that its log does not.

Lives here: which of many alike events gets a line. Must not: log, or read a clock. Called wherever a peer chooses how
often something is refused.
"""

from __future__ import annotations

from typing import Final

_PAUSE_S: Final = 1.0


def deserves_a_line(count: int) -> bool:
    """Whether the event with this number is logged: the 1st, the 10th, the 100th and so on."""
    return str(count).rstrip("0") == "1"


class Lines:
    """Lets a line of each kind through once a second, where the time is known."""

    def __init__(self) -> None:
        self._free_at: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def admit(self, kind: str, now: float) -> int | None:
        """Return how many lines of this kind were left out since the last one; None where this one is, too.

        Args:
            kind: One of few names of ours.
            now: The time, in seconds.
        """
        if now < self._free_at.get(kind, now):
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return None
        self._free_at[kind] = now + _PAUSE_S
        return self._left_out.pop(kind, 0)
