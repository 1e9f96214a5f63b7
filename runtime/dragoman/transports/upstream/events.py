"""Server-sent events: from bytes to events.

Lives here: the line and field rules of the event stream format, with bounded memory. Must not: do I/O, or know what the
data of an event means. Called by `streams` for every stream of a server.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

from typing import NamedTuple

from dragoman.core.envelope import Overlong

_HEAD_BYTES = 512
_BOM = b"\xef\xbb\xbf"
_ID_BYTES = 4096
_LONGEST_RETRY_DIGITS = 9


class Event(NamedTuple):
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
        self._line: list[bytes] = []
        self._line_size = 0
        self._line_cut = False
        self._skip_line_feed = False
        self._first_line = True
        self._data: list[bytes] = []
        self._data_size = 0
        self._any = False
        self._overlong = False
        self._name = b""
        self._id: bytes | None = None

    def restart(self) -> None:
        """Begin a new connection of the same stream: an event that had not ended is forgotten."""
        self._line = []
        self._line_size = 0
        self._line_cut = False
        self._skip_line_feed = False
        self._first_line = True
        self._reset()

    def feed(self, chunk: bytes) -> list[Event | Overlong]:
        """Take the next bytes; give the events that have ended, in order."""
        if self._skip_line_feed and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._skip_line_feed = False
        if b"\r" in chunk:  # CR, LF and CR LF all end a line, also when CR and LF come apart
            self._skip_line_feed = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        events: list[Event | Overlong] = []
        for part in lines:
            event = self._end_line(part)
            if event is not None:
                events.append(event)
        if rest:
            self._keep(rest)
        return events

    def _keep(self, part: bytes) -> None:
        if not self._line_cut:
            self._line.append(part)
            self._line_size += len(part)
            if self._line_size > self.limit_bytes + len(b"data: "):
                self._line = [b"".join(self._line)[:_HEAD_BYTES]]
                self._line_cut = True

    def _end_line(self, part: bytes) -> Event | Overlong | None:
        self._keep(part)
        line = self._line[0] if len(self._line) == 1 else b"".join(self._line)
        cut = self._line_cut
        self._line, self._line_size, self._line_cut = [], 0, False
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
            return
        elif field == b"event":
            self._name = value
        elif field == b"id" and b"\0" not in value and len(value) <= _ID_BYTES:
            self._id = value
        elif field == b"retry" and value.isdigit():
            self.retry_s = int(value[-_LONGEST_RETRY_DIGITS:]) / 1000

    def _add_data(self, value: bytes, cut: bool) -> None:
        self._any = True
        if self._overlong:
            return
        self._data.append(value)
        self._data_size += len(value) + 1
        if cut or self._data_size > self.limit_bytes + 1:
            self._overlong = True
            self._data = [b"\n".join(self._data)[:_HEAD_BYTES]]

    def _dispatch(self) -> Event | Overlong | None:
        if self._id is not None:
            try:
                self.last_id = self._id.decode() or None
            except UnicodeDecodeError:
                self.last_id = None
        event: Event | Overlong | None = None
        if self._overlong:
            event = Overlong(self._data[0], self.limit_bytes)
        elif self._any:
            event = Event(self._data[0] if len(self._data) == 1 else b"\n".join(self._data), self._name)
        self._reset()
        return event

    def _reset(self) -> None:
        self._data = []
        self._data_size = 0
        self._any = False
        self._overlong = False
        self._name = b""
        self._id = None
