"""One server of a catalogue, as far as one client's session goes.

Lives here: what is known of it, and the protocol of whoever moves frames. Must not: decide (`catalogue`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from dragoman.core.calls import Suspect, Suspects
from dragoman.core.envelope import Frame

TakeAnswer = Callable[[Frame], None]


class MemberState(Enum):
    """How far a server is."""

    WAITING = "waiting"
    OPENING = "opening"
    OPEN = "open"
    FAILED = "failed"


class Outside(Protocol):
    """What carries a catalogue's frames, and knows the time."""

    is_paused: bool
    """Whether the client does not read at present: what it is told waits in memory."""

    def tell_client(self, frame: Frame) -> None:
        """Send this to the client."""

    def tell_member(self, member: Member, frame: Frame) -> None:
        """Send this to a server."""

    def remind(self, after_s: float, then: Callable[[], None]) -> None:
        """Call this after so many seconds."""

    def note_state(self, member: Member) -> None:
        """The state of a server has changed, or what is known of it."""

    def let_go(self, member: Member) -> None:
        """Have nothing to do any more with the connection to a server, which may be ending: the next is another one."""


@dataclass(slots=True, eq=False)
class Member:
    """A server.

    Attributes:
        name: What the user calls it.
        list_timeout_s: How long a merged list waits for it.
        open_timeout_s: How long a client that opens its session does.
        only_tools: The tools that clients may see; None for all.
        without_tools: Those that they may not.
        tells: Whether it is told whose each request is, and may have something else for everybody.
        state: How far it is.
        reason: Why it failed.
        wants_person: Whether that is because somebody was asked to sign in: whoever needs it next has it tried again.
        capabilities: What it declared, in the client's revision; None while that is not known.
        told: What else it said of itself when it was opened.
        is_known: Whether the client may have been told what it has.
        is_late: Whether it has had its time to answer, and has answered nothing since: nobody waits for it meanwhile.
        opened_s: Since when it is open; None where it is not, or could not be.
        tries: How often it was tried again since it was open for long.
        listed: The answers that its lists were read from, by method and, where it is told, by who had asked.
        owed: The requests that it has not answered, by id: None for one of the client, else who takes the answer.
        suspects: Those that ended without its answer: it may still speak of them.
        asked: Its own requests that the client has not answered: the number that each was lent, by its id.
    """

    name: str
    list_timeout_s: float = 5.0
    open_timeout_s: float = 4.0
    only_tools: frozenset[str] | None = None
    without_tools: frozenset[str] = frozenset()
    tells: bool = False
    state: MemberState = MemberState.WAITING
    reason: str = ""
    wants_person: bool = False
    capabilities: Mapping[str, Any] | None = None
    told: Mapping[str, Any] = field(default_factory=dict)
    is_known: bool = False
    is_late: bool = False
    opened_s: float | None = None
    tries: int = 0
    listed: dict[tuple[str, str], Any] = field(default_factory=dict)
    owed: dict[bytes, TakeAnswer | None] = field(default_factory=dict)
    suspects: Suspects[str] = field(default_factory=Suspects)
    asked: dict[bytes, int] = field(default_factory=dict)

    def suspect(self, key: bytes) -> None:
        """Record a request that it may speak of, although nobody waits for its answer, or under another id."""
        self.suspects.add(key, Suspect(None, True))

    @property
    def at_work(self) -> tuple[bytes, ...] | None:
        """The requests of the client that it may be at work on; None where not all of them are known."""
        left = self.suspects.keys
        return None if left is None else (*(key for key, take in self.owed.items() if take is None), *left)

    @property
    def has_filter(self) -> bool:
        """Whether some of its tools are kept from clients."""
        return self.only_tools is not None or bool(self.without_tools)

    def shows(self, tool: str) -> bool:
        """Whether clients may see a tool."""
        return (self.only_tools is None or tool in self.only_tools) and tool not in self.without_tools

    def lacks(self, capability: str) -> bool:
        """Whether it is known not to have something."""
        return self.capabilities is not None and not isinstance(self.capabilities.get(capability), dict)
