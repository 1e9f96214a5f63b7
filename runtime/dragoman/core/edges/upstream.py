"""The edge towards a server: its session from the first offer to its loss.

Lives here: the entry points for what a server says, the handshake with it, and the actions of the table
`lifecycle.UPSTREAM`. Must not: know which clients it serves (`core.switch`), touch sockets or a clock. Called by
`dragoman.host` and by the switch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.batches import cut
from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.commands import Close, Open, Outbox, Outcome, Wake
from dragoman.core.edges.greeting import Greeting
from dragoman.core.edges.lifecycle import UPSTREAM, UpstreamAction, UpstreamEvent, UpstreamState
from dragoman.core.edges.listener import OpeningListener, ServerListener
from dragoman.core.edges.offer import OFFER_ID, Accepted, InitializeRefused, Introduce, Offer
from dragoman.core.edges.opening import READ_SILENCE_S, SILENCE_S, Ended, Event, Found, open_server
from dragoman.core.edges.recovery import Recovery
from dragoman.core.edges.session_state import NOTED
from dragoman.core.envelope import Frame, Malformed, Refusal, mend_response, result_frame
from dragoman.core.exact_json import encode
from dragoman.core.negotiation import AUTO
from dragoman.core.settings import Settings
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS

if TYPE_CHECKING:
    from dragoman.core.edges.probe import Probe
    from dragoman.core.rules.metadata import Metadata
    from dragoman.core.rules.verdict import Verdict

logger = logging.getLogger("dragoman.session")

# Names of their own for what is asked with every frame: see `commands.CLIENT`.
_READY: Final = UpstreamState.READY
_OPENING: Final = UpstreamState.OPENING
_RECOVERING: Final = UpstreamState.RECOVERING
_ABSENT: Final = UpstreamState.ABSENT


class UpstreamEdge:
    """The machine for one server.

    Args:
        settings: What the user decided.
        outbox: Where commands go.
        listener: Who is told what happens.

    Attributes:
        state: Where the session stands.
        revision: What the server speaks, once it has agreed to something.
        outgoing: Frames for the server that are not written yet.
        takes_headers: Whether what it is sent goes with headers that repeat some of it: the host knows.
        was_read: Says whether the server has read all that it was sent; None where nobody can tell.
        is_recalled: Says whether another one answers for it from memory; None where nobody does.
        offer: What it was offered, or is to be, as long as that matters.
        recovery: What outlives its session.
    """

    __slots__ = (
        "__weakref__",
        "_about",
        "_first",
        "_keeps_nothing",
        "_listener",
        "_loss",
        "_may_start",
        "_offered",
        "_opening",
        "_outbox",
        "_probes",
        "_server_listener",
        "_settings",
        "is_recalled",
        "offer",
        "outgoing",
        "recovery",
        "revision",
        "state",
        "takes_headers",
        "was_read",
    )

    def __init__(self, settings: Settings, outbox: Outbox, listener: OpeningListener[UpstreamEdge]) -> None:
        self.state = UpstreamState.IDLE
        self.revision: str | None = None
        self.outgoing: list[Frame] = []
        self._settings = settings
        self._outbox = outbox
        self._listener = listener
        self._server_listener: ServerListener[UpstreamEdge] = listener
        self.offer: Offer | None = None
        self._opening: Generator[None, Event, Found] | None = None
        self._first: Frame | None = None  # the first offer, before it is sent
        self._offered: Frame | None = None  # the last offer that was sent, until the session is ready
        self._loss = ("", Outcome.SERVER_CLOSED)
        self.takes_headers = False
        self.was_read: Callable[[], bool] | None = None
        self._may_start = False  # whether a server that is silent is given longer, if it may still be starting
        self.is_recalled: Callable[[], bool] | None = None
        self._probes = 0
        self._about: Greeting | Metadata | None = None  # whose client asks what it is
        self._keeps_nothing = False  # whether it has no handshake
        self.recovery = Recovery(self, settings, outbox)

    def release(self) -> None:
        """Let go of who is told, once nothing more comes; a timer may still run."""
        self.state = UpstreamState.LOST
        if self._settings.observer is not None:
            self._settings.observer.server(self)
        self._opening = None
        self.recovery.release()
        del self._listener, self._server_listener

    def hand_to(self, listener: OpeningListener[UpstreamEdge], outbox: Outbox | None = None) -> None:
        """Have somebody else told from here on; commands go to this outbox then, if it is another one."""
        self._listener = self._server_listener = listener
        self._outbox = self.recovery.outbox = outbox or self._outbox

    def open(self) -> None:
        """Open a connection to the server."""
        self._outbox.add(Open(self))

    def send(self, frame: Frame) -> None:
        """Write a frame to the server, or keep it until there is a new session in place of one that is gone."""
        if self.state is _ABSENT:
            if frame.kind != "request" or self.recovery.is_dismissed:
                return  # it was about something that is lost, or nobody is left who would hear the answer
            self.advance(UpstreamEvent.NEEDED)
        elif not self._keeps_nothing:
            if self.state is _RECOVERING and self.recovery.keep(frame):
                return
            if frame.method in NOTED or frame.kind == "batch":
                self.recovery.session.note(frame)
        self._outbox.post(self, frame)

    def initialize(
        self, greeting: Greeting, introduce: Introduce, key: bytes, *, metadata: Metadata | None = None
    ) -> Refusal | None:
        """Open the server. One that is being opened for a client goes on with that, as far as it can.

        Args:
            greeting: Whose session leads to it.
            introduce: Writes the request.
            key: Its id.
            metadata: Of a client that needs no session. For it the server is first asked whether it can do without; in
                the client's name, for it may be one of our own, which opens a session then.

        Returns:
            Why the request cannot be written, if it cannot: then nothing has begun.
        """
        setting = self._settings.server_revision
        needs_session, about = metadata is None, metadata or greeting
        if setting in REVISIONS and setting not in HANDSHAKE_REVISIONS:
            if self.state is not _OPENING:
                self.pin(about)
            return None
        memory = self._settings.known
        known, is_up = (None, False) if memory is None else (memory.recall(), memory.is_up)
        # A server that accepts the era of its client is spoken to in that era: it may do less in the other one. One at
        # a URL is asked anew for a client without a session, which costs one round trip.
        asks_first = setting == AUTO and (known is False if needs_session else known is not True or is_up)
        if needs_session and (asks_first or self.state is _OPENING):
            # The answer may come late, when something else has the client's id.
            key = encode(f"{OFFER_ID}1")
        offer = Offer(self._settings, greeting, introduce, key)
        first = offer.write()
        if isinstance(first, Refusal):
            return first
        if self.state is _OPENING and self.offer is not None and self._offered is not None:
            if self.offer.hand_to(offer, first):
                self._listener.offered(self)
                return None
            self.open()
        self.offer, self._first, self._about = offer, first, about
        logger.info("the client asked for %s; to be offered: %s", greeting.requested, offer.offered)
        if self.state is not _OPENING or self._offered is not None:
            self._begin(asks_first)
        return None

    def pin(self, about: Greeting | Metadata | None = None) -> None:
        """Begin without a handshake: the server is known to have none.

        Args:
            about: Of the client in whose name it is asked what it is: a router opens its servers so.
        """
        self.offer = self._first = None
        self._about = about
        self._begin(asks_first=True)

    def _begin(self, asks_first: bool) -> None:
        self._offered = None
        self.advance(UpstreamEvent.ASKED)
        if self.state is _OPENING:
            self._opening = open_server(self, asks_first)
            self._go_on(None)

    def serve(self, listener: ServerListener[UpstreamEdge]) -> None:
        """Tell somebody else from here on what the server says, and that it is gone."""
        self._server_listener = listener

    def announce(self, frame: Frame) -> None:
        """Tell the server that its client is ready, if it has not been told."""
        self.advance(UpstreamEvent.ANNOUNCED, frame)

    def take(self, frame: Frame | Malformed) -> None:
        """Take a frame of the server."""
        if isinstance(frame, Frame) and frame.body is not None:
            frame = mend_response(cut(frame) if frame.kind == "batch" else frame)
        if self.state is _OPENING:
            if self._listener.waits_for(self):
                self._go_on(frame)
            return
        recovery = self.recovery
        recovery.heard = True
        # What came together with its end is nobody's.
        if (self.state is _READY and recovery.ping is None) or not (
            self.state is UpstreamState.LOST or recovery.take(frame)
        ):
            self._server_listener.take_server(self, frame)

    def expire(self) -> None:
        """The time has passed that this edge asked for."""
        if self.state is _OPENING:
            may_start, self._may_start = self._may_start, False
            if may_start and not self.takes_headers and not (self.was_read and self.was_read()):
                self._outbox.add(Wake(self, SILENCE_S - READ_SILENCE_S))
            else:
                self._go_on(None)
        elif self.state is not UpstreamState.LOST:
            self.recovery.expire()

    def close(self, reason: str, outcome: Outcome = Outcome.SERVER_CLOSED) -> None:
        """Record that the server says no more.

        Args:
            reason: Why, in words, as clients are told.
            outcome: How sessions end by this.
        """
        if self.state is _OPENING and self._listener.waits_for(self):
            self._loss = reason, outcome
            self._go_on(Ended(reason))
        elif self.state is not UpstreamState.LOST:
            self.recovery.lose(reason, outcome)

    def end(self, reason: str, outcome: Outcome) -> None:
        """The server is gone for good."""
        vanished = self._keeps_nothing and self.state is UpstreamState.READY
        self.advance(UpstreamEvent.VANISHED if vanished else UpstreamEvent.CLOSED, (reason, outcome))

    def tell(self, frame: Frame | Malformed) -> None:
        """Let clients have what the server says, or what is said in its place."""
        self._server_listener.take_server(self, frame)

    # What the routine of the opening wants, and what comes of it

    def _go_on(self, event: Event) -> None:
        assert self._opening is not None
        try:
            self._opening.send(event)
        except StopIteration as over:
            self._opening = self.was_read = None
            if self._probes:
                self._outbox.add(Wake(self, None))
            self._take_found(over.value)

    def _take_found(self, found: Found) -> None:
        match found:
            case None:
                self.recovery.lose(*self._loss)
            case Accepted():
                self.revision = found.revision
                self.advance(UpstreamEvent.ACCEPTED, found)
            case InitializeRefused():
                self.advance(UpstreamEvent.REFUSED, found)
            case Refusal():
                self.advance(UpstreamEvent.FAILED, found)
            case _ if found.discovers:
                self.advance(UpstreamEvent.DISCOVERED, found)
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
        from dragoman.core.edges.probe import Probe, describe

        self._probes += 1
        self._about = describe(self._about)
        return Probe(self._probes, revision, self._about)

    def write_discover(self) -> Frame | None:
        """What a server without a handshake has to answer; None: it has one."""
        return self._write_probe().write() if self._keeps_nothing else None

    def remember(self, has_handshake: bool) -> None:
        """Remember what the server is, for the next time."""
        known = self._settings.known
        if known is not None and known.recall() is not has_handshake:
            known.note(has_handshake)

    def begin_silence(self) -> None:
        """Say when nothing has come for a while."""
        self._may_start = True
        self._outbox.add(Wake(self, READ_SILENCE_S))

    def send_offer(self, frame: Frame | None = None) -> bool:
        """Send `initialize`: the first offer again, or another one. Whether there is any."""
        self._offered = frame or self._offered or self._first
        if self._offered is None:
            return False
        self._outbox.post(self, self._offered)
        self._listener.offered(self)
        return True

    def pass_on(self, frame: Frame | Malformed, has_offer: bool) -> None:
        """Take what is about none of what the server was asked."""
        if isinstance(frame, Frame) and (frame.kind, frame.method) == ("request", "ping"):
            self._outbox.post(self, result_frame(frame.key or b"null", {}))
        elif has_offer or isinstance(frame, Malformed):
            self.tell(frame)
        else:
            logger.debug("%s of the server dropped: it was asked what it is", frame.kind)

    # Actions of the table

    def advance(self, event: UpstreamEvent, about: Any = None) -> None:
        """Change the state by the table; its actions get what the event is about."""
        transition = UPSTREAM.advance(self.state, event)
        if transition is None:
            logger.debug("%s means nothing while the server is %s", event.value, self.state.value)
            return
        self.state = transition.state
        if self._settings.observer is not None:
            self._settings.observer.server(self)
        for action in transition.actions:
            _ACTIONS[action](self, about)

    def _send_initialized(self, initialized: Frame) -> None:
        assert self._offered is not None
        self._outbox.post(self, initialized)
        self.recovery.begin(self._offered, initialized)
        # Nobody asks for these again.
        self._first = self._offered = self.offer = self._about = None

    def _tell_discovered(self, verdict: Verdict) -> None:
        self.revision = verdict.revision
        self.offer = self._first = self._offered = None
        self._keeps_nothing = True
        self._listener.discovered(self, verdict)


_ACTIONS: Final[Mapping[UpstreamAction, Callable[[UpstreamEdge, Any], object]]] = {
    UpstreamAction.TELL_DISCOVERED: UpstreamEdge._tell_discovered,
    UpstreamAction.REOPEN: lambda edge, _: edge.open(),
    UpstreamAction.TELL_ACCEPTED: lambda edge, accepted: edge._listener.accepted(edge, accepted),
    UpstreamAction.TELL_REFUSED: lambda edge, refused: edge._listener.refused(edge, refused),
    UpstreamAction.TELL_FAILED: lambda edge, failure: edge._listener.failed(edge, failure),
    UpstreamAction.SEND_INITIALIZED: UpstreamEdge._send_initialized,
    UpstreamAction.TELL_LOST: lambda edge, loss: edge._server_listener.lost(edge, *loss),
    UpstreamAction.TELL_INTERRUPTED: lambda edge, _: edge._listener.interrupted(edge, edge.recovery.failure),
    UpstreamAction.TELL_CHANGES: lambda edge, _: edge.recovery.tell_changes(),
    UpstreamAction.SEND_KEPT: lambda edge, _: edge.recovery.send_kept(),
    UpstreamAction.WATCH: lambda edge, _: edge.recovery.watch(),
    UpstreamAction.CLOSE: lambda edge, _: edge._outbox.add(Close(edge)),
}
