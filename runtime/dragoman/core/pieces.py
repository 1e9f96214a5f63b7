"""Bytes that come in pieces, kept until they are taken joined.

Lives here: keeping them at little cost in memory. Must not: look at them. Used by `core.lines`, and by the transports
that collect lines and bodies.

A `bytes` object of one byte takes 34, and its place in a list 8 more: a peer that sends byte by byte would make its
limit of 100 MiB cost 4 GiB. So small pieces are put together as they come; large ones are joined once, at the end.
"""

from __future__ import annotations

from typing import Final

_SMALL_BYTES: Final = 4096
_RUN_BYTES: Final = 64 * 1024


class Pieces:
    """Bytes in the order in which they came.

    Attributes:
        size: How many there are.
    """

    __slots__ = ("_parts", "_run", "size")

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes | bytearray] = []
        self._run: bytearray | None = None  # the last part, if it is made of small pieces and takes more of them

    def __bool__(self) -> bool:
        return self.size > 0

    def add(self, part: bytes) -> None:
        """Take the next piece."""
        self.size += len(part)
        if len(part) >= _SMALL_BYTES or not self._parts:
            self._parts.append(part)
            self._run = None
        elif self._run is None or len(self._run) >= _RUN_BYTES:
            self._run = bytearray(part)
            self._parts.append(self._run)
        else:
            self._run += part

    def head(self, most_bytes: int) -> bytes:
        """Return a copy of the first bytes."""
        found = bytearray()
        for part in self._parts:
            found += part[: most_bytes - len(found)]
            if len(found) >= most_bytes:
                break
        return bytes(found)

    def take(self) -> bytes:
        """Return everything, joined, and keep nothing."""
        parts, self._parts = self._parts, []
        self.size, self._run = 0, None
        first = parts[0] if parts else b""
        return first if len(parts) == 1 and isinstance(first, bytes) else b"".join(parts)
