"""Requests of a client that its server does not answer in time.

Lives here: which requests are with the server, how long, and which of them make no progress. Must not: read a clock, or
give a request up: who has the table of them does. Made where there is a limit; without one nothing here runs.

Theory of operation. Time comes as ticks: while something is with the server there is one each `tick_s`, by one timer
for each client. A request grows older by one each time. One that was answered is noticed then, so an answer costs
nothing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from dragoman.core.calls import UNANSWERED
from dragoman.core.envelope import Refusal
from dragoman.core.paging import Remind
from dragoman.core.settings import Settings

logger = logging.getLogger("dragoman.exchange")

TIMED_OUT: Final = -32000
"""The implementation-defined code for a request that the server did not answer in time."""

LONGEST_TICK_S: Final = 1.0
TICKS: Final = 10
"""Into how many ticks the limit is divided, unless they would be longer than that."""


T = TypeVar("T")


class Ages(Generic[T]):
    """How old requests are, in ticks, and how long it was that nothing was heard of them.

    Args:
        remind: Reads the clock.
        pass_tick: Is called each tick, while there are any.
        timeout_s: How long a request may be under way, without a sign of it.
        ceiling_s: How long at most, whatever signs there are; None for as long as there are any.

    Attributes:
        tick_s: How long a tick is. A request is too old after `timeout_s`, and before two ticks more.
    """

    __slots__ = ("_ages", "_pass_tick", "_remind", "_ticking", "ceiling_s", "tick_s", "timeout_s")

    def __init__(
        self, remind: Remind, pass_tick: Callable[[], None], timeout_s: float, ceiling_s: float | None
    ) -> None:
        self.timeout_s = timeout_s
        self.ceiling_s = ceiling_s
        self.tick_s = min(timeout_s / TICKS, LONGEST_TICK_S)
        self._remind = remind
        self._pass_tick = pass_tick
        self._ages: dict[T, list[int]] = {}  # since the last sign, and in all
        self._ticking = False

    def release(self) -> None:
        """Let go of everything, once the session is over."""
        self._ages.clear()
        del self._remind, self._pass_tick

    def start(self, request: T) -> None:
        """Record a request that is under way from here on."""
        self._ages[request] = [0, 0]
        if not self._ticking:
            self._wait()

    def renew(self, request: T | None) -> None:
        """Record a sign of a request, if it is known: its time begins anew."""
        if request in self._ages:
            self._ages[request][0] = 0

    def tick(self, is_open: Callable[[T], bool], *, runs: bool = True) -> list[tuple[T, float]]:
        """Record that a tick has passed.

        Args:
            is_open: Whether a request is not answered; others are forgotten.
            runs: Whether they grow older by it.

        Returns:
            Those that are too old now, and are forgotten, each with the limit that it has passed, in seconds.
        """
        self._ages = {request: age for request, age in self._ages.items() if is_open(request)}
        self._ticking = False
        if self._ages:
            self._wait()
        if not runs:
            return []
        old: dict[T, float] = {}
        for which, limit_s in enumerate((self.timeout_s, self.ceiling_s or math.inf)):
            for request, age in self._ages.items():
                age[which] += 1
                if age[which] - 1 >= limit_s / self.tick_s:  # the first tick may come at once
                    old.setdefault(request, limit_s)
        for request in old:
            del self._ages[request]
        return list(old.items())

    def _wait(self) -> None:
        self._ticking = True
        self._remind(self.tick_s, self._pass_tick)


def limit_time(remind: Remind, pass_tick: Callable[[], None], settings: Settings) -> Ages[Any] | None:
    """Return what knows how old requests are; None without a limit."""
    timeout_s = settings.request_timeout_s or settings.request_ceiling_s
    return None if timeout_s is None else Ages(remind, pass_tick, timeout_s, settings.request_ceiling_s)


def explain_age(method: str, limit_s: float) -> Refusal:
    """Return the answer to a request that has passed a limit."""
    reason = f"the server did not answer within {limit_s:g} s"
    logger.warning("%s request given up: %s", method[:80], reason)
    return Refusal(TIMED_OUT, reason, {"method": method, "timeoutSeconds": limit_s, UNANSWERED: True})
