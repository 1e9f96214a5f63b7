"""What the core asks its caller to do, and what it has to know of who is asked; `dragoman.host` carries them out.

The core never sleeps, reads or writes: frames and readings of the clock go in as method calls, these come out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol

from dragoman_spec.record import quick_record

if TYPE_CHECKING:
    from dragoman.core.envelope import Frame


class Side(Enum):
    """Which of two peers: the one that asks for a session, or the one that serves it.

    Attributes:
        other: The peer across.
    """

    other: Side

    CLIENT = "client"
    SERVER = "server"

    __hash__ = object.__hash__  # Enum's own is a Python function, and a side is looked up several times a frame


CLIENT: Final = Side.CLIENT
SERVER: Final = Side.SERVER
"""The same for what happens several times a call: to find a member in an Enum takes as long as fifty other names."""

CLIENT.other, SERVER.other = SERVER, CLIENT


class Reached(Protocol):
    """An edge, as far as commands need one.

    Attributes:
        outgoing: The frames that are to be written to its peer, in order.
    """

    outgoing: list[Frame]


class ClientEdge(Reached, Protocol):
    """The edge towards a client, as far as it is known below it: `edges.front`."""

    def send(self, frame: Frame) -> None:
        """Write a frame to the client."""

    def post(self, side: Side, frame: Frame) -> None:
        """Write a frame to the client, or hand an answer on to what is behind."""

    def answered(self) -> None:
        """A request may have its answer."""


class Sleeper(Protocol):
    """Who is woken."""

    def expire(self) -> None:
        """The time has passed."""


class Alarm:
    """One thing to do later, for one client.

    Args:
        front: Whose session it is for: it is forgotten with it.
        then: What to do.
        alarms: What has not rung yet, this one among it.
    """

    __slots__ = ("_alarms", "_then", "front")

    def __init__(self, front: Reached, then: Callable[[], None], alarms: set[Alarm]) -> None:
        self.front = front
        self._then = then
        self._alarms = alarms

    def expire(self) -> None:
        """Do it."""
        self._alarms.discard(self)
        self._then()


class Waits(Protocol):
    """A request that waits for its answer."""

    held: HeldFrame | None
    """What middleware has of it."""

    @property
    def key(self) -> bytes:
        """Its id, as whoever asked knows it."""

    @property
    def method(self) -> str:
        """What it asks."""


class CallTable(Protocol):
    """Who knows which requests wait; middleware has them from there, and gives them back: they are `calls.Call`."""

    def find_revision(self, side: Side, call: Any, frame: Frame) -> str | None:
        """Return what a request, or a notification, is written in at this side of the middleware."""

    def hand_on(self, side: Side, call: Any, frame: Frame) -> None:
        """Take a request of this peer to the other, as it is now."""

    def forward(self, side: Side, frame: Frame) -> None:
        """Take a notification of this peer to the other."""

    def conclude(self, side: Side, call: Any, frame: Frame, *, is_at_peer: bool) -> None:
        """Answer a request of this peer; where the other has it, it is told that nobody waits any more."""


class HeldPhase(Enum):
    """How far something is that middleware has."""

    HELD = "held"
    AT_PEER = "at the peer"
    ANSWERED = "answered"
    OVER = "over"


class HeldFrame:
    """A request or notification that middleware has.

    Attributes:
        side: Who sent it.
        frame: As it is to go on.
        call: The request; None for a notification.
        table: Who has it.
    """

    __slots__ = ("call", "frame", "front", "phase", "side", "table")

    def __init__(self, front: ClientEdge, side: Side, frame: Frame, call: Waits | None, table: CallTable) -> None:
        self.front = front
        self.side = side
        self.frame = frame
        self.call = call
        self.table = table
        self.phase = HeldPhase.HELD

    def proceed(self, frame: Frame) -> None:
        """Take it on to its peer, as it is now."""
        assert self.phase is HeldPhase.HELD, "what is called twice is refused by the host"
        if self.call is None:
            self.phase = HeldPhase.OVER
            self.table.forward(self.side, frame)
        else:
            self.phase = HeldPhase.AT_PEER
            self.table.hand_on(self.side, self.call, frame)

    def conclude(self, frame: Frame) -> None:
        """Answer a request with what middleware gives, unless nobody waits for it any more."""
        assert self.call is not None, "a notification has no answer"
        if self.call.held is not None:
            self.call.held = None
            self.table.conclude(self.side, self.call, frame, is_at_peer=self.end())
        self.front.answered()

    def end(self) -> bool:
        """Record that it is over; whether the peer has it and did not answer."""
        is_at_peer, self.phase = self.phase is HeldPhase.AT_PEER, HeldPhase.OVER
        return is_at_peer


@quick_record
class Open:
    """Open a connection to a server; what is sent to this edge goes there from here on.

    An edge that has a connection already gets a fresh one, and the old one is closed.
    """

    edge: Reached


@quick_record
class Send:
    """Write these frames to the peer of an edge."""

    edge: Reached
    frames: Sequence[Frame]


@quick_record
class Close:
    """Close the connection to a server, once what was sent is written."""

    edge: Reached


@quick_record
class Rest:
    """Ask nobody to sign in to a server that is being opened: nothing waits for it any more."""

    edge: Reached


@quick_record
class Wake:
    """Call `expire` after so many seconds, in place of an earlier command; None: forget that one."""

    edge: Sleeper
    after_s: float | None


class Schedule:
    """What is to be done later for one client: what has one schedule ends together."""

    __slots__ = ("_alarms", "_front", "_outbox")

    def __init__(self, outbox: Outbox, front: Reached) -> None:
        self._outbox = outbox
        self._front = front
        self._alarms: set[Alarm] = set()

    def after(self, after_s: float, then: Callable[[], None]) -> Alarm:
        """Do something after so many seconds, if the client's session is still there."""
        alarm = Alarm(self._front, then, self._alarms)
        self._alarms.add(alarm)
        self._outbox.add(Wake(alarm, after_s))
        return alarm

    def stop(self, *alarms: Alarm | None) -> None:
        """Do not do these, where they are not done yet."""
        for alarm in self._alarms.intersection(alarms):
            self._alarms.remove(alarm)
            self._outbox.add(Wake(alarm, None))

    def clear(self) -> None:
        """Do none of it."""
        self.stop(*self._alarms)


