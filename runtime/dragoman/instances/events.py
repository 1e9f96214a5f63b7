"""What a client may still resume of a session whose instance is gone (`--store-events`).

Lives here: events in the store, sealed, and what of a stream goes on elsewhere. Must not: be waited for by whoever has
an event, or know streams (`transports.http.streams`), which say what they keep.

Theory of operation. Each stream says what it keeps and what it keeps no longer, so there is as much in the store as an
instance has in its memory. Of the stream of a call it says first which requests it answers. Whoever resumes the stream
elsewhere gets the events after the one that it had last; then an error for each request that no event of it answers,
for the call is not made again; and then the stream ends. Who comes back once more has had these errors. What was asked
there of the client is left out: nobody waits for the answer any more.

A store may be slower than what is to be kept. So what has come and gone before it was written is not written; each
session has its turn; and where no more may wait, whoever has most waiting loses some of it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections import deque
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.envelope import encode_error, key_of
from dragoman.core.rules.state import NONCE_BYTES, Seal
from dragoman.instances.directory import Directory

logger = logging.getLogger("dragoman.http")

GONE: Final = "the instance of the proxy that had this is gone, and nobody knows what became of the request"

_MOST_WAITING_BYTES: Final = 1024 * 1024
"""How much may wait for a slow store; more is not kept."""

_ENTRY_BYTES: Final = 128
"""What an event costs that waits, beside what it says."""

_AT_ONCE: Final = 8
"""How many commands the store is given before anybody waits for it."""

_LONGEST: Final = 512 * 1024
_EVENT_ID: Final = re.compile(r"([gp][0-9a-f]{1,40})-([0-9]{1,15})", re.ASCII)


@dataclass(slots=True)
class _Kept:
    """What is kept of one stream.

    Attributes:
        waiting: Events that the store is still to get, by number.
        written: The numbers of those that it has.
        needed_from: What comes before this number is not needed any more.
        is_marked: Whether it has the requests that the stream answers, which are number 0.
    """

    waiting: dict[int, bytes] = field(default_factory=dict)
    written: deque[int] = field(default_factory=deque)
    needed_from: float = 0
    is_marked: bool = False

    @property
    def is_due(self) -> bool:
        """Whether the store is to be told something."""
        return bool(self.waiting) or self.must_drop

    @property
    def must_drop(self) -> bool:
        """Whether the store has what is not needed any more."""
        return bool(self.written and self.written[0] < self.needed_from) or (self.is_marked and self.is_gone)

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it is needed any more."""
        return self.needed_from == math.inf


class _Session:
    """What is kept of the streams of one session.

    Attributes:
        streams: They, by name.
        due: Those of which the store is to be told something, in turn.
        size: How much waits of them, in bytes.
        is_over: Whether nothing more comes.
    """

    __slots__ = ("due", "is_over", "size", "streams")

    def __init__(self) -> None:
        self.streams: dict[str, _Kept] = {}
        self.due: dict[str, _Kept] = {}
        self.size = 0
        self.is_over = False


