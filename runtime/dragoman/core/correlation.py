"""Which request a response answers: one table per direction.

Lives here: ids that are waiting for an answer, with the method that was asked, and those that were cancelled. Must
not: look into frames. Called by `core.session`.

Ids pass unchanged: one client faces one server, so neither needs ids of ours, and progress tokens need no table at all.
They are kept as canonical JSON, so that `1` and `"1"` are two ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dragoman.core.batches import Batch

CANCELLED_KEPT = 1024
"""How many cancelled requests are remembered, in case their answer was already on its way."""


@dataclass(slots=True)
class Asked:
    """A request that waits for its answer."""

    method: str
    batch: Batch | None = None


@dataclass(slots=True)
class InFlight:
    """The requests that one peer has sent and that are not answered yet."""

    waiting: dict[bytes, Asked] = field(default_factory=dict)
    cancelled: dict[bytes, Asked] = field(default_factory=dict)

    def add(self, key: bytes, asked: Asked) -> bool:
        """Remember a request; False when the same id is already waiting."""
        if key in self.waiting:
            return False
        self.waiting[key] = asked
        return True

    def take(self, key: bytes) -> Asked | None:
        """Take the request that a response answers off the table; None for an unknown or late response."""
        return self.waiting.pop(key, None) or self.cancelled.pop(key, None)

    def cancel(self, key: bytes) -> Batch | None:
        """Note that the sender does not wait any more; give the batch that the request was part of, if any.

        The method is remembered, within bounds: the spec lets the answer cross with the cancellation, and the
        sender, not we, decides whether to ignore it.
        """
        asked = self.waiting.pop(key, None)
        if asked is None:
            return None
        self.cancelled[key] = Asked(asked.method)
        while len(self.cancelled) > CANCELLED_KEPT:
            del self.cancelled[next(iter(self.cancelled))]
        return asked.batch

    def take_all(self) -> list[tuple[bytes, Asked]]:
        """Take every request that still waits, oldest first."""
        taken = list(self.waiting.items())
        self.waiting.clear()
        return taken