@quick_record
class Defer:
    """Let middleware have a request or notification, before it goes on."""

    held_frame: HeldFrame


@quick_record
class Settle:
    """Give middleware the answer to a request that it let proceed."""

    held_frame: HeldFrame
    frame: Frame


@quick_record
class Abandon:
    """Stop middleware that has a request: nobody waits for it any more."""

    held_frame: HeldFrame


@quick_record
class Finish:
    """A client's session is over: write out what the client is still owed, and stop.

    Attributes:
        outcome: How it ended; the command line turns it into an exit code.
        reason: The same for a person.
        edge: Whose.
    """

    outcome: Outcome
    reason: str
    edge: Reached | None = field(default=None, compare=False, repr=False)


class Outcome(Enum):
    """How a session ended."""

    CLIENT_CLOSED = "the client closed"
    SERVER_CLOSED = "the server closed"
    SERVER_NOT_STARTED = "the server could not be started"
    INITIALIZATION_FAILED = "initialisation failed"
    INITIALIZATION_TIMED_OUT = "initialisation timed out"
    STOPPED = "stopped"
    INTERNAL_ERROR = "an internal error"


Command = Open | Send | Close | Rest | Wake | Defer | Settle | Abandon | Finish


class Outbox:
    """Collects what a step leads to: frames to one peer between two other commands become one `Send`.

    Attributes:
        commands: All but the frames that were posted since the last of them.
        waiting: The edges that have such frames.
    """

    __slots__ = ("commands", "waiting")

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.waiting: list[Reached] = []

    def post(self, edge: Reached, frame: Frame) -> None:
        """Add a frame to write to the peer of an edge."""
        outgoing = edge.outgoing
        if not outgoing:
            self.waiting.append(edge)
        outgoing.append(frame)

    def add(self, command: Command) -> None:
        """Add a command, after the frames so far."""
        self._join()
        self.commands.append(command)

    def take_all(self) -> list[Command]:
        """Take everything out, in order."""
        self._join()
        commands, self.commands = self.commands, []
        return commands

    def _join(self) -> None:
        for edge in self.waiting:
            self.commands.append(Send(edge, tuple(edge.outgoing)))
            edge.outgoing.clear()
        self.waiting.clear()