class EventLog:
    """Events of the sessions of this instance, and of those that are gone.

    Args:
        directory: Where they are kept.
        seal: Seals them, and opens what other instances have sealed.
        random: Makes random bytes.
        kept_s: How long they are kept at most.
    """

    def __init__(self, directory: Directory, seal: Seal, random: Any, kept_s: float) -> None:
        self._directory = directory
        self._seal = seal
        self._random = random
        self._kept_s = kept_s
        self._sessions: dict[str, _Session] = {}
        self._due: dict[str, _Session] = {}
        self._size = 0
        self._is_lossy = False
        self._writing: asyncio.Task[None] | None = None

    def note(self, session: str, stream: str, number: int, line: bytes | None) -> None:
        """Keep an event, or nothing more of it, as soon as may be.

        Args:
            session: What is made of the id of its session.
            stream: Its stream.
            number: Which one it is; 0 for the requests that the stream answers, an array of their ids.
            line: What it says; None for what is not needed any more, nor what came before it: with 0, the whole stream.
        """
        ours = self._sessions.get(session)
        if ours is None:
            ours = self._sessions[session] = _Session()
        ours.is_over = False  # it may have come back
        kept = ours.streams.get(stream)
        if kept is None and line is None:
            return
        if kept is None:
            kept = ours.streams[stream] = _Kept()
        if line is None:
            self._drop(ours, kept, number)
        elif len(line) <= _LONGEST and self._make_room(ours, len(line) + _ENTRY_BYTES):
            kept.waiting[number] = line
            self._weigh(ours, len(line) + _ENTRY_BYTES)
        elif not self._is_lossy:
            self._is_lossy = True
            logger.warning("events are not kept: they are too large, or --store is too slow for them")
        if kept.is_due:
            ours.due[stream] = kept
            self._due[session] = ours
            if self._writing is None:
                self._writing = asyncio.create_task(self._write())
        elif kept.is_gone:
            del ours.streams[stream]

    def forget(self, session: str) -> None:
        """Take note that nothing more comes of a session; what waits is still written."""
        ours = self._sessions.get(session)
        if ours is not None:
            ours.is_over = True
            if not ours.due:
                del self._sessions[session]

    async def end(self) -> None:
        """Wait until what is waiting is written."""
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=1.0)

    def _drop(self, ours: _Session, kept: _Kept, number: int) -> None:
        """Keep nothing more of a stream up to an event; what has not been written is not written."""
        kept.needed_from = max(kept.needed_from, number + 1 if number else math.inf)
        for waiting in [number] if number else list(kept.waiting):
            if waiting in kept.waiting:
                self._weigh(ours, -len(kept.waiting.pop(waiting)) - _ENTRY_BYTES)

    def _make_room(self, ours: _Session, size: int) -> bool:
        """Whether something more of a session may wait: where there is no room, none has more than its share."""
        if self._size + size > _MOST_WAITING_BYTES and ours.size + size > _MOST_WAITING_BYTES // (len(self._due) + 1):
            return False
        while self._size + size > _MOST_WAITING_BYTES:
            most = max(self._due.values(), key=attrgetter("size"))
            kept = next(kept for kept in most.due.values() if kept.waiting)
            self._weigh(most, -len(kept.waiting.popitem()[1]) - _ENTRY_BYTES)
        return True

    def _weigh(self, ours: _Session, size: int) -> None:
        ours.size += size
        self._size += size

    async def find_rest(self, session: str, last_event_id: str) -> list[bytes] | None:
        """Return what follows on an event; empty lines for what is left out, and None for a stream that is not kept.

        Raises:
            RequestRefused: Nobody can tell just now.
        """
        found = _EVENT_ID.fullmatch(last_event_id)
        asked = None if found is None else await self._read(session, found[1], 0)
        if found is None or (asked is None and found[1].startswith("p")):
            return None
        stream, last = found[1], int(found[2])
        lines: list[bytes] = []
        while (line := await self._read(session, stream, last + len(lines) + 1)) is not None:
            lines.append(line)
        frames = [json.loads(line) for line in lines]
        is_question = [isinstance(frame, dict) and "method" in frame and "id" in frame for frame in frames]
        kept = [b"" if left_out else line for line, left_out in zip(lines, is_question, strict=True)]
        keys = [key_of(one) for one in json.loads(asked or b"[]")]
        if not keys:
            return kept
        before, told = await self._read_before(session, stream, last, 0 if lines else len(keys))
        answered = {key for line in (*before, *lines) for key in _answered_in(line)}
        left = [key for key in keys if key not in answered]
        return kept + [encode_error(key, INTERNAL_ERROR, GONE) for key in left[told:]]

    async def _read_before(self, session: str, stream: str, last: int, most: int) -> tuple[list[bytes], int]:
        """Return what is kept of a stream up to an event, and how many later ones its client has had from here.

        Args:
            session: What is made of the id of its session.
            stream: The stream.
            last: The event.
            most: How many such errors there can have been: they stand at its end, and are not kept.
        """
        number, lines = last, list[bytes]()
        while number > max(0, last - most) and await self._read(session, stream, number) is None:
            number -= 1
        told = last - number
        while number > 0 and (line := await self._read(session, stream, number)) is not None:
            lines.append(line)
            number -= 1
        return lines, told

    async def _write(self) -> None:
        try:
            while self._due:
                await asyncio.gather(*[self._write_next() for _ in range(_AT_ONCE) if self._due])
                await asyncio.sleep(0)  # a folder waits for nothing
        finally:
            self._writing = None

    async def _write_next(self) -> None:
        """Tell the store one thing: of each session in turn, and of each of its streams."""
        if not self._due:
            return
        session, ours = next(iter(self._due.items()))
        stream, kept = next(iter(ours.due.items()))
        del self._due[session], ours.due[stream]
        dropped, number, line = kept.must_drop, 0, b""
        if dropped and kept.written:
            number = kept.written.popleft()
        elif dropped:
            kept.is_marked = False
        elif kept.waiting:
            number = next(iter(kept.waiting))
            line = kept.waiting.pop(number)
            self._weigh(ours, -len(line) - _ENTRY_BYTES)
            if number:
                kept.written.append(number)
            else:
                kept.is_marked = True
        if kept.is_due:
            ours.due[stream] = kept
        elif kept.is_gone:
            del ours.streams[stream]
        if ours.due:
            self._due[session] = ours
        elif ours.is_over:
            del self._sessions[session]
        key = _key(session, stream, number)
        if dropped:
            await self._directory.drop(key)
        elif line:
            text = self._seal.seal(key.encode() + b"\n" + line, self._random(NONCE_BYTES))
            await self._directory.keep(key, text, self._kept_s)

    async def _read(self, session: str, stream: str, number: int) -> bytes | None:
        key = _key(session, stream, number)
        kept = await self._directory.read(key)
        opened = None if kept is None else self._seal.open(kept)
        whose, _, line = (b"", b"", b"") if opened is None else opened.payload.partition(b"\n")
        return line if whose == key.encode() else None


def _answered_in(line: bytes) -> list[bytes]:
    """Return the requests that an event answers: one, or those of an array."""
    found = json.loads(line)
    frames = found if isinstance(found, list) else [found]
    answers = (one for one in frames if isinstance(one, dict) and "method" not in one)
    return [key for one in answers if (key := key_of(one.get("id"))) is not None]


def _key(session: str, stream: str, number: int) -> str:
    return f"event:{session}:{stream}:{number}"
