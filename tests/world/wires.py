"""How a peer says and hears frames, whatever lies between it and the proxy. This one: a frame a line, as over pipes."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from tests.world.record import Body, Event, Record
from tests.world.streams import End


class Listener(Protocol):
    """A peer."""

    name: str

    def hear(self, frame: Body, via: str = "") -> None:
        """A frame came."""

    def over(self, reason: str) -> None:
        """Nothing more comes."""

    def refuse(self, key: Any) -> None:
        """What was said under this id was refused by the way, or lost on it."""

    def waits_for(self, key: Any) -> bool:
        """Whether what was said under this id is not answered yet."""


class Wire(Protocol):
    """A peer's way to the proxy."""

    def say(self, frame: Any, via: str = "") -> None:
        """Send a frame; `via` is what a frame that was heard came on, for what is said about it."""

    def leave(self) -> None:
        """Close in order."""

    def cut(self) -> None:
        """Break off."""

    def stall(self, stalled: bool) -> None:
        """Read nothing for now, or read again."""

    def write_raw(self, data: bytes) -> None:
        """Send bytes that are no frame."""


@runtime_checkable
class Resuming(Protocol):
    """A way on which a stream of events may break, and be taken up again."""

    def break_streams(self) -> None:
        """Lose the connections that bring events."""


@dataclass
class Owed:
    """An array that was heard, and is to be answered with one.

    Attributes:
        keys: The ids of what is not answered yet.
        answers: What has been said, and the events in which it was.
    """

    keys: list[Any]
    answers: list[tuple[Body, Event]] = field(default_factory=list)


class LineWire:
    """A frame a line."""

    def __init__(self, end: End, peer: Listener, record: Record) -> None:
        self._end = end
        self._peer = peer
        self._record = record
        self._rest = b""
        self._heard = 0
        self._under_way: deque[tuple[int, Event]] = deque()
        self._arrays = 0
        self._owed: list[Owed] = []
        end.says.on_taken = self._note_taken
        end.start(self)

    def say(self, frame: Any, via: str = "") -> None:
        if isinstance(frame, list):
            self._say_array(frame)
            return
        event = self._record.add(self._peer.name, "says", frame)
        owed = next((one for one in self._owed if "method" not in frame and frame.get("id") in one.keys), None)
        if owed is None:
            self._write(frame, event)
        else:
            owed.answers.append((frame, event))
            self._settle(owed, frame.get("id"))

    def _write(self, frame: Any, *events: Event) -> None:
        data = json.dumps(frame, ensure_ascii=False).encode() + b"\n"
        self._under_way.extend((self._end.says.written + len(data), event) for event in events)
        self._end.write(data)

    def _say_array(self, frames: list[Body]) -> None:
        self._arrays += 1
        name = f"array {self._arrays}"
        self._record.add(self._peer.name, "says an array", [one.get("id") for one in frames], via=name)
        self._write(frames, *[self._record.add(self._peer.name, "says", one, via=name) for one in frames])

    def _hear_array(self, frames: list[Body], there: int) -> None:
        """Take an array; whoever is asked something in it may answer with one."""
        self._arrays += 1
        name = f"array {self._arrays}"
        self._record.add(self._peer.name, "hears an array", [one.get("id") for one in frames], there, name)
        asked = [one["id"] for one in frames if "id" in one and "method" in one]
        if asked and self._arrays % 2:
            self._owed.append(Owed(asked))
        for one in frames:
            self._hear(one, there, name)

    def _hear(self, frame: Body, there: int, via: str = "") -> None:
        self._record.add(self._peer.name, "hears", frame, there, via)
        if frame.get("method") == "notifications/cancelled":
            for owed in list(self._owed):
                self._settle(owed, (frame.get("params") or {}).get("requestId"))
        self._peer.hear(frame)

    def _settle(self, owed: Owed, key: Any) -> None:
        """Wait no more for the answer to a request of an array; answer it if that was the last one."""
        owed.keys = [one for one in owed.keys if one != key]
        if not owed.keys:
            self._owed.remove(owed)
            if owed.answers:
                self._write([frame for frame, _ in owed.answers], *[event for _, event in owed.answers])

    def write_raw(self, data: bytes) -> None:
        self._record.add(self._peer.name, "writes", repr(data))
        self._end.write(data)

    def leave(self) -> None:
        self._record.add(self._peer.name, "leaves")
        self._end.end()

    def cut(self) -> None:
        self._record.add(self._peer.name, "is cut")
        self._end.cut()

    def stall(self, stalled: bool) -> None:
        self._record.add(self._peer.name, "reads nothing" if stalled else "reads again")
        self._end.hears.stall(stalled)

    def data_received(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        start = self._heard - len(self._rest)
        self._heard += len(data)
        self._rest = rest
        for line in lines:
            start += len(line) + 1
            try:
                frame = json.loads(line)
            except ValueError:
                self._record.note("valid", f"{self._peer.name} heard a line that is not JSON: {line!r}")
                continue
            there = self._end.hears.mark_of(start)
            if isinstance(frame, list):
                self._hear_array(frame, there)
            else:
                self._hear(frame, there)

    def ended(self, reason: str) -> None:
        self._record.add(self._peer.name, "ends", reason)
        self._end.close()
        self._peer.over(reason)

    def broken(self, reason: str) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def _note_taken(self, taken: int) -> None:
        while self._under_way and self._under_way[0][0] <= taken:
            self._under_way.popleft()[1].there = self._record.turns.count
