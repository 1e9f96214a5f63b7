"""Requests of a client that its server does not answer in time.

Lives here: which requests are with the server, how long, which of them make progress, and giving up the others. Must
not: read a clock. Made by `core.edges.front` where there is a limit; without one nothing here runs.

Theory of operation. The exchange hands its requests to this, and this to what is behind. Time comes as ticks: while
something is with the server the host calls `FrontEdge.tick` every `tick_s`, by one timer for each client. A request
grows older by one each time. One that was answered is noticed then, so an answer costs nothing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from dragoman.core.calls import Call, Calls
from dragoman.core.commands import Outbox, Remind, Side
from dragoman.core.edges.behind import Behind
from dragoman.core.envelope import Frame, error_frame, notification_frame
from dragoman.core.exact_json import decode

if TYPE_CHECKING:
    from dragoman.core.edges.front import FrontEdge
    from dragoman.core.exchange import Exchange

logger = logging.getLogger("dragoman.exchange")

TIMED_OUT: Final = -32000
"""The implementation-defined code for a request that the server did not answer in time."""

LONGEST_TICK_S: Final = 1.0
TICKS: Final = 10
"""Into how many ticks the limit is divided, unless they would be longer than that."""


T = TypeVar("T")


class Ages(Generic[T]):
    """How old requests are, in ticks, and how long it was that nothing was heard of them.

    Args:
        front: The edge that is to be reminded each tick, by `FrontEdge.tick`, while there are any.
        outbox: Where commands go.
        timeout_s: How long a request may be under way, without a sign of it.
        ceiling_s: How long at most, whatever signs there are; None for as long as there are any.

    Attributes:
        tick_s: How long a tick is. A request is too old after `timeout_s`, and before two ticks more.
    """

    __slots__ = ("_ages", "_front", "_outbox", "_ticking", "_totals", "ceiling_s", "tick_s", "timeout_s")

    def __init__(self, front: FrontEdge, outbox: Outbox, timeout_s: float, ceiling_s: float | None) -> None:
        self.timeout_s = timeout_s
        self.ceiling_s = ceiling_s
        self.tick_s = min(timeout_s / TICKS, LONGEST_TICK_S)
        self._front = front
        self._outbox = outbox
        self._ages: dict[T, int] = {}
        self._totals: dict[T, int] = {}  # where there is a ceiling
        self._ticking = False

    def __iter__(self) -> Iterator[T]:
        return iter(self._ages)

    def release(self) -> None:
        """Let go of the edge."""
        self._ages.clear()
        self._totals.clear()
        del self._front

    def start(self, request: T) -> None:
        """Take note of a request that is under way from here on."""
        self._ages[request] = 0
        if self.ceiling_s is not None:
            self._totals[request] = 0
        if not self._ticking:
            self._remind()

    def renew(self, request: T) -> None:
        """Take note of a sign of a request, if it is known: its time begins anew."""
        if request in self._ages:
            self._ages[request] = 0

    def tick(self, is_open: Callable[[T], bool], *, runs: bool = True) -> list[tuple[T, float]]:
        """Take note that a tick has passed.

        Args:
            is_open: Whether a request is not answered; others are forgotten.
            runs: Whether they grow older by it.

        Returns:
            Those that are too old now, and are forgotten, each with the limit that it has passed, in seconds.
        """
        self._ages = {request: age for request, age in self._ages.items() if is_open(request)}
        self._totals = {request: age for request, age in self._totals.items() if request in self._ages}
        self._ticking = False
        if self._ages:
            self._remind()
        if not runs:
            return []
        old: dict[T, float] = {}
        for table, limit_s in ((self._ages, self.timeout_s), (self._totals, self.ceiling_s or 0.0)):
            for request in table:
                table[request] += 1
                if table[request] > math.ceil(limit_s / self.tick_s):
                    old.setdefault(request, limit_s)
        for request in old:
            del self._ages[request]
            self._totals.pop(request, None)
        return list(old.items())

    def _remind(self) -> None:
        self._ticking = True
        self._outbox.add(Remind(self._front, self.tick_s))


class Timeouts:
    """Hands requests to what is behind, and knows which of them are old.

    Args:
        front: The client's edge.
        behind: Who serves it.
        outbox: Where commands go.
        timeout_s: How long a request may be with the server, without a sign of it.
        ceiling_s: How long at most, whatever signs there are; None for as long as there are any.
    """

    __slots__ = ("_ages", "_behind", "_front", "ceiling_s", "timeout_s")

    takes_arrays = False  # each request of an array has a time of its own

    def __init__(
        self, front: FrontEdge, behind: Behind, outbox: Outbox, timeout_s: float, ceiling_s: float | None = None
    ) -> None:
        self.timeout_s = timeout_s
        self.ceiling_s = ceiling_s
        self._ages: Ages[Call] = Ages(front, outbox, timeout_s, ceiling_s)
        self._front = front
        self._behind = behind

    def release(self) -> None:
        """Let go of who is at both ends."""
        self._ages.release()
        del self._front, self._behind

    def serve(self, behind: Behind) -> None:
        """Hand requests to somebody else from here on."""
        self._behind = behind

    def carry(self, call: Call, frame: Frame) -> None:
        """Take a request to a server."""
        self._ages.start(call)
        self._behind.carry(call, frame)

    def notify(self, front: FrontEdge, frame: Frame) -> None:
        """Take a notification to a server."""
        self._behind.notify(front, frame)

    def note_progress(self, call: Call | None) -> None:
        """Take note of a sign of a request: its time begins anew."""
        if call is not None:
            self._ages.renew(call)

    def tick(self, exchange: Exchange) -> None:
        """Take note that a tick has passed; give up the requests that are too old now."""
        asked, asking = exchange.calls[Side.CLIENT], exchange.calls[Side.SERVER]
        # While the server waits for the client, its time does not run.
        runs = all(call.method == "ping" for call in asking.waiting.values())
        for call, limit_s in self._ages.tick(lambda call: asked.waiting.get(call.key) is call, runs=runs):
            self._give_up(call, asked, exchange, limit_s)

    def _give_up(self, call: Call, asked: Calls, exchange: Exchange, limit_s: float) -> None:
        """Answer a request in the server's place, and tell the server that nobody waits for it any more."""
        reason = f"the server did not answer within {limit_s:g} s"
        logger.warning("%s request given up: %s", call.method[:80], reason)
        exchange.counters.timed_out += 1
        asked.cancel(call.key)
        params = {"requestId": decode(call.key), "reason": reason}
        self._behind.notify(self._front, notification_frame("notifications/cancelled", params))
        data = {"method": call.method, "timeoutSeconds": limit_s}
        exchange.answer(call, error_frame(call.key, TIMED_OUT, reason, data))
