"""The list of tools that a peer gave last, and gives again: the same bytes need not be searched again.

Lives here: recognising one. Must not: keep what a list says (`switch.listed_tools`). Used by what reads the frames of
a peer, before anything else looks at them.

Clients list again and again what has not changed, and each list is searched as a whole: for names that only a request
has, for a second id, for what is ours, and for brackets. A list that came twice and has nothing of all that is known by
its bytes from the result on. When they come again, its beginning stands for the whole wherever names are looked for.
"""

from __future__ import annotations

from typing import Final

import orjson

from dragoman.core.codes import INVALID_REQUEST
from dragoman.core.peek import find_result
from dragoman_spec import PER_REQUEST_REVISIONS, facts

LISTED_BYTES: Final = 4096
"""A shorter list is searched sooner than recognised."""

_MOST_BYTES: Final = 256 * 1024
"""How long a list is that is kept, at most."""

_LISTS: Final = b'"tools":'
_BEFORE_BYTES: Final = 256
"""How far the list stands from the beginning of its result, at most."""

_NAMES: Final = (b'"id"', b'"method"', b'"error"', b"input_required", b"%d" % INVALID_REQUEST, b"\\")
"""What is looked for in results without decoding them, beside the keyword of headers."""


class KnownList:
    """Recognises the list that one peer gave last."""

    __slots__ = ("_line", "_size", "_start")

    def __init__(self) -> None:
        self._line = b""
        self._size = self._start = 0

    def shorten(self, text: bytes) -> bytes:
        """Return the beginning of a list that is known, which has all of it that anybody looks for; else nothing.

        Args:
            text: A message, with or without the end of its line.
        """
        start = find_result(text) if self._line else 0
        if not start or self._size - (len(text) - start) not in (0, 1):  # the end of the line is not missed
            return b""
        return text[:start] + b"}}\n" if self._line.startswith(memoryview(text)[start:], self._start) else b""

    def note(self, line: bytes) -> None:
        """Record a result that is not known: it will be, if it is a list, of the size of the one before it."""
        start = find_result(line)
        if not start or line.find(_LISTS, start, start + _BEFORE_BYTES) < 0:
            return
        size = len(line) - start
        is_another = bool(self._line) or size != self._size or size > _MOST_BYTES
        self._line, self._start, self._size = b"", start, size
        if not is_another and _is_plain(line, start):
            self._line = line


def _is_plain(line: bytes, start: int) -> bool:
    """Whether a line is JSON, and its result has none of the names that are looked for."""
    keyword = facts(PER_REQUEST_REVISIONS[-1]).headers["argument"].annotation or ""
    if any(line.rfind(name, start) >= 0 for name in (*_NAMES, keyword.encode())):
        return False
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True
