"""The actions of the table `lifecycle.FRONT`: what a front edge does on its way from state to state.

Lives here: the actions, and looking events up. Must not: decide which action follows from which event; the table does.
`front.FrontEdge` is built on this.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from dragoman.core.commands import Finish, Outbox, Outcome, Side, Wake
from dragoman.core.edges.early import EarlyFrames
from dragoman.core.edges.greeting import Greeting
from dragoman.core.edges.lifecycle import FRONT, FrontAction, FrontEvent, FrontState
from dragoman.core.envelope import Frame, Malformed, Refusal
from dragoman.core.exchange import Exchange
from dragoman.core.streams import place
from dragoman.core.wiring import Wiring

if TYPE_CHECKING:
    from dragoman.core.edges.per_request_front import PerRequestFront

logger = logging.getLogger("dragoman.session")


class FrontActions:
    """What the table asks for."""

    __slots__ = (
        "_client_owed", "_early", "_failure", "_finished", "_initialized", "_outbox", "_outcome", "_replaying",
        "_welcome", "_wiring", "client_ended", "exchange", "greeting", "has_streams", "outgoing", "per_request",
        "state",
    )  # fmt: skip

    state: FrontState
    greeting: Greeting | None
    exchange: Exchange
    has_streams: bool
    outgoing: list[Frame]
    per_request: PerRequestFront | None
    client_ended: bool
    _client_owed: bytes | None
    _early: EarlyFrames
    _failure: Refusal
    _finished: bool
    _initialized: Frame | None
    _outbox: Outbox
    _outcome: Outcome
    _replaying: bool
    _welcome: Frame | None
    _wiring: Wiring

    def send(self, frame: Frame) -> None:
        """Write a frame to the client."""
        if self.has_streams and frame.method is not None:
            calls = self.exchange.calls
            frame = place(frame, calls[Side.CLIENT], calls[Side.SERVER])
        self._outbox.post(self, frame)

    def take(self, frame: Frame | Malformed) -> None:
        """Take a frame of the client."""
        raise NotImplementedError

    def close(self, reason: str) -> None:
        """Take note that the client says no more."""
        raise NotImplementedError

    def expire(self) -> None:
        """Take note that the timer ran out."""
        raise NotImplementedError

    def _expect_greeting(self) -> Greeting:
        assert self.greeting is not None, "the client has not sent initialize"
        return self.greeting

    def _advance(self, event: FrontEvent) -> None:
        transition = FRONT.advance(self.state, event)
        if transition is None:
            logger.debug("%s means nothing while %s", event.value, self.state.value)
            return
        self.state = transition.state
        for action in transition.actions:
            _ACTIONS[action](self)

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
        greeting = self._expect_greeting()
        assert self._welcome is not None
        self._client_owed = None
        self.send(self._welcome)
        self.exchange.know_client(greeting.capabilities, self._wiring.methods_of(greeting.revision))

    def _fail_initialize(self) -> None:
        if self._client_owed is not None:
            self.send(self._failure.answer(self._client_owed))
            self._client_owed = None

    def _announce(self) -> None:
        assert self._initialized is not None
        self.exchange.relay(Side.CLIENT, self._initialized)
        # Nobody asks for these again, and of 500 open sessions they would hold a megabyte; the answer to `initialize`
        # is kept as it was written, for a client behind a gateway.
        self.greeting = self._initialized = None
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
        if self.per_request is not None and side is Side.CLIENT:
            self.per_request.fail_all(self._failure)

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            self._outbox.add(Finish(self._outcome, self._failure.message, self))


_ACTIONS: Final[Mapping[FrontAction, Callable[[FrontActions], None]]] = {
    FrontAction.START_TIMER: FrontActions._start_timer,
    FrontAction.STOP_TIMER: FrontActions._stop_timer,
    FrontAction.ANSWER_INITIALIZE: FrontActions._answer_initialize,
    FrontAction.PASS_REFUSAL: FrontActions._answer_initialize,
    FrontAction.FAIL_INITIALIZE: FrontActions._fail_initialize,
    FrontAction.ANNOUNCE: FrontActions._announce,
    FrontAction.REPLAY_QUEUE: FrontActions._replay_queue,
    FrontAction.FAIL_QUEUE: FrontActions._fail_queue,
    FrontAction.FAIL_CLIENT_REQUESTS: lambda front: front._fail_requests(Side.CLIENT),
    FrontAction.FAIL_SERVER_REQUESTS: lambda front: front._fail_requests(Side.SERVER),
    FrontAction.FINISH: FrontActions._finish,
}
