"""Joins clients that open no session to a server that opens one.

Lives here: opening the server in the client's name, what waits for that, and the end. Must not: touch sockets or a
clock, or serve a request, which is for the session once it is open (`open_session`). Made by `switch.direct`; called by
the edges.

Theory of operation. The first request of the client opens the server's session, with the capabilities of everybody who
can be bridged, for they are fixed there, and each request brings its own; requests wait until it is open. From then on
`OpenSession` takes them. When the server is lost, so is everything.
"""

from __future__ import annotations

import logging
from typing import Final

from dragoman.core.bridge.capabilities import Path, Scope
from dragoman.core.bridge.names import NEWER, OLDER
from dragoman.core.bridge.strategy import promotes
from dragoman.core.bridge.verdict import Verdict
from dragoman.core.codes import CONNECTION_CLOSED, INTERNAL_ERROR
from dragoman.core.commands import Alarm, Outbox, Outcome, Side, Wake
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.greeting import INITIALIZED_FRAME
from dragoman.core.edges.lifecycle import FrontState, UpstreamState
from dragoman.core.edges.offer import Accepted, InitializeRefused, pass_on
from dragoman.core.edges.per_request_front import PerRequestFront, Request
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, Malformed, decoded
from dragoman.core.negotiation import SAME
from dragoman.core.switch.relay import make_relay
from dragoman.core.switch.to_handshake.open_session import OpenSession
from dragoman.core.switch.to_handshake.reading import write_greeting
from dragoman.core.translate import Refusal
from dragoman.core.wiring import Bridging, Wiring
from dragoman.errors import InitializationTimeout

logger = logging.getLogger("dragoman.bridge")

_LOST: Final = UpstreamState.LOST


