"""How a peer says and hears frames, whatever lies between it and the proxy. This one: a frame a line, as over pipes."""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Protocol

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


class LineWire:
    """A frame a line."""

    def __init__(self, end: End, peer: Listener, record: Record) -> None:
        self._end = end
        self._peer = peer
        self._record = record
        self._rest = b""
        self._heard = 0
        self._under_way: deque[tuple[int, Event]] = deque()
        end.says.on_taken = self._note_taken
        end.start(self)

    def say(self, frame: Any, via: str = "") -> None:
        event = self._record.add(self._peer.name, "says", frame)
        self._under_way.append((self._end.says.written, event))
        data = json.dumps(frame, ensure_ascii=False).encode() + b"\n"
        self._under_way[-1] = (self._end.says.written + len(data), event)
        self._end.write(data)

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
            self._record.add(self._peer.name, "hears", frame, self._end.hears.mark_of(start))
            self._peer.hear(frame)

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
