"""Reading a list page by page: which page comes next, and when there have been enough.

Lives here: the bounds of everything that collects pages, in a router, a bridge, a client or a check. A server may go on
for ever, with pages of megabytes and always another cursor. And a list that calls wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.core.exact_json import encode

MOST_PAGES: Final = 1_000
MOST_BYTES: Final = 32 * 1024 * 1024
"""How much one list may have: ten thousand tools with descriptions of 3 kB each."""

LISTED_S: Final = 10.0
"""How long calls wait for a list, all of its pages together."""

TakePage = Callable[[Mapping[str, Any], int | None], None]
"""Takes a page, and how long it was if that is known."""

AskPage = Callable[[dict[str, Any], TakePage], None]
"""Asks for a page with these params."""

Remind = Callable[[float, Callable[[], None]], object]
"""Calls something after so many seconds."""


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


class Listing:
    """A list of a server that calls wait for: what is known of it is noted by whoever asks for its pages.

    Args:
        remind: Reads the clock.

    Attributes:
        is_done: Whether it has been read, or cannot be.
    """

    __slots__ = ("_remind", "_then", "is_done")

    def __init__(self, remind: Remind) -> None:
        self.is_done = False
        self._remind = remind
        self._then: list[Callable[[], None]] = []

    @property
    def is_awaited(self) -> bool:
        """Whether calls wait for it."""
        return bool(self._then)

    def read(self, ask: AskPage, then: Callable[[], None]) -> None:
        """Read all pages, and go on; if they do not come in time, without those that are missing."""
        self._then.append(then)
        if len(self._then) > 1:
            return
        paging, waiting = Paging(), self._then

        def take(page: Mapping[str, Any], size_bytes: int | None = None) -> None:
            cursor = paging.follow(page, size_bytes)
            if cursor is None:
                end()
            elif waiting is self._then:
                ask({"cursor": cursor}, take)

        def end() -> None:
            if waiting is self._then:
                self.is_done, self._then = True, []
                for go_on in waiting:
                    go_on()

        self._remind(LISTED_S, end)
        ask({}, take)
