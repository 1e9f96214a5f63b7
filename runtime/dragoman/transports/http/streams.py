"""One stream of events to a client, whichever connection carries it, and the store it is resumed from.

Lives here: events in order with their ids, how far the client has got, what is kept and what is dropped. Must not:
touch a connection, or decide which stream a frame goes onto (`streamable_session`). `pump` does the sending.

Theory of operation. A stream outlives its connection: events are appended to it, and whichever connection is attached
takes them in order from a cursor. Events that were taken are kept for a while, so that a client that lost its
connection can go on where it was ("MAY replay messages that would have been sent after the last event ID, on the stream
that was disconnected": basic/transports, Resumability). Events that an attached reader has not taken yet are never
dropped: the server is held back instead. If nobody reads, the server is not held back, and the oldest events are
dropped first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from dragoman.transports.http.sse import COMMENT, encode_message, encode_primer

logger = logging.getLogger("dragoman.http")

_CHUNK_BYTES = 64 * 1024


class StreamConnection:
    """The connection that carries a stream at the moment, as far as the stream needs to know.

    Attributes:
        stream: Which it carries, from the first time that one is attached to it.
        gone: Whether it carries none any more.
        wake: Set when there is something to take.
    """

    __slots__ = ("gone", "stream", "wake")

    stream: Stream

    def __init__(self) -> None:
        self.wake = asyncio.Event()
        self.gone = False

    @property
    def is_over(self) -> bool:
        """Whether nothing comes but what can be taken now."""
        return self.gone or self.stream.finished

    def take_part(self) -> tuple[bytes, int]:
        """Take the next events to send; nothing when there are none."""
        data = self.stream.take(self)
        return data, len(data)

    def drop(self) -> None:
        """Let go of it: the client has gone, or came back on another one."""
        self.gone = True
        self.wake.set()


@dataclass(slots=True)
class Ledger:
    """What the streams of one session hold together.

    Attributes:
        weigh: Called with how many more bytes attached readers have not taken, or less.
        limit_bytes: How much may be kept of one session.
        limit_events: How many events may be kept of one stream.
        kept: The bytes of all events.
        log: Told what is kept of which stream under which number, and with None that it is kept no longer.
    """

    weigh: Callable[[int], None]
    limit_bytes: int
    limit_events: int
    kept: int = 0
    log: Callable[[str, int, bytes | None], None] | None = None


class Stream:
    """Events towards a client.

    Args:
        name: What event ids begin with; unique within the session.
        ledger: What the streams of the session hold together.
        after: The number of the last event that the client has, of those that another instance sent.
    """

    __slots__ = (
        "_connection",
        "_cursor",
        "_events",
        "_first",
        "_ledger",
        "_lossy",
        "finished",
        "finished_at",
        "name",
        "unread",
    )

    def __init__(self, name: str, ledger: Ledger, after: int = 0) -> None:
        self.name = name
        self.finished = False
        self.finished_at = 0.0
        self.unread = 0  # bytes after the cursor
        self._ledger = ledger
        self._events: deque[bytes] = deque()
        self._first = after + 1  # the number of the first event kept
        self._cursor = after  # the number of the last event that a connection has taken
        self._connection: StreamConnection | None = None
        self._lossy = False  # whether an event was dropped that nobody had read

    @property
    def attached(self) -> bool:
        """Whether a connection carries it at the moment."""
        return self._connection is not None

    def prime(self, retry_s: float) -> bytes:
        """Return the event that a client can resume from before the first one."""
        return encode_primer(f"{self.name}-0", retry_s)

    def append(self, line: bytes) -> None:
        """Add a frame; an empty one takes a number, and is not seen."""
        number = self._first + len(self._events)
        event = encode_message(line, f"{self.name}-{number}") if line else COMMENT
        if self._ledger.log is not None and line:
            self._ledger.log(self.name, number, line)
        self._events.append(event)
        self._ledger.kept += len(event)
        self.unread += len(event)
        self._trim()
        if self._connection is not None:
            self._connection.wake.set()
            self._ledger.weigh(len(event))

    def finish(self) -> None:
        """Add nothing more; the connection ends once everything is taken."""
        if not self.finished:
            self.finished = True
            self.finished_at = asyncio.get_running_loop().time()
            if self._connection is not None:
                self._connection.wake.set()

    def attach(self, connection: StreamConnection, after: int | None = None) -> None:
        """Let a connection carry it from here on; one that did before is dropped.

        Args:
            connection: The new one.
            after: The number of the last event that the client got, if it says so.
        """
        self.detach(self._connection)
        if after is not None:
            if after < self._first - 1:
                logger.warning("a client resumes a stream, but %d of its events are gone", self._first - 1 - after)
            last = self._first + len(self._events) - 1
            self._cursor = min(max(after, self._first - 1), last)
            self.unread = sum(len(event) for event in self._after_cursor())
        self._connection, connection.stream = connection, self
        connection.wake.set()
        self._ledger.weigh(self.unread)

    def detach(self, connection: StreamConnection | None) -> None:
        """Let no connection carry it, if it is still this one."""
        if connection is not None and self._connection is connection:
            self._connection = None
            connection.drop()
            self._ledger.weigh(-self.unread)
            self._trim()

    def take(self, connection: StreamConnection) -> bytes:
        """Return the next events to send on this connection, joined; nothing when there are none."""
        if self._connection is not connection:
            return b""
        parts: list[bytes] = []
        size = 0
        for event in self._after_cursor():
            if parts and size + len(event) > _CHUNK_BYTES:
                break
            parts.append(event)
            size += len(event)
        self._cursor += len(parts)
        self.unread -= size
        return b"".join(parts)

    def settle(self, size: int) -> None:
        """Record that so much of what was taken has gone out."""
        self._ledger.weigh(-size)
        self._trim()

    def give_up_unread(self) -> list[bytes]:
        """Forget what no connection has taken, and give it as the frames it was made of."""
        events = list(self._after_cursor())
        for event in events:
            self._events.pop()
            self._ledger.kept -= len(event)
        self.unread = 0
        return [event[event.index(b"\ndata: ") + 7 : -2] for event in events]

    def clear(self, is_in_vain: bool = False) -> None:
        """Forget everything; also what another instance could go on with, where nobody will ask for it."""
        if is_in_vain and self._ledger.log is not None:
            for number in (0, *range(self._first, self._first + len(self._events))):
                self._ledger.log(self.name, number, None)
        self.detach(self._connection)
        self._ledger.kept -= sum(len(event) for event in self._events)
        self._events.clear()
        self.unread = 0

    def _after_cursor(self) -> islice[bytes]:
        return islice(self._events, self._cursor - self._first + 1, None)

    def trim_to(self, limit_bytes: int) -> None:
        """Drop the oldest events that may be dropped until the session holds no more than this."""
        while self._ledger.kept > limit_bytes and self._drop_oldest():
            pass

    def _trim(self) -> None:
        while len(self._events) > self._ledger.limit_events and self._drop_oldest():
            pass
        self.trim_to(self._ledger.limit_bytes)

    def _drop_oldest(self) -> bool:
        unread = self._cursor < self._first
        if not self._events or (unread and (self.attached or (len(self._events) == 1 and self._may_keep_last()))):
            return False
        event = self._events.popleft()
        self._ledger.kept -= len(event)
        if unread:
            if not self._lossy:
                self._lossy = True
                logger.warning("events of stream %s are dropped: nobody comes to read them", self.name)
            self.unread -= len(event)
            self._cursor += 1
        if self._ledger.log is not None:
            self._ledger.log(self.name, self._first, None)
        self._first += 1
        return True

    def _may_keep_last(self) -> bool:
        """Whether the one event that is left, an answer perhaps, is kept: a large one, if it is alone in that."""
        size, ledger = len(self._events[0]), self._ledger
        return size <= ledger.limit_bytes or ledger.kept - size <= ledger.limit_bytes
