"""The edge towards a server: its session from the first offer to its loss.

Lives here: the entry points for what a server says, the handshake with it, and the actions of the table
`lifecycle.UPSTREAM`. Must not: know which clients it serves (`core.switch`), touch sockets or a clock. Called by
`dragoman.host` and by the switch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from dragoman.core.commands import Open, Outbox, Outcome
from dragoman.core.edges.greeting import INITIALIZED, Greeting
from dragoman.core.edges.lifecycle import UPSTREAM, UpstreamAction, UpstreamEvent, UpstreamState
from dragoman.core.edges.offer import Accepted, Introduce, Offer, Refused, Retried
from dragoman.core.edges.renewal import Renewal, fail
from dragoman.core.edges.standing import NOTED
from dragoman.core.envelope import Frame, Malformed, result_frame
from dragoman.core.failures import Failed
from dragoman.core.settings import Settings
from dragoman.core.translate import Refusal

logger = logging.getLogger("dragoman.session")


_WITHOUT_SESSION: Final = (UpstreamState.RENEWING, UpstreamState.RESTORING, UpstreamState.DROPPED)
"""Where the session is gone, and what clients say waits for another one."""

_PING: Final = ("request", "ping")


class Owner(Protocol):
    """Who is told what a server does: a switch."""

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        """It said something that is not part of the handshake."""

    def offered(self, upstream: UpstreamEdge) -> None:
        """It has been offered a revision, the first or another one."""

    def accepted(self, upstream: UpstreamEdge, accepted: Accepted) -> None:
        """It has agreed to a revision."""

    def refused(self, upstream: UpstreamEdge, refused: Refused) -> None:
        """It has refused for a reason of its own; it may be asked again."""

    def failed(self, upstream: UpstreamEdge, failure: Failed) -> None:
        """There is no revision to be had, or its answer is none; it may be asked again."""

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        """It is gone."""


class UpstreamEdge:
    """The machine for one server.

    Args:
        settings: What the user decided.
        outbox: Where commands go.
        owner: Who is told what happens.

    Attributes:
        state: Where the session stands.
        revision: What the server speaks, once it has agreed to something.
        outgoing: Frames for the server that are not written yet.
    """

    __slots__ = (
        "_answered",
        "_failure",
        "_loss",
        "_offer",
        "_offered",
        "_outbox",
        "_owner",
        "_renewal",
        "_reopened",
        "_settings",
        "_waiting",
        "outgoing",
        "revision",
        "state",
    )

    def __init__(self, settings: Settings, outbox: Outbox, owner: Owner) -> None:
        self.state = UpstreamState.IDLE
        self.revision: str | None = None
        self.outgoing: list[Frame] = []
        self._settings = settings
        self._outbox = outbox
        self._owner = owner
        self._offer: Offer | None = None
        self._reopened = 0  # how many offers had been made when the server was opened last
        self._waiting: Frame | None = None  # the offer, or `initialized`, that an action sends
        self._offered: Frame | None = None  # the last offer, until the session is ready
        self._renewal: Renewal | None = None  # once it is
        self._answered: Accepted | Refused | None = None
        self._failure: Failed | None = None
        self._loss = ("", Outcome.SERVER_CLOSED)

    @property
    def offer(self) -> Offer | None:
        """What it was offered, as long as that matters."""
        return self._offer

    def release(self) -> None:
        """Let go of who is told, once nothing more comes."""
        del self._owner

    def open(self) -> None:
        """Open a connection to the server."""
        self._outbox.add(Open(self))

    def send(self, frame: Frame) -> None:
        """Write a frame to the server, or keep it until there is a new session in place of one that is gone."""
        if self._renewal is not None:
            if self.state is not UpstreamState.READY and self.state in _WITHOUT_SESSION:
                self._keep(frame, self._renewal)
                return
            if frame.method in NOTED or frame.kind == "batch":
                self._renewal.standing.note(frame)
        self._outbox.post(self, frame)

    def ask(self, greeting: Greeting, introduce: Introduce, key: bytes) -> Refusal | None:
        """Begin the handshake.

        Args:
            greeting: Whose session leads to it.
            introduce: Writes the request.
            key: Its id.

        Returns:
            Why the request cannot be written, if it cannot: then nothing has begun.
        """
        self._offer = Offer(self._settings, greeting, introduce, key)
        self._reopened = 0
        frame = self._offer.write()
        if isinstance(frame, Refusal):
            self._offer = None
            return frame
        self._waiting = frame
        logger.info("the client asked for %s; offering %s", greeting.requested, self._offer.offered)
        self._advance(UpstreamEvent.ASKED)
        self._owner.offered(self)
        return None

    def announce(self, frame: Frame) -> None:
        """Tell the server that its client is ready, if it has not been told."""
        self._waiting = frame
        self._advance(UpstreamEvent.ANNOUNCED)

    def take(self, frame: Frame | Malformed) -> None:
        """Take a frame of the server."""
        if self.state is not UpstreamState.OFFERED:
            if self.state is UpstreamState.READY or not self._take_renewal(frame):
                self._owner.take_server(self, frame)
            return
        offer = self._offer
        assert offer is not None
        if isinstance(frame, Malformed):
            self._reject(frame, offer)
        elif frame.kind == "request" and frame.method == "ping":
            self._outbox.post(self, result_frame(frame.key or b"null", {}))
        elif offer.is_answer(frame):
            self._take_answer(frame, offer)
        else:
            self._owner.take_server(self, frame)

    def close(self, reason: str, outcome: Outcome = Outcome.SERVER_CLOSED) -> None:
        """Take note that the server says no more.

        Args:
            reason: Why, in words, as clients are told.
            outcome: How sessions end by this.
        """
        offer = self._offer
        if self.state is UpstreamState.OFFERED and offer is not None and self._reopened < offer.offers - 1:
            logger.warning("%s after it rejected an offer; starting it once more", reason)
            self._reopened = offer.offers - 1
            self._advance(UpstreamEvent.LOST_ON_RETRY)
            return
        self._loss = reason, outcome
        self._advance(UpstreamEvent.CLOSED)

    def expects(self, frame: Frame) -> bool:
        """Whether a frame answers what this edge has asked by itself, to have a new session."""
        return self._renewal is not None and self._renewal.is_answer(frame)

    def lose_session(self, frame: Frame | None, error: Frame | None, renewed: bool) -> None:
        """Take note that the server has forgotten the session.

        Args:
            frame: What it was sent in that session and did not look at; None: it says so on its own.
            error: What answers that frame, if nobody sends it again.
            renewed: Whether there is a newer session already: then this is late news.
        """
        state, renewal = self.state, self._renewal
        if renewal is None or (frame is not None and renewal.is_repeated(frame)):
            self._give_up(frame, error)
            return
        if error is not None and renewal.is_answer(error):
            self.take(error)  # what the new session is asked again for: it is not opened anew because of that
            return
        for answer in [] if frame is None else renewal.keep(frame, given_back=True):
            self._owner.take_server(self, answer)
        if state is UpstreamState.DROPPED:
            self._advance(UpstreamEvent.NEEDED)
        elif not renewed and (state is not UpstreamState.RESTORING or frame is None):
            self._advance(UpstreamEvent.SESSION_LOST)
        elif renewed and state is UpstreamState.READY:
            self._send_kept()

    def take_back(self, frames: Sequence[Frame]) -> None:
        """Take back what was still to be sent in a session that is gone: it goes in the next one."""
        for frame in frames:
            if self._renewal is not None:
                self._renewal.standing.forget(frame)
            self.send(frame)

    def _give_up(self, frame: Frame | None, error: Frame | None) -> None:
        if error is not None:
            self._owner.take_server(self, error)
        elif frame is not None:
            logger.warning("%s of the client not delivered: its session is gone", frame.method or "a response")

    def _keep(self, frame: Frame, renewal: Renewal) -> None:
        if self.state is UpstreamState.RESTORING and frame.kind in ("result", "error"):
            self._outbox.post(self, frame)  # what it asks may be about what it is asked
            return
        for answer in renewal.keep(frame):
            self._owner.take_server(self, answer)
        if self.state is UpstreamState.DROPPED and frame.kind not in ("result", "error"):
            self._advance(UpstreamEvent.NEEDED)

    def _take_renewal(self, frame: Frame | Malformed) -> bool:
        """Take what the server says while it gets a new session; False if that is not about the session."""
        renewal, state = self._renewal, self.state
        if renewal is None or state not in _WITHOUT_SESSION:
            return False
        if state is UpstreamState.RENEWING and isinstance(frame, Frame) and (frame.kind, frame.method) == _PING:
            self._outbox.post(self, result_frame(frame.key or b"null", {}))
            return True
        if not renewal.is_answer(frame):
            return False
        if state is UpstreamState.RESTORING:
            if isinstance(frame, Malformed) or frame.kind == "error":
                logger.warning("%s", renewal.explain_unasked(frame))
            self._ask_next()
            return True
        self._failure = renewal.read_answer(frame, self.revision)
        if self._failure is not None:
            logger.warning("%s", self._failure.message)
        self._advance(UpstreamEvent.RENEWED if self._failure is None else UpstreamEvent.NOT_RENEWED)
        return True

    def _ask_next(self) -> None:
        assert self._renewal is not None
        frame = self._renewal.ask_next()
        if frame is None:
            self._advance(UpstreamEvent.RESTORED)
        else:
            self._outbox.post(self, frame)

    def _reject(self, malformed: Malformed, offer: Offer) -> None:
        self._owner.take_server(self, malformed)
        if malformed.is_response and malformed.key == offer.key:
            message = f"the server's answer to initialize is not a response: {malformed.reason}"
            self._fail(offer.fail(-32603, message))

    def _take_answer(self, frame: Frame, offer: Offer) -> None:
        answer = offer.read_answer(frame)
        match answer:
            case Accepted():
                self.revision, self._answered = answer.revision, answer
                self._advance(UpstreamEvent.ACCEPTED)
            case Refused():
                self._answered = answer
                self._advance(UpstreamEvent.REFUSED)
            case Retried(another):
                self._waiting = another
                self._advance(UpstreamEvent.REVISION_REJECTED)
                self._owner.offered(self)
            case _:
                self._fail(answer)

    def _fail(self, failure: Failed) -> None:
        self._failure = failure
        self._advance(UpstreamEvent.FAILED)

    # Actions of the table

    def _advance(self, event: UpstreamEvent) -> None:
        transition = UPSTREAM.advance(self.state, event)
        if transition is None:
            logger.debug("%s means nothing while the server is %s", event.value, self.state.value)
            return
        self.state = transition.state
        for action in transition.actions:
            _ACTIONS[action](self)

    def _send_waiting(self) -> None:
        assert self._waiting is not None
        self._outbox.post(self, self._waiting)
        if self._waiting.method != INITIALIZED:
            self._offered = self._waiting
            return
        assert self._offered is not None
        self._renewal = Renewal(self._settings, self._offered, self._waiting)
        self._waiting = self._offered = self._answered = self._offer = None  # nobody asks for these again

    def _offer_again(self) -> None:
        assert self._renewal is not None
        logger.warning("the server dropped the session; opening a new one")
        self._renewal.begin()
        self._outbox.post(self, self._renewal.offered)

    def _announce_again(self) -> None:
        assert self._renewal is not None
        self._outbox.post(self, self._renewal.announced)

    def _ask_again(self) -> None:
        assert self._renewal is not None
        self._renewal.stand()
        self._ask_next()

    def _send_kept(self) -> None:
        assert self._renewal is not None
        for frame in self._renewal.take_kept():
            self.send(frame)

    def _fail_kept(self) -> None:
        assert self._renewal is not None
        assert self._failure is not None
        for frame in self._renewal.take_failed():
            for answer in fail(frame, self._failure):
                self._owner.take_server(self, answer)
        if self._renewal.keeps:
            self._advance(UpstreamEvent.NEEDED)

    def _tell_accepted(self) -> None:
        assert isinstance(self._answered, Accepted)
        self._owner.accepted(self, self._answered)

    def _tell_refused(self) -> None:
        assert isinstance(self._answered, Refused)
        self._owner.refused(self, self._answered)

    def _tell_failed(self) -> None:
        assert self._failure is not None
        self._owner.failed(self, self._failure)

    def _tell_lost(self) -> None:
        self._owner.lost(self, *self._loss)


_ACTIONS: Final[Mapping[UpstreamAction, Callable[[UpstreamEdge], Any]]] = {
    UpstreamAction.OFFER: UpstreamEdge._send_waiting,
    UpstreamAction.REOPEN: UpstreamEdge.open,
    UpstreamAction.TELL_ACCEPTED: UpstreamEdge._tell_accepted,
    UpstreamAction.TELL_REFUSED: UpstreamEdge._tell_refused,
    UpstreamAction.TELL_FAILED: UpstreamEdge._tell_failed,
    UpstreamAction.SEND_INITIALIZED: UpstreamEdge._send_waiting,
    UpstreamAction.OFFER_AGAIN: UpstreamEdge._offer_again,
    UpstreamAction.ANNOUNCE_AGAIN: UpstreamEdge._announce_again,
    UpstreamAction.ASK_AGAIN: UpstreamEdge._ask_again,
    UpstreamAction.SEND_KEPT: UpstreamEdge._send_kept,
    UpstreamAction.FAIL_KEPT: UpstreamEdge._fail_kept,
    UpstreamAction.TELL_LOST: UpstreamEdge._tell_lost,
}
