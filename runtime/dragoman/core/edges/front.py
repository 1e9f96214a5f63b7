"""The edge towards a client: its session from the first frame to the last.

Lives here: the entry points for what a client says, and what is done with a frame in each state. Must not: know which
server is behind it or whom else it serves (`core.switch`), touch sockets or a clock, or know how a frame is translated.
Called by `dragoman.host` and by the switch.

Theory of operation. Until the session is open, frames go through the table. Then they go directly to the `Exchange`,
which passes the client's frames to `behind`, and the frames from there to the client.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from dragoman.core.calls import Call
from dragoman.core.codes import INVALID_REQUEST
from dragoman.core.commands import CLIENT, SERVER, Finish, Outbox, Outcome, Side, Wake
from dragoman.core.edges.backend import Backend
from dragoman.core.edges.early import EarlyFrames
from dragoman.core.edges.exchange import Exchange
from dragoman.core.edges.failures import connection_closed, explain_client_closing, explain_timeout
from dragoman.core.edges.greeting import (
    DISCOVER,
    IDENTITY,
    LEGACY_INITIALIZED,
    Greeting,
    read_greeting,
    read_initialized,
    read_per_request_revision,
    refuse_per_request,
    write_welcome,
)
from dragoman.core.edges.lifecycle import FRONT, FrontAction, FrontEvent, FrontState
from dragoman.core.edges.wiring import Wiring
from dragoman.core.envelope import Frame, Malformed, Refusal, error_frame
from dragoman.core.methods import INITIALIZED
from dragoman.core.other_era import MOST_BYTES, advise
from dragoman.core.streams import place
from dragoman.core.unchecked import find
from dragoman_spec import PER_REQUEST_REVISIONS

if TYPE_CHECKING:
    from dragoman.core.edges.per_request_front import PerRequestFront

logger = logging.getLogger("dragoman.session")

# Names of their own for what is asked with every frame: see `commands.CLIENT`.
_READY: Final = FrontState.READY
_PER_REQUEST: Final = FrontState.PER_REQUEST
_DRAINING: Final = FrontState.DRAINING
_CLOSING: Final = FrontState.CLOSING
_ACCEPTED: Final = frozenset({FrontState.SENDING_INITIALIZED, FrontState.READY})

_WATCHED: Final = frozenset({"initialize", DISCOVER, INITIALIZED, LEGACY_INITIALIZED})


class SessionBackend(Backend["FrontEdge"], Protocol):
    """Who opens a session for the client of a front edge, too."""

    def initialize(self, front: FrontEdge) -> Refusal | None:
        """The client has sent `initialize`; a refusal if there is nothing that it could be offered as."""

    def wait_for_server(self, front: FrontEdge) -> None:
        """The front edge waits for the server: it may be told of one that is open already."""

    def describe_offer(self, front: FrontEdge) -> dict[str, Any]:
        """Say, for the data of an error, what was asked and offered."""

    def serve_requests(self, front: FrontEdge) -> PerRequestFront | None:
        """Begin to serve a client whose requests speak for themselves; None where such are not served."""

    def serve_handshake(self, front: FrontEdge) -> None:
        """Begin anew: the client has sent such requests, and now `initialize` after all."""


class FrontEdge:
    """The machine for one client.

    Args:
        wiring: What the user decided, and where steps and methods come from.
        outbox: Where commands go.
        backend: What serves this client.

    Attributes:
        state: Where the session stands.
        greeting: The client's `initialize`, as long as it is needed.
        exchange: The frames of the open session.
        outgoing: Frames for the client that are not written yet.
        per_request: The client's requests, where each speaks for itself; None in a session.
        has_streams: Whether the client's transport has a stream for each call.
        client_ended: Whether the client has said, before its session is open, that it says no more.
    """

    __slots__ = (
        "_client_owed", "_early", "_failure", "_finished", "_is_shared", "_outbox", "_outcome", "_replaying",
        "_welcome", "_wiring", "backend", "client_ended", "exchange", "greeting", "has_streams", "outgoing",
        "per_request", "state",
    )  # fmt: skip

    def __init__(self, wiring: Wiring, outbox: Outbox, backend: SessionBackend) -> None:
        self.state = FrontState.CONNECTING
        self.outgoing: list[Frame] = []
        self.has_streams = False
        self.per_request: PerRequestFront | None = None
        self.backend = backend
        self.greeting: Greeting | None = None
        self.exchange = Exchange(self, backend, wiring.settings, outbox)
        self._outbox = outbox
        self._wiring = wiring
        self._early = EarlyFrames(self.post, wiring.settings.queue_frames, wiring.settings.queue_bytes)
        self._welcome: Frame | None = None  # what answers `initialize`
        self._client_owed: bytes | None = None  # the id of an `initialize` that is not answered yet
        self.client_ended = False
        self._replaying = self._is_shared = False  # whether the client is a proxy, perhaps before several
        self._failure = connection_closed("the session is over")
        self._outcome = Outcome.CLIENT_CLOSED
        self._finished = False

    def send(self, frame: Frame) -> None:
        """Write a frame to the client."""
        if self.has_streams and frame.method is not None:
            calls = self.exchange.calls
            frame = place(frame, calls[Side.CLIENT], calls[Side.SERVER], not self._is_shared)
        self._outbox.post(self, frame)

    def post(self, side: Side, frame: Frame) -> None:
        """Write a frame to the client, or hand an answer on to what is behind."""
        if side is CLIENT:
            if frame.kind == "error" or (len(frame.raw) < MOST_BYTES and b'"isError"' in frame.raw):
                is_relayed = self.per_request is None or self.per_request.is_relayed
                frame = advise(frame, self.exchange.revisions[SERVER]) if is_relayed else frame
            self._outbox.post(self, frame)
        else:
            self.exchange.backend.reply(self, frame)

    def release(self) -> None:
        """Let go of everything, once the session is over: circles stay until somebody looks for such."""
        self.exchange.release()
        del self.backend, self._early

    def use_streams(self) -> None:
        """Record that the client's transport has a stream for each call."""
        self.has_streams = self.exchange.notes_tokens = True

    # What the client does

    def open(self) -> None:
        """Begin: from here on the client has so long to initialise."""
        self._advance(FrontEvent.OPENED)

    def take(self, frame: Frame | Malformed) -> None:
        """Take a frame of the client."""
        if isinstance(frame, Malformed):
            if self.per_request is not None:
                self.per_request.reject(frame)
            else:
                self.exchange.reject(Side.CLIENT, frame)
        elif self.state is _READY and frame.method not in _WATCHED:
            if frame.kind == "request":  # most are
                self.exchange.relay_request(CLIENT, frame, None)
            else:
                self.exchange.relay(CLIENT, frame)
        elif self.per_request is None:
            self._take_early(frame)
        elif self.state is _PER_REQUEST and frame.method != "initialize":
            self.per_request.take_frame(frame)
        else:
            self._take_per_request(self.per_request, frame)

    def close(self, reason: str) -> None:
        """Record that the client says no more."""
        if self.state is FrontState.INITIALIZING:
            self.client_ended = True  # waits behind the frames that wait
            return
        refused = self._is_refused
        if self.per_request is not None and self.state is FrontState.PER_REQUEST:
            self.per_request.leave(reason)
        if self.state is not FrontState.FAILED and not refused:
            self._end(explain_client_closing(self.state, reason), Outcome.CLIENT_CLOSED)
        self._advance(FrontEvent.CLIENT_CLOSED)
        self.answered()

    @property
    def _is_refused(self) -> bool:
        """Whether the server has refused `initialize`, and may be asked again."""
        return self.state is FrontState.CONNECTING and self.greeting is not None

    def expire(self) -> None:
        """Record that the timer ran out."""
        if self.state is not FrontState.FAILED and not self._is_refused:
            about = {} if self.greeting is None else self.backend.describe_offer(self)
            self._end(*explain_timeout(self.state, self._wiring.settings, about))
        self._advance(FrontEvent.TIMED_OUT)

    def stop(self, reason: str, outcome: Outcome = Outcome.STOPPED) -> None:
        """End the session now: by a signal, or because nobody can read what would be written."""
        self._end(connection_closed(reason), outcome)
        self._advance(FrontEvent.STOPPED)

    def drain(self, reason: str) -> None:
        """End the session once everything that the client has asked is answered; nothing new is taken."""
        if self.state in (_DRAINING, _CLOSING):
            return
        if self.state not in (_READY, _PER_REQUEST):
            self.stop(reason)
            return
        self._end(connection_closed(reason), Outcome.STOPPED)
        if self.per_request is not None:
            self.per_request.drain(reason)
        self._advance(FrontEvent.DRAIN_ASKED)
        self.answered()

    # What is behind does

    def expect_greeting(self) -> Greeting:
        """Return the client's `initialize`, which it has sent, and whose session is not open."""
        assert self.greeting is not None, "the client has not sent initialize"
        return self.greeting

    def take_server(self, frame: Frame) -> None:
        """Take a frame of the server for this client."""
        if self.state is _READY and frame.kind == "result":  # most are
            self.exchange.relay_response(SERVER, frame)
        elif self.state is _READY:
            self.exchange.relay(SERVER, frame)
        elif self.state is _DRAINING or not self._early.take_server(frame, self.state):
            self.exchange.relay(Side.SERVER, frame)
            self.answered()

    def take_answer(self, call: Call, frame: Frame, *, own: bool = False) -> None:
        """Take the answer to a call of this client: of its server, or the switch's own, in the client's revision."""
        (self.exchange.settle if own else self.exchange.answer)(call, frame)
        self.answered()

    def speak(self, server_revision: str) -> None:
        """Record what the server speaks, or is offered: what crosses from here on is translated so."""
        greeting = self.expect_greeting()
        self.exchange.speak(
            self._wiring.translate(greeting.revision, server_revision),
            self._wiring.translate(server_revision, greeting.revision),
        )

    def accepted(self, answer: Frame, revision: str, speaks: str | None = None) -> None:
        """Record that the server has agreed to a revision: that of its result, unless it speaks another one."""
        greeting = self.expect_greeting()
        adaptor = self._wiring.make_adaptor(Side.SERVER, revision, greeting.revision, self.exchange.counters)
        adapted = adaptor.adapt(answer, "initialize")
        if isinstance(adapted, Refusal):
            self.failed(adapted)
            return
        self._welcome = write_welcome(greeting.key, answer if adapted is None else adapted)
        self.speak(speaks or revision)
        logger.info("the server speaks %s, the client %s", speaks or revision, greeting.revision)
        self._advance(FrontEvent.SERVER_ACCEPTED)

    def refused(self, answer: Frame, words: str) -> None:
        """Record that the server has refused `initialize` for a reason of its own.

        Args:
            answer: What it answered, with the client's own id.
            words: The reason, for requests that wait.
        """
        logger.warning("the server refused initialize: %s", words)
        self._welcome = answer
        self._end(connection_closed(f"initialize was refused: {words}"), Outcome.INITIALIZATION_FAILED)
        self._advance(FrontEvent.SERVER_REFUSED)

    def failed(self, failure: Refusal) -> None:
        """Record that there is no session to be had with the server."""
        self._end(failure, Outcome.INITIALIZATION_FAILED)
        self._advance(FrontEvent.SERVER_FAILED)

    def interrupted(self, failure: Refusal) -> None:
        """Record that the server is gone and another one comes in its place: the session goes on."""
        self.exchange.interrupt(failure)
        self.answered()

    def lost(self, reason: str, outcome: Outcome) -> None:
        """Record that the server is gone, and with it this session."""
        if self.state not in (FrontState.FAILED, FrontState.CLOSED):
            self._end(connection_closed(reason), outcome)
        self._advance(FrontEvent.SERVER_CLOSED)

    # Frames of the client before the session is open, and those of the handshake

    def _take_early(self, frame: Frame) -> None:
        is_request = frame.kind == "request"
        if self.per_request is not None:
            self._take_per_request(self.per_request, frame)
        elif frame.method == "initialize":
            self._take_initialize(frame)
        elif is_request and self.state is FrontState.CONNECTING and self._begins_per_request(frame):
            self._take_early(frame)
        elif frame.method == DISCOVER and is_request and self.state is not FrontState.FAILED:
            self._early.reply(Side.CLIENT, frame, refuse_per_request(frame, PER_REQUEST_REVISIONS[-1]))
        elif (initialized := read_initialized(frame, self._wiring.settings.accept_legacy_initialized)) is not None:
            self._take_initialized(initialized)
        elif self.state is FrontState.READY:
            self.exchange.relay(Side.CLIENT, frame)
        elif is_request and frame.method == "ping":
            self._early.answer_ping(Side.CLIENT, frame)
        elif self.state in (_DRAINING, _CLOSING, FrontState.CLOSED, FrontState.FAILED) or self._is_refused:
            left = self._early.refuse(frame, self._failure)
            if left is not None and self.state in (_DRAINING, _CLOSING):
                self.exchange.relay(Side.CLIENT, left)  # an answer to a question in a call, say, or the end of one
                self.answered()
        elif not self._early.take_client(frame, self.state):
            self.exchange.reject(Side.CLIENT, Malformed(INVALID_REQUEST, "expected initialize, found a batch"))

    def _begins_per_request(self, frame: Frame) -> bool:
        """Whether a client shows with this that its requests speak for themselves, and such are served here."""
        if frame.method == DISCOVER or read_per_request_revision(frame) is not None:
            self.per_request = self.backend.serve_requests(self)
        if self.per_request is not None:
            self._advance(FrontEvent.PER_REQUEST_BEGUN)
        return self.per_request is not None

    def _take_per_request(self, per_request: PerRequestFront, frame: Frame) -> None:
        is_open = self.state is FrontState.PER_REQUEST
        if frame.method == "initialize" and is_open and frame.kind == "request":
            # SDKs wait 10 s for the answer to `server/discover`, and then take the server for one with a handshake.
            failure = connection_closed("the client has sent initialize instead")
            self.exchange.fail_all(Side.CLIENT, failure.code, failure.message)
            self.per_request = None
            self.backend.serve_handshake(self)
            self.exchange.serve(self.backend)
            self._advance(FrontEvent.HANDSHAKE_BEGUN)
            self._take_initialize(frame)
        elif is_open or frame.kind != "request":
            per_request.take_frame(frame)
            self.answered()
        else:
            self._early.reply(Side.CLIENT, frame, self._failure.answer_to(frame))

    def _take_initialize(self, frame: Frame) -> None:
        if frame.kind == "request" and self.state is FrontState.CLOSED:  # a signal came first
            self._early.reply(Side.CLIENT, frame, self._failure.answer_to(frame))
            return
        if frame.kind == "request" and self.state in _ACCEPTED:
            # A gateway may have opened this session, and hands on the `initialize` of its client; SDKs answer it.
            assert frame.key is not None
            assert self._welcome is not None
            self._early.reply(Side.CLIENT, frame, write_welcome(frame.key, self._welcome))
            return
        if frame.kind != "request" or self.state not in (FrontState.CONNECTING, FrontState.FAILED):
            reason = "initialize must be a request, and the first of its session"
            key = None if frame.key == self._client_owed else frame.key
            self.exchange.reject(Side.CLIENT, Malformed(INVALID_REQUEST, reason, key))
            return
        greeting = read_greeting(frame, self._wiring.settings.client_revision)
        if isinstance(greeting, Malformed):
            self.exchange.reject(Side.CLIENT, greeting)
            return
        self.greeting, self._client_owed = greeting, frame.key
        self._is_shared = find(greeting.frame.body, "params", "clientInfo", "name") == IDENTITY["name"]
        has_failed = self.state is FrontState.FAILED
        refusal = None if has_failed else self.backend.initialize(self)
        if refusal is not None:
            self.greeting = self._client_owed = None
            answer = error_frame(frame.key, refusal.code, refusal.message, refusal.data)
            self._early.reply(Side.CLIENT, frame, answer)
            return
        self._advance(FrontEvent.INITIALIZE_REQUESTED)
        if not has_failed:
            self.backend.wait_for_server(self)

    def _take_initialized(self, frame: Frame) -> None:
        if self.state is FrontState.INITIALIZING:
            self._early.wait(Side.CLIENT, frame)
        elif self.state is FrontState.READY:
            self.exchange.relay(Side.CLIENT, frame)
        else:
            self._advance(FrontEvent.INITIALIZED, frame)

    def answered(self) -> None:
        """Record that a request may have its answer; a session that ends with the last of them is over."""
        if self.state is not _CLOSING and self.state is not _DRAINING:
            return
        if not self.exchange.calls[Side.CLIENT].waiting:
            self._advance(FrontEvent.DRAINED)

    def _end(self, failure: Refusal, outcome: Outcome) -> None:
        self._failure, self._outcome = failure, outcome

    # What the table asks for

    def _advance(self, event: FrontEvent, about: Frame | None = None) -> None:
        transition = FRONT.advance(self.state, event)
        if transition is None:
            logger.debug("%s means nothing while %s", event.value, self.state.value)
            return
        self.state = transition.state
        for action in transition.actions:
            _ACTIONS[action](self, about)

    def _start_timer(self) -> None:
        settings = self._wiring.settings
        durations = {
            FrontState.DRAINING: settings.drain_timeout_s,
            FrontState.CLOSING: settings.drain_timeout_s,
            FrontState.FAILED: settings.linger_s,
        }
        self._outbox.add(Wake(self, durations.get(self.state, settings.init_timeout_s)))

    def _stop_timer(self) -> None:
        self._outbox.add(Wake(self, None))

    def _answer_initialize(self) -> None:
        greeting = self.expect_greeting()
        assert self._welcome is not None
        self._client_owed = None
        self.send(self._welcome)
        self.exchange.know_client(greeting.capabilities, self._wiring.methods_of(greeting.revision))

    def _fail_initialize(self) -> None:
        if self._client_owed is not None:
            self.send(self._failure.answer(self._client_owed))
            self._client_owed = None

    def _announce(self, initialized: Frame) -> None:
        if self.exchange.observer is not None:
            self.exchange.observer.opened(find(self.expect_greeting().frame.body, "params", "clientInfo"))
        self.exchange.relay(Side.CLIENT, initialized)
        # Nobody asks for these again, and of 500 open sessions they would hold a megabyte; the answer to `initialize`
        # is kept as it was written, for a client behind a gateway.
        self.greeting = None
        assert self._welcome is not None
        self._welcome = self._welcome._replace(body=None)

    def _replay_queue(self) -> None:
        outermost, self._replaying = not self._replaying, True
        for frame in self._early.take_all(Side.CLIENT):
            self.take(frame)
        if self.state is FrontState.READY:
            for frame in self._early.take_all(Side.SERVER):
                self.exchange.relay(Side.SERVER, frame)
        if outermost:
            self._replaying = False
            self._finish_client()

    def _fail_queue(self) -> None:
        self._early.fail_all(self._failure)
        self._finish_client()

    def _finish_client(self) -> None:
        if self.client_ended:
            self.client_ended = False
            self.close("end of input")

    def _fail_requests(self, side: Side) -> None:
        self.exchange.fail_all(side, self._failure.code, self._failure.message, self._failure.data)

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            if self.exchange.observer is not None:
                self.exchange.observer.closed(self._outcome.name)
            self._outbox.add(Finish(self._outcome, self._failure.message, self))


_ACTIONS: Final[Mapping[FrontAction, Callable[[FrontEdge, Any], None]]] = {
    FrontAction.START_TIMER: lambda front, _: front._start_timer(),
    FrontAction.STOP_TIMER: lambda front, _: front._stop_timer(),
    FrontAction.ANSWER_INITIALIZE: lambda front, _: front._answer_initialize(),
    FrontAction.PASS_REFUSAL: lambda front, _: front._answer_initialize(),
    FrontAction.FAIL_INITIALIZE: lambda front, _: front._fail_initialize(),
    FrontAction.ANNOUNCE: FrontEdge._announce,
    FrontAction.REPLAY_QUEUE: lambda front, _: front._replay_queue(),
    FrontAction.FAIL_QUEUE: lambda front, _: front._fail_queue(),
    FrontAction.FAIL_CLIENT_REQUESTS: lambda front, _: front._fail_requests(Side.CLIENT),
    FrontAction.FAIL_SERVER_REQUESTS: lambda front, _: front._fail_requests(Side.SERVER),
    FrontAction.FINISH: lambda front, _: front._finish(),
}
