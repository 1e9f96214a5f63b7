"""Questions of a server with a handshake that may be about one of several calls: they wait until one is left.

Lives here: which calls each of them may be about. Must not: put a question to anybody, or refuse it. Called by
`asking`.

Calls of one sender are as good as one: the question is put to the likeliest of them. If that ends and nobody has
answered, the question was about another one, and is put to the next.

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

from dragoman.core.switch.to_handshake.works import Work, Works

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
        put_to: The call whose client is asked, where that was guessed.
    """

    key: bytes
    method: str
    params: Any
    works: set[Work]
    until_s: float
    put_to: Work | None = None


class UndecidedQuestions:
    """Those of one server.

    Attributes:
        waiting: Them, the oldest first.
    """

    __slots__ = ("_guessed", "_works", "waiting")

    def __init__(self, works: Works) -> None:
        self._works = works
        self._guessed: list[Undecided] = []
        self.waiting: list[Undecided] = []

    def __contains__(self, key: object) -> bool:
        return any(waiting.key == key for waiting in self.waiting)

    def add(self, question: Undecided) -> list[bytes]:
        """Let a question wait; give those that cannot."""
        if len(self.waiting) >= MOST:
            return [question.key]
        self.waiting.append(question)
        return self.relieve()

    def guess(self, question: Undecided, work: Work) -> None:
        """Take note that a question is put to this call, although it may be about another."""
        self._guessed = [one for one in self._guessed if one.put_to is not None and one.key in one.put_to.questions]
        self._guessed.append(question)
        question.put_to = work

    def take_guessed(self, work: Work) -> list[Undecided]:
        """Give what was put to a call that is over, and not answered."""
        found = [one for one in self._guessed if one.put_to is work and one.key in work.questions]
        self._guessed = [one for one in self._guessed if one.put_to is not work]
        return found

    def withdraw(self, key: bytes) -> None:
        """Take note that the server does not want an answer any more."""
        self.waiting = [waiting for waiting in self.waiting if waiting.key != key]

    def finish(self, work: Work) -> list[Undecided]:
        """Take note that the server has answered a call; give the questions that can be put to others now."""
        for waiting in self.waiting:
            waiting.works.discard(work)
        unanswered = self.take_guessed(work)
        for one in unanswered:
            one.works = {other for other in one.works if self._works.find(other.key) is other}
        decided = self._take(lambda waiting: self._works.may_guess(waiting.works))
        return [one for one in (*unanswered, *decided) if one.works]

    def leave(self, work: Work) -> list[bytes]:
        """Take note that nobody waits for a call any more; give the questions that nobody can decide now."""
        return [one.key for one in (*self._take(lambda waiting: work in waiting.works), *self.take_guessed(work))]

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
        self._guessed.clear()

    def _take(self, is_wanted: Callable[[Undecided], bool]) -> list[Undecided]:
        taken = [waiting for waiting in self.waiting if is_wanted(waiting)]
        if taken:
            self.waiting = [waiting for waiting in self.waiting if waiting not in taken]
        return taken
