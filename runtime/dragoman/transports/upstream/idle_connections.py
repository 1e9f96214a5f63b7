"""Connections that nobody uses now, kept for the next request to the same origin with the same credentials.

Sessions of one configured server share them. A connection goes to another session only where both send the same
configured headers; a session that asks middleware for headers, or has cookies, keeps to connections of its own.

A tool call that meets a closing connection cannot be repeated: nobody knows whether it was carried out. So a
connection is looked at before it is used, which takes a microsecond, and once a server has closed an idle connection,
those to it are kept for less than that time.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dragoman.transports.upstream.connection import HttpConnection

_KEEP_S: Final = 60.0
_LEAST_S: Final = 2.0
"""A server that closes a connection sooner than this does so for another reason."""

_MARGIN: Final = 0.8
_MOST: Final = 256
"""How many are kept for one origin and set of credentials, and how many of those are remembered; the oldest go."""


class Shelf:
    """The idle connections to one origin with one set of credentials.

    Attributes:
        users: How many sessions use them.
        keep_s: For how long each is kept.
        kept: In the order of use, the longest idle first.
    """

    def __init__(self) -> None:
        self.users = 0
        self.keep_s = _KEEP_S
        self.kept: list[HttpConnection] = []
        self._sweeper: asyncio.TimerHandle | None = None

    def take(self) -> HttpConnection | None:
        """Return the connection that was used last; one that is closing is of no use."""
        while self.kept:
            connection = self.kept[-1]
            if connection.open and connection.idle_s < self.keep_s and connection.is_quiet():
                return self.kept.pop()
            self._lose(connection)
            connection.drop()
        return None

    def keep(self, connection: HttpConnection) -> None:
        """Take a connection that may be used again."""
        connection.on_lost = self._lose
        self.kept.append(connection)
        if len(self.kept) > _MOST:
            self.kept.pop(0).drop()
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(self.keep_s, self._sweep)

    def drop(self) -> None:
        """Close them."""
        kept, self.kept = self.kept, []
        for connection in kept:
            connection.drop()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def _lose(self, connection: HttpConnection) -> None:
        if connection not in self.kept:
            return  # we closed it
        self.kept.remove(connection)
        age_s = connection.idle_s
        if _LEAST_S <= age_s < self.keep_s:  # the server has closed it
            self.keep_s = age_s * _MARGIN
            self._sweep()

    def _sweep(self) -> None:
        """Drop what has been idle for too long."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        while self.kept and self.kept[0].idle_s >= self.keep_s:
            self.kept.pop(0).drop()
        if self.kept:
            left_s = self.keep_s - self.kept[0].idle_s
            self._sweeper = asyncio.get_running_loop().call_later(left_s, self._sweep)


class IdleConnections:
    """What the sessions of one configured server share; empty once the last of them has left."""

    def __init__(self) -> None:
        self._shelves: dict[Hashable, Shelf] = {}
        self._trusted: dict[Hashable, ssl.SSLContext | None] = {}
        self._users = 0

    def join(self, key: Hashable) -> Shelf:
        """Begin to use the connections of these credentials."""
        self._users += 1
        if key not in self._shelves:
            unused = [other for other, shelf in self._shelves.items() if not shelf.users]
            if unused and len(self._shelves) >= _MOST:
                self._shelves.pop(unused[0]).drop()
            self._shelves[key] = Shelf()
        shelf = self._shelves[key]
        shelf.users += 1
        return shelf

    def leave(self, shelf: Shelf) -> None:
        """End the use; the last one closes what is left."""
        shelf.users -= 1
        self._users -= 1
        if not self._users:
            for one in self._shelves.values():
                one.drop()

    def trust(self, key: Hashable, make: Callable[[], ssl.SSLContext | None]) -> ssl.SSLContext | None:
        """Whose certificates are believed: to read that takes longer than a request."""
        if key not in self._trusted:
            self._trusted = {key: make()}
        return self._trusted[key]
