"""Requests that each speak for themselves, and that are not answered in time.

Lives here: how long each of them is under way, and giving up those that make no progress. Must not: read a clock. Made
by `core.edges.per_request_front` where there is a limit; `timeouts` is the same for sessions, and says how time comes.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dragoman.core.commands import Outbox
from dragoman.core.envelope import Frame, read_params
from dragoman.core.methods import LISTEN
from dragoman.core.timeouts import Ages

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

    __slots__ = ("_ages", "_requests")

    def __init__(
        self,
        front: FrontEdge,
        requests: PerRequestFront,
        outbox: Outbox,
        timeout_s: float,
        ceiling_s: float | None,
    ) -> None:
        self._ages: Ages[Request] = Ages(front, outbox, timeout_s, ceiling_s)
        self._requests = requests

    def start(self, request: Request) -> None:
        """Take note of a request that is about to be served."""
        if request.method != LISTEN:
            self._ages.start(request)

    def note_progress(self, frame: Frame) -> None:
        """Take note of a sign of a request, by the token that the client knows: its time begins anew."""
        token = read_params(frame).get("progressToken")
        for request in self._ages if token is not None else ():
            if request.token == token:
                self._ages.renew(request)

    def tick(self) -> None:
        """Take note that a tick has passed; give up the requests that are too old now."""
        waiting = self._requests.requests
        for request, limit_s in self._ages.tick(lambda request: waiting.get(request.key) is request):
            reason = f"the server did not answer within {limit_s:g} s"
            logger.warning("%s request given up: %s", request.method[:80], reason)
            self._requests.give_up(request, reason, {"method": request.method, "timeoutSeconds": limit_s})
