"""Reading a list page by page: which page comes next, and when there have been enough.

Lives here: the bounds of everything that collects pages, in a router, a bridge, a client or a check. A server may go on
for ever, with pages of megabytes and always another cursor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.exact_json import encode

MOST_PAGES: Final = 1_000
MOST_BYTES: Final = 32 * 1024 * 1024
"""How much one list may have: ten thousand tools with descriptions of 3 kB each."""


class Paging:
    """How far one list is read.

    Attributes:
        pages: How many pages have come.
        cut: Why no more is asked for, though the server has more.
        is_repeated: Whether that is because it gave a cursor twice.
    """

    __slots__ = ("_bytes", "_cursors", "_most_pages", "cut", "is_repeated", "pages")

    def __init__(self, most_pages: int = MOST_PAGES) -> None:
        self.pages = 0
        self.cut = ""
        self.is_repeated = False
        self._bytes = 0
        self._most_pages = most_pages
        self._cursors: set[str] = set()

    def follow(self, result: Mapping[str, Any], size_bytes: int | None = None) -> str | None:
        """Return the cursor of the next page; None where this is the last, or the list has to end here.

        Args:
            result: A page.
            size_bytes: How long it was; it is measured where that is not known.
        """
        self.pages += 1
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            return None
        self._bytes += len(encode(result)) if size_bytes is None else size_bytes
        if cursor in self._cursors:
            self.is_repeated = True
            self.cut = f"it gave the cursor {cursor[:80]!r} twice"
        elif self.pages >= self._most_pages:
            self.cut = f"it has more than {self._most_pages} pages"
        elif self._bytes >= MOST_BYTES:
            self.cut = f"it has more than {MOST_BYTES // 1024 // 1024} MiB"
        self._cursors.add(cursor)
        return None if self.cut else cursor
