"""One timer for all the calls of a session that wait for their answers.

Lives here: finding out which have waited for long. Used by `streamable_session` and `requests`. A timer for each call
would be set and cancelled with nearly every one, for most are answered long before.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

_TICK_S: Final = 0.002
"""How exact the clock of the loop is."""


class Timed(Protocol):
    """Something that waits.

    Attributes:
        due_at: When it has waited for long, by the clock of the loop; infinity where nobody minds.
    """

    due_at: float


TimedT = TypeVar("TimedT", bound=Timed)


class CallTimer(Generic[TimedT]):
    """Says which calls have waited for long.

    Args:
        after_s: How long that is.
        waiting: Gives all that wait.
        on_due: Called once with each that has waited for so long.
    """

    __slots__ = ("_after_s", "_loop", "_on_due", "_timer", "_waiting")

    def __init__(
        self, after_s: float, waiting: Callable[[], Iterable[TimedT]], on_due: Callable[[TimedT], None]
    ) -> None:
        self._after_s = after_s
        self._waiting = waiting
        self._on_due = on_due
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, call: TimedT) -> None:
        """Time a call from now on."""
        call.due_at = self._loop.time() + self._after_s
        if self._timer is None:
            self._timer = self._loop.call_later(self._after_s, self._look)

    def stop(self) -> None:
        """Time nothing any more, and hold nothing."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting, self._on_due = tuple, _forget  # circles stay until somebody looks for such

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        due = [call for call in self._waiting() if call.due_at - now < _TICK_S]
        for call in due:
            call.due_at = math.inf
        next_at = min((call.due_at for call in self._waiting()), default=math.inf)
        if next_at < math.inf:
            self._timer = self._loop.call_later(next_at - now, self._look)
        for call in due:
            self._on_due(call)


def _forget(_: object) -> None:
    """Nobody minds any more."""
