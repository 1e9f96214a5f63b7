"""Connections of a world: bytes that are split, joined, late, held up and lost, as the seed says.

A connection is two pipes. Bytes come out of a pipe in order, and all of them, unless it is cut. An end is what a peer,
or a transport of ours, has of a connection; `transports` makes of it what our own code expects.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

HIGH_WATER_BYTES: Final = 64 * 1024
"""How much may be on its way before a writer is asked to pause."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How the connections of a world behave.

    Attributes:
        split: How likely a write comes in several pieces.
        join: How likely a piece waits for the next one, and comes with it.
        late: How likely a piece is on its way for a while.
        late_s: How long at most, in seconds.
        room: How many bytes may be on their way before a writer is asked to pause.
    """

    split: float = 0.0
    join: float = 0.0
    late: float = 0.0
    late_s: float = 0.0
    room: int = HIGH_WATER_BYTES


RESET: Final = "the connection was reset"


class Reader(Protocol):
    """Who has an end of a connection; all calls come from the loop."""

    def data_received(self, data: bytes) -> None: ...

    def ended(self, reason: str) -> None: ...

    def broken(self, reason: str) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class Pipe:
    """One direction.

    Attributes:
        written: How many bytes went in so far.
        taken: How many came out.
        is_ended: Whether nothing more goes in.
        is_told: Whether the reader has heard that.
        is_dropped: Whether what was on its way is lost.
        is_full: Whether the writer was asked to pause.
        marks: For each write, where it ended and at which turn it was made; oldest first.
        on_taken: Told how many bytes came out, each time.
    """

    def __init__(self, manner: Manner, chance: random.Random, turns: Turns) -> None:
        self._manner = manner
        self._chance = chance
        self._turns = turns
        self._pieces: deque[tuple[float, bytes]] = deque()  # when each comes out
        self._timer: asyncio.Handle | None = None
        self._paused = self._stalled = False
        self._held = 0
        self.is_full = False
        self.is_ended = self.is_dropped = False
        self.is_told = False
        self.written = self.taken = 0
        self.marks: deque[tuple[int, int]] = deque()
        self.reader: Reader | None = None
        self.writer: Reader | None = None
        self.reads_in = self.writes_in = contextvars.copy_context()  # whoever reads is told in a context of its own
        self.on_taken: Callable[[int], None] | None = None

    def write(self, data: bytes) -> None:
        """Put bytes in."""
        if self.is_ended or not data:
            return
        now = asyncio.get_running_loop().time()
        self.written += len(data)
        self.marks.append((self.written, self._turns.next()))
        for piece in self._split(bytes(data)):
            due = now
            if self._chance.random() < self._manner.late:
                due += self._chance.uniform(0, self._manner.late_s)
            if self._pieces:
                due = max(due, self._pieces[-1][0])
            self._pieces.append((due, piece))
        self._watch()
        if not self.is_full and self.waiting > self._manner.room and self.writer is not None:
            self.is_full = True
            self.writer.pause_writing()

    def end(self) -> None:
        """Say that nothing more comes."""
        if not self.is_ended:
            self.is_ended = True
            self._watch()

    def drop(self) -> None:
        """Lose what is on its way."""
        self._pieces.clear()
        self.is_ended = self.is_dropped = self.is_told = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def cut_short(self, chance: random.Random) -> None:
        """Lose the end of what is on its way: from here on nobody writes who would have written it."""
        kept = b"".join(piece for _, piece in self._pieces)
        lost = chance.randint(0, len(kept)) if kept else 0
        if lost:
            self.written -= lost
            due = self._pieces[-1][0]
            self._pieces.clear()
            if lost < len(kept):
                self._pieces.append((due, kept[: len(kept) - lost]))

    @property
    def waiting(self) -> int:
        """How many bytes are on their way."""
        return self.written - self.taken

    def pause(self, paused: bool) -> None:
        """Let the reader rest, or go on."""
        self._paused = paused
        self._watch()

    def stall(self, stalled: bool) -> None:
        """Let the network, or a reader that does not read, hold everything up."""
        self._stalled = stalled
        self._watch()

    def hold(self, held: bool) -> None:
        """Let one of the machines at the ends stand still, or go on."""
        self._held += 1 if held else -1
        self._watch()

    def start(self, reader: Reader) -> None:
        """Begin to come out."""
        self.reader = reader
        self.reads_in = contextvars.copy_context()
        self._watch()

    def mark_of(self, position: int) -> int:
        """Say at which turn the byte before a position was written."""
        while len(self.marks) > 1 and self.marks[0][0] < position:
            self.marks.popleft()
        return self.marks[0][1] if self.marks else 0

    def _split(self, data: bytes) -> list[bytes]:
        if len(data) < 2 or self._chance.random() >= self._manner.split:
            return [data]
        places = sorted(self._chance.sample(range(1, len(data)), min(self._chance.randint(1, 3), len(data) - 1)))
        return [data[one:other] for one, other in zip((0, *places), (*places, len(data)), strict=True)]

    def _watch(self) -> None:
        if self._timer is not None or self.reader is None or self._paused or self._stalled or self._held:
            return
        loop, here = asyncio.get_running_loop(), self.reads_in
        if self._pieces:
            due = self._pieces[0][0]
            is_due = due <= loop.time()
            self._timer = (
                loop.call_soon(self._come, context=here) if is_due else loop.call_at(due, self._come, context=here)
            )
        elif self.is_ended and not self.is_told:
            self._timer = loop.call_soon(self._come, context=here)

    def _come(self) -> None:
        self._timer = None
        if self.reader is None or self._paused or self._stalled or self._held or self.is_told:
            return
        if not self._pieces:
            if self.is_ended:
                self.is_told = True
                self.reader.ended("it has closed its side")
            return
        _, data = self._pieces.popleft()
        while self._pieces and self._chance.random() < self._manner.join:
            data += self._pieces.popleft()[1]
        self.taken += len(data)
        self._turns.next()
        if self.on_taken is not None:
            self.on_taken(self.taken)
        if self.is_full and self.waiting <= self._manner.room // 4 and self.writer is not None:
            self.is_full = False
            self.writes_in.run(self.writer.resume_writing)
        self.reader.data_received(data)
        self._watch()


class Turns:
    """Counts what happens on the connections of a world: which of two things came first."""

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> int:
        self.count += 1
        return self.count


class End:
    """One end of a connection."""

    def __init__(self, name: str, hears: Pipe, says: Pipe) -> None:
        self.name = name
        self.hears = hears
        self.says = says
        self.is_closed = False
        self.other: End | None = None

    def start(self, reader: Reader) -> None:
        """Begin to read."""
        self.says.writer = reader
        self.says.writes_in = contextvars.copy_context()
        self.hears.start(reader)

    def write(self, data: bytes) -> None:
        """Send bytes."""
        other = self.other
        if other is not None and other.is_closed:
            hears, reason = self.hears, f"{other.name} does not read any more"
            if hears.reader is not None:
                asyncio.get_running_loop().call_soon(hears.reader.broken, reason, context=hears.reads_in)
        else:
            self.says.write(data)

    def hold(self, held: bool) -> None:
        """Let nothing through, in either direction, or everything again."""
        for pipe in (self.hears, self.says):
            pipe.hold(held)

    def end(self) -> None:
        """Say that nothing more comes, and go on reading."""
        self.says.end()

    def close(self) -> None:
        """Say that nothing more comes, and read no more; what was written still arrives."""
        self.is_closed = True
        self.hears.drop()
        self.says.end()

    def cut(self) -> None:
        """Break the connection in both directions: what is on its way is lost, and both ends find out."""
        for pipe in (self.hears, self.says):
            reader = pipe.reader
            was_told = pipe.is_told
            pipe.drop()
            if reader is not None and not was_told:
                asyncio.get_running_loop().call_soon(reader.ended, RESET, context=pipe.reads_in)


def connect(names: tuple[str, str], manner: Manner, chance: random.Random, turns: Turns) -> tuple[End, End]:
    """Make the two ends of a connection."""
    there, back = Pipe(manner, chance, turns), Pipe(manner, chance, turns)
    one, other = End(names[0], back, there), End(names[1], there, back)
    one.other, other.other = other, one
    return one, other
