"""One session of a server with a handshake, from its opening to its end, as it serves requests that open none.

Lives here: opening it with what its clients declare, requests on their way to the server, its answers on their way
back, and telling apart what it says. Must not: choose who is served in it (`switch`), or know what is made of questions
(`asking`), `notifications` and tasks (`promoting`). Made by `switch` when the first request needs it.

Requests wait until it is open. Then each goes to the server under an id of ours, over the steps, and its answer comes
back the same way. What the server asks meanwhile is for `asking`, what it tells for `notifications`. Most requests need
no more than the steps, and go straight there and back; a retry, a task, a log level or headers to be checked are looked
at where there can be such.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from typing import Any, Final, Protocol

from dragoman.core.batches import read_member
from dragoman.core.calls import NAME_BYTES
from dragoman.core.codes import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from dragoman.core.commands import Alarm, Outbox, Outcome, Rest, Schedule, Side
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.greeting import INITIALIZED_FRAME
from dragoman.core.edges.lifecycle import FrontState, UpstreamState
from dragoman.core.edges.offer import Accepted, InitializeRefused, pass_on
from dragoman.core.edges.per_request_front import PerRequestCall, PerRequestFront
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.edges.way import Way
from dragoman.core.edges.wiring import Bridging, Wiring
from dragoman.core.envelope import Frame, Malformed, Refusal, decoded, error_frame, result_frame
from dragoman.core.methods import CALL_TOOL, CANCELLED, LIST_TOOLS, LISTEN
from dragoman.core.mistakes import refuse_garbled
from dragoman.core.negotiation import SAME
from dragoman.core.paging import TakePage
from dragoman.core.rules.capabilities import Path
from dragoman.core.rules.discovery import to_discover_result
from dragoman.core.rules.names import DISCOVER, NEWER, OLDER, TASK_METHODS
from dragoman.core.rules.replay import Replay
from dragoman.core.rules.strategy import Strategy
from dragoman.core.rules.verdict import Verdict
from dragoman.core.switch.listed_tools import ListedTools
from dragoman.core.switch.to_session.asking import ClientQuestions
from dragoman.core.switch.to_session.loans import SessionLoans
from dragoman.core.switch.to_session.notifications import ServerNotifications
from dragoman.core.switch.to_session.promoting import Promoting
from dragoman.core.switch.to_session.reading import (
    KNOWN,
    RETRY,
    RequestWriter,
    Served,
    read_as_first,
    without_answers,
    write_greeting,
)
from dragoman.core.unchecked import find_object
from dragoman.errors import InitializationTimeout

logger = logging.getLogger("dragoman.bridge")

SETTLE_S: Final = 1.0
"""How long a server may leave a ping unanswered before its calls begin all the same."""

_LOST: Final = UpstreamState.LOST
_PING_KEY: Final = b'"dragoman-ping"'
_STRAIGHT: Final = KNOWN - TASK_METHODS.keys() - {LISTEN, DISCOVER}
"""Methods of requests that need nothing but the steps, unless the session or the request wants more."""


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
        holder: For whom it was opened.
        variant: Digest of what its server was told beside what it can ask; empty where that is nothing.
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
        self.holder: Hashable = ""
        self.variant = ""
        self._sessions = sessions
        self._label = bridging.nonce().hex()
        self._declared = declared
        self._wiring = wiring
        self._outbox = outbox
        self._front = front
        self._exchange = front.exchange
        self._waiting: list[PerRequestCall] = []
        self._schedule = Schedule(outbox, front)
        self._alarm: Alarm | None = None  # until it is open, and has been told what it asks first
        self._is_accepted = False
        self._writer = RequestWriter()
        self._loans = SessionLoans(self.upstream, wiring.settings.restore_ids, self._label, self._schedule, bridging)
        tools = ListedTools(sends=False, hears=not bridging.shares_channel, remind=self._schedule.after, keeps=True)
        self._served = Served(bridging, sessions.requests, self.upstream, self._loans, tools, path)
        self._promoting = Promoting(self._served)
        self._asking = ClientQuestions(self._served, self.start, self._promoting, declared)
        self._unclear = self._asking.unclear
        self._notifications = ServerNotifications(self._served, self._promoting)
        self._lists_all = False
        self._straight = _STRAIGHT

    def release(self) -> None:
        """Let go of everything, once it is over."""
        self._schedule.clear()
        self._loans.clear()
        del self._asking.unclear, self._asking, self._unclear, self._notifications
        del self._front, self._exchange, self._sessions

    # What the client's edge says

    def carry(self, request: PerRequestCall) -> None:
        """Serve a request, once the server's session is open."""
        if self.upstream.state is _LOST:
            self._served.front.refuse(request, CONNECTION_CLOSED, "the server has gone")
        elif self._is_accepted and self._alarm is None:  # the server's edge keeps what it cannot send now
            self._serve(request)
        else:
            self._waiting.append(request)
            if self.upstream.state is UpstreamState.IDLE:
                self._open(request)

    def cancel(self, request: PerRequestCall, reason: str) -> None:
        """Tell the server that nobody waits for this any more."""
        if request in self._waiting:
            self._waiting.remove(request)
            if not self._waiting and not self._is_accepted:
                self._outbox.add(Rest(self.upstream))
        elif not self._notifications.listens.cancel(request):
            loan = self._loans.find_for(request)
            if loan is not None:
                self._loans.leave(loan, reason)

    def leave(self, reason: str, sender: str) -> None:
        """Give up what waits for the client to come back, and end the streams that would never end."""
        if sender:
            self._asking.revoke(reason, sender)
        else:
            self._asking.leave(reason)
            self._notifications.listens.end_all(reason)

    @property
    def parked(self) -> int:
        """How many calls have asked their client something."""
        return len(self._asking.parked)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way in it, and nobody is to come back for anything."""
        kept = self._asking.parked or self._promoting.kept or self._notifications.listens
        return not (self._waiting or any(self._loans) or self._served.tools.is_awaited or kept)

    @property
    def is_open(self) -> bool:
        """Whether it serves what it is asked at once."""
        return self._is_accepted and self._alarm is None

    def has(self, call: str) -> bool:
        """Whether it has the call of this name."""
        return call.rpartition("-")[0] == self._label

    # Opening

    def _open(self, request: PerRequestCall) -> None:
        if self._wiring.settings.server_revision == SAME:
            self.upstream.pin(request.metadata)
            return
        greeting = write_greeting(request, self._served.path, self._declared)
        introduce = pass_on(greeting, self._wiring, self._exchange.counters)
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
        revision, counters = accepted.revision, self._exchange.counters
        adaptor = self._wiring.make_adaptor(Side.SERVER, revision, OLDER, counters)
        adapted = adaptor.adapt(accepted.answer, "initialize")
        if isinstance(adapted, Refusal):
            self._fail(adapted)
            return
        initialized = decoded(accepted.answer if adapted is None else adapted).body["result"]
        self._stop_waiting()
        self._agree(revision, initialized)
        logger.info("the server speaks %s, the client %s", revision, NEWER)
        upstream.announce(INITIALIZED_FRAME)
        if "roots" in self._declared and not self._served.bridging.shares_server:
            self._alarm = self._schedule.after(SETTLE_S, self._begin)
            self._loans.send_own("ping", {}, lambda answer: self._begin(), _PING_KEY)
        self._sessions.opened(self)

    def _agree(self, revision: str, initialized: Mapping[str, Any]) -> None:
        """Take what the server is, in the form of the newest revision with a handshake."""
        counters, bridging = self._exchange.counters, self._served.bridging
        self._discovered, losses = to_discover_result(initialized, self._served.path)
        if losses:
            named = ", ".join(loss.pointer for loss in losses)
            logger.warning("the client is not told of what its revision does not have: %s", named)
        self._upward = self._wiring.make_adaptor(Side.CLIENT, NEWER, revision, counters)
        self._served.agree(revision, initialized, self._wiring.make_adaptor(Side.SERVER, revision, NEWER, counters))
        has_tools = "tools" in self._served.capabilities
        self._lists_all = self._served.runs_tools or (not bridging.shares_channel and has_tools)
        if self._lists_all or bridging.questions == Strategy.REPLAY.value:
            self._straight = _STRAIGHT - {CALL_TOOL}
        self._is_accepted = True

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
        self._fail(refused.told)

    def failed(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Tell who waits."""
        self._fail(Refusal(INTERNAL_ERROR, failure.message, failure.data))

    def interrupted(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Answer what is with the server, parked calls too: they cannot go on in another session."""
        self._unclear.clear()
        for key in self._loans.take_open():
            self._take_frame(failure.answer(key))

    def end(self, failure: Refusal) -> None:
        """Answer everything that is under way: the server is gone for good."""
        for request in self.take_waiting():
            self._served.front.refuse(request, failure.code, failure.message, failure.data)
        while self._loans.take_open():  # one that is over may let another go on
            self.interrupted(self.upstream, failure)
        self._notifications.listens.end_all(failure.message)

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        """End with the server."""
        self._stop_waiting()
        self._sessions.lost(self, reason, outcome)

    def _fail(self, failure: Refusal) -> None:
        self._stop_waiting()
        self._sessions.failed(self, failure)

    def take_waiting(self) -> list[PerRequestCall]:
        """Take out the requests that wait for it to open."""
        waiting, self._waiting = self._waiting, []
        return waiting

    # Requests and their answers

    def _serve(self, request: PerRequestCall) -> None:
        """Take a request to the server."""
        if request.metadata.revision != NEWER:
            way = Way(self._wiring, request.metadata.revision, NEWER, self._exchange.counters)
            if not read_as_first(request, way, self._served.front):
                return
        params, metadata = request.params, request.metadata
        if (
            request.method in self._straight
            and metadata.log_level is None
            and RETRY.isdisjoint(params)
            and not self._unclear.open
        ):
            self.start(request, params)
        elif self._must_list(request):
            self._served.tools.list(self._ask_page, lambda: self._served.front.attempt(request, self._serve_checked))
        else:
            self._served.front.attempt(request, self._serve_checked)

    def _must_list(self, request: PerRequestCall) -> bool:
        """Whether too little is known of the tool that a request calls."""
        if request.method != CALL_TOOL or CALL_TOOL in self._straight:
            return False
        name = request.params.get("name")
        if not isinstance(name, str):  # its server says what it makes of that
            return False
        needs_to = self._lists_all or name not in self._served.bridging.repeatable
        return needs_to and not self._served.tools.is_known(name)

    def _serve_checked(self, request: PerRequestCall) -> None:
        if self._served.tools.hears:
            self._served.tools.check(request)
        if request.method == DISCOVER:
            self._served.front.put_result(request, self._discovered)
            return
        if request.method == LISTEN:
            self._notifications.listens.open(request)
            return
        if request.metadata.log_level is not None:
            self._notifications.set_level(request, request.metadata.log_level)
        if request.method in TASK_METHODS:
            self._promoting.serve(request)
        elif not self._asking.resume(request):
            self.start(request, without_answers(request.params))

    def _ask_page(self, params: dict[str, Any], take: TakePage) -> None:
        def take_answer(answer: Frame) -> None:
            try:
                page = find_object(decoded(answer).body, "result")
            except ValueError:
                page = {}
            take(page, len(answer.raw))

        self._loans.send_own(LIST_TOOLS, params, take_answer)

    def start(self, request: PerRequestCall, params: Mapping[str, Any], attempt: Replay | None = None) -> None:
        """Send the server a request with these params; one that was made before has its answers recorded."""
        loan = self._loans.new_loan(request)
        if attempt is not None:
            loan.strategy, loan.replay = Strategy.REPLAY, attempt
        try:
            body = self._writer.write(request, loan.number, params)
            adapted = self._upward.cross("request", loan.key, request.method, body)
        except ValueError as error:  # nested deeper than can be written
            self._served.front.refuse(request, INVALID_PARAMS, str(error))
            return
        if adapted is None:
            reason = f"the server's revision has no {request.method}"
            self._served.front.refuse(request, METHOD_NOT_FOUND, reason, {"method": request.method})
        elif isinstance(adapted, Refusal):
            self._served.front.refuse(request, adapted.code, adapted.message, adapted.data)
        else:
            loan.frame = self._promoting.ask_for(loan, adapted) if self._served.runs_tools else adapted
            (self._asking.begin if self._unclear.open else self._loans.start)(loan)

    # What the server says

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        """Take what the server says."""
        if self._is_accepted:
            self._take_frame(frame)
        elif isinstance(frame, Malformed):
            self._exchange.mistakes.note_malformed(Side.SERVER, frame)
        else:
            logger.debug("%s of the server dropped: its session is not open", frame.kind)

    def _take_frame(self, frame: Frame | Malformed) -> None:
        if isinstance(frame, Malformed):
            self._take_malformed(frame)
        elif frame.kind == "result" or frame.kind == "error":
            self._take_response(frame)
        elif frame.kind == "batch":
            for member in frame.body:
                self._take_frame(read_member(member, frame.stream))
        elif frame.kind == "request":
            self._take_request(frame)
        elif frame.method == CANCELLED:
            self._asking.withdraw(frame)
        else:
            self._notifications.take_notification(frame)

    def _take_request(self, frame: Frame) -> None:
        key = frame.key or b"null"
        if frame.method == "ping":
            self._served.upstream.send(result_frame(key, {}))
        elif len(key) > NAME_BYTES:
            self._exchange.counters.malformed += 1
            self._served.upstream.send(
                error_frame(key, INVALID_REQUEST, f"expected ids to have at most {NAME_BYTES} bytes")
            )
        elif self._loans.find_asking(key) is not None or (self._unclear.open and key in self._unclear):
            self._exchange.counters.malformed += 1  # an answer under its id would be one to the other request
            logger.warning("%s request of the server dropped: its id belongs to one that is not answered", frame.method)
        else:
            self._asking.take_question(frame)

    def _take_malformed(self, malformed: Malformed) -> None:
        self._exchange.mistakes.note_malformed(Side.SERVER, malformed)
        if malformed.is_response and malformed.key is not None:
            self._take_response(decoded(refuse_garbled(malformed.reason).answer(malformed.key)))

    def _take_response(self, frame: Frame) -> None:
        loan = self._loans.table.take(frame.key)
        if loan is None and (hook := self._loans.take_hook(frame.key or b"")) is not None:
            hook(frame)
        elif loan is None:
            self._exchange.counters.unmatched += 1
            logger.debug("the server answered what nobody asked, or what was answered")
        elif loan.questions is None and not (loan.wants_task or loan.is_left or self._unclear.open):
            # The server has asked nothing about it, and nothing waits for its end.
            if self._loans.is_asking:
                self._loans.go_on()
            if loan.request is not None:
                self._served.pass_answer(loan.request, loan, frame)
        elif not (loan.wants_task and self._promoting.follow(loan, frame)):
            self._asking.finish(loan, frame)
            self._loans.finish(loan)
