"""Which call a question of the server is about: nothing says so, unless it comes on the stream of one, or names a task.

Lives here: the questions that wait for their call, and those that were put to one although they may be about another.
Must not: decide how a client is asked (`asking`), or which calls there are (`loans`).

A question that belongs to no call is refused, and so is one that may be about calls of several senders. Calls of one
sender are as good as one: the question is put to the likeliest of them. If that ends and nobody has answered, the
question was about another one, and is put to the next.

Only calls that were with the server when a question came can be what it is about. Each that the server answers is not,
and when one is left, it is that one. Nothing follows from the end of a call that was cancelled: its question may be
forgotten at the server. Then nobody can say any more whose it is. The same where as many questions wait as calls are
under way, for none of these may ever end then; calls that wait for their clients are no reason to worry, for those come
back or their time is over.

Roots that are asked for before there is any call wait for the next one of the only client there is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.core.commands import Alarm
from dragoman.core.envelope import error_frame, result_frame
from dragoman.core.methods import ROOTS
from dragoman.core.rules.roots import RootsCache
from dragoman.core.rules.strategy import Strategy
from dragoman.core.rules.tasks import read_relation
from dragoman.core.switch.to_session.loans import SessionLoan
from dragoman.core.switch.to_session.reading import Served

logger = logging.getLogger("dragoman.bridge")

MOST: Final = 16
"""How many questions may wait."""

_MOST_EARLY: Final = 4

_UNCLEAR: Final = "it is not clear which call this is about, so nobody can be asked"
_NO_CALL: Final = "no call is open that this could be about, so nobody can be asked"


@dataclass(slots=True, eq=False)
class OpenQuestion:
    """A request of the server for a client.

    Attributes:
        key: Its id.
        method: What it asks.
        params: Of it.
        sender: Whose calls it may be about.
        latest: The number of the latest of these, at most; 0 where it came before there was any call.
        turns: How many calls had waited for their turn and were sent when it came.
        until_s: When it is too late for it, if it waits.
        loan: The call that it was put to, although it may be about another one; None while it waits.
        alarm: Rings when it is too late, while it waits.
    """

    key: bytes
    method: str
    params: Any
    sender: str = ""
    latest: int = 0
    turns: int = 0
    until_s: float = 0.0
    loan: SessionLoan | None = None
    alarm: Alarm | None = None


class Asker(Protocol):
    """Who asks clients."""

    def put_question(self, loan: SessionLoan, question: OpenQuestion) -> None:
        """Put a question to the client of this call."""

    def has_room(self, loan: SessionLoan) -> bool:
        """Whether this call may wait for its client."""


class UnclearQuestions:
    """The questions of one server whose call is not known for certain.

    Args:
        served: The session.
        asker: Who asks clients.

    Attributes:
        open: Those that wait, and those that were put to a call which is not over; the oldest first.
    """

    __slots__ = ("_asker", "_bridging", "_loans", "_roots", "_upstream", "open")

    def __init__(self, served: Served, asker: Asker) -> None:
        self._asker = asker
        self._bridging, self._upstream, self._loans = served.bridging, served.upstream, served.loans
        self._roots = RootsCache(0.0 if served.bridging.shares_server else served.bridging.roots_ttl_s)
        self.open: list[OpenQuestion] = []

    @property
    def waiting(self) -> list[OpenQuestion]:
        """Those that wait."""
        return [one for one in self.open if one.loan is None]

    @property
    def early(self) -> list[OpenQuestion]:
        """Those that wait for the next call."""
        return [one for one in self.open if one.loan is None and not one.latest]

    def __contains__(self, key: object) -> bool:
        return any(one.key == key for one in self.waiting)

    def place(self, key: bytes, method: str, params: Any, stream: bytes | None) -> None:
        """Put a question to the call that it is about, or let it wait until that is known.

        Args:
            key: Its id.
            method: What it asks.
            params: Of it.
            stream: The id of the request on whose stream it came; None where it came on none.
        """
        task_id = read_relation(params)
        waits = method == ROOTS and stream is None and task_id is None and self._may_wait
        loans = [] if waits else self._loans.find_asked(stream, task_id)
        senders = {loan.sender for loan in loans}
        roots = self._find_roots(senders or {""}) if method == ROOTS else None
        if roots is not None:
            self._upstream.send(result_frame(key, {"roots": list(roots)}))
        elif len(loans) == 1:
            self._asker.put_question(loans[0], OpenQuestion(key, method, params))
        elif waits:
            self.open.append(OpenQuestion(key, method, params))
        elif len(senders) != 1:
            self._refuse(key)  # not even when one is left: the server may answer a call and not wait for this
        else:
            is_asked = any(loan.waits_for_client for loan in loans)
            patience_s = self._loans.turn_s if is_asked else self._bridging.keeper().ttl_s
            until_s = self._bridging.steady_s() + patience_s
            latest, turns = self._loans.table.latest, self._loans.turns
            self._decide(OpenQuestion(key, method, params, senders.pop(), latest, turns, until_s))

    def keep_roots(self, loan: SessionLoan, result: object) -> None:
        """Record what the client of a call has answered to `roots/list`."""
        self._roots.put(loan.sender or self._bridging.principal, result, self._bridging.steady_s())

    def _find_roots(self, senders: set[str]) -> Sequence[Any] | None:
        """Give the roots of this sender; None if they are not known, or these are several, who are not told others'."""
        if len(senders) > 1:
            return None
        (sender,) = senders
        return self._roots.get(sender or self._bridging.principal, self._bridging.steady_s())

    @property
    def _may_wait(self) -> bool:
        """Whether roots that are asked for outside of any call wait for the next one of the only client there is."""
        bridging = self._bridging
        return (
            not self._loans.can_be_asked
            and not bridging.shares_server
            and bridging.questions not in (Strategy.REFUSE.value, Strategy.REPLAY.value)
            and len(self.early) < _MOST_EARLY
        )

    # Which call

    def _find_works(self, question: OpenQuestion) -> list[SessionLoan]:
        """Return the calls that a question may still be about."""
        at_work = [loan for loan in self._loans.find_at_work() if loan.sender == question.sender]
        return [loan for loan in at_work if loan.number <= question.latest and loan.turn <= question.turns]

    def _decide(self, question: OpenQuestion) -> None:
        """Put a question to the likeliest of the calls that it may be about, or let it wait."""
        loans = self._find_works(question)
        loan = self._guess(loans)
        if len(loans) > 1 and any(one.is_left for one in loans):
            self._refuse(question.key)
        elif loan is not None:
            if len(loans) > 1:
                question.loan = loan
                self.open.append(question)
            self._asker.put_question(loan, question)
        elif len(self.waiting) >= MOST:
            self._refuse(question.key)
        else:
            after_s = question.until_s - self._bridging.steady_s()
            question.alarm = self._loans.schedule.after(after_s, lambda: self._refuse(question.key))
            self.open.append(question)
            self.relieve()

    def _guess(self, loans: Collection[SessionLoan]) -> SessionLoan | None:
        """Return the likeliest of these; None if a wrong guess would do harm.

        That is one whose client is there and which has no question yet, of the tool that was called last; of several
        calls of it the first, for servers ask in the order of calls.
        """
        if len(loans) > 1:
            able = [loan for loan in loans if self._can_wait(loan)] if self._loans.guesses else []
            # Whoever is there and cannot be asked would wait for somebody who may never come back.
            loans = [] if len(able) < len(loans) and all(loan.waits_for_client for loan in able) else able
        free = [loan for loan in loans if loan.request is not None and not loan.questions]
        newest = max(free or loans, key=lambda loan: (loan.request is not None, loan.number), default=None)
        return next(
            (loan for loan in sorted(free, key=lambda one: one.number) if newest and loan.subject == newest.subject),
            newest,
        )

    def _can_wait(self, loan: SessionLoan) -> bool:
        return loan.strategy in (Strategy.TASK, Strategy.PARK) or (loan.strategy is None and self._asker.has_room(loan))

    # What becomes of it

    def withdraw(self, key: bytes) -> None:
        """Record that the server does not want an answer any more."""
        self._take(lambda one: one.key == key)

    def finish(self, loan: SessionLoan) -> None:
        """Record that the server has answered a call: put the questions to others that were not about it."""
        unanswered = [one for one in self._take(lambda one: one.loan is loan) if one.key in (loan.questions or ())]
        for one in unanswered:
            one.loan = None
        clear = self._take(lambda one: one.loan is None and self._is_clear(one))
        for question in (*unanswered, *clear):
            if self._find_works(question):
                if loan.questions:
                    loan.questions.withdraw(question.key)
                self._decide(question)
        self.relieve()

    def _is_clear(self, question: OpenQuestion) -> bool:
        loans = self._find_works(question)
        return len(loans) == 1 or (self._loans.guesses and bool(loans))

    def leave(self, loan: SessionLoan) -> None:
        """Record that nobody waits for a call any more: refuse the questions that nobody can decide now."""
        put = [one for one in self._take(lambda one: one.loan is loan) if one.key in (loan.questions or ())]
        for one in (*self._take(lambda one: one.loan is None and loan in self._find_works(one)), *put):
            self._refuse(one.key)

    def relieve(self) -> None:
        """Refuse the questions that are too many, the latest first, for the calls that could still end."""
        while waiting := [one for one in self.waiting if one.latest]:
            loans = self._find_works(waiting[-1])
            if len(waiting) < len(loans) or any(loan.waits_for_client for loan in loans):
                break
            self._refuse(waiting[-1].key)

    def clear(self) -> None:
        """Forget everything: the client has gone, or the server."""
        self._take(lambda one: True)

    def _take(self, is_wanted: Callable[[OpenQuestion], bool]) -> list[OpenQuestion]:
        taken = [one for one in self.open if is_wanted(one)]
        if taken:
            gone = set(taken)
            self.open = [one for one in self.open if one not in gone]
            self._loans.schedule.stop(*(one.alarm for one in taken))
        return taken

    def _refuse(self, key: bytes) -> None:
        """Tell the server that nobody can be asked this, whether it waits or not."""
        self.withdraw(key)
        reason = _UNCLEAR if self._loans.can_be_asked else _NO_CALL
        logger.warning("a request of the server refused: %s", reason)
        self._upstream.send(error_frame(key, METHOD_NOT_FOUND, reason))
