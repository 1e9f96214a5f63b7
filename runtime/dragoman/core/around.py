"""Requests and notifications that middleware has, on their way from one peer to the other.

Lives here: which of them middleware has, how far each is, and what becomes of its answer. Must not: run middleware
(`host.chains`), translate, or know who serves a request. Made where there is middleware; without any nothing here runs.

Theory of operation. Whoever has the table of a client's requests hands them to this, and `Defer` tells the host. The
host lets one proceed, as it is then, and hears of the answer by `Settle`. The answer that middleware gives in the end
is treated as any other. All the while the request is in that table: a cancellation, a timeout or the end of the
session finds it there, and `Abandon` tells the host. In a session, middleware sees the revision of the peer that
answers; of a request that speaks for itself, that of the client.
"""

from __future__ import annotations

from dragoman.core.commands import (
    Abandon,
    CallTable,
    ClientEdge,
    Defer,
    HeldFrame,
    HeldPhase,
    Outbox,
    Settle,
    Side,
    Waits,
)
from dragoman.core.envelope import Frame, Refusal
from dragoman.core.naming import read_named


class Around:
    """What middleware has of one table of requests."""

    __slots__ = ("_front", "_outbox", "_table")

    def __init__(self, front: ClientEdge, table: CallTable, outbox: Outbox) -> None:
        self._front = front
        self._table = table
        self._outbox = outbox

    def release(self) -> None:
        """Drop references, once the session is over."""
        del self._front, self._table

    def take_request(self, side: Side, call: Waits, frame: Frame) -> None:
        """Give middleware a request of this peer, unless it can be read in two ways."""
        read = read_named(frame)
        if isinstance(read, Refusal):
            self._table.conclude(side, call, read.answer(call.key), is_at_peer=False)
            return
        held_frame = call.held = HeldFrame(self._front, side, read, call, self._table)
        self._outbox.add(Defer(held_frame))

    def take_notice(self, side: Side, frame: Frame) -> None:
        """Give middleware a notification of this peer."""
        self._outbox.add(Defer(HeldFrame(self._front, side, frame, None, self._table)))

    def take_answer(self, call: Waits, frame: Frame) -> bool:
        """Give middleware the answer to a request; False where it does not wait for one."""
        held_frame = call.held
        if held_frame is None or held_frame.phase is not HeldPhase.AT_PEER:
            return False
        held_frame.phase = HeldPhase.ANSWERED
        self._outbox.add(Settle(held_frame, frame))
        return True

    def cancel(self, call: Waits) -> bool:
        """Record that nobody waits for a request any more; whether the peer may have it and did not answer."""
        held_frame, call.held = call.held, None
        if held_frame is None:
            return True
        self._outbox.add(Abandon(held_frame))
        return held_frame.end()
