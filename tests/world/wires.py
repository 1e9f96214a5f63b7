"""How a peer says and hears frames, whatever lies between it and the proxy. This one: a frame a line, as over pipes."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from tests.world.peers.words import KNOW
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


@runtime_checkable
class OfProcess(Protocol):
    """The way of a peer that is a process."""

    def write_stderr(self, text: str, lines: int = 1) -> None:
        """Write lines that are no frames."""

    def close_output(self) -> None:
        """Say nothing more, and live on."""


@dataclass
class Owed:
    """An array that was heard, and is to be answered with one.

    Attributes:
        keys: The ids of what is not answered yet.
        answers: What has been said, and the events in which it was.
    """

    keys: list[Any]
    answers: list[tuple[Body, Event]] = field(default_factory=list)


class Arrays:
    """Frames as a peer says and hears them, one by one or several at once, whatever they go over.

    Args:
        peer: Whose they are.
        record: Where it is noted what is said and heard.
        write: Sends a frame, or an array; told the events in which it was said.
        gathers: Whether what it says in one moment goes out as one array, with a member that is no frame now and then.
    """

    def __init__(self, peer: Listener, record: Record, write: Callable[..., None], gathers: bool = False) -> None:
        self._peer = peer
        self._record = record
        self._write = write
        self._gathers = gathers
        self._count = 0
        self._owed: list[Owed] = []
        self._gathered: list[tuple[Body, Event]] = []

    def say(self, frame: Any) -> None:
        """Send a frame, or an array of them."""
        if isinstance(frame, list):
            name = self.name()
            self._record.add(self._peer.name, "says an array", [one.get("id") for one in frame], via=name)
            self._write(frame, *[self._record.add(self._peer.name, "says", one, via=name) for one in frame])
            return
        event = self._record.add(self._peer.name, "says", frame)
        owed = next((one for one in self._owed if "method" not in frame and frame.get("id") in one.keys), None)
        if owed is not None:
            owed.answers.append((frame, event))
            self._settle(owed, frame.get("id"))
        elif self._gathers and self._record.revisions.get(self._peer.name) in KNOW and not is_opening(frame):
            self._gathered.append((frame, event))
            if len(self._gathered) == 1:
                asyncio.get_running_loop().call_soon(self._say_gathered)
        else:
            self._write(frame, event)

    def name(self) -> str:
        """Name another array."""
        self._count += 1
        return f"array {self._count}"

    def _say_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        frames: list[Any] = [frame for frame, _ in gathered]
        if len(frames) > 1 or self._count % 4 == 3:
            name = self.name()
            self._record.add(self._peer.name, "says an array", [one.get("id") for one in frames], via=name)
            for _, event in gathered:
                event.via = name
            self._write(frames + [NOTHING] * (self._count % 4 == 0), *[event for _, event in gathered])
        else:
            self._count += 1
            self._write(frames[0], gathered[0][1])

    def hear(self, said: Any, there: int) -> None:
        """Take what has come; whoever is asked something in an array may answer with one."""
        if not isinstance(said, list):
            self._hear(said, there)
            return
        name = self.name()
        answered = [one.get("id") for one in said if "method" not in one]
        self._record.add(self._peer.name, "hears an array", answered, there, name)
        asked = [one["id"] for one in said if "id" in one and "method" in one]
        if asked and self._count % 2:
            self._owed.append(Owed(asked))
        for one in said:
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


NOTHING: Final[Body] = {"jsonrpc": "2.0", "id": 77}
"""A member of an array that is neither request nor response."""


def is_opening(frame: Body) -> bool:
    """Whether a frame opens a session: those are in no array."""
    return frame.get("method") == "initialize" or "protocolVersion" in (frame.get("result") or {})


class LineWire:
    """A frame a line."""

    def __init__(self, end: End, peer: Listener, record: Record, gathers: bool = False) -> None:
        self._end = end
        self._peer = peer
        self._record = record
        self._rest = b""
        self._heard = 0
        self._under_way: deque[tuple[int, Event]] = deque()
        self._arrays = Arrays(peer, record, self._write, gathers)
        end.says.on_taken = self._note_taken
        end.start(self)

    def say(self, frame: Any, via: str = "") -> None:
        self._arrays.say(frame)

    def _write(self, frame: Any, *events: Event) -> None:
        data = json.dumps(frame, ensure_ascii=False).encode() + b"\n"
        self._under_way.extend((self._end.says.written + len(data), event) for event in events)
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
            self._arrays.hear(frame, self._end.hears.mark_of(start))

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
