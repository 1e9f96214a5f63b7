"""Requests and notifications that middleware has, on their way from one peer to the other.

Lives here: which of them middleware has, how far each is, and what becomes of its answer. Must not: run middleware
(`host.chains`), translate, or know what a switch does with a request. Made by `core.edges.front` where there is
middleware; without any nothing here runs. `around_requests` does the same for clients without a session.

Theory of operation. What the exchange has translated it hands to this, and `Defer` tells the host. The host lets it
proceed, as it is then, and hears of the answer by `Settle`. The answer that middleware gives in the end is translated
as any other. All the while the request is in the table of those that wait: a cancellation, a timeout or the end of the
session finds it there, and `Abandon` tells the host. Middleware sees what the peer that answers sees: its revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from dragoman.core.calls import Call
from dragoman.core.commands import Abandon, Defer, Outbox, Settle, Side
from dragoman.core.envelope import Frame, notification_frame
from dragoman.core.exact_json import decode
from dragoman.core.methods import CANCELLED, INITIALIZED

if TYPE_CHECKING:
    from dragoman.core.edges.front import FrontEdge
    from dragoman.core.exchange import Exchange


_AT_ONCE: Final = frozenset({INITIALIZED, CANCELLED})
"""What middleware does not get: it opens the session, or has to be heard while a request is with middleware."""


class Carrier(Protocol):
    """What takes frames of a client on: what serves it, or what stands before that."""

    def carry(self, call: Call, frame: Frame) -> None:
        """Take a request to a server."""

    def notify(self, front: FrontEdge, frame: Frame) -> None:
        """Take a notification to a server."""


class Taker(Protocol):
    """What middleware has its requests and notifications from, and gives them back to."""

    @property
    def revisions(self) -> Mapping[Side, str | None]:
        """What is spoken at either side of the middleware."""

    def proceed(self, deferral: Deferral, frame: Frame) -> None:
        """Take a request or notification on to its peer, as it is now."""

    def conclude(self, deferral: Deferral, frame: Frame) -> None:
        """Answer a request with what middleware gives."""


class DeferralPhase(Enum):
    """How far something is that middleware has."""

    HELD = "held"
    AT_PEER = "at the peer"
    ANSWERED = "answered"
    OVER = "over"


class Deferral:
    """A request or notification that middleware has.

    Attributes:
        front: The edge of the client that it comes from or goes to.
        side: Who sent it.
        frame: As it is to go on, in the revision of the peer across.
        call: The request; None for a notification.
        around: Who knows what becomes of it.
        phase: How far it is.
    """

    __slots__ = ("around", "call", "frame", "front", "phase", "side")

    def __init__(self, front: FrontEdge, side: Side, frame: Frame, call: Call | None, around: Taker) -> None:
        self.front = front
        self.side = side
        self.frame = frame
        self.call = call
        self.around = around
        self.phase = DeferralPhase.HELD

    def let_go(self) -> None:
        """Take note that it goes on to its peer: with a notification that is the end."""
        assert self.phase is DeferralPhase.HELD, "what is called twice is refused by the host"
        self.phase = DeferralPhase.OVER if self.call is None else DeferralPhase.AT_PEER

    def take_answer(self) -> bool:
        """Take note that the peer has answered; False where middleware does not wait for it."""
        is_at_peer = self.phase is DeferralPhase.AT_PEER
        if is_at_peer:
            self.phase = DeferralPhase.ANSWERED
        return is_at_peer

    def end(self) -> bool:
        """Take note that it is over; whether the peer has it and did not answer."""
        is_at_peer, self.phase = self.phase is DeferralPhase.AT_PEER, DeferralPhase.OVER
        return is_at_peer


class Around:
    """What middleware has of one client's session.

    Args:
        front: The client's edge.
        behind: What serves it.
        outbox: Where commands go.
    """

    __slots__ = ("_behind", "_deferrals", "_front", "_outbox")

    def __init__(self, front: FrontEdge, behind: Carrier, outbox: Outbox) -> None:
        self._front = front
        self._behind = behind
        self._outbox = outbox
        self._deferrals: dict[Call, Deferral] = {}

    def release(self) -> None:
        """Let go of the edge."""
        self._deferrals.clear()
        del self._front, self._behind

    def serve(self, behind: Carrier) -> None:
        """Hand requests to somebody else from here on."""
        self._behind = behind

    # What the exchange says

    def take_request(self, side: Side, call: Call, frame: Frame) -> None:
        """Give middleware a request of this peer."""
        deferral = self._deferrals[call] = Deferral(self._front, side, frame, call, self)
        self._outbox.add(Defer(deferral))

    def take_notice(self, side: Side, frame: Frame) -> bool:
        """Give middleware a notification of this peer; False for those that it does not get."""
        if frame.method in _AT_ONCE:
            return False
        self._outbox.add(Defer(Deferral(self._front, side, frame, None, self)))
        return True

    def take_answer(self, side: Side, call: Call, frame: Frame, exchange: Exchange) -> None:
        """Give middleware the answer of this peer to a request that was just taken off the table."""
        deferral = self._deferrals.get(call)
        if deferral is None:  # nobody waits for it any more, and what middleware would have made of it nobody knows
            exchange.counters.unmatched += 1
            return
        exchange.calls[side.other].waiting[call.key] = call
        if deferral.take_answer():
            self._outbox.add(Settle(deferral, frame))
        else:
            exchange.counters.unmatched += 1

    def cancel(self, call: Call) -> bool:
        """Take note that nobody waits for a request any more; whether the peer has it and did not answer."""
        deferral = self._deferrals.pop(call)
        self._outbox.add(Abandon(deferral))
        return deferral.end()

    # What middleware says

    def proceed(self, deferral: Deferral, frame: Frame) -> None:
        """Take a request or notification on to its peer, as it is now."""
        deferral.let_go()
        if deferral.call is None:
            self._hand_on(deferral.side, frame)
        elif deferral.side is Side.CLIENT:
            self._behind.carry(deferral.call, frame)
        else:
            self._front.send(frame)

    @property
    def revisions(self) -> Mapping[Side, str | None]:
        """What each peer speaks."""
        return self._front.exchange.revisions

    def conclude(self, deferral: Deferral, frame: Frame) -> None:
        """Answer a request with what middleware gives, in the revision of the peer across."""
        call, side, exchange = deferral.call, deferral.side, self._front.exchange
        assert call is not None, "a notification has no answer"
        if self._deferrals.pop(call, None) is None:
            return  # nobody waits any more
        exchange.calls[side].remove(call)
        if deferral.end():
            self._withdraw(side, call, exchange)
        exchange.pass_answer(side.other, call, frame, is_final=True)

    def _withdraw(self, side: Side, call: Call, exchange: Exchange) -> None:
        """Tell the peer that has a request that nobody waits for its answer."""
        params = {"requestId": decode(call.key), "reason": "it was answered by a middleware"}
        cancelled = exchange.calls[side].cancelled
        cancelled[call.key] = call  # where a switch looks it up
        self._hand_on(side, notification_frame(CANCELLED, params))
        cancelled.pop(call.key, None)

    def _hand_on(self, side: Side, frame: Frame) -> None:
        if side is Side.CLIENT:
            self._behind.notify(self._front, frame)
        else:
            self._front.send(frame)
