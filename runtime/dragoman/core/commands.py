"""What the core asks its caller to do. Values only; `dragoman.host` carries them out, tests compare them.

The core never sleeps, reads or writes: frames and readings of the clock go in as method calls, these come out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from dragoman.core.around import AnyDeferral
    from dragoman.core.edges.front import FrontEdge
    from dragoman.core.edges.upstream import UpstreamEdge
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


class Sleeper(Protocol):
    """Who is woken."""

    def expire(self) -> None:
        """The time has passed."""


class Alarm:
    """One thing to do later, for one client.

    Args:
        front: Whose session it is for: it is forgotten with it.
        then: What to do.
    """

    __slots__ = ("_then", "front")

    def __init__(self, front: FrontEdge, then: Callable[[], None]) -> None:
        self.front = front
        self._then = then

    def expire(self) -> None:
        """Do it."""
        self._then()


@dataclass(frozen=True, slots=True)
class Open:
    """Open a connection to a server; what is sent to this edge goes there from here on.

    An edge that has a connection already gets a fresh one, and the old one is closed.
    """

    edge: UpstreamEdge


@dataclass(frozen=True, slots=True)
class Send:
    """Write these frames to the peer of an edge."""

    edge: Reached
    frames: Sequence[Frame]


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection to a server, once what was sent is written."""

    edge: UpstreamEdge


@dataclass(frozen=True, slots=True)
class Wake:
    """Call `expire` after so many seconds, in place of an earlier command; None: forget that one."""

    edge: Sleeper
    after_s: float | None


@dataclass(frozen=True, slots=True)
class Remind:
    """Call `FrontEdge.tick` after so many seconds."""

    edge: FrontEdge
    after_s: float


@dataclass(frozen=True, slots=True)
class Defer:
    """Let middleware have a request or notification, before it goes on."""

    deferral: AnyDeferral


@dataclass(frozen=True, slots=True)
class Settle:
    """Give middleware the answer to a request that it let proceed."""

    deferral: AnyDeferral
    frame: Frame


@dataclass(frozen=True, slots=True)
class Abandon:
    """Stop middleware that has a request: nobody waits for it any more."""

    deferral: AnyDeferral


@dataclass(frozen=True, slots=True)
class Finish:
    """A client's session is over: write out what the client is still owed, and stop.

    Attributes:
        outcome: How it ended; the command line turns it into an exit code.
        reason: The same for a person.
        edge: Whose.
    """

    outcome: Outcome
    reason: str
    edge: FrontEdge | None = field(default=None, compare=False, repr=False)


class Outcome(Enum):
    """How a session ended."""

    CLIENT_CLOSED = "the client closed"
    SERVER_CLOSED = "the server closed"
    SERVER_NOT_STARTED = "the server could not be started"
    INITIALIZATION_FAILED = "initialisation failed"
    INITIALIZATION_TIMED_OUT = "initialisation timed out"
    STOPPED = "stopped"
    INTERNAL_ERROR = "an internal error"


Command = Open | Send | Close | Wake | Remind | Defer | Settle | Abandon | Finish


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
