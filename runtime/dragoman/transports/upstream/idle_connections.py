"""Connections that nobody uses now, kept for the next request to the same origin with the same credentials.

Sessions of one configured server share them. A connection goes to another session only where both send the same
configured headers; a session that asks middleware for headers, or has cookies, keeps to connections of its own.

A tool call that meets a closing connection cannot be repeated: nobody knows whether it was carried out. So a
connection is looked at before it is used, which takes a microsecond, and once a server has closed an idle connection,
those to it are kept for less than that time.
"""

from __future__ import annotations

import asyncio
import select
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


class IdleConnections:
    """What the sessions of one configured server share; empty once the last of them has left."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, list[HttpConnection]] = {}
        self._closes_after_s: dict[Hashable, float] = {}
        self._trusted: dict[Hashable, ssl.SSLContext | None] = {}
        self._users = 0
        self._sweeper: asyncio.TimerHandle | None = None

    def join(self) -> None:
        """Begin to use these connections."""
        self._users += 1

    def leave(self) -> None:
        """End the use; the last one closes what is left."""
        self._users -= 1
        if not self._users:
            for key in list(self._kept):
                self.drop(key)
            if self._sweeper is not None:
                self._sweeper.cancel()
                self._sweeper = None

    def trust(self, key: Hashable, make: Callable[[], ssl.SSLContext | None]) -> ssl.SSLContext | None:
        """Whose certificates are believed: to read that takes longer than a request."""
        if key not in self._trusted:
            self._trusted = {key: make()}
        return self._trusted[key]

    def take(self, key: Hashable) -> HttpConnection | None:
        """Return the connection that was used last; one that is closing is of no use."""
        kept = self._kept.get(key, [])
        while kept:
            connection = kept[-1]
            age_s = asyncio.get_running_loop().time() - connection.idle_since
            if connection.open and age_s < self._keep_s(key) and _is_quiet(connection):
                return kept.pop()
            self._lose(key, connection)
            connection.drop()
        return None

    def keep(self, key: Hashable, connection: HttpConnection) -> None:
        """Take a connection that may be used again."""
        if not self._users:
            connection.drop()
            return
        connection.on_lost = lambda lost: self._lose(key, lost)
        kept = self._kept.setdefault(key, [])
        kept.append(connection)
        if len(kept) > _MOST:
            kept.pop(0).drop()
        self._sweep_at(connection.idle_since + self._keep_s(key))

    def drop(self, key: Hashable) -> None:
        """Close those with these credentials."""
        for connection in self._kept.pop(key, []):
            connection.drop()

    def _keep_s(self, key: Hashable) -> float:
        return self._closes_after_s.get(key, _KEEP_S)

    def _lose(self, key: Hashable, connection: HttpConnection) -> None:
        kept = self._kept.get(key, [])
        if connection not in kept:
            return  # we closed it
        kept.remove(connection)
        age_s = asyncio.get_running_loop().time() - connection.idle_since
        if _LEAST_S <= age_s < self._keep_s(key):  # the server has closed it
            self._closes_after_s.pop(next(iter(self._closes_after_s)) if len(self._closes_after_s) >= _MOST else key, 0)
            self._closes_after_s[key] = min(age_s * _MARGIN, _KEEP_S)

    def _sweep_at(self, due: float) -> None:
        if self._sweeper is None or due < self._sweeper.when():
            if self._sweeper is not None:
                self._sweeper.cancel()
            self._sweeper = asyncio.get_running_loop().call_at(due, self._sweep)

    def _sweep(self) -> None:
        """Drop what has been idle for too long. Each list is in the order of use, the longest idle first."""
        now, self._sweeper = asyncio.get_running_loop().time(), None
        for key, kept in list(self._kept.items()):
            keep_s = self._keep_s(key)
            while kept and now - kept[0].idle_since >= keep_s:
                kept.pop(0).drop()
            if kept:
                self._sweep_at(kept[0].idle_since + keep_s)
            else:
                del self._kept[key]


def _is_quiet(connection: HttpConnection) -> bool:
    """Whether nothing has come, which could only be the end of an idle connection: the loop may not have read it."""
    poll = select.poll()
    poll.register(connection.file_number, select.POLLIN)
    return not poll.poll(0)
