"""Calls of several people at one server that were given up, and that the server has not answered.

Lives here: whose they are, and for how long that counts. Must not: refuse anything. Used by `works`.

A server that was told of a cancellation may go on all the same, and ask something. That must not reach somebody else:
as long as one of these calls counts, nobody but its owner is asked what only the open call could explain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from dragoman.core.envelope import twin_of

_MOST: Final = 1024
"""How many are remembered; the oldest is forgotten first."""


class _GivenUp(NamedTuple):
    principal: str
    until_s: float


class GivenUpCalls:
    """Such calls of one server.

    Args:
        now_s: Reads a clock that never goes back, in seconds.
        lasts_s: Gives for how many seconds a call counts.
    """

    __slots__ = ("_by_key", "_lasts_s", "_now_s")

    def __init__(self, now_s: Callable[[], float], lasts_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._lasts_s = lasts_s
        self._by_key: dict[bytes, _GivenUp] = {}

    def add(self, key: bytes, principal: str) -> None:
        """Take note that nobody waits for the answer to a call."""
        self._by_key[key] = _GivenUp(principal, self._now_s() + self._lasts_s())
        if len(self._by_key) > _MOST:
            del self._by_key[next(iter(self._by_key))]

    def finish(self, key: bytes) -> None:
        """Take note that the server has answered; its id may have come back as another type."""
        self._by_key.pop(key, None)
        self._by_key.pop(twin_of(key) or b"", None)

    def may_be_about_others(self, principal: str) -> bool:
        """Whether a question may be about such a call of somebody else."""
        now_s = self._now_s()
        self._by_key = {key: call for key, call in self._by_key.items() if now_s < call.until_s}
        return any(call.principal != principal for call in self._by_key.values())

    def clear(self) -> None:
        """Forget everything: the server is gone."""
        self._by_key.clear()
