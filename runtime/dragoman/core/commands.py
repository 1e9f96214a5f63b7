"""What the core asks its caller to do. Values only; `dragoman.proxy` carries them out, tests compare them.

The core never sleeps, reads or writes: frames and readings go in as method calls, these come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dragoman.core.envelope import Frame


class Side(Enum):
    """One of the two peers of a session."""

    CLIENT = "client"
    SERVER = "server"

    __hash__ = object.__hash__  # Enum's own is a Python function, and a side is looked up several times a frame

    @property
    def other(self) -> Side:
        """The peer across."""
        return Side.SERVER if self is Side.CLIENT else Side.CLIENT


@dataclass(frozen=True, slots=True)
class Send:
    """Send these frames to a peer."""

    side: Side
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Call `Session.expire` after this long, unless told otherwise before; replaces a timer that is running."""

    after_s: float


@dataclass(frozen=True, slots=True)
class StopTimer:
    """Forget the timer."""


@dataclass(frozen=True, slots=True)
class RestartServer:
    """Close the connection to the server and open a fresh one; what is sent from here on goes to the fresh one."""


@dataclass(frozen=True, slots=True)
class Finish:
    """End the session: close the server, write out what the client is still owed, and stop.

    Attributes:
        outcome: How it ended; the command line turns it into an exit code.
        reason: The same for a person.
    """

    outcome: Outcome
    reason: str


class Outcome(Enum):
    """How a session ended."""

    CLIENT_CLOSED = "the client closed"
    SERVER_CLOSED = "the server closed"
    SERVER_NOT_STARTED = "the server could not be started"
    INITIALIZATION_FAILED = "initialisation failed"
    INITIALIZATION_TIMED_OUT = "initialisation timed out"
    STOPPED = "stopped"
    INTERNAL_ERROR = "an internal error"


Command = Send | SetTimer | StopTimer | RestartServer | Finish


class Outbox:
    """Collects what a step of the session leads to: frames to one peer between two other commands become one `Send`."""

    __slots__ = ("_commands", "_frames")

    def __init__(self) -> None:
        self._commands: list[Command] = []
        self._frames: dict[Side, list[Frame]] = {side: [] for side in Side}

    def post(self, side: Side, frame: Frame) -> None:
        """Add a frame to send."""
        self._frames[side].append(frame)

    def add(self, command: Command) -> None:
        """Add a command, after the frames so far."""
        self._join()
        self._commands.append(command)

    def take_all(self) -> list[Command]:
        """Take everything out, in order."""
        self._join()
        commands, self._commands = self._commands, []
        return commands

    def _join(self) -> None:
        for side, frames in self._frames.items():
            if frames:
                self._commands.append(Send(side, tuple(frames)))
                frames.clear()
