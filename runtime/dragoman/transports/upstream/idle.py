"""The idle connections of one configured server, by the credentials that they were opened with.

Lives here: who uses which of them. Must not: keep one (`connection.Shelf`). Called by `connection_pool`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Hashable
from typing import Final

from dragoman.transports.upstream.connection import Shelf

_MOST: Final = 256
"""How many sets of credentials are remembered; the oldest goes that nobody uses."""


class IdleConnections:
    """What the sessions of one configured server share; a shelf is empty once the last that uses it has left."""

    def __init__(self) -> None:
        self._shelves: dict[Hashable, Shelf] = {}
        self._trusted: dict[Hashable, ssl.SSLContext | None] = {}

    def join(self, key: Hashable) -> Shelf:
        """Begin to use the connections of these credentials."""
        if key not in self._shelves:
            unused = [other for other, shelf in self._shelves.items() if not shelf.users]
            if unused and len(self._shelves) >= _MOST:
                del self._shelves[unused[0]]
            self._shelves[key] = Shelf()
        shelf = self._shelves[key]
        shelf.users += 1
        return shelf

    def leave(self, shelf: Shelf) -> None:
        """End the use; the last one closes what is left, while the event loop of these connections runs."""
        shelf.users -= 1
        if not shelf.users:
            shelf.drop()

    def trust(self, key: Hashable, make: Callable[[], ssl.SSLContext | None]) -> ssl.SSLContext | None:
        """Whose certificates are believed: to read that takes longer than a request."""
        if key not in self._trusted:
            self._trusted = {key: make()}
        return self._trusted[key]
