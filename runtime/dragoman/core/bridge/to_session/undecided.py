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

from dragoman.core.bridge.to_session.works import Work, Works
from dragoman.core.commands import Alarm

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
        latest: Where it was guessed, the number of the latest of these calls, in place of them: there may be thousands.
        alarm: Rings when it is too late, while it waits.
    """

    key: bytes
    method: str
    params: Any
    works: set[Work]
    until_s: float
    latest: int = 0
    alarm: Alarm | None = None


class UndecidedQuestions:
    """Those of one server.

    Attributes:
        waiting: Them, the oldest first.
    """

    __slots__ = ("_guessed", "_works", "waiting")

    def __init__(self, works: Works) -> None:
        self._works = works
        self._guessed: dict[Work, list[Undecided]] = {}  # by the call whose client is asked
        self.waiting: list[Undecided] = []

    def __contains__(self, key: object) -> bool:
        return any(waiting.key == key for waiting in self.waiting)

    def add(self, question: Undecided, after_s: float, then: Callable[[], None]) -> list[bytes]:
        """Let a question wait for so long, and then do this; give those that cannot wait."""
        if len(self.waiting) >= MOST:
            return [question.key]
        question.alarm = self._works.schedule.after(after_s, then)
        self.waiting.append(question)
        return self.relieve()

    def guess(self, question: Undecided, work: Work) -> None:
        """Record that a question is put to this call, although it may be about another."""
        question.latest, question.works = max(one.number for one in question.works), set()
        self._guessed.setdefault(work, []).append(question)

    def take_guessed(self, work: Work) -> list[Undecided]:
        """Return what was put to a call that is over, and not answered."""
        questions = work.questions or ()
        return [one for one in self._guessed.pop(work, ()) if one.key in questions]

    def withdraw(self, key: bytes) -> None:
        """Record that the server does not want an answer any more."""
        self._take(lambda waiting: waiting.key == key)

    def finish(self, work: Work) -> list[Undecided]:
        """Record that the server has answered a call; give the questions that can be put to others now."""
        for waiting in self.waiting:
            waiting.works.discard(work)
        unanswered = self.take_guessed(work)
        for one in unanswered:
            one.works = {
                other
                for other in self._works.find_at_work()
                if other.number <= one.latest and other.sender == work.sender
            }
        decided = self._take(lambda waiting: self._works.may_guess(waiting.works))
        return [one for one in (*unanswered, *decided) if one.works]

    def leave(self, work: Work) -> list[bytes]:
        """Record that nobody waits for a call any more; give the questions that nobody can decide now."""
        return [one.key for one in (*self._take(lambda waiting: work in waiting.works), *self.take_guessed(work))]

    def relieve(self) -> list[bytes]:
        """Return the questions that are too many, the latest first, for the calls that could still end."""
        refused: list[bytes] = []
        while self.waiting:
            last = self.waiting[-1]
            if len(self.waiting) < len(last.works) or any(work.waits_for_client for work in last.works):
                break
            self.withdraw(last.key)
            refused.append(last.key)
        return refused

    def clear(self) -> None:
        """Forget everything: the client has gone, or the server."""
        self._take(lambda waiting: True)
        self._guessed.clear()

    def _take(self, is_wanted: Callable[[Undecided], bool]) -> list[Undecided]:
        taken = [waiting for waiting in self.waiting if is_wanted(waiting)]
        if taken:
            self.waiting = [waiting for waiting in self.waiting if waiting not in taken]
            self._works.schedule.stop(*(waiting.alarm for waiting in taken))
        return taken
