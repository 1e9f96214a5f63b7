"""One client and one server: this switch has nothing to choose.

Lives here: passing frames on. Must not: translate (`edges.exchange`), or know what either edge does with a frame. Made
by `dragoman.proxy` for scope `client`.

Ids pass unchanged; the proxy needs none of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from dragoman.core.calls import Call
from dragoman.core.commands import Close, Outbox, Outcome, Side
from dragoman.core.edges.backend import NOTHING_READ
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.lifecycle import FrontState, UpstreamState
from dragoman.core.edges.offer import Accepted, InitializeRefused, pass_on
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.edges.wiring import Wiring
from dragoman.core.envelope import Frame, Malformed, Refusal, error_frame
from dragoman.core.methods import INITIALIZED

if TYPE_CHECKING:
    from dragoman.core.edges.greeting import Greeting
    from dragoman.core.edges.per_request_front import PerRequestFront
    from dragoman.core.rules.verdict import Verdict
    from dragoman.core.switch.to_session.switch import ToSession

Inherits: TypeAlias = "Callable[[Greeting], UpstreamEdge | None]"
"""Gives a server that is being opened already, and nobody else waits for, by the `initialize` of a client."""


class Direct:
    """Joins one client to one server.

    Args:
        wiring: What the edges need.

    Attributes:
        inherits: Asked for a server before one is opened, if there may be any.
    """

    __slots__ = ("_each", "_wiring", "front", "inherits", "outbox", "upstream")

    takes_arrays = True
    wants_lines = True
    own: frozenset[str] = frozenset()
    reads = NOTHING_READ

    def __init__(self, wiring: Wiring) -> None:
        self.outbox = Outbox()
        self._wiring = wiring
        self._each: ToSession | None = None
        self.front = FrontEdge(wiring, self.outbox, self)
        self.upstream = UpstreamEdge(wiring.settings, self.outbox, self)
        self.inherits: Inherits | None = None

    def open(self) -> None:
        """Begin."""
        self.front.open()
        if self.inherits is None:
            self.upstream.open()

    def release(self) -> None:
        """Let the edges go of each other, once both peers are gone."""
        (self.upstream if self._each is None else self._each).release()
        self.front.release()

    @property
    def servers(self) -> Iterable[UpstreamEdge]:
        """The one that it has; several where the client's requests declare several things."""
        return (self.upstream,) if self._each is None else self._each.servers

    @property
    def shares_news(self) -> bool:
        """Whether its client has requests that open no session."""
        return self._each is not None

    @property
    def parked(self) -> int:
        """How many calls of a client without a session have asked it something."""
        return 0 if self._each is None else self._each.parked

    # What the front edge says

    def initialize(self, front: FrontEdge) -> Refusal | None:
        """Offer the server what the client's `initialize` says."""
        greeting = front.expect_greeting()
        self._open_late(greeting)
        introduce = pass_on(greeting, self._wiring, front.exchange.counters)
        refusal = self.upstream.initialize(greeting, introduce, greeting.key)
        if refusal is not None and self.upstream.state is UpstreamState.OPENING:  # for what the client has given up
            self.outbox.add(Close(self.upstream))
            self.upstream.release()
            self._serve_with(None)
        return refusal

    def wait_for_server(self, front: FrontEdge) -> None:
        """Nothing to do: the server's answer is on its way."""

    def describe_offer(self, front: FrontEdge) -> dict[str, Any]:
        """Say, for the data of an error, what was asked and offered."""
        return {} if self.upstream.offer is None else self.upstream.offer.describe()

    def serve_requests(self, front: FrontEdge) -> PerRequestFront | None:
        """Let a switch for such clients have the server."""
        if self._wiring.bridging is None:
            return None
        # Loaded where it is needed: most sessions have a handshake on both sides.
        from dragoman.core.switch.to_session.switch import ToSession

        self._open_late(None)
        self._each = ToSession(self._wiring, self._wiring.bridging, self.outbox, front, self.upstream)
        return self._each.requests

    def serve_handshake(self, front: FrontEdge) -> None:
        """Take the server back, also one that is being opened; a fresh one, if it knows its client already."""
        assert self._each is not None
        spare, self._each = self._each.give_back(), None
        self._serve_with(spare)

    def give_opening(self, greeting: Greeting) -> UpstreamEdge | None:
        """Return the server that is being opened to a client which asked what it is, and begins anew elsewhere."""
        return None if self._each is None else self._each.give_opening(greeting)

    def _open_late(self, greeting: Greeting | None) -> None:
        """Open the server, or go on with one that is being opened for the same client, if there was any to expect."""
        inherits, self.inherits = self.inherits, None
        if inherits is not None:
            self._serve_with(None if greeting is None else inherits(greeting))

    def _serve_with(self, spare: UpstreamEdge | None) -> None:
        self.upstream = spare or UpstreamEdge(self._wiring.settings, self.outbox, self)
        self.upstream.hand_to(self, self.outbox)
        if spare is None:
            self.upstream.open()

    def carry(self, call: Call, frame: Frame) -> None:
        """Hand on a request."""
        self.upstream.send(frame)

    def notify(self, front: FrontEdge, frame: Frame) -> None:
        """Hand on a notification, or an array."""
        if frame.method == INITIALIZED and self.upstream.state is UpstreamState.ACCEPTED:
            self.upstream.announce(frame)
        else:
            self.upstream.send(frame)

    def reply(self, front: FrontEdge, frame: Frame) -> None:
        """Hand on an answer."""
        self.upstream.send(frame)

    # What the upstream edge says

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        """Hand on what the server says."""
        if isinstance(frame, Malformed):
            self.front.exchange.reject(Side.SERVER, frame)
            return
        if frame.kind == "error" and frame.key is not None:
            upstream.recovery.session.fail((frame.key,))  # the server has refused to subscribe to something, perhaps
        self.front.take_server(frame)

    def waits_for(self, upstream: UpstreamEdge) -> bool:
        """Whether the client is there, and has not been told that there will be no session."""
        return self.front.state not in (FrontState.FAILED, FrontState.CLOSED)

    def offered(self, upstream: UpstreamEdge) -> None:
        """Take what the server says meanwhile for what it is offered."""
        assert upstream.offer is not None
        self.front.speak(upstream.offer.translatable)

    def accepted(self, upstream: UpstreamEdge, accepted: Accepted) -> None:
        """Answer the client."""
        self.front.accepted(accepted.answer, accepted.revision)

    def refused(self, upstream: UpstreamEdge, refused: InitializeRefused) -> None:
        """Tell the client, which may correct itself."""
        greeting, answer = self.front.expect_greeting(), refused.answer
        if answer.key != greeting.key:
            answer = error_frame(greeting.key, refused.code, refused.message, refused.data)
        self.front.refused(answer, refused.words)

    def failed(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Tell the client."""
        self.front.failed(failure)

    def discovered(self, upstream: UpstreamEdge, verdict: Verdict) -> None:
        """Let the bridge between the eras serve the client: the server has no handshake."""
        # Loaded where it is needed: most sessions have a handshake on both sides.
        from dragoman.core.edges.per_request import PerRequestEdge
        from dragoman.core.switch.to_stateless.switch import ToStateless

        ToStateless(self._wiring, self.outbox, self.front, PerRequestEdge(upstream), verdict).begin()

    def interrupted(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Answer what the client has asked, and take back what it was asked."""
        upstream.recovery.session.fail(self.front.exchange.calls[Side.CLIENT].waiting)
        self.front.interrupted(failure)

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        """End the client's session with that of its server."""
        self.front.lost(reason, outcome)
