"""One session between one client and one server, from the first byte to the last.

Lives here: the entry points of the core (frames, closings and clock readings in, commands out), what is done with a
frame in each state, and the lifecycle table's actions. Must not: touch sockets, files or a clock, know how a frame is
translated, or answer what comes too early (`core.early`). Called by `dragoman.proxy` and tests.

Theory of operation. While the session opens, frames go through `core.lifecycle`; then straight to the `Exchange`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dragoman.core import lifecycle
from dragoman.core.commands import Command, Finish, Outbox, Outcome, RestartServer, SetTimer, Side, StopTimer
from dragoman.core.consent import Method
from dragoman.core.early import EarlyFrames
from dragoman.core.envelope import INVALID_REQUEST, Frame, Malformed, error_frame
from dragoman.core.exchange import Exchange
from dragoman.core.failures import (
    Failed,
    connection_closed,
    explain_client_closing,
    explain_timeout,
)
from dragoman.core.handshake import (
    DISCOVER,
    INITIALIZED,
    LEGACY_INITIALIZED,
    Answered,
    Handshake,
    Refused,
    Retried,
    read_initialize,
    read_initialized,
    refuse_per_request,
)
from dragoman.core.lifecycle import Action, Event, State
from dragoman.core.settings import Settings
from dragoman.core.translate import Refusal, Translator
from dragoman_spec import LATEST

logger = logging.getLogger("dragoman.session")

_WATCHED = frozenset({"initialize", DISCOVER, INITIALIZED, LEGACY_INITIALIZED})


class Session:
    """The machine. Every entry point gives the commands that follow from what happened, in order.

    Args:
        settings: What the user decided.
        translate: Gives the composed steps from one revision to another.
        methods_of: Gives the methods of a revision.
    """

    __slots__ = (
        "_client_ended",
        "_client_owed",
        "_early",
        "_failure",
        "_finished",
        "_handshake",
        "_initialized",
        "_methods_of",
        "_next",
        "_outbox",
        "_outcome",
        "_post",
        "_replaying",
        "_restarts",
        "_settings",
        "_translate",
        "exchange",
        "state",
    )

    def __init__(
        self,
        settings: Settings,
        translate: Callable[[str, str], Translator],
        methods_of: Callable[[str], Mapping[str, Method]],
    ) -> None:
        self.state = State.CONNECTING
        self._outbox = Outbox()
        self._post = self._outbox.post
        self.exchange = Exchange(
            self._post,
            settings.on_loss,
            restore_ids=settings.restore_ids,
            open_requests=settings.open_requests,
            batch_requests=settings.batch_requests,
        )
        self._settings = settings
        self._translate = translate
        self._methods_of = methods_of
        self._early = EarlyFrames(self._post, settings.queue_frames, settings.queue_bytes)
        self._handshake: Handshake | None = None
        self._next: Frame | None = None  # what the next action sends
        self._initialized: Frame | None = None
        self._client_owed: bytes | None = None  # the id of an `initialize` that is not answered yet
        self._client_ended = False
        self._replaying = False
        self._restarts = 0
        self._failure = connection_closed("the session is over")
        self._outcome = Outcome.CLIENT_CLOSED
        self._finished = False

    def open(self) -> list[Command]:
        """Begin: from here on the client has so long to initialise."""
        self._advance(Event.OPENED)
        return self._outbox.take_all()

    def receive(self, side: Side, frames: Sequence[Frame | Malformed]) -> list[Command]:
        """Take what a peer sent, in order."""
        for frame in frames:
            if isinstance(frame, Frame):
                self._take_frame(side, frame)
            else:
                self._reject(side, frame)
        return self._outbox.take_all()

    def close(self, side: Side, reason: str, outcome: Outcome | None = None) -> list[Command]:
        """Take note that a peer says no more.

        Args:
            side: Which.
            reason: Why, in words, as the other peer is told.
            outcome: How the session ends by this, if not in the way that goes with the side.
        """
        if side is Side.CLIENT:
            self._close_client(reason)
        else:
            self._close_server(reason, outcome or Outcome.SERVER_CLOSED)
        return self._outbox.take_all()

    def expire(self) -> list[Command]:
        """Take note that the timer ran out."""
        if self.state is not State.FAILED:
            about = {} if self._handshake is None else self._handshake.describe()
            self._end(*explain_timeout(self.state, self._settings, about))
        self._advance(Event.TIMED_OUT)
        return self._outbox.take_all()

    def stop(self, reason: str, outcome: Outcome = Outcome.STOPPED) -> list[Command]:
        """End the session now: by a signal, or because nobody can read what would be written."""
        self._end(connection_closed(reason), outcome)
        self._advance(Event.STOPPED)
        return self._outbox.take_all()

    def _take_frame(self, side: Side, frame: Frame) -> None:
        if self.state is State.READY and (side is Side.SERVER or frame.method not in _WATCHED):
            self.exchange.relay(side, frame)
        elif side is Side.CLIENT:
            self._take_client(frame)
        else:
            self._take_server(frame)

    def _reject(self, side: Side, malformed: Malformed) -> None:
        self.exchange.reject(side, malformed)
        handshake = self._handshake if self.state is State.INITIALIZING and side is Side.SERVER else None
        if handshake is not None and malformed.is_response and malformed.key == handshake.sent_key:
            message = f"the server's answer to initialize is not a response: {malformed.reason}"
            self._end(handshake.fail(-32603, message), Outcome.INITIALIZATION_FAILED)
            self._advance(Event.INITIALIZE_FAILED)

    def _take_client(self, frame: Frame) -> None:
        """Deal with a frame of the client that the open session does not simply relay."""
        is_request = frame.kind == "request"
        if frame.method == "initialize":
            self._take_initialize(frame)
        elif frame.method == DISCOVER and is_request:
            self._early.reply(Side.CLIENT, frame, refuse_per_request(frame, LATEST))
        elif (initialized := read_initialized(frame, self._settings.accept_legacy_initialized)) is not None:
            self._take_initialized(initialized)
        elif self.state is State.READY:
            self.exchange.relay(Side.CLIENT, frame)
        elif is_request and frame.method == "ping":
            self._early.answer_ping(Side.CLIENT, frame)
        elif self.state in (State.CLOSED, State.FAILED):
            if is_request:
                self._early.reply(Side.CLIENT, frame, self._failure.answer(frame.key))
        elif not self._early.take_client(frame, self.state):
            self._reject(Side.CLIENT, Malformed(INVALID_REQUEST, "expected initialize, found a batch"))

    def _take_server(self, frame: Frame) -> None:
        """Deal with a frame of the server that the open session does not simply relay."""
        is_request = frame.kind == "request"
        if self.state is State.FAILED:
            logger.debug("%s of the server dropped: the session failed", frame.kind)
        elif is_request and frame.method == "ping":
            self._early.answer_ping(Side.SERVER, frame)
        elif self.state in (State.CLOSING, State.CLOSED):
            if is_request:
                self._early.reply(Side.SERVER, frame, connection_closed("the client has closed").answer(frame.key))
            else:
                self.exchange.relay(Side.SERVER, frame)
                self._check_drained()
        elif is_request:
            self._early.wait(Side.SERVER, frame)
        elif self.state is State.INITIALIZING and self._expect_handshake().is_answer(frame):
            self._take_answer(frame)
        else:
            self.exchange.relay(Side.SERVER, frame)

    def _take_initialize(self, frame: Frame) -> None:
        if frame.kind == "request" and self.state is State.CLOSED:  # a signal came first
            self._early.reply(Side.CLIENT, frame, self._failure.answer(frame.key))
            return
        if frame.kind != "request" or self.state not in (State.CONNECTING, State.FAILED):
            reason = "initialize must be a request, and the first of its session"
            key = None if frame.key == self._client_owed else frame.key
            self.exchange.reject(Side.CLIENT, Malformed(INVALID_REQUEST, reason, key))
            return
        request = read_initialize(frame)
        if isinstance(request, Malformed):
            self.exchange.reject(Side.CLIENT, request)
            return
        handshake = Handshake(self._settings, self._translate, request, self.exchange.counters)
        offer = handshake.write_offer()
        if isinstance(offer, Refusal):
            self._early.reply(Side.CLIENT, frame, error_frame(frame.key, offer.code, offer.message, offer.data))
            return
        self._handshake, self._next, self._client_owed = handshake, offer, frame.key
        logger.info("the client asked for %s; offering %s", handshake.requested, handshake.offered)
        self._speak(handshake.offered)
        self._advance(Event.INITIALIZE_REQUESTED)

    def _take_answer(self, frame: Frame) -> None:
        handshake = self._expect_handshake()
        answer = handshake.read_answer(frame)
        match answer:
            case Answered():
                self._next = answer.frame
                self._speak(answer.server_revision)
                logger.info("the server speaks %s, the client %s", answer.server_revision, handshake.client_revision)
                self._advance(Event.INITIALIZE_ANSWERED)
            case Refused(refusal, words):
                self._next = refusal
                self._end(connection_closed(f"initialize was refused: {words}"), Outcome.INITIALIZATION_FAILED)
                self._advance(Event.INITIALIZE_REFUSED)
            case Retried(offer):
                self._next = offer
                self._speak(handshake.offered)
                self._advance(Event.REVISION_REJECTED)
            case _:
                self._end(answer, Outcome.INITIALIZATION_FAILED)
                self._advance(Event.INITIALIZE_FAILED)

    def _take_initialized(self, frame: Frame) -> None:
        if self.state is State.INITIALIZING:
            self._early.wait(Side.CLIENT, frame)
        elif self.state is State.READY:
            self.exchange.relay(Side.CLIENT, frame)
        else:
            self._initialized = frame
            self._advance(Event.INITIALIZED)

    def _speak(self, server_revision: str) -> None:
        handshake = self._expect_handshake()
        client, server = handshake.client_revision, handshake.translatable(server_revision)
        self.exchange.speak(self._translate(client, server), self._translate(server, client))

    def _expect_handshake(self) -> Handshake:
        assert self._handshake is not None, "nothing was offered yet"
        return self._handshake

    def _expect_next(self) -> Frame:
        assert self._next is not None, "nothing is there to be sent"
        return self._next

    def _close_client(self, reason: str) -> None:
        if self.state is State.INITIALIZING:
            self._client_ended = True  # waits behind the frames that wait
            return
        refused = self.state is State.CONNECTING and self._handshake is not None
        if self.state is not State.FAILED and not refused:
            self._end(explain_client_closing(self.state, reason), Outcome.CLIENT_CLOSED)
        self._advance(Event.CLIENT_CLOSED)
        self._check_drained()

    def _close_server(self, reason: str, outcome: Outcome) -> None:
        handshake = self._handshake
        if self.state is State.INITIALIZING and handshake and self._restarts < handshake.offers - 1:
            logger.warning("%s after it rejected an offer; starting it once more", reason)
            self._restarts = handshake.offers - 1
            self._advance(Event.SERVER_LOST_ON_RETRY)
            return
        if self.state not in (State.FAILED, State.CLOSED):
            self._end(connection_closed(reason), outcome)
        self._advance(Event.SERVER_CLOSED)

    def _check_drained(self) -> None:
        if self.state is State.CLOSING and not self.exchange.in_flight[Side.CLIENT].waiting:
            self._advance(Event.DRAINED)

    def _end(self, failure: Failed, outcome: Outcome) -> None:
        self._failure, self._outcome = failure, outcome

    def _advance(self, event: Event) -> None:
        transition = lifecycle.advance(self.state, event)
        if transition is None:
            logger.debug("%s means nothing while %s", event.value, self.state.value)
            return
        self.state = transition.state
        for action in transition.actions:
            _ACTIONS[action](self)

    def _start_timer(self) -> None:
        settings = self._settings
        durations = {State.CLOSING: settings.drain_timeout_s, State.FAILED: settings.linger_s}
        self._outbox.add(SetTimer(durations.get(self.state, settings.init_timeout_s)))

    def _stop_timer(self) -> None:
        self._outbox.add(StopTimer())

    def _send_offer(self) -> None:
        self._post(Side.SERVER, self._expect_next())

    def _restart_server(self) -> None:
        self._outbox.add(RestartServer())
        self._post(Side.SERVER, self._expect_next())

    def _answer_initialize(self) -> None:
        handshake = self._expect_handshake()
        self._client_owed = None
        self._post(Side.CLIENT, self._expect_next())
        self.exchange.know_client(handshake.capabilities, self._methods_of(handshake.client_revision))

    def _fail_initialize(self) -> None:
        if self._client_owed is not None:
            self._post(Side.CLIENT, self._failure.answer(self._client_owed))
            self._client_owed = None

    def _send_initialized(self) -> None:
        assert self._initialized is not None
        self.exchange.relay(Side.CLIENT, self._initialized)
        # Nobody asks for these again, and of 500 open sessions they would hold a megabyte.
        self._handshake = self._initialized = self._next = None

    def _replay_queue(self) -> None:
        outermost, self._replaying = not self._replaying, True
        for frame in self._early.take_all(Side.CLIENT):
            self._take_frame(Side.CLIENT, frame)
        if self.state is State.READY:
            for frame in self._early.take_all(Side.SERVER):
                self.exchange.relay(Side.SERVER, frame)
        if outermost:
            self._replaying = False
            self._finish_client()

    def _fail_queue(self) -> None:
        self._early.fail_all(self._failure)
        self._finish_client()

    def _finish_client(self) -> None:
        if self._client_ended:
            self._client_ended = False
            self._close_client("end of input")

    def _fail_requests(self, side: Side) -> None:
        self.exchange.fail_all(side, self._failure.code, self._failure.message, self._failure.data)

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            self._outbox.add(Finish(self._outcome, self._failure.message))


_ACTIONS: Final[Mapping[Action, Callable[[Session], None]]] = {
    Action.START_TIMER: Session._start_timer,
    Action.STOP_TIMER: Session._stop_timer,
    Action.OFFER: Session._send_offer,
    Action.OFFER_ANOTHER: Session._send_offer,
    Action.RESTART_SERVER: Session._restart_server,
    Action.ANSWER_INITIALIZE: Session._answer_initialize,
    Action.PASS_REFUSAL: Session._answer_initialize,
    Action.FAIL_INITIALIZE: Session._fail_initialize,
    Action.SEND_INITIALIZED: Session._send_initialized,
    Action.REPLAY_QUEUE: Session._replay_queue,
    Action.FAIL_QUEUE: Session._fail_queue,
    Action.FAIL_CLIENT_REQUESTS: lambda session: session._fail_requests(Side.CLIENT),
    Action.FAIL_SERVER_REQUESTS: lambda session: session._fail_requests(Side.SERVER),
    Action.FINISH: Session._finish,
}
