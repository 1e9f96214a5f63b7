"""Questions of a server with a handshake that may be about one of several calls: they wait until one is left.

Lives here: which calls each of them may be about. Must not: put a question to anybody, or refuse it. Called by
`asking`.

Only calls that were open when a question came can be what it is about. Each that the server answers is not, and when
one is left, it is that one. Nothing follows from the end of a call that was cancelled: its question may be forgotten at
the server. Then nobody can say any more whose it is. The same where as many questions wait as calls are under way, for
none of these may ever end then; calls that wait for their clients are no reason to worry, for those come back or their
time is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dragoman.core.switch.to_handshake.works import Work

MOST: Final = 16
"""How many questions may wait."""


@dataclass(slots=True, eq=False)
class Undecided:
    """A question that waits.

    Attributes:
        key: Its id.
        method: What it asks.
        params: Of it.
        works: The calls that it may be about.
        until_s: When it is too late for it.
    """

    key: bytes
    method: str
    params: Any
    works: set[Work]
    until_s: float


class UndecidedQuestions:
    """Those of one server.

    Attributes:
        waiting: Them, the oldest first.
    """

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: list[Undecided] = []

    def __contains__(self, key: object) -> bool:
        return any(waiting.key == key for waiting in self.waiting)

    def add(self, question: Undecided) -> list[bytes]:
        """Let a question wait; give those that cannot."""
        if len(self.waiting) >= MOST:
            return [question.key]
        self.waiting.append(question)
        return self.relieve()

    def withdraw(self, key: bytes) -> None:
        """Take note that the server does not want an answer any more."""
        self.waiting = [waiting for waiting in self.waiting if waiting.key != key]

    def finish(self, work: Work) -> list[Undecided]:
        """Take note that the server has answered a call; give the questions that can only be about one other now."""
        for waiting in self.waiting:
            waiting.works.discard(work)
        return self._take(lambda waiting: len(waiting.works) == 1)

    def leave(self, work: Work) -> list[bytes]:
        """Take note that nobody waits for a call any more; give the questions that nobody can decide now."""
        return [waiting.key for waiting in self._take(lambda waiting: work in waiting.works)]

    def relieve(self) -> list[bytes]:
        """Give the questions that are too many, the latest first, for the calls that could still end."""
        refused = []
        while self.waiting:
            works = self.waiting[-1].works
            if len(self.waiting) < len(works) or any(work.waits_for_client for work in works):
                break
            refused.append(self.waiting.pop().key)
        return refused

    def expire(self, now_s: float) -> list[bytes]:
        """Give the questions that have waited too long."""
        return [waiting.key for waiting in self._take(lambda waiting: waiting.until_s <= now_s)]

    @property
    def next_s(self) -> float | None:
        """When `expire` has something to do; None while there is nothing."""
        return min((waiting.until_s for waiting in self.waiting), default=None)

    def clear(self) -> None:
        """Forget everything: the client has gone, or the server."""
        self.waiting.clear()

    def _take(self, is_wanted: Callable[[Undecided], bool]) -> list[Undecided]:
        taken = [waiting for waiting in self.waiting if is_wanted(waiting)]
        if taken:
            self.waiting = [waiting for waiting in self.waiting if waiting not in taken]
        return taken
