"""Waiting for several servers that are asked the same: for all of them, but not for ever.

Lives here: who is still waited for, and who is left out. Must not: ask, or know the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

WaitedT = TypeVar("WaitedT")


class Gathering(Generic[WaitedT]):
    """What several servers are asked at once; it goes on once, when nobody is waited for any more.

    Args:
        then: How it goes on.

    Attributes:
        pending: Who is waited for.
        missing: Which servers it goes on without, and why.
        is_over: Whether it has gone on.
    """

    def __init__(self, then: Callable[[Gathering[WaitedT]], None]) -> None:
        self.pending: set[WaitedT] = set()
        self.missing: dict[str, str] = {}
        self.is_over = False
        self._then = then

    def settle(self, one: WaitedT) -> None:
        """Wait no more for one of them."""
        self.pending.discard(one)
        if not self.pending:
            self.finish()

    def finish(self) -> None:
        """Go on, with what is known."""
        if not self.is_over:
            self.is_over = True
            self._then(self)
