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

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from dragoman.core.commands import Abandon, Defer, Outbox, Settle, Side
from dragoman.core.envelope import Frame

if TYPE_CHECKING:
    from dragoman.core.edges.front import FrontEdge


class Waits(Protocol):
    """A request that waits for its answer."""

    @property
    def key(self) -> bytes:
        """Its id, as whoever asked knows it."""

    @property
    def method(self) -> str:
        """What it asks."""


C = TypeVar("C", bound=Waits)
C_contra = TypeVar("C_contra", bound=Waits, contravariant=True)


class CallTable(Protocol[C_contra]):
    """Who knows which requests wait; middleware has them from there, and gives them back."""

    @property
    def revisions(self) -> Mapping[Side, str | None]:
        """What is spoken at either side of the middleware."""

    def hand_on(self, side: Side, call: C_contra, frame: Frame) -> None:
        """Take a request of this peer to the other, as it is now."""

    def forward(self, side: Side, frame: Frame) -> None:
        """Take a notification of this peer to the other."""

    def conclude(self, side: Side, call: C_contra, frame: Frame, *, is_at_peer: bool) -> None:
        """Answer a request of this peer; where the other has it, it is told that nobody waits any more."""


class DeferralPhase(Enum):
    """How far something is that middleware has."""

    HELD = "held"
    AT_PEER = "at the peer"
    ANSWERED = "answered"
    OVER = "over"


class Deferral(Generic[C]):
    """A request or notification that middleware has.

    Attributes:
        side: Who sent it.
        frame: As it is to go on.
        call: The request; None for a notification.
    """

    __slots__ = ("around", "call", "frame", "front", "phase", "side")

    def __init__(self, front: FrontEdge, side: Side, frame: Frame, call: C | None, around: Around[C]) -> None:
        self.front = front
        self.side = side
        self.frame = frame
        self.call = call
        self.around = around
        self.phase = DeferralPhase.HELD

    def end(self) -> bool:
        """Record that it is over; whether the peer has it and did not answer."""
        is_at_peer, self.phase = self.phase is DeferralPhase.AT_PEER, DeferralPhase.OVER
        return is_at_peer


class Around(Generic[C]):
    """What middleware has of one table of requests."""

    __slots__ = ("_deferrals", "_front", "_outbox", "table")

    def __init__(self, front: FrontEdge, table: CallTable[C], outbox: Outbox) -> None:
        self._front = front
        self.table = table
        self._outbox = outbox
        self._deferrals: dict[C, Deferral[C]] = {}

    def __contains__(self, call: C) -> bool:
        return call in self._deferrals

    def release(self) -> None:
        """Drop references, once the session is over."""
        self._deferrals.clear()
        del self._front, self.table

    # What the table says

    def take_request(self, side: Side, call: C, frame: Frame) -> None:
        """Give middleware a request of this peer."""
        deferral = self._deferrals[call] = Deferral(self._front, side, frame, call, self)
        self._outbox.add(Defer(deferral))

    def take_notice(self, side: Side, frame: Frame) -> None:
        """Give middleware a notification of this peer."""
        self._outbox.add(Defer(Deferral(self._front, side, frame, None, self)))

    def take_answer(self, call: C, frame: Frame) -> bool:
        """Give middleware the answer to a request; False where it does not wait for one."""
        deferral = self._deferrals.get(call)
        if deferral is None or deferral.phase is not DeferralPhase.AT_PEER:
            return False
        deferral.phase = DeferralPhase.ANSWERED
        self._outbox.add(Settle(deferral, frame))
        return True

    def cancel(self, call: C) -> bool:
        """Record that nobody waits for a request any more; whether the peer may have it and did not answer."""
        deferral = self._deferrals.pop(call, None)
        if deferral is None:
            return True
        self._outbox.add(Abandon(deferral))
        return deferral.end()

    # What middleware says

    def proceed(self, deferral: Deferral[C], frame: Frame) -> None:
        """Take a request or notification on to its peer, as it is now."""
        assert deferral.phase is DeferralPhase.HELD, "what is called twice is refused by the host"
        if deferral.call is None:
            deferral.phase = DeferralPhase.OVER
            self.table.forward(deferral.side, frame)
        else:
            deferral.phase = DeferralPhase.AT_PEER
            self.table.hand_on(deferral.side, deferral.call, frame)

    def conclude(self, deferral: Deferral[C], frame: Frame) -> None:
        """Answer a request with what middleware gives, unless nobody waits for it any more."""
        call = deferral.call
        assert call is not None, "a notification has no answer"
        if self._deferrals.pop(call, None) is not None:
            self.table.conclude(deferral.side, call, frame, is_at_peer=deferral.end())


AnyDeferral = Deferral[Any]
