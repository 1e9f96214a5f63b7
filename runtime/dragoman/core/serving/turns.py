"""Turns: if a server sends requests to its clients, it gets the calls of one session at a time.

Lives here: the queue, and the calls that others wait for. Must not: send.

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

from dragoman.core.calls import Suspect
from dragoman.core.envelope import Frame, to_keep
from dragoman.core.loans import Loans
from dragoman.core.serving.loans import Loan
from dragoman.core.serving.sessions import ClientSession


class Turns:
    """Which call goes to the server next.

    Args:
        loans: The requests that are with the server.
        asks: Whether the server is known to ask.
        limit_bytes: How many bytes may wait.

    Attributes:
        cancelled: Those that were cancelled a moment ago: their answer is passed on if it comes.
    """

    def __init__(self, loans: Loans[Loan], asks: bool, limit_bytes: int) -> None:
        self.asks = asks
        self.cancelled: dict[Loan, None] = {}
        self._loans = loans
        self._limit_bytes = limit_bytes
        self._queue: deque[Loan] = deque()
        self._at_work: dict[ClientSession | None, set[Loan]] = {}  # what others wait for; there may be very many calls
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._queue)

    def must_wait(self, loan: Loan) -> bool:
        """Whether it is somebody else's turn."""
        waits = self.asks and loan.asks and (bool(self._queue) or not self._is_free_for(loan))
        if not waits:
            self._note(loan)
        return waits

    def wait(self, loan: Loan, frame: Frame, now: float) -> bool:
        """Queue a call; False when the queue is full."""
        if self._bytes + len(frame.raw) > self._limit_bytes:
            return False
        loan.frame, loan.since_s = frame._replace(raw=to_keep(frame.raw), body=None), now
        self._queue.append(loan)
        self._bytes += len(frame.raw)
        return True

    def next(self, before: float = -inf) -> Frame | None:
        """Return the frame of the call that goes next: it is its turn, or it has waited since before this moment."""
        if not self._queue or (self._queue[0].since_s >= before and not self._is_free_for(self._queue[0])):
            return None
        loan = self._queue.popleft()
        if loan.since_s < before:
            self._at_work.clear()
        frame, loan.frame = loan.frame, None
        assert frame is not None, "it has waited"
        self._note(loan)
        self._bytes -= len(frame.raw)
        return frame

    def _is_free_for(self, loan: Loan) -> bool:
        """Whether no call of others is with the server; those that were cancelled a moment ago are."""
        return self._loans.is_called_by_several or self._at_work.keys() <= {loan.session}

    def _note(self, loan: Loan) -> None:
        """Note that a call goes to the server."""
        if loan.asks:
            self._at_work.setdefault(loan.session, set()).add(loan)

    def forget(self, loan: Loan) -> None:
        """Forget a request: it was answered, or is not to get to the server."""
        self._loans.by_key.pop(loan.key, None)
        self.cancelled.pop(loan, None)
        if loan in (own := self._at_work.get(loan.session, set())):
            own.remove(loan)
            if not own:
                del self._at_work[loan.session]
        if loan.frame is not None:
            self._queue.remove(loan)
            self._bytes -= len(loan.frame.raw)

    def cancel(self, loan: Loan, now: float) -> None:
        """Note that nobody waits for a request any more; its answer may be on its way, or a question about it."""
        loan.cancelled_at = now
        self.cancelled[loan] = None

    def suspect(self, loan: Loan) -> None:
        """Note that a request has ended without an answer."""
        self.forget(loan)
        self._loans.suspects.add(loan.key, Suspect(loan.owner, loan.asks))

    def expire(self, before: float) -> None:
        """Wait no longer for the requests that were cancelled before this moment."""
        for loan in [one for one in self.cancelled if one.cancelled_at is not None and one.cancelled_at < before]:
            self.suspect(loan)
