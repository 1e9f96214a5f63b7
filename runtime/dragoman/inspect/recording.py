"""The last lines of what was watched, up to a number of bytes; then the oldest go.

Lives here: numbered lines, what is left of a large one for a list of many, and waking those who wait for the next.
Must not: know what reads them (`site`) or where they come from (`viewer`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from dragoman.core.exact_json import decode, encode

MOST_BYTES: Final = 64 * 1024 * 1024
"""How much is kept, if nobody says otherwise."""

LARGE_BYTES: Final = 64 * 1024
"""From here on a line is shortened, and the whole is there for who asks for it by its number."""

BATCH_BYTES: Final = 256 * 1024
"""About how much is told at once."""

_TEXT: Final = 1000
_MEMBERS: Final = 50
_DEPTH: Final = 12
_FRAMES: Final = ("frame", "before", "after")


class Recording:
    """Lines, the last of them.

    Args:
        most_bytes: How much of them is kept.

    Attributes:
        first: The number of the oldest that is there.
        status: How the servers are, as `dragoman status --json` says it; None if that is not known.
        is_over: Whether nothing more comes.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lines: deque[tuple[bytes, bytes]] = deque()  # whole, and as a list has it
        self._bytes = 0
        self.first = 1
        self.status: dict[str, Any] | None = None
        self.is_over = False
        self._waiting: set[asyncio.Event] = set()

    @property
    def is_watched(self) -> bool:
        """Whether somebody waits for what comes."""
        return bool(self._waiting)

    def add(self, line: bytes) -> None:
        """Keep a line, an object of JSON."""
        line = line.rstrip()
        short = line if len(line) < LARGE_BYTES else _shorten(line)
        self._lines.append((line, short))
        self._bytes += _weigh(line, short)
        while self._bytes > self._most_bytes and len(self._lines) > 1:
            self._bytes -= _weigh(*self._lines.popleft())
            self.first += 1
        self._wake()

    def tell_status(self, status: dict[str, Any]) -> None:
        """Record how the servers are."""
        self.status = status
        self._wake()

    def end(self) -> None:
        """Record that nothing more comes."""
        self.is_over = True
        self._wake()

    def find(self, number: int) -> bytes | None:
        """Return the whole line with a number; None if it is not there, or not any more."""
        index = number - self.first
        return self._lines[index][0] if 0 <= index < len(self._lines) else None

    def read(self, number: int) -> tuple[list[bytes], int]:
        """Return lines as a list has them, each with its number in it, from one on.

        Args:
            number: Of the first that is wanted; what has gone is passed over.

        Returns:
            Some of them, in order, and the number to go on with.
        """
        number = max(number, self.first)
        found: list[bytes] = []
        size = 0
        for _, short in islice(self._lines, min(number - self.first, len(self._lines)), None):
            found.append(b'{"n":%d,%b' % (number + len(found), short[1:]))
            size += len(short)
            if size >= BATCH_BYTES:
                break
        return found, number + len(found)

    def lines(self) -> Iterator[bytes]:
        """Return all that is there, whole."""
        return (line for line, _ in list(self._lines))

    def wake_with(self, event: asyncio.Event) -> None:
        """Set this event whenever there is something new."""
        self._waiting.add(event)

    def forget(self, event: asyncio.Event) -> None:
        """Do so no more."""
        self._waiting.discard(event)

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()


def _weigh(line: bytes, short: bytes) -> int:
    return len(line) + (0 if short is line else len(short)) + 150


def _shorten(line: bytes) -> bytes:
    """Return a line with little of its frames, and with the size of the whole."""
    said = decode(line)
    for name in _FRAMES:
        if name in said:
            said[name] = _abridge(said[name], 0)
    return encode(said | {"large": len(line)})


def _abridge(value: Any, depth: int) -> Any:
    match value:
        case str() if len(value) > _TEXT:
            return f"{value[:_TEXT]}…"
        case list() | dict() if depth >= _DEPTH:
            return "…"
        case list():
            return [_abridge(item, depth + 1) for item in value[:_MEMBERS]]
        case dict():
            return {name[:_TEXT]: _abridge(one, depth + 1) for name, one in islice(value.items(), _MEMBERS)}
        case _:
            return value
