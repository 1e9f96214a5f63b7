"""The edge towards a server: its session from the first offer to its loss.

Lives here: the entry points for what a server says, the handshake with it, and the actions of the table
`lifecycle.UPSTREAM`. Must not: know which clients it serves (`core.switch`), touch sockets or a clock. Called by
`dragoman.host` and by the switch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.commands import Close, Open, Outbox, Outcome
from dragoman.core.edges.greeting import Greeting
from dragoman.core.edges.lifecycle import UPSTREAM, UpstreamAction, UpstreamEvent, UpstreamState
from dragoman.core.edges.offer import Accepted, InitializeRefused, Introduce, Offer, Retried
from dragoman.core.edges.owner import Follower, Owner
from dragoman.core.edges.probing import Probing, is_doubtful
from dragoman.core.edges.renewal import Renewal
from dragoman.core.edges.standing import NOTED
from dragoman.core.envelope import Frame, Malformed, result_frame
from dragoman.core.methods import INITIALIZED
from dragoman.core.negotiation import AUTO
from dragoman.core.settings import Settings
from dragoman.core.translate import Refusal
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS

if TYPE_CHECKING:
    from dragoman.core.bridge.verdict import Verdict
    from dragoman.core.edges.probe import Probe

logger = logging.getLogger("dragoman.session")

# Names of their own for what is asked with every frame: see `commands.CLIENT`.
_READY: Final = UpstreamState.READY
_OFFERED: Final = UpstreamState.OFFERED
_PROBED: Final = UpstreamState.PROBED
_ABSENT: Final = UpstreamState.ABSENT


class UpstreamEdge(Probing):
    """The machine for one server.

    Args:
        settings: What the user decided.
        outbox: Where commands go.
        owner: Who is told what happens.

    Attributes:
        state: Where the session stands.
        revision: What the server speaks, once it has agreed to something.
        outgoing: Frames for the server that are not written yet.
        takes_headers: Whether what it is sent goes with headers that repeat some of it: the host knows.
    """

    __slots__ = (
        "_answered",
        "_follower",
        "_keeps_nothing",
        "_loss",
        "_offer",
        "_offered",
        "_outbox",
        "_owner",
        "_reopened",
        "_settings",
        "_waiting",
        "outgoing",
        "revision",
        "state",
        "takes_headers",
    )

    def __init__(self, settings: Settings, outbox: Outbox, owner: Owner) -> None:
        self.state = UpstreamState.IDLE
        self.revision: str | None = None
        self.outgoing: list[Frame] = []
        self._settings = settings
        self._outbox = outbox
        self._owner = owner
        self._follower: Follower = owner
        self._offer: Offer | None = None
        self._reopened = 0  # how many offers had been made when the server was opened last
        self._waiting: Frame | None = None  # the offer, or `initialized`, that an action sends
        self._offered: Frame | None = None  # the last offer, until the session is ready
        self._renewal: Renewal | None = None  # once it is
        self._answered: Accepted | InitializeRefused | None = None
        self._failure: Refusal | None = None
        self._loss = ("", Outcome.SERVER_CLOSED)
        self.takes_headers = self.has_read = False
        self._glances = 0
        self._doubted: Frame | None = None
        self._probe: Probe | None = None
        self._probes = 0
        self._verdict: Verdict | None = None
        self._keeps_nothing = False  # whether it has no handshake
        self._begin_to_watch()

    @property
    def offer(self) -> Offer | None:
        """What it was offered, as long as that matters."""
        return self._offer

    def release(self) -> None:
        """Let go of who is told, once nothing more comes; a timer may still run."""
        self.state = UpstreamState.LOST
        del self._owner, self._follower

    def hand_to(self, owner: Owner) -> None:
        """Have somebody else told from here on."""
        self._owner = self._follower = owner

    def open(self) -> None:
        """Open a connection to the server."""
        self._outbox.add(Open(self))

    def send(self, frame: Frame) -> None:
        """Write a frame to the server, or keep it until there is a new session in place of one that is gone."""
        if self.state is _ABSENT:
            if frame.kind != "request":
                return  # it was about something that is lost
            self._advance(UpstreamEvent.NEEDED)
        elif self._renewal is not None:
            if self.state is not _READY and self._keep(frame, self._renewal):
                return
            if frame.method in NOTED or frame.kind == "batch":
                self._renewal.standing.note(frame)
        self._outbox.post(self, frame)

    def ask(
        self, greeting: Greeting, introduce: Introduce, key: bytes, *, needs_session: bool = True
    ) -> Refusal | None:
        """Begin the handshake.

        Args:
            greeting: Whose session leads to it.
            introduce: Writes the request.
            key: Its id.
            needs_session: Whether its client needs one; else the server is first asked whether it can do without.

        Returns:
            Why the request cannot be written, if it cannot: then nothing has begun.
        """
        if self._settings.server_revision in REVISIONS and self._settings.server_revision not in HANDSHAKE_REVISIONS:
            self.pin()
            return None
        self._doubted = self._verdict = None
        self._offer = Offer(self._settings, greeting, introduce, key)
        self._reopened = 0
        frame = self._offer.write()
        if isinstance(frame, Refusal):
            self._offer = None
            return frame
        self._waiting = frame
        if not needs_session and self._settings.server_revision == AUTO:
            self._advance(UpstreamEvent.ERA_OPEN)
            return None
        logger.info("the client asked for %s; offering %s", greeting.requested, self._offer.offered)
        self._advance(UpstreamEvent.ASKED)
        self._owner.offered(self)
        return None

    def pin(self) -> None:
        """Begin without a handshake: the server is known to have none."""
        self._doubted = self._verdict = self._waiting = None
        self._advance(UpstreamEvent.ERA_PINNED)

    def serve(self, follower: Follower) -> None:
        """Tell somebody else from here on what the server says, and that it is gone."""
        self._follower = follower

    def announce(self, frame: Frame) -> None:
        """Tell the server that its client is ready, if it has not been told."""
        self._waiting = frame
        self._advance(UpstreamEvent.ANNOUNCED)

    def take(self, frame: Frame | Malformed) -> None:
        """Take a frame of the server."""
        if self.state is _PROBED:
            self._take_probed(frame)
            return
        if self.state is not _OFFERED:
            self._heard = True
            if self._ping is not None and self._is_pong(frame):
                return
            if self.state is _READY or not self._take_renewal(frame):
                self._follower.take_server(self, frame)
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
            self._follower.take_server(self, frame)

    def close(self, reason: str, outcome: Outcome = Outcome.SERVER_CLOSED) -> None:
        """Take note that the server says no more.

        Args:
            reason: Why, in words, as clients are told.
            outcome: How sessions end by this.
        """
        offer = self._offer
        waited_for = self._owner.waits_for(self)
        if waited_for and self.state is UpstreamState.PROBED and self._doubted is not None:
            logger.warning("%s when it was asked what it is; starting it once more", reason)
            self._advance(UpstreamEvent.LOST_ON_RETRY)
            self._take_doubted()
            return
        if waited_for and self.state is UpstreamState.PROBED and self._waiting is not None:
            self._offer_afresh(reason)
            return
        asked_again = self.state is UpstreamState.OFFERED and offer is not None and self._reopened < offer.offers - 1
        if waited_for and asked_again and offer is not None:
            logger.warning("%s after it rejected an offer; starting it once more", reason)
            self._reopened = offer.offers - 1
            self._advance(UpstreamEvent.LOST_ON_RETRY)
            return
        self._lose(reason, outcome)

    def _end(self, reason: str, outcome: Outcome) -> None:
        self._loss = reason, outcome
        vanished = self._keeps_nothing and self.state is UpstreamState.READY
        self._advance(UpstreamEvent.VANISHED if vanished else UpstreamEvent.CLOSED)

    def _interrupt(self, failure: Refusal) -> None:
        self._owner.interrupted(self, failure)

    def _tell_offered(self) -> None:
        self._owner.offered(self)

    def _tell(self, frame: Frame | Malformed) -> None:
        self._follower.take_server(self, frame)

    def _reject(self, malformed: Malformed, offer: Offer) -> None:
        self._follower.take_server(self, malformed)
        if malformed.is_response and malformed.key == offer.key:
            message = f"the server's answer to initialize is not a response: {malformed.reason}"
            self._fail(offer.fail(INTERNAL_ERROR, message))

    def _take_answer(self, frame: Frame, offer: Offer) -> None:
        if not self._owner.waits_for(self):
            logger.debug("the server's answer to initialize came too late")
        elif is_doubtful(frame, offer.offered):
            self._doubted = frame  # in case that it is of the handshake era after all
            self._advance(UpstreamEvent.ERA_DOUBTED)
        else:
            self._follow_answer(offer.read_answer(frame))

    def _follow_answer(self, answer: Accepted | InitializeRefused | Retried | Refusal) -> None:
        match answer:
            case Accepted():
                self.revision, self._answered = answer.revision, answer
                self._advance(UpstreamEvent.ACCEPTED)
            case InitializeRefused():
                self._answered = answer
                self._advance(UpstreamEvent.REFUSED)
            case Retried(another):
                self._waiting = another
                self._advance(UpstreamEvent.REVISION_REJECTED)
                self._owner.offered(self)
            case _:
                self._fail(answer)

    def _fail(self, failure: Refusal) -> None:
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

    def _tell_discovered(self) -> None:
        assert self._verdict is not None
        verdict, self._verdict = self._verdict, None
        self.revision = verdict.revision
        self._offer = self._waiting = self._probe = None
        self._keeps_nothing = True
        self._owner.discovered(self, verdict)

    def _tell_accepted(self) -> None:
        assert isinstance(self._answered, Accepted)
        self._owner.accepted(self, self._answered)

    def _tell_refused(self) -> None:
        assert isinstance(self._answered, InitializeRefused)
        self._owner.refused(self, self._answered)

    def _tell_failed(self) -> None:
        assert self._failure is not None
        self._owner.failed(self, self._failure)

    def _tell_lost(self) -> None:
        self._follower.lost(self, *self._loss)


_ACTIONS: Final[Mapping[UpstreamAction, Callable[[UpstreamEdge], Any]]] = {
    UpstreamAction.OFFER: UpstreamEdge._send_waiting,
    UpstreamAction.PROBE: UpstreamEdge._send_probe,
    UpstreamAction.TELL_DISCOVERED: UpstreamEdge._tell_discovered,
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
    UpstreamAction.TELL_INTERRUPTED: UpstreamEdge._tell_interrupted,
    UpstreamAction.WAIT_TO_RESTART: UpstreamEdge._wait_to_restart,
    UpstreamAction.NOTE_RESTART: UpstreamEdge._note_restart,
    UpstreamAction.TELL_RETURNED: UpstreamEdge._tell_returned,
    UpstreamAction.WATCH: UpstreamEdge._watch,
    UpstreamAction.CLOSE: lambda edge: edge._outbox.add(Close(edge)),
}
