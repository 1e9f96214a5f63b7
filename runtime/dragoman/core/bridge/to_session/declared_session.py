"""One session of a server with a handshake, from its opening to its end.

Lives here: opening it with what its clients declare, and what waits for that. Must not: choose who is served in it
(`switch`), or serve (`open_session`). Made by `switch` when the first request needs it.
"""

from __future__ import annotations

import logging
from typing import Any, Final, Protocol

from dragoman.core.bridge.capabilities import Path
from dragoman.core.bridge.names import NEWER, OLDER
from dragoman.core.bridge.to_session.open_session import OpenSession
from dragoman.core.bridge.to_session.reading import write_greeting
from dragoman.core.bridge.verdict import Verdict
from dragoman.core.codes import CONNECTION_CLOSED, INTERNAL_ERROR
from dragoman.core.commands import Alarm, Outbox, Outcome, Rest, Schedule, Side
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.greeting import INITIALIZED_FRAME
from dragoman.core.edges.lifecycle import FrontState, UpstreamState
from dragoman.core.edges.offer import Accepted, InitializeRefused, pass_on
from dragoman.core.edges.per_request_front import PerRequestFront, Request
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, Malformed, Refusal, decoded
from dragoman.core.negotiation import SAME
from dragoman.core.wiring import Bridging, Wiring
from dragoman.errors import InitializationTimeout

logger = logging.getLogger("dragoman.bridge")

SETTLE_S: Final = 1.0
"""How long a server may leave a ping unanswered before its calls begin all the same."""

_LOST: Final = UpstreamState.LOST


class DeclaredSessions(Protocol):
    """Who has the sessions of a server.

    Attributes:
        requests: The client's edge, as far as requests go.
    """

    requests: PerRequestFront

    def opened(self, session: DeclaredSession) -> None:
        """The server has agreed to it, or has been told what it asks first: what waits may go on."""

    def discovered(self, session: DeclaredSession) -> None:
        """It has no handshake."""

    def failed(self, session: DeclaredSession, failure: Refusal) -> None:
        """It has not agreed; it may be asked again."""

    def lost(self, session: DeclaredSession, reason: str, outcome: Outcome) -> None:
        """The session is gone, or could not be opened in time."""


