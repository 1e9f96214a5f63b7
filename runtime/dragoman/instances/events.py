"""What a client may still resume of a session whose instance is gone (`--store-events`).

Lives here: events in the store, sealed, and what of a stream goes on elsewhere. Must not: be waited for by whoever has
an event, or know streams (`transports.http.streams`), which say what they keep.

Theory of operation. Each stream says what it keeps and what it keeps no longer, so there is as much in the store as an
instance has in its memory. Of the stream of a call it says first which requests it answers. Whoever resumes the stream
elsewhere gets the events after the one that it had last; then an error for each request that no event of it answers,
for the call is not made again; and then the stream ends. Who comes back once more has had these errors. What was asked
there of the client is left out: nobody waits for the answer any more.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any, Final

from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.envelope import encode_error, key_of
from dragoman.core.rules.state import NONCE_BYTES, Seal
from dragoman.instances.directory import Directory

logger = logging.getLogger("dragoman.http")

GONE: Final = "the instance of the proxy that had this is gone, and nobody knows what became of the request"

_MOST_WAITING_BYTES: Final = 1024 * 1024
"""How much may wait for a slow store; more is not kept."""

_LONGEST: Final = 512 * 1024
_EVENT_ID: Final = re.compile(r"([gp][0-9a-f]{1,40})-([0-9]{1,15})", re.ASCII)


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
        self._waiting: dict[str, bytes | None] = {}
        self._waiting_bytes = 0
        self._is_lossy = False
        self._writing: asyncio.Task[None] | None = None

    def note(self, session: str, stream: str, number: int, line: bytes | None) -> None:
        """Keep an event, or nothing more of it, as soon as may be.

        Args:
            session: What is made of the id of its session.
            stream: Its stream.
            number: Which one it is; 0 for the requests that the stream answers, an array of their ids.
            line: What it says; None for what is not needed any more.
        """
        size = 0 if line is None else len(line)
        if size > _LONGEST or self._waiting_bytes + size > _MOST_WAITING_BYTES:
            if not self._is_lossy:
                logger.warning("events are not kept: they are too large, or --store is too slow for them")
            self._is_lossy = True
            return
        key = _key(session, stream, number)
        self._waiting_bytes += size - len(self._waiting.pop(key, None) or b"")
        self._waiting[key] = line
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())

    async def end(self) -> None:
        """Wait until what is waiting is written."""
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=1.0)

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
            while self._waiting:
                key, line = next(iter(self._waiting.items()))
                del self._waiting[key]
                if line is None:
                    await self._directory.drop(key)
                else:
                    self._waiting_bytes -= len(line)
                    text = self._seal.seal(key.encode() + b"\n" + line, self._random(NONCE_BYTES))
                    await self._directory.keep(key, text, self._kept_s)
                await asyncio.sleep(0)  # a folder waits for nothing
        finally:
            self._writing = None

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
