"""Calls at a server with a handshake that nobody waits for any more, and that the server may still be about.

Lives here: how long each of them counts. Must not: refuse what is asked about them (`asking`). Called by the other
modules of the package.

A server hears of a cancellation later than it is sent, and may ask something in between. So a call is not over at once:
until the server answers it, or a short time has passed, it is still one of those that a question may be about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from dragoman.core.switch.to_handshake.works import Work, Works

GRACE_S: Final = 1.0
"""How long a server gets to end a call by itself whose question was refused. Servers on SDK 1.x that are answered and
cancelled at the same moment lose the request that comes next."""

SETTLE_S: Final = 0.25
"""How long it is waited for the end of a call that was cancelled: what it still asks must not be taken for a question
of the next one."""


class _End(NamedTuple):
    """How long a call still counts, and what its server is told then; None if it was told."""

    until_s: float
    reason: str | None


class Leaving:
    """Such calls of one server.

    Args:
        works: What the server is at work on.
        now_s: Reads a clock that never goes back, in seconds.

    Attributes:
        ends: How long each of them may go on, and what its server is told then.
        listener: Is told of each call that begins to leave; None where nobody wants to hear of it.
    """

    __slots__ = ("_next_s", "_now_s", "_works", "ends", "listener")

    def __init__(self, works: Works, now_s: Callable[[], float]) -> None:
        self._works = works
        self._now_s = now_s
        self.ends: dict[Work, _End] = {}
        self._next_s = 0.0  # when the first of them is due, or was, if it has ended by itself
        self.listener: Callable[[Work], None] | None = None

    def __contains__(self, work: object) -> bool:
        return work in self.ends

    def cancel(self, work: Work, reason: str) -> None:
        """Tell the server that nobody waits for a call any more, and wait a moment for its end."""
        if work.frame is not None or not work.may_ask:
            self._begin(work, None)
            self._works.cancel(work, reason)
        else:
            self._begin(work, _End(self._now_s() + SETTLE_S, None))
            self._works.tell_cancelled(work, reason)

    def refuse(self, work: Work, reason: str) -> None:
        """Give the server a moment to end a call by itself, which is cancelled if it does not."""
        self._begin(work, _End(self._now_s() + GRACE_S, reason))

    def _begin(self, work: Work, end: _End | None) -> None:
        work.request = None
        if end is not None:
            self._next_s = min(self._next_s, end.until_s) if self.ends else end.until_s
            self.ends[work] = end
        if self.listener is not None:
            self.listener(work)
        work.questions.clear()

    def finish(self, work: Work) -> None:
        """Take note that the server has answered a call."""
        self.ends.pop(work, None)

    @property
    def next_s(self) -> float | None:
        """When `expire` has something to do; None while there is nothing."""
        return self._next_s if self.ends else None

    def expire(self) -> None:
        """Let go of the calls whose time is over."""
        now_s = self._now_s()
        for work in [work for work, end in self.ends.items() if end.until_s <= now_s]:
            reason = self.ends.pop(work).reason
            if reason is None:
                self._works.give_up(work)
            else:
                self.cancel(work, reason)
        self._next_s = min((end.until_s for end in self.ends.values()), default=0.0)

    def clear(self) -> None:
        """Forget everything, once nobody is left."""
        self.ends.clear()
        self.listener = None
