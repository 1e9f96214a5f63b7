"""The edge towards a server: its session from the first offer to its loss.

Lives here: the entry points for what a server says, the handshake with it, and the actions of the table
`lifecycle.UPSTREAM`. Must not: know which clients it serves (`core.switch`), touch sockets or a clock. Called by
`dragoman.host` and by the switch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.commands import Close, Open, Outbox, Outcome, Wake
from dragoman.core.edges.greeting import Greeting
from dragoman.core.edges.lifecycle import UPSTREAM, UpstreamAction, UpstreamEvent, UpstreamState
from dragoman.core.edges.offer import OFFER_ID, Accepted, InitializeRefused, Introduce, Offer
from dragoman.core.edges.opening import SILENCE_S, UP_SILENCE_S, Ended, Event, Found, open_server
from dragoman.core.edges.owner import Follower, Owner
from dragoman.core.edges.renewal import Renewal
from dragoman.core.edges.restarting import Restarting
from dragoman.core.edges.standing import NOTED
from dragoman.core.envelope import Frame, Malformed, Refusal, result_frame
from dragoman.core.exact_json import encode
from dragoman.core.negotiation import AUTO
from dragoman.core.settings import Settings
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS

if TYPE_CHECKING:
    from dragoman.core.bridge.verdict import Verdict
    from dragoman.core.edges.probe import Probe

logger = logging.getLogger("dragoman.session")

# Names of their own for what is asked with every frame: see `commands.CLIENT`.
_READY: Final = UpstreamState.READY
_OPENING: Final = UpstreamState.OPENING
_ABSENT: Final = UpstreamState.ABSENT


class UpstreamEdge(Restarting):
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
        offer: What it was offered, or is to be, as long as that matters.
    """

    __slots__ = (
        "_answered",
        "_declared",
        "_first",
        "_follower",
        "_initialized",
        "_keeps_nothing",
        "_loss",
        "_offered",
        "_opening",
        "_outbox",
        "_owner",
        "_probes",
        "_settings",
        "_silence_s",
        "_verdict",
        "offer",
        "outgoing",
        "revision",
        "state",
        "takes_headers",
    )

    def __init__(self, settings: Settings, outbox: Outbox, owner: Owner[UpstreamEdge]) -> None:
        self.state = UpstreamState.IDLE
        self.revision: str | None = None
        self.outgoing: list[Frame] = []
        self._settings = settings
        self._outbox = outbox
        self._owner = owner
        self._follower: Follower[UpstreamEdge] = owner
        self.offer: Offer | None = None
        self._opening: Generator[None, Event, Found] | None = None
        self._first: Frame | None = None  # the first offer, before it is sent
        self._offered: Frame | None = None  # the last offer that was sent, until the session is ready
        self._initialized: Frame | None = None  # that an action sends
        self._renewal: Renewal | None = None  # once it is
        self._answered: Accepted | InitializeRefused | None = None
        self._failure: Refusal | None = None
        self._loss = ("", Outcome.SERVER_CLOSED)
        self.takes_headers = False
        self._probes = 0
        self._declared: Mapping[str, Any] = {}
        self._silence_s = SILENCE_S
        self._verdict: Verdict | None = None
        self._keeps_nothing = False  # whether it has no handshake
        self._begin_to_watch()

    def release(self) -> None:
        """Let go of who is told, once nothing more comes; a timer may still run."""
        self.state = UpstreamState.LOST
        self._opening = None
        del self._owner, self._follower

    def hand_to(self, owner: Owner[UpstreamEdge]) -> None:
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
        """Open the server. One that is being opened for a client goes on with that, as far as it can.

        Args:
            greeting: Whose session leads to it.
            introduce: Writes the request.
            key: Its id.
            needs_session: Whether its client needs one; else, and where it costs little because the server is up, it is
                first asked whether it can do without.

        Returns:
            Why the request cannot be written, if it cannot: then nothing has begun.
        """
        setting = self._settings.server_revision
        if setting in REVISIONS and setting not in HANDSHAKE_REVISIONS:
            if self.state is not _OPENING:
                self.pin()
            return None
        memory = self._settings.known
        known, is_up = (None, False) if memory is None else (memory.recall(), memory.is_up)
        # A gateway that starts a process for each request may be slower than we wait: its own clients ask it again.
        asks_first = setting == AUTO and (
            known is False or (is_up and not needs_session) or (known is None and (is_up or not needs_session))
        )
        self._silence_s = UP_SILENCE_S if is_up and needs_session else SILENCE_S
        if needs_session and (asks_first or self.state is _OPENING):
            # The answer may come late, when something else has the client's id.
            key = encode(f"{OFFER_ID}1")
        offer = Offer(self._settings, greeting, introduce, key)
        first = offer.write()
        if isinstance(first, Refusal):
            return first
        if self.state is _OPENING and self.offer is not None and self._offered is not None:
            if self.offer.hand_to(offer, first):
                self._owner.offered(self)
                return None
            self.open()
        self.offer, self._first = offer, first
        logger.info("the client asked for %s; to be offered: %s", greeting.requested, offer.offered)
        if self.state is not _OPENING or self._offered is not None:
            self._begin(asks_first)
        return None

    def pin(self, declared: Mapping[str, Any] | None = None) -> None:
        """Begin without a handshake: the server is known to have none.

        Args:
            declared: The capabilities to declare to it in `server/discover`: a router opens its servers with them.
        """
        self.offer = self._first = None
        self._declared = declared or {}
        self._begin(asks_first=True)

    def _begin(self, asks_first: bool) -> None:
        self._offered = None
        self._advance(UpstreamEvent.ASKED)
        if self.state is _OPENING:
            self._opening = open_server(self, asks_first)
            self._go_on(None)

    def serve(self, follower: Follower[UpstreamEdge]) -> None:
        """Tell somebody else from here on what the server says, and that it is gone."""
        self._follower = follower

    def announce(self, frame: Frame) -> None:
        """Tell the server that its client is ready, if it has not been told."""
        self._initialized = frame
        self._advance(UpstreamEvent.ANNOUNCED)

    def take(self, frame: Frame | Malformed) -> None:
        """Take a frame of the server."""
        if self.state is _OPENING:
            if self._owner.waits_for(self):
                self._go_on(frame)
            return
        self._heard = True
        if self._ping is not None and self._is_pong(frame):
            return
        if self.state is _READY or not self._take_renewal(frame):
            self._follower.take_server(self, frame)

    def expire(self) -> None:
        """Take note that the time has passed that this edge asked for."""
        if self.state is _OPENING:
            self._go_on(None)
        else:
            super().expire()

    def close(self, reason: str, outcome: Outcome = Outcome.SERVER_CLOSED) -> None:
        """Take note that the server says no more.

        Args:
            reason: Why, in words, as clients are told.
            outcome: How sessions end by this.
        """
        if self.state is _OPENING and self._owner.waits_for(self):
            self._loss = reason, outcome
            self._go_on(Ended(reason))
        else:
            self._lose(reason, outcome)

    def _end(self, reason: str, outcome: Outcome) -> None:
        self._loss = reason, outcome
        vanished = self._keeps_nothing and self.state is UpstreamState.READY
        self._advance(UpstreamEvent.VANISHED if vanished else UpstreamEvent.CLOSED)

    def _interrupt(self, failure: Refusal) -> None:
        self._owner.interrupted(self, failure)

    def _tell(self, frame: Frame | Malformed) -> None:
        self._follower.take_server(self, frame)

    # What the routine of the opening wants, and what comes of it

    def _go_on(self, event: Event) -> None:
        assert self._opening is not None
        try:
            self._opening.send(event)
        except StopIteration as over:
            self._opening = None
            if self._probes:
                self._outbox.add(Wake(self, None))
            self._take_found(over.value)

    def _take_found(self, found: Found) -> None:
        match found:
            case None:
                self._lose(*self._loss)
            case Accepted():
                self.revision, self._answered = found.revision, found
                self._advance(UpstreamEvent.ACCEPTED)
            case InitializeRefused():
                self._answered = found
                self._advance(UpstreamEvent.REFUSED)
            case Refusal():
                self._failure = found
                self._advance(UpstreamEvent.FAILED)
            case _ if found.discovers:
                self._verdict = found
                self._advance(UpstreamEvent.DISCOVERED)
            case _:
                message = f"the server was said to speak {self._settings.server_revision}, and does not: {found.why}"
                self._take_found(Refusal(INTERNAL_ERROR, message, {"supported": list(found.supported)}))

    def send_probe(self, revision: str | None = None) -> Probe:
        """Ask the server what it is."""
        probe = self._write_probe(revision)
        self._outbox.post(self, probe.write())
        self.begin_silence()
        return probe

    def _write_probe(self, revision: str | None = None) -> Probe:
        # Loaded where it is needed: most servers have a handshake.
        from dragoman.core.edges.probe import Probe

        self._probes += 1
        return Probe(self._probes, revision, self._declared)

    def _write_ping(self, key: bytes) -> Frame:
        return self._write_probe().write() if self._keeps_nothing else super()._write_ping(key)

    def remember(self, has_handshake: bool) -> None:
        """Remember what the server is, for the next time."""
        known = self._settings.known
        if known is not None and known.recall() is not has_handshake:
            known.note(has_handshake)

    def begin_silence(self) -> None:
        """Say when nothing has come for a while."""
        self._outbox.add(Wake(self, self._silence_s))

    def send_offer(self, frame: Frame | None = None) -> bool:
        """Send `initialize`: the first offer again, or another one. Whether there is any."""
        self._offered = frame or self._offered or self._first
        if self._offered is None:
            return False
        self._outbox.post(self, self._offered)
        self._owner.offered(self)
        return True

    def pass_on(self, frame: Frame | Malformed, has_offer: bool) -> None:
        """Take what is about none of what the server was asked."""
        if isinstance(frame, Frame) and (frame.kind, frame.method) == ("request", "ping"):
            self._outbox.post(self, result_frame(frame.key or b"null", {}))
        elif has_offer or isinstance(frame, Malformed):
            self._tell(frame)
        else:
            logger.debug("%s of the server dropped: it was asked what it is", frame.kind)

    # Actions of the table

    def _advance(self, event: UpstreamEvent) -> None:
        transition = UPSTREAM.advance(self.state, event)
        if transition is None:
            logger.debug("%s means nothing while the server is %s", event.value, self.state.value)
            return
        self.state = transition.state
        for action in transition.actions:
            _ACTIONS[action](self)

    def _send_initialized(self) -> None:
        assert self._offered is not None
        assert self._initialized is not None
        self._outbox.post(self, self._initialized)
        self._renewal = Renewal(self._settings, self._offered, self._initialized)
        # Nobody asks for these again.
        self._initialized = self._first = self._offered = self._answered = self.offer = None

    def _tell_discovered(self) -> None:
        assert self._verdict is not None
        verdict, self._verdict = self._verdict, None
        self.revision = verdict.revision
        self.offer = self._first = self._offered = None
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
    UpstreamAction.TELL_DISCOVERED: UpstreamEdge._tell_discovered,
    UpstreamAction.REOPEN: UpstreamEdge.open,
    UpstreamAction.TELL_ACCEPTED: UpstreamEdge._tell_accepted,
    UpstreamAction.TELL_REFUSED: UpstreamEdge._tell_refused,
    UpstreamAction.TELL_FAILED: UpstreamEdge._tell_failed,
    UpstreamAction.SEND_INITIALIZED: UpstreamEdge._send_initialized,
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
