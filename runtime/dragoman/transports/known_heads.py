"""Heads of HTTP messages that have come over a connection before.

Lives here: recognising one. Must not: know what a head says: whoever has read it once remembers that with it. Used by
`http.connection` and `upstream.connection`.

What a client posts differs from request to request; what stands before it, method, path and headers, is the same bytes
each time but for the length of the body. So it is with answers. The same bytes on the same connection mean the same
thing again, so they need not be read again. Anything else, one byte more or less, is not recognised and read as ever.
"""

from __future__ import annotations

import re
from typing import Final, Generic, TypeVar

_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})\r\n", re.IGNORECASE)
_DIGITS: Final = 10
"""More than what is looked for after a known beginning."""

MeaningT = TypeVar("MeaningT")


class KnownHead(Generic[MeaningT]):
    """A head that was read once.

    Args:
        before: What stands before the digits of the length of the body.
        after: What stands after them, the empty line at the end included.
        meaning: What was found out about it.
    """

    __slots__ = ("_after", "_before", "_start", "meaning")

    def __init__(self, before: bytes, after: bytes, meaning: MeaningT) -> None:
        self._before = before
        self._after = after
        self._start = len(before)
        self.meaning = meaning

    def find_body(self, data: bytes) -> bytes | None:
        """Return the body, if this is a message with this head, whole, and nothing else."""
        start = self._start
        if not data.startswith(self._before):
            return None
        end = data.find(b"\r", start, start + _DIGITS)
        if end < 0 or not data.startswith(self._after, end):
            return None
        digits = data[start:end]
        body = data[end + len(self._after) :]
        return body if digits.isdigit() and int(digits) == len(body) else None


def know_head(data: bytes, body: bytes, meaning: MeaningT) -> KnownHead[MeaningT] | None:
    """Remember a head.

    Args:
        data: What came: one message, whole, and nothing else, as far as its reader knows.
        body: What its reader took for the body.
        meaning: What was found out.

    Returns:
        None if it is not written in the usual way; then it is to be read each time.
    """
    head = data[: len(data) - len(body)]
    found = _LENGTH.search(head)
    if found is None or head.find(b"\r\n\r\n") != len(head) - 4 or int(found[1]) != len(body):
        return None
    return KnownHead(head[: found.start(1)], head[found.end(1) :], meaning)
