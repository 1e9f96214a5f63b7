"""Turns: if a server sends requests to its clients, it gets the calls of one session at a time.

Lives here: the queue. Must not: write frames. Called by `desk`.

A server request that comes while calls of two sessions are open may belong to either: nothing on the wire says which.
So once a server has sent such a request, calls wait until those of other sessions are answered, first come, first
served. Calls of one session do not wait for each other. A cancelled call delays the others only for a short time,
although it stays suspect: a server that never answers must not stop all sessions. Nor does one that takes long: once a
call has waited for too long it goes on, and nobody waits for those that held it up any more. If several principals have
called, no call waits at all: then nobody is asked what may be about another one's, however few are open.
"""

from __future__ import annotations

from collections import deque
from math import inf

from dragoman.core.envelope import Frame, to_keep
from dragoman.core.serving.loans import Loan, Loans


class CallQueue:
    """The queue of calls.

    Args:
        loans: The requests that are with the server.
        asks: Whether the server is known to ask.
        limit_bytes: How many bytes may wait.
    """

    def __init__(self, loans: Loans, asks: bool, limit_bytes: int) -> None:
        self.asks = asks
        self._loans = loans
        self._limit_bytes = limit_bytes
        self._queue: deque[tuple[Loan, Frame, float]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._queue)

    def must_wait(self, loan: Loan) -> bool:
        """Whether it is somebody else's turn."""
        return self.asks and loan.asks and (bool(self._queue) or not self._is_free_for(loan))

    def wait(self, loan: Loan, frame: Frame, now: float) -> bool:
        """Queue a call; False when the queue is full."""
        if self._bytes + len(frame.raw) > self._limit_bytes:
            return False
        loan.started = False
        self._queue.append((loan, frame._replace(raw=to_keep(frame.raw), body=None), now))
        self._bytes += len(frame.raw)
        return True

    def next(self, before: float = -inf) -> Frame | None:
        """Return the frame of the call that goes next: it is its turn, or it has waited since before this moment."""
        if not self._queue or (self._queue[0][2] >= before and not self._is_free_for(self._queue[0][0])):
            return None
        loan, frame, since = self._queue.popleft()
        if since < before:
            self._loans.note_slow()
        self._bytes -= len(frame.raw)
        loan.started = True
        return frame

    def remove(self, loan: Loan) -> None:
        """Forget a call that waits."""
        self._queue = deque(entry for entry in self._queue if entry[0] is not loan)
        self._bytes = sum(len(frame.raw) for _, frame, _ in self._queue)

    def _is_free_for(self, loan: Loan) -> bool:
        return self._loans.is_of_several or self._loans.callers() <= {loan.session}
