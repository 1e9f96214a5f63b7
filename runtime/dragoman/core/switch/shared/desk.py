"""What both sides of a shared server work with: settings, counters, tables, and the few things that both do with them.

Lives here: all the tables. Must not: take frames; that is `from_clients` and `from_server`. Made by `switch`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from dragoman.core.calls import SUSPECTS, Call, cancellation
from dragoman.core.commands import Reached
from dragoman.core.consent import Method
from dragoman.core.edges.greeting import IDENTITY
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, error_frame, request_frame
from dragoman.core.exact_json import decode
from dragoman.core.label import log_as
from dragoman.core.loans import Loans
from dragoman.core.serving.attribution import Attribution
from dragoman.core.serving.loans import Hook, Loan
from dragoman.core.serving.questions import SharedQuestions
from dragoman.core.serving.sessions import ClientSession
from dragoman.core.serving.subscriptions import Subscriptions
from dragoman.core.serving.turns import Turns
from dragoman.core.settings import TURN_S
from dragoman.core.switch.shared.allowed import methods_of
from dragoman.core.switch.shared.levels import Levels
from dragoman.core.tally import Lines
from dragoman.core.unchecked import find_object
from dragoman_spec.record import record

logger = logging.getLogger("dragoman.sharing")


@record
class SharingSettings:
    """What can be decided about a shared server.

    Attributes:
        identity: The `clientInfo` for the server.
        asks: Whether it is known to ask, so that sessions take turns from the start.
        calls: How many requests of one session may be unanswered.
        subscriptions: How many resources one session may subscribe to.
        questions: How many requests of the server may be unanswered.
        waiting_bytes: How much may wait for its turn.
        turn_s: How long a call may wait for its turn.
        grace_s: How long the answer to a cancelled request is still passed on, and others wait for their turn.
        suspects: How many requests that ended without an answer are remembered one by one.
        is_for_all: Whether sessions of several principals share it: none of them may take all places there.
    """

    identity: Mapping[str, Any] = field(default_factory=lambda: dict(IDENTITY))
    asks: bool = False
    calls: int = 1024
    subscriptions: int = 1024
    questions: int = 1024
    waiting_bytes: int = 16 * 1024 * 1024
    turn_s: float = TURN_S
    grace_s: float = 5.0
    suspects: int = SUSPECTS
    is_for_all: bool = True


@dataclass(slots=True)
class SharingCounters:
    """What did not find its way.

    Attributes:
        dropped: Notifications that belong to no session, or to one that did not ask for them, or that may not pass.
        unmatched: Answers and cancellations of nothing that is known.
        refused: Requests that were answered here, with an error.
        malformed: Lines that are not frames.
    """

    dropped: int = 0
    unmatched: int = 0
    refused: int = 0
    malformed: int = 0

    def describe(self) -> str:
        """Say it for the log."""
        return (
            f"{self.dropped} notifications of no session dropped, {self.unmatched} answers unmatched, "
            f"{self.refused} requests refused, {self.malformed} lines malformed"
        )


class Desk:
    """The tables.

    Args:
        settings: What was decided.
        restore_ids: Whether rule `restore-id-type` is on.
    """

    upstream: UpstreamEdge
    """The server's edge; the switch sets it."""

    def __init__(self, settings: SharingSettings, restore_ids: bool) -> None:
        self.settings = settings
        self.counters = SharingCounters()
        self.sessions: dict[Reached, ClientSession] = {}
        self.loans: Loans[Loan] = Loans(restore_ids, settings.suspects)
        self.turns = Turns(self.loans, settings.asks, settings.waiting_bytes)
        self.attribution = Attribution(self.loans, self.sessions)
        self.questions = SharedQuestions(self.attribution, settings.questions)
        self.subscriptions = Subscriptions[ClientSession]()
        self.levels = Levels()
        self.now = 0.0
        self._methods: Mapping[str, Method] | None = None
        self._lines = Lines()

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods of the server's revision."""
        if self._methods is None and self.upstream.revision is not None:
            self._methods = methods_of(self.upstream.revision)
        return self._methods or methods_of(None)

    def tell_server(self, frame: Frame) -> None:
        """Send the server a frame."""
        self.upstream.send(frame)

    def tell(self, session: ClientSession, frame: Frame) -> None:
        """Give a session what the server says, a request or notification; what is logged meanwhile is about it."""
        log_as(session.label, session.front.take_server, frame)

    def pass_answer(self, session: ClientSession, call: Call, frame: Frame) -> None:
        """Give a session the answer to a call, under the client's own id."""
        log_as(session.label, session.front.take_answer, call, frame)

    def drop(self, sender: str, frame: Frame, reason: str) -> None:
        """Drop a notification that may not pass.

        Args:
            sender: `a session` or `the shared server`.
            frame: The notification.
            reason: Why it may not.
        """
        self.counters.dropped += 1
        self._warn(f"{frame.kind} of {sender} dropped", frame.method, reason)

    def refuse(self, session: ClientSession, call: Call, code: int, reason: str) -> None:
        """Answer a session's call with an error."""
        self.counters.refused += 1
        self._warn("request of a session refused", call.method, f"session {session.number}: {reason}")
        self.pass_answer(session, call, error_frame(call.key, code, reason, {"method": call.method}))

    def refuse_server(self, frame: Frame, answer: Frame) -> None:
        """Answer a server's request with this error."""
        self.counters.refused += 1
        self._warn("request of the shared server refused", frame.method, decode(answer.raw)["error"]["message"])
        self.tell_server(answer)

    def _warn(self, what: str, method: str | None, reason: str) -> None:
        """Log it, a line a second at most: peers choose how often it happens."""
        left_out = self._lines.admit(what, self.now)
        if left_out is not None:
            more = f" ({left_out} more since the last line)" if left_out else ""
            logger.warning("%s %s: %s%s", (method or "")[:80], what, reason, more)

    def refuse_loan(self, loan: Loan, code: int, reason: str) -> None:
        """Answer a session's call, which never got to the server, with an error."""
        assert loan.session is not None, "requests of our own do not wait"
        assert loan.call is not None
        self.turns.forget(loan)
        self.refuse(loan.session, loan.call, code, reason)

    def lend(self, session: ClientSession, call: Call, hook: Hook | None) -> Loan:
        """Lend a session's call an id."""
        loan = self.loans.lend(Loan(call.method, session, call, hook))
        call.at_server = loan.key
        session.called = session.called or loan.asks
        self.loans.note(session.sender, session.principal if loan.asks else None)
        return loan

    def note_others(self) -> None:
        """Record that there is another server: it has had nothing but what goes to it now."""
        self.loans.senders, self.loans.callers = set(), set()
        for loan in self.loans.by_key.values():
            if loan.session is not None:
                self.loans.note(loan.session.sender, loan.session.principal if loan.asks else None)

    def send_own(self, method: str, params: dict[str, Any]) -> None:
        """Send the server a request of our own, whose answer nobody waits for."""
        loan = self.loans.lend(Loan(method))
        self.turns.cancel(loan, self.now)
        self.tell_server(request_frame(loan.key, method, params))

    def tell_level(self) -> None:
        """Tell the server the log level, if what is wanted has changed."""
        told = self.levels.change(self.sessions.values())
        if told is not None:
            self.send_own("logging/setLevel", {"level": told})

    def let_in(self, before: float = -inf) -> None:
        """Send the calls whose turn it is, and those that have waited since before this moment."""
        while (frame := self.turns.next(before)) is not None:
            self.tell_server(frame)

    def abandon(self, loan: Loan) -> None:
        """Give up a request of a session that has ended."""
        if loan.frame is not None or self.upstream.recovery.forgo(loan.key):
            self.turns.forget(loan)
        elif loan.cancelled_at is None:
            self.turns.cancel(loan, self.now)
            self.tell_server(cancellation(loan.key, "the session has ended"))


def params_of(body: Any) -> dict[str, Any]:
    """Return the params of a frame, or none."""
    return find_object(body, "params")
