"""Server-sent events: from bytes to events.

Lives here: the line and field rules of the event stream format, with bounded memory. Must not: do I/O, or know what the
data of an event means. Called by `bodies` for every stream of a server.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dragoman.core.lines import Overlong
from dragoman.core.pieces import Pieces

_HEAD_BYTES: Final = 512
_BOM: Final = b"\xef\xbb\xbf"
_ID_BYTES: Final = 4096
_FIELD_BYTES: Final = 8 * 1024
"""The longest line that is kept unless it is data: of comments, names and what nobody knows no more is needed."""

_LONGEST_RETRY_MS: Final = 24 * 3600 * 1000
"""Who asks for more than a day to be waited gets a day."""


class SseEvent(NamedTuple):
    """One event.

    Attributes:
        data: Its data lines, joined by line feeds; empty for an event that only carries an id.
        name: Its type; empty means `message`.
    """

    data: bytes
    name: bytes = b""


class EventParser:
    """Cuts a byte stream into events; any split of the stream gives the same ones.

    Args:
        limit_bytes: The most data that one event may have; of a longer one only its beginning is kept.

    Attributes:
        last_id: The id of the last event that has one: where a stream can be taken up again.
        retry_s: How long the server asks to wait before coming back, if it does.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.last_id: str | None = None
        self.retry_s: float | None = None
        self._line = Pieces()
        self._line_cut = False
        self._skip_line_feed = False
        self._first_line = True
        self._data: bytes | bytearray = b""
        self._any = False
        self._overlong = False
        self._name = b""
        self._id: bytes | None = None

    @property
    def pending(self) -> int:
        """How many bytes are held of an event that has not ended."""
        return len(self._data) + self._line.size

    def restart(self) -> None:
        """Begin a new connection of the same stream: an event that had not ended is forgotten."""
        self._line = Pieces()
        self._line_cut = False
        self._skip_line_feed = False
        self._first_line = True
        self._reset()

    def feed(self, chunk: bytes) -> list[SseEvent | Overlong]:
        """Take the next bytes; give the events that have ended, in order."""
        if self._skip_line_feed and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._skip_line_feed = False
        if b"\r" in chunk:  # CR, LF and CR LF all end a line, also when CR and LF come apart
            self._skip_line_feed = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        events: list[SseEvent | Overlong] = []
        for part in lines:
            event = self._end_line(part)
            if event is not None:
                events.append(event)
        if rest:
            self._keep(rest)
        return events

    def _keep(self, part: bytes) -> None:
        if not self._line_cut:
            self._line.add(part)
            if self._line.size > _FIELD_BYTES and self._line.size > self._longest_line(self._line.head(16)):
                head = self._line.take()[:_FIELD_BYTES]
                self._line.add(head)
                self._line_cut = True

    def _longest_line(self, line: bytes) -> int:
        """Return how long the line may be that begins so: one of data, as long as the event may still become."""
        if self._overlong or not line.removeprefix(_BOM if self._first_line else b"").startswith(b"data:"):
            return _FIELD_BYTES
        return max(_FIELD_BYTES, len(b"data: ") + self.limit_bytes - len(self._data))

    def _end_line(self, part: bytes) -> SseEvent | Overlong | None:
        if self._line.size or len(part) > _FIELD_BYTES:
            self._keep(part)
            line = self._line.take()
        else:  # the common case, without a copy
            line = part
        cut, self._line_cut = self._line_cut, False
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        self._take_field(line, cut)
        return None

    def _take_field(self, line: bytes, cut: bool) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._add_data(value, cut)
        elif cut:
            if field == b"event":
                self._name = value[:_HEAD_BYTES]  # of no event that we know
        elif field == b"event":
            self._name = value
        elif field == b"id" and b"\0" not in value and len(value) <= _ID_BYTES:
            self._id = value
        elif field == b"retry" and value.isdigit():
            self.retry_s = _read_retry(value) / 1000

    def _add_data(self, value: bytes, cut: bool) -> None:
        """Add a line of data. One array holds all of them: in a list each would take 40 bytes, however short it is."""
        size = len(self._data) + 1 + len(value) if self._any else len(value)
        if self._overlong:
            return
        if cut or size > self.limit_bytes:
            self._overlong = True
            before = bytes(self._data[:_HEAD_BYTES]) + b"\n" if self._any else b""
            self._data = (before + value)[:_HEAD_BYTES]
        elif not self._any:
            self._data = value
        else:
            if isinstance(self._data, bytes):
                self._data = bytearray(self._data)
            self._data += b"\n"
            self._data += value
        self._any = True

    def _dispatch(self) -> SseEvent | Overlong | None:
        if self._id is not None:
            try:
                self.last_id = self._id.decode() or None
            except UnicodeDecodeError:
                self.last_id = None
        event: SseEvent | Overlong | None = None
        if self._overlong:
            event = Overlong(bytes(self._data), self.limit_bytes)
        elif self._any:
            event = SseEvent(bytes(self._data), self._name)
        self._reset()
        return event

    def _reset(self) -> None:
        self._data = b""
        self._any = False
        self._overlong = False
        self._name = b""
        self._id = None


def only_data(stream: bytes) -> bytes:
    """Return the data of a whole stream that is one message, as most answers are; of any other, nothing that is one."""
    lines = stream.replace(b"\r\n", b"\n").removeprefix(b"event: message\n")
    return lines.removeprefix(b"data:") if lines.startswith(b"data:") and lines.endswith(b"\n\n") else b""


def _read_retry(digits: bytes) -> int:
    """Return how many milliseconds that is, or the longest that we wait."""
    digits = digits.lstrip(b"0")
    if len(digits) > len(str(_LONGEST_RETRY_MS)):
        return _LONGEST_RETRY_MS
    return min(int(digits or b"0"), _LONGEST_RETRY_MS)
