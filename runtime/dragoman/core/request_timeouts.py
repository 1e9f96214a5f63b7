"""Requests that each speak for themselves, and that are not answered in time.

Lives here: how long each of them is under way, and giving up those that make no progress. Must not: read a clock. Made
by `core.edges.per_request_front` where there is a limit; `timeouts` is the same for sessions, and says how time comes.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from dragoman.core.commands import Outbox, Remind
from dragoman.core.envelope import Frame, read_params
from dragoman.core.methods import LISTEN
from dragoman.core.timeouts import LONGEST_TICK_S, TICKS

if TYPE_CHECKING:
    from dragoman.core.edges.front import FrontEdge
    from dragoman.core.edges.per_request_front import PerRequestFront, Request

logger = logging.getLogger("dragoman.bridge")


class RequestTimeouts:
    """Knows which requests of one connection are old.

    Args:
        front: The edge that has the connection.
        requests: The requests that come over it.
        outbox: Where commands go.
        timeout_s: How long a request may be under way, without a sign of it.
        ceiling_s: How long at most, whatever signs there are; None for as long as there are any.
    """

    __slots__ = (
        "_ages",
        "_ceiling_s",
        "_front",
        "_outbox",
        "_requests",
        "_tick_s",
        "_ticking",
        "_timeout_s",
        "_totals",
    )

    def __init__(
        self,
        front: FrontEdge,
        requests: PerRequestFront,
        outbox: Outbox,
        timeout_s: float,
        ceiling_s: float | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._ceiling_s = math.inf if ceiling_s is None else ceiling_s
        self._tick_s = min(timeout_s / TICKS, LONGEST_TICK_S)
        self._totals: dict[Request, int] = {}  # how old each one is, signs or not
        self._front = front
        self._requests = requests
        self._outbox = outbox
        self._ages: dict[Request, int] = {}
        self._ticking = False

    def start(self, request: Request) -> None:
        """Take note of a request that is about to be served."""
        if request.method != LISTEN:
            self._ages[request] = self._totals[request] = 0
            self._tick()

    def note_progress(self, frame: Frame) -> None:
        """Take note of a sign of a request, by the token that the client knows: its time begins anew."""
        token = read_params(frame).get("progressToken")
        for request in self._ages:
            if request.token == token and token is not None:
                self._ages[request] = 0

    def tick(self) -> None:
        """Take note that a tick has passed; give up the requests that are too old now."""
        self._ticking = False
        waiting = self._requests.requests
        for table in (self._ages, self._totals):
            for request in list(table):
                if waiting.get(request.key) is request:
                    table[request] += 1
                else:
                    del table[request]
        for table, limit_s in ((self._ages, self._timeout_s), (self._totals, self._ceiling_s)):
            for request in [one for one, age in table.items() if age > limit_s / self._tick_s]:
                self._give_up(request, limit_s)
        if self._ages:
            self._tick()

    def _give_up(self, request: Request, limit_s: float) -> None:
        del self._ages[request], self._totals[request]
        reason = f"the server did not answer within {limit_s:g} s"
        logger.warning("%s request given up: %s", request.method[:80], reason)
        self._requests.give_up(request, reason, {"method": request.method, "timeoutSeconds": limit_s})

    def _tick(self) -> None:
        if not self._ticking:
            self._ticking = True
            self._outbox.add(Remind(self._front, self._tick_s))
