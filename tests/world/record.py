"""What happened in a world: every frame that a peer said or heard, in order. Rules are checked on it (`rules`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.world.streams import Turns
from tests.world.system import BEGINS_AT_S, System

Body = dict[str, Any]


@dataclass(slots=True)
class Event:
    """One thing that happened.

    Attributes:
        turn: When, among everything that happened.
        at_s: When, on the clock of the world.
        peer: Who says or hears it: `c0` is a client, `s1.2` the second run of server `s1`.
        what: `says`, `hears`, or what became of the connection: `opens`, `ends`, `is cut`, `leaves`, `dies`, ….
        frame: The frame, or a text.
        there: Of a frame that is said, when it arrived at the proxy; None if it never did. Of one that is heard, when
            the proxy wrote it.
        via: What the peer heard it on, or said it on, where that has a name: the stream of a request, say.
    """

    turn: int
    at_s: float
    peer: str
    what: str
    frame: Any = None
    there: int | None = None
    via: str = ""

    @property
    def is_said(self) -> bool:
        return self.what == "says"

    @property
    def is_heard(self) -> bool:
        return self.what == "hears"

    def show(self) -> str:
        """Give it as a line of a conversation."""
        text = self.frame if isinstance(self.frame, str) else json.dumps(self.frame, ensure_ascii=False)
        mark = {"says": "→", "hears": "←"}.get(self.what, self.what)
        late = "  (never arrived)" if self.is_said and self.there is None else ""
        return f"{self.at_s - BEGINS_AT_S:9.3f}  {self.peer:<6} {mark} {text if self.frame is not None else ''}{late}"


class Record:
    """Everything that happened.

    Attributes:
        events: In order.
        revisions: What each peer speaks, as far as it has been agreed on, by name.
        log: What the proxy logged: level and text.
        words: What it logged of what children write: in whose session, and the text.
        left_over: Tables that had rows when all clients had left.
        notes: What the rules are told beside what was said: what was left over, and defects.
    """

    def __init__(self, system: System) -> None:
        self.turns = Turns()
        self.events: list[Event] = []
        self.revisions: dict[str, str] = {}
        self.log: list[tuple[str, str]] = []
        self.words: list[tuple[str, str]] = []
        self.notes: list[tuple[str, str]] = []
        self.left_over: list[str] = []
        self._system = system

    def add(self, peer: str, what: str, frame: Any = None, there: int | None = None, via: str = "") -> Event:
        """Note that something happens."""
        event = Event(self.turns.next(), self._system.now_s, peer, what, frame, there, via)
        self.events.append(event)
        return event

    def note(self, rule: str, text: str) -> None:
        """Note that a rule was broken, where that is seen while it happens."""
        self.notes.append((rule, text))

    def of(self, peer: str) -> Iterator[Event]:
        """Give what one peer said, heard and did."""
        return (event for event in self.events if event.peer == peer)

    def peers(self, kind: str) -> list[str]:
        """Give the names of those that took part: kind `c` or `s`."""
        return list(dict.fromkeys(event.peer for event in self.events if event.peer.startswith(kind)))

    def show(self) -> str:
        """Give all of it as a conversation."""
        return "\n".join(event.show() for event in self.events)

    def digest(self) -> str:
        """Give a short text that is the same where the same happened."""
        lines = (f"{event.turn} {event.at_s!r} {event.show()}" for event in self.events)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