class DeclaredSession:
    """A session of the server.

    Args:
        sessions: Who has it.
        wiring: What the edges need.
        bridging: What the bridge needs.
        outbox: Where commands go.
        front: The edge that has the connection to the client.
        upstream: The server's, whose owner this becomes; None for a new one, which is still to be opened.
        path: The way between the two.
        declared: The capabilities that the server is told.

    Attributes:
        upstream: The server's edge.
        was_used: Whether it has served anything since somebody last wanted to know.
        began_s: When it was first needed.
    """

    def __init__(
        self,
        sessions: DeclaredSessions,
        wiring: Wiring,
        bridging: Bridging,
        outbox: Outbox,
        front: FrontEdge,
        upstream: UpstreamEdge | None,
        path: Path,
        declared: dict[str, Any],
    ) -> None:
        self.upstream = upstream or UpstreamEdge(wiring.settings, outbox, self)
        self.upstream.hand_to(self)
        self.was_used = True
        self.began_s = bridging.steady_s()
        self._sessions = sessions
        self._label = bridging.nonce().hex()
        self._declared = declared
        self._wiring = wiring
        self._bridging = bridging
        self._outbox = outbox
        self._front = front
        self._path = path
        self._waiting: list[Request] = []
        self._schedule = Schedule(outbox, front)
        self._alarm: Alarm | None = None  # until it is open, and has been told what it asks first
        self._session: OpenSession | None = None

    def release(self) -> None:
        """Let go of everything, once it is over."""
        self._schedule.clear()
        if self._session is not None:
            self._session.release()
        self._session = None
        del self._front, self._sessions

    # What the client's edge says

    def carry(self, request: Request) -> None:
        """Serve a request, once the server's session is open."""
        session = self._session
        if self.upstream.state is _LOST:
            self._sessions.requests.refuse(request, CONNECTION_CLOSED, "the server has gone")
        elif session is None or self._alarm is not None:
            self._waiting.append(request)
            if self.upstream.state is UpstreamState.IDLE:
                self._open(request)
        else:  # the server's edge keeps what it cannot send now
            session.serve(request)

    def cancel(self, request: Request, reason: str) -> None:
        """Tell the server that nobody waits for this any more."""
        if request in self._waiting:
            self._waiting.remove(request)
            if not self._waiting and self._session is None:
                self._outbox.add(Rest(self.upstream))
        elif self._session is not None:
            self._session.cancel(request, reason)

    def leave(self, reason: str, sender: str) -> None:
        """Give up what waits for the client to come back, and end the streams that would never end."""
        if self._session is not None:
            self._session.leave(reason, sender)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way in it, and nobody is to come back for anything."""
        return not self._waiting and (self._session is None or self._session.is_idle)

    @property
    def is_open(self) -> bool:
        """Whether it serves what it is asked at once."""
        return self._session is not None and self._alarm is None

    def has(self, call: str) -> bool:
        """Whether it has the call of this name."""
        return call.rpartition("-")[0] == self._label

    # Opening

    def _open(self, request: Request) -> None:
        if self._wiring.settings.server_revision == SAME:
            self.upstream.pin(request.metadata)
            return
        greeting = write_greeting(request, self._path, self._declared)
        introduce = pass_on(greeting, self._wiring, self._front.exchange.counters)
        self._alarm = self._schedule.after(self._wiring.settings.init_timeout_s, self._time_out)
        refusal = self.upstream.initialize(greeting, introduce, greeting.key, metadata=request.metadata)
        if refusal is not None:
            self._fail(refusal)

    def _time_out(self) -> None:
        error = InitializationTimeout("the server's answer to initialize", self._wiring.settings.init_timeout_s)
        self.lost(self.upstream, str(error), Outcome.INITIALIZATION_TIMED_OUT)

    def _stop_waiting(self) -> None:
        self._schedule.stop(self._alarm)
        self._alarm = None

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
            self._fail(adapted)
            return
        initialized = decoded(accepted.answer if adapted is None else adapted).body["result"]
        self._stop_waiting()
        session = self._session = OpenSession(
            self._wiring,
            self._bridging,
            self._front.exchange,
            self._sessions.requests,
            upstream,
            self._label,
            self._path,
            revision,
            initialized,
            self._declared,
            self._schedule,
        )
        logger.info("the server speaks %s, the client %s", revision, NEWER)
        upstream.announce(INITIALIZED_FRAME)
        if "roots" in self._declared and not self._bridging.shares_server:
            self._alarm = self._schedule.after(SETTLE_S, self._begin)
            session.ping(self._begin)
        self._sessions.opened(self)

    def _begin(self) -> None:
        """Serve what waits: what the server asks at once for the roots has come by now, and goes first."""
        self._stop_waiting()
        self._sessions.opened(self)

    def discovered(self, upstream: UpstreamEdge, verdict: Verdict) -> None:
        """Nothing is left to do here: the server has no handshake."""
        self._stop_waiting()
        self._sessions.discovered(self)

    def refused(self, upstream: UpstreamEdge, refused: InitializeRefused) -> None:
        """Tell who waits."""
        self._fail(Refusal(INTERNAL_ERROR, refused.reason, {}))

    def failed(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Tell who waits."""
        self._fail(Refusal(INTERNAL_ERROR, failure.message, failure.data))

    def interrupted(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Answer what is with the server, parked calls too: they cannot go on in another one."""
        if self._session is not None:
            self._session.interrupt(failure)

    def end(self, failure: Refusal) -> None:
        """Answer everything that it was asked: the server is gone for good."""
        for request in self.take_waiting():
            self._sessions.requests.refuse(request, failure.code, failure.message, failure.data)
        if self._session is not None:
            self._session.end(failure)

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        """End with the server."""
        self._stop_waiting()
        self._sessions.lost(self, reason, outcome)

    def _fail(self, failure: Refusal) -> None:
        self._stop_waiting()
        self._sessions.failed(self, failure)

    def take_waiting(self) -> list[Request]:
        """Take out the requests that wait for it to open."""
        waiting, self._waiting = self._waiting, []
        return waiting

    # What the server says

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        """Take what the server says."""
        if self._session is not None:
            self._session.take_frame(frame)
        elif isinstance(frame, Malformed):
            self._front.exchange.mistakes.note_malformed(Side.SERVER, frame)
        else:
            logger.debug("%s of the server dropped: its session is not open", frame.kind)
