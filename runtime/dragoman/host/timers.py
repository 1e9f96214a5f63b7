"""What is to be done later: the timers of one host.

Lives here: starting and stopping them. Must not: know what is done then. Used by `host`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.core.commands import Alarm, Sleeper
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.upstream import UpstreamEdge


class Timers:
    """One timer for each sleeper.

    It does not hold whoever it is for, but in timers that run: a circle stays until somebody looks for such.
    """

    def __init__(self) -> None:
        self._timers: dict[Sleeper, asyncio.TimerHandle] = {}

    def wake(self, sleeper: Sleeper, after_s: float | None, expire: Callable[[Sleeper], None]) -> None:
        """Call this with a sleeper after so many seconds, in place of an earlier time; None: not at all."""
        self.stop(sleeper)
        if after_s is not None:
            self._timers[sleeper] = asyncio.get_running_loop().call_later(after_s, self._wake, sleeper, expire)

    def stop(self, sleeper: Sleeper) -> float | None:
        """Let a sleeper sleep; return how many seconds were left."""
        if (timer := self._timers.pop(sleeper, None)) is None:
            return None
        timer.cancel()
        return timer.when() - asyncio.get_running_loop().time()

    def stop_servers(self) -> None:
        """Let all edges of servers sleep: nothing is started any more."""
        for sleeper in [sleeper for sleeper in self._timers if isinstance(sleeper, UpstreamEdge)]:
            self.stop(sleeper)

    def stop_client(self, front: FrontEdge) -> None:
        """Let everything sleep that is for a client's session."""
        self.stop(front)
        for sleeper in [one for one in self._timers if isinstance(one, Alarm) and one.front is front]:
            self.stop(sleeper)

    def _wake(self, sleeper: Sleeper, expire: Callable[[Sleeper], None]) -> None:
        self._timers.pop(sleeper, None)
        expire(sleeper)
