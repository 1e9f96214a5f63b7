"""Which request a response answers: one table per direction.

Lives here: ids that are waiting for an answer, with the method that was asked, and those that were cancelled. Must
not: look into frames, but for the id that a cancellation names. Called by `core.exchange`.

Ids pass unchanged: one client faces one server, so neither needs ids of ours, and progress tokens need no table at all.
They are kept as canonical JSON, so that `1` and `"1"` are two ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from dragoman.core.batches import Batch
from dragoman.core.envelope import Frame, key_of
from dragoman.core.exact_json import decode

CANCELLED_KEPT: Final = 1024
"""How many cancelled requests are remembered, in case their answer was already on its way."""

NAME_BYTES: Final = 1024
"""How long the id and the method of a request may be together: both are kept until it is answered."""

OPEN_REQUESTS: Final = 4096
"""How many requests of one peer may be unanswered, unless told otherwise."""


class Unfit(Enum):
    """Why a request is not taken in."""

    DUPLICATE = "its id belongs to a request that is not answered yet"
    TOO_MANY = "too many requests are unanswered"
    TOO_LONG = "its id and method are too long to be kept"


@dataclass(slots=True)
class Asked:
    """A request that waits for its answer."""

    method: str
    batch: Batch | None = None


@dataclass(slots=True)
class InFlight:
    """The requests that one peer has sent and that are not answered yet.

    Attributes:
        limit: How many there may be.
        waiting: Those that wait for their answer, by id.
        cancelled: Those that were cancelled, by id.
    """

    limit: int = OPEN_REQUESTS
    waiting: dict[bytes, Asked] = field(default_factory=dict)
    cancelled: dict[bytes, Asked] = field(default_factory=dict)

    def add(self, key: bytes, asked: Asked) -> Unfit | None:
        """Remember a request; give the reason where it cannot be."""
        waiting = self.waiting
        if key in waiting:
            return Unfit.DUPLICATE
        if len(waiting) >= self.limit:
            return Unfit.TOO_MANY
        if len(key) + len(asked.method) > NAME_BYTES:
            return Unfit.TOO_LONG
        if self.cancelled:  # an id that is used again has one answer, not two
            self.cancelled.pop(key, None)
        waiting[key] = asked
        return None

    def fits(self, requests: dict[bytes, Asked]) -> bool:
        """Whether all these could be added."""
        short = all(len(key) + len(asked.method) <= NAME_BYTES for key, asked in requests.items())
        return short and len(self.waiting) + len(requests) <= self.limit and self.waiting.keys().isdisjoint(requests)

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


def cancelled_key(frame: Frame) -> bytes | None:
    """Give the id that a `notifications/cancelled` names, if it names one."""
    try:
        body = decode(frame.raw) if frame.body is None else frame.body
    except ValueError:
        return None
    params = body.get("params")
    return key_of(params.get("requestId")) if isinstance(params, dict) else None