class ToHandshake:
    """Serves the requests of one connection at one server.

    Args:
        wiring: What the edges need.
        bridging: What the bridge needs.
        outbox: Where commands go.
        front: The edge that has the connection.
        upstream: The server's, whose owner this becomes.

    Attributes:
        requests: The client's edge, as far as requests go.
    """

    def __init__(
        self,
        wiring: Wiring,
        bridging: Bridging,
        outbox: Outbox,
        front: FrontEdge,
        upstream: UpstreamEdge,
    ) -> None:
        scope: Scope = "shared" if bridging.shares_server else "client"
        self.requests = PerRequestFront(front, wiring.settings, front.exchange.counters, self)
        self.upstream = upstream
        self._wiring = wiring
        self._bridging = bridging
        self._outbox = outbox
        self._front = front
        self._path = Path(NEWER, OLDER, scope, tasks=True, promotes=promotes(bridging.questions))
        self._waiting: list[Request] = []
        self._opens_until_s: float | None = None
        self._wakes_at_s: float | None = None
        self._alarm = Alarm(front, self._expire)
        self._session: OpenSession | None = None
        upstream.hand_to(self)

    def release(self) -> None:
        """Let go of everything, once the session is over."""
        self.requests.release()
        if self._wakes_at_s is not None:
            self._outbox.add(Wake(self._alarm, None))
        if self._session is not None:
            self._session.release()
        self._session = None
        self._opens_until_s = self._wakes_at_s = None
        del self._front, self._alarm

    # What the client's edge says

    def carry(self, request: Request) -> None:
        """Serve a request, once the server's session is open."""
        session = self._session
        if self.upstream.state is _LOST:
            self.requests.refuse(request, CONNECTION_CLOSED, "the server has gone")
        elif session is None:
            self._waiting.append(request)
            if self.upstream.state is UpstreamState.IDLE:
                self._open(request)
        elif not session.serve(request):  # the server's edge keeps what it cannot send now
            return
        self._schedule()

    def cancel(self, request: Request, reason: str) -> None:
        """Tell the server that nobody waits for this any more."""
        if request in self._waiting:
            self._waiting.remove(request)
        elif self._session is not None:
            self._session.cancel(request, reason)
        self._schedule()

    def finished(self, request: Request) -> None:
        """Let the server say less, if this was the request that wanted more."""
        if self._session is not None:
            self._session.finished(request)

    def leave(self, reason: str) -> None:
        """Give up what waits for the client to come back, and end the streams that would never end."""
        if self._session is not None:
            self._session.leave(reason)

    def _expire(self) -> None:
        """Do what is due."""
        self._wakes_at_s = None
        if self._opens_until_s is not None and self._opens_until_s <= self._bridging.steady_s():
            error = InitializationTimeout("the server's answer to initialize", self._wiring.settings.init_timeout_s)
            self.lost(self.upstream, str(error), Outcome.INITIALIZATION_TIMED_OUT)
            return
        if self._session is not None:
            self._session.expire()
        self._schedule()

    def _schedule(self) -> None:
        """Ask to be woken when something is due."""
        next_s = self._opens_until_s if self._session is None else self._session.next_s
        if next_s != self._wakes_at_s:
            self._wakes_at_s = next_s
            after_s = None if next_s is None else max(0.0, next_s - self._bridging.steady_s())
            self._outbox.add(Wake(self._alarm, after_s))

    # Opening the server's session

    def _open(self, request: Request) -> None:
        if self._wiring.settings.server_revision == SAME:
            self.upstream.pin()
            return
        greeting = write_greeting(request, self._path)
        introduce = pass_on(greeting, self._wiring, self._front.exchange.counters)
        self._opens_until_s = self._bridging.steady_s() + self._wiring.settings.init_timeout_s
        refusal = self.upstream.ask(greeting, introduce, greeting.key, needs_session=False)
        if refusal is not None:
            self._fail_waiting(refusal)

    def waits_for(self, upstream: UpstreamEdge) -> bool:
        """Whether the client is there, or waits for answers."""
        return self._front.state in (FrontState.PER_REQUEST, FrontState.DRAINING, FrontState.CLOSING)

    def offered(self, upstream: UpstreamEdge) -> None:
        """Nothing to do: nobody hears what a server says before it has agreed to something."""

    def accepted(self, upstream: UpstreamEdge, accepted: Accepted) -> None:
        """Go on with what waits."""
        revision, counters = accepted.revision, self._front.exchange.counters
        adaptor = self._wiring.make_adaptor(Side.SERVER, revision, OLDER, counters)
        adapted = adaptor.adapt(accepted.answer, "initialize")
        if isinstance(adapted, Refusal):
            self._fail_waiting(adapted)
            return
        initialized = decoded(accepted.answer if adapted is None else adapted).body["result"]
        self._opens_until_s = None
        session = self._session = OpenSession(
            self._wiring,
            self._bridging,
            self._front.exchange,
            self.requests,
            upstream,
            self._bridging.nonce().hex(),
            self._path,
            revision,
            initialized,
        )
        logger.info("the server speaks %s, the client %s", revision, NEWER)
        upstream.announce(INITIALIZED_FRAME)
        for request in self._take_waiting():
            session.serve(request)
        self._schedule()

    def discovered(self, upstream: UpstreamEdge, verdict: Verdict) -> None:
        """Hand on from here on: the server has no handshake, and there is nothing to bridge."""
        self._opens_until_s = None
        relay = make_relay(self._front, self.requests, upstream, self._bridging)
        waiting = self._take_waiting()
        self.requests.hand_to(relay)
        self._schedule()
        for request in waiting:
            relay.carry(request)

    def refused(self, upstream: UpstreamEdge, refused: InitializeRefused) -> None:
        """Tell who waits; the next request tries again."""
        self._fail_waiting(Refusal(INTERNAL_ERROR, f"the server refused initialize: {refused.words}", {}))

    def failed(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Tell who waits; the next request tries again."""
        self._fail_waiting(Refusal(INTERNAL_ERROR, failure.message, failure.data))

    def interrupted(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Answer what is with the server, parked calls too: they cannot go on in another one."""
        for key in [] if self._session is None else self._session.interrupt():
            self.take_server(upstream, failure.answer(key))

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        """End the session with that of its server."""
        self._opens_until_s = None
        self._front.lost(reason, outcome)

    def _fail_waiting(self, failure: Refusal) -> None:
        self._opens_until_s = None
        for request in self._take_waiting():
            self.requests.refuse(request, failure.code, failure.message, failure.data)
        self._schedule()

    def _take_waiting(self) -> list[Request]:
        waiting, self._waiting = self._waiting, []
        return waiting

    # What the server says

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        """Take what the server says."""
        if self._session is not None:
            if not self._session.take(frame):
                return
        elif isinstance(frame, Malformed):
            self._front.exchange.reject(Side.SERVER, frame)
        else:
            logger.debug("%s of the server dropped: its session is not open", frame.kind)
        self._schedule()
