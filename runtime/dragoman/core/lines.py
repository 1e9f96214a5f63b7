"""Lines: cutting a byte stream at its line feeds.

Lives here: keeping a line that has not ended, and what is kept of one that is too long. Must not: look into lines
(`core.peek`), but to show their beginning in a log. Used by `transports.lines`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dragoman.core.pieces import Pieces

DEFAULT_LIMIT_BYTES: Final = 100 * 1024 * 1024
"""The longest line accepted from a peer, unless told otherwise."""

HEAD_BYTES: Final = 256
"""How much of an overlong line is kept, to read from it whom to tell."""

_SHOWN_BYTES = 120


class Overlong(NamedTuple):
    """A line over the limit: its end was never kept.

    Attributes:
        head: Its first bytes, enough for a peek at the id.
        limit_bytes: The limit.
    """

    head: bytes
    limit_bytes: int


class LineSplitter:
    """Cuts a byte stream into lines, each with its line feed; remembers a line that has not ended.

    Attributes:
        limit_bytes: The longest line accepted.
        kept_bytes: How long that is which has not ended.
    """

    __slots__ = ("_overlong_head", "_parts", "kept_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._parts = Pieces()
        self.kept_bytes = 0
        self._overlong_head: bytes | None = None

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """Take the next bytes of the stream; give the lines that have ended, in order."""
        first = data.find(b"\n") + 1
        if first == len(data) and not self.kept_bytes and 0 < first <= self.limit_bytes:
            return [data]  # the common case: one whole line, handed on without a copy
        lines: list[bytes | Overlong] = []
        start = 0
        while first:
            is_whole = not self.kept_bytes and first - start <= self.limit_bytes
            lines.append(data[start:first] if is_whole else self._end_line(data[start:first]))
            start = first
            first = data.find(b"\n", start) + 1
        if start < len(data):
            self._keep(data[start:])
        return lines

    def finish(self) -> list[bytes | Overlong]:
        """Take the end of the stream; give what stood there without a line feed, if anything.

        Nobody said that it ended there: `wholeness.read_last_line` tells what it holds.
        """
        return [self._end_line(b"\n")] if self.kept_bytes else []

    def _keep(self, part: bytes) -> None:
        self.kept_bytes += len(part)
        if self._overlong_head is None:
            self._parts.add(part)
            if self.kept_bytes > self.limit_bytes:
                self._overlong_head = self._parts.take()[:HEAD_BYTES]

    def _end_line(self, part: bytes) -> bytes | Overlong:
        self._keep(part)
        head, line = self._overlong_head, self._parts.take()
        self.kept_bytes, self._overlong_head = 0, None
        return line if head is None else Overlong(head, self.limit_bytes)


def show(line: bytes | Overlong) -> str:
    """Return the beginning of a line for a log: on one line of plain ASCII, whatever it holds."""
    text = line.head if isinstance(line, Overlong) else line.rstrip(b"\r\n")
    cut = len(text) > _SHOWN_BYTES or isinstance(line, Overlong)
    return ascii(text[:_SHOWN_BYTES].decode(errors="backslashreplace")) + "..." * cut
