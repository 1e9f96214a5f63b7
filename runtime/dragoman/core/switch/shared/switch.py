"""A shared server: several clients on one connection; each session behaves as if it had the server to itself.

Lives here: the switch's entry points, joining and leaving, and the one handshake for everybody. Must not: touch sockets
or a clock, or translate: each client's own edge does. Called by the edges, and by `dragoman.host`.

Theory of operation. Frames from a client reach the server under the proxy's own ids and progress tokens
(`from_clients`). Frames from the server are distributed by the tables beside this module (`from_server`): answers and
progress by id, changes of lists to all sessions, changes of resources to the subscribers, requests and the rest by
`attribution`. A frame without a known session is dropped and counted, or refused; no other session gets it. All tables
are bounded.

The first client's `initialize` decides which revision is offered; identity and capabilities are the proxy's own.
Clients that come meanwhile wait, and later ones get the server's answer, whichever revision they ask for: "otherwise,
the server MUST respond with another protocol version it supports" (lifecycle). When the server refuses, all clients
that asked for the same revision get the refusal, and the next of the others makes the offer.

The server may still send messages about requests that ended without an answer. Until it has answered them, its
messages are not assumed to be about other requests (`calls.Suspects`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from dragoman.core.calls import Call, cancellation
from dragoman.core.codes import CONNECTION_CLOSED
from dragoman.core.commands import Outbox, Outcome
from dragoman.core.declared import read_declared
from dragoman.core.edges.backend import NOTHING_READ
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.lifecycle import UpstreamState
from dragoman.core.edges.offer import Accepted, InitializeRefused
from dragoman.core.edges.per_request import PerRequestEdge
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.edges.wiring import Wiring
from dragoman.core.envelope import Frame, Malformed, Refusal, error_frame, request_frame
from dragoman.core.label import PRINCIPAL, log_as
from dragoman.core.rules.verdict import Verdict
from dragoman.core.serving.sessions import ClientSession
from dragoman.core.switch.direct import Inherits
from dragoman.core.switch.shared.desk import Desk, SharingCounters, SharingSettings
from dragoman.core.switch.shared.from_clients import FromClients
from dragoman.core.switch.shared.from_server import FromServer
from dragoman.core.switch.to_stateless.switch import ToStateless
from dragoman_spec import facts


class Shared:
    """Joins several clients to one server.

    Args:
        wiring: What the edges need.
        settings: How the server is used.

    Attributes:
        inherits: Asked for a server before one is opened, as for `Direct`.
    """

    takes_arrays = False
    wants_lines = True
    own: frozenset[str] = frozenset()
    reads = NOTHING_READ

    def __init__(self, wiring: Wiring, settings: SharingSettings | None = None) -> None:
        sharing = settings or SharingSettings()
        limit = min(wiring.settings.open_requests, sharing.calls)
        self.outbox = Outbox()
        self._wiring = dataclasses.replace(wiring, settings=dataclasses.replace(wiring.settings, open_requests=limit))
        self._desk = Desk(sharing, wiring.settings.restore_ids)
        self.upstream = self._desk.upstream = UpstreamEdge(wiring.settings, self.outbox, self)
        self.inherits: Inherits | None = None
        self._from_clients = FromClients(self._desk)
        self._from_server = FromServer(self._desk)
        self._joined = 0
        self._waiting: dict[FrontEdge, None] = {}  # for the server's answer to `initialize`
        self._asking: FrontEdge | None = None  # whose `initialize` the offer follows from
        self._accepted: Accepted | None = None
        self._verdict: Verdict | None = None
        self._edge: PerRequestEdge | None = None  # of a server that has no handshake, which serves all by itself
        self._bridges: dict[FrontEdge, ToStateless] = {}
        self._declared: dict[frozenset[str], frozenset[str]] = {}  # most clients declare what others have declared

    @property
    def counters(self) -> SharingCounters:
        """What did not find its way."""
        return self._desk.counters

    @property
    def servers(self) -> Iterable[UpstreamEdge]:
        """The one that it has."""
        return (self.upstream,)

    @property
    def shares_news(self) -> bool:
        """Always: it serves several."""
        return True

    @property
    def asks(self) -> bool:
        """Whether the server has been found to ask, which is worth remembering when it is started again."""
        return self._desk.turns.asks

    @property
    def is_open(self) -> bool:
        """Whether the server has agreed to a revision."""
        return self._accepted is not None or self._edge is not None

    @property
    def needs_clock(self) -> bool:
        """Whether `expire` is to be called from time to time."""
        return bool(self._desk.turns) or bool(self._desk.turns.cancelled)

    @property
    def held(self) -> int:
        """How many requests, questions and subscriptions are remembered; 0 once everybody has left, after a while.

        Requests that the server never answered are not among them.
        """
        desk = self._desk
        return len(desk.loans.by_key) + len(desk.questions) + len(desk.subscriptions)

    def set_clock(self, now: float) -> None:
        """Take a reading of the clock, in seconds; what happens next happens then."""
        self._desk.now = now

    def join(self, label: str = "") -> FrontEdge:
        """Take in a client.

        Args:
            label: What the log calls its session.
        """
        self._joined += 1
        front = FrontEdge(self._wiring, self.outbox, self)
        principal = PRINCIPAL.get()
        sender = (principal or f"session {self._joined}") if self._desk.settings.is_for_all else ""
        self._desk.sessions[front] = ClientSession(self._joined, front, label, sender, principal)
        return front

    def leave(self, front: FrontEdge) -> None:
        """Record that a client's session has ended: what it began ends too."""
        desk = self._desk
        bridge = self._bridges.pop(front, None)
        if bridge is not None:
            bridge.close()
        session = desk.sessions.pop(front, None)
        if session is None:
            return
        session.present = False
        self._waiting.pop(front, None)
        for loan in [loan for loan in desk.loans.by_key.values() if loan.session is session]:
            desk.abandon(loan)
        for key in desk.questions.forget(session):
            desk.tell_server(error_frame(key, CONNECTION_CLOSED, "the client has closed"))
        for _, uri in desk.subscriptions.remove_all(session):
            desk.send_own("resources/unsubscribe", {"uri": uri})
        desk.tell_level()
        desk.attribution.forget(session)
        desk.let_in()

    def expire(self, now: float) -> None:
        """Record that time has passed."""
        desk, settings = self._desk, self._desk.settings
        desk.now = now
        desk.turns.expire(now - settings.grace_s)
        desk.let_in(now - settings.turn_s)

    # What the front edges say

    def initialize(self, front: FrontEdge) -> Refusal | None:
        """Take a client's `initialize`: what it declares there, here; what it asks for, in `wait_for_server`."""
        session, declared = self._desk.sessions[front], read_declared(front.expect_greeting().capabilities)
        session.declared = self._declared.setdefault(declared, declared)
        return None

    def wait_for_server(self, front: FrontEdge) -> None:
        """Answer with what the server has said, or let the client wait until it has."""
        if self._accepted is not None:
            front.accepted(*self._accepted)
            return
        if self._edge is not None:
            self._bridge(front)
            return
        self._waiting[front] = None
        if self.upstream.state is UpstreamState.IDLE:
            self._offer(front)

    def describe_offer(self, front: FrontEdge) -> dict[str, Any]:
        """Say, for the data of an error, what was asked and offered."""
        requested = {} if front.greeting is None else {"requested": front.greeting.requested}
        return requested if self.upstream.offer is None else {**requested, "offered": self.upstream.offer.offered}

    def serve_requests(self, front: FrontEdge) -> None:
        """Serve no client whose requests speak for themselves."""

    def serve_handshake(self, front: FrontEdge) -> None:
        """Nothing to do: such a client is served in no other way."""

    def carry(self, call: Call, frame: Frame) -> None:
        """Take a client's request to the server."""
        session = None if call.front is None else self._desk.sessions.get(call.front)
        if session is not None:
            self._from_clients.take_call(session, call, frame)

    def notify(self, front: FrontEdge, frame: Frame) -> None:
        """Take a client's notification to the server."""
        session = self._desk.sessions.get(front)
        if session is not None:
            self._from_clients.take_notice(session, frame)

    def reply(self, front: FrontEdge, frame: Frame) -> None:
        """Take a client's answer to the server."""
        session = self._desk.sessions.get(front)
        if session is not None:
            self._from_clients.take_reply(session, frame)

    # What the upstream edge says

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        """Find whom it is for."""
        self._from_server.take_frame(frame)

    def waits_for(self, upstream: UpstreamEdge) -> bool:
        """Whether anybody does: if not now, then whoever comes next."""
        return True

    def offered(self, upstream: UpstreamEdge) -> None:
        """Nothing to do: what the server says before it has agreed to a revision reaches no client."""

    def accepted(self, upstream: UpstreamEdge, accepted: Accepted) -> None:
        """Answer everybody who waits."""
        self._accepted = accepted
        for front in self._take_waiting():
            self._with_label(front, lambda front: front.accepted(*accepted))

    def refused(self, upstream: UpstreamEdge, refused: InitializeRefused) -> None:
        """Tell all who asked for the same, and ask for the next."""
        words = refused.words

        def tell(front: FrontEdge) -> None:
            front.refused(error_frame(front.expect_greeting().key, refused.code, refused.message, refused.data), words)

        self._turn_away(tell)

    def failed(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Tell all who asked for the same, and ask for the next."""
        self._turn_away(lambda front: front.failed(failure))

    def discovered(self, upstream: UpstreamEdge, verdict: Verdict) -> None:
        """Let a bridge between the eras serve each client: the server has no handshake, and knows no sessions."""
        self._verdict, self._edge = verdict, PerRequestEdge(upstream)
        for front in self._take_waiting():
            self._with_label(front, self._bridge)

    def interrupted(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Answer what the clients have asked, and take back what they were asked; what waits for its turn goes on."""
        desk = self._desk
        for loan in [loan for loan in desk.loans.by_key.values() if loan.frame is None]:
            self._from_server.take_frame(failure.answer(loan.key))
        desk.attribution.clear()
        desk.note_others()
        for key, session in desk.questions.withdraw_all().items():
            desk.tell(session, cancellation(key, "the server that asked is gone"))
        desk.let_in()

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        """End all sessions: what the server kept is lost with it, and a session that went on would not know."""
        for front in [session.front for session in self._desk.sessions.values()]:
            self._with_label(front, lambda front: front.lost(reason, outcome))

    def _bridge(self, front: FrontEdge) -> None:
        assert self._edge is not None
        assert self._verdict is not None
        bridge = self._bridges[front] = ToStateless(self._wiring, self.outbox, front, self._edge, self._verdict)
        bridge.hop.sender = self._desk.sessions[front].sender
        bridge.begin()

    def _offer(self, front: FrontEdge) -> None:
        greeting = front.expect_greeting()
        key = self._desk.loans.next_key()
        # An extension is between the peers: a server that is not told of it may offer nothing that belongs to it.
        extensions = {name: value for name, value in greeting.capabilities.items() if name == "extensions"}

        def introduce(revision: str) -> Frame:
            identity = dict(self._desk.settings.identity)
            params = {
                "protocolVersion": revision,
                "capabilities": {**facts(revision).shared_capabilities, **extensions},
                "clientInfo": identity,
            }
            return request_frame(key, "initialize", params)

        self._asking = front
        inherits, self.inherits = self.inherits, None
        if inherits is not None:
            self.upstream = self._desk.upstream = inherits(greeting) or self.upstream
            self.upstream.hand_to(self, self.outbox)
            if self.upstream.state is UpstreamState.IDLE:
                self.upstream.open()
        self.upstream.initialize(greeting, introduce, key)

    def _turn_away(self, tell: Any) -> None:
        asking, self._asking = self._asking, None
        asked_for = None if asking is None or asking.greeting is None else asking.greeting.revision
        alike = [front for front in self._waiting if front.greeting and front.greeting.revision == asked_for]
        for front in alike:
            del self._waiting[front]
        for front in alike:
            self._with_label(front, tell)
        following = next(iter(self._waiting), None)
        if following is not None and self.upstream.state is UpstreamState.IDLE:
            self._offer(following)

    def _take_waiting(self) -> list[FrontEdge]:
        waiting = list(self._waiting)
        self._waiting.clear()
        self._asking = None  # its session may be over long before the server is
        return waiting

    def _with_label(self, front: FrontEdge, step: Any) -> None:
        """Let an edge take a step; what is logged meanwhile is about its session."""
        session = self._desk.sessions.get(front)
        log_as("" if session is None else session.label, step, front)
