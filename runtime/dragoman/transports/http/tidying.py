"""When memory may be given back: a while after sessions or connections have ended, and not while others are busy.

Lives here: the clock. Must not: know what is done then (`dragoman.cli.memory`, say). Called by `sessions` and `serve`.

Theory of operation. The memory of what has ended is free, but the C library may keep it: about 40 KB of the 330 KB that
a TLS connection can use, and more if it sent much. For one connection this does not matter; for many it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

CONNECTIONS: Final = 64
"""So many connections have ended before it is worth it to tidy up for them alone."""

_SELDOM: Final = 12
"""How many times longer it takes while sessions are open, for whom that is a pause."""


class Tidying:
    """Calls somebody a while after sessions, or many connections, have ended.

    Args:
        tidy: Who is called; None for nobody.
        after_s: How long after.
        is_busy: Whether sessions are open.
    """

    def __init__(self, tidy: Callable[[], None] | None, after_s: float, is_busy: Callable[[], bool]) -> None:
        self._tidy = tidy
        self._after_s = after_s
        self._is_busy = is_busy
        self._timer: asyncio.TimerHandle | None = None
        self._connections = 0

    def count_session(self) -> None:
        """Record that a session has ended."""
        self._schedule()

    def count_connection(self) -> None:
        """Record that a connection has ended."""
        self._connections += 1
        if self._connections >= CONNECTIONS:
            self._schedule()

    def close(self) -> None:
        """Call nobody any more."""
        self._tidy = None
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        if self._tidy is None:
            return
        loop = asyncio.get_running_loop()
        after_s = self._after_s * (_SELDOM if self._is_busy() else 1)
        if self._timer is not None:
            if self._timer.when() <= loop.time() + after_s:
                return
            self._timer.cancel()
        self._timer = loop.call_later(after_s, self._run, self._tidy)

    def _run(self, tidy: Callable[[], None]) -> None:
        self._timer = None
        self._connections = 0
        tidy()
