"""What a server with a handshake is at work on for clients that open no session.

Lives here: the requests that are with the server, under ids of ours, the turns that calls of a server take that asks
back, and what becomes of calls that nobody waits for. Must not: translate, or know who is told what comes of it.

A request is known at the server by a number of ours, which is its progress token too: what the client has in their
place may be used by another client as well, and a request may go on under another one of the client's.

Of several principals, nobody is asked or told anything that does not name its request: the server may speak of one that
it has answered. For questions that begins when two have called something, for log messages when two have sent anything.

Turns: where a wrong guess would do harm even among the calls of one principal, one call at a time is under way once the
server has asked something without saying what it is about. A call that waits for its client's answer is not under way:
others go on beside it, but none that is likely to ask as well, because its question might then be about either. No turn
is waited for longer than `TURN_S`; then what the server asks is refused if it may be about either.

A server hears of a cancellation later than it is sent, and may ask something in between. So a call that nobody waits
for is not over at once: until the server answers it, or a short time has passed, a question may still be about it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, Protocol

from dragoman.core.calls import cancellation
from dragoman.core.commands import Alarm, Schedule
from dragoman.core.edges.per_request_front import PerRequestCall
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.edges.wiring import Bridging
from dragoman.core.envelope import Frame, decoded, request_frame
from dragoman.core.loans import Loans
from dragoman.core.places import keep_latest
from dragoman.core.rules.asking import OpenQuestions
from dragoman.core.rules.names import FACTS
from dragoman.core.rules.promoted import Task
from dragoman.core.rules.replay import Replay
from dragoman.core.rules.strategy import Strategy, may_keep
from dragoman.core.settings import TURN_S

GRACE_S: Final = 1.0
"""How long a server gets to end a call by itself whose question was refused. Servers on SDK 1.x that are answered and
cancelled at the same moment lose the request that comes next."""

SETTLE_S: Final = 0.25
"""How long it is waited for the end of a call that was cancelled: what it still asks must not be taken for a question
of the next one."""

_ASKING: Final = 1024
"""How many tools and prompts are remembered because they asked something; beyond that, each of them may ask."""

_HOOKS: Final = 4096
"""How many requests of our own may be unanswered. A server with more answers none: the oldest is not missed."""

_NAME_CHARACTERS: Final = 256
"""The longest name of a tool or prompt that is remembered."""


def holder_of(request: PerRequestCall) -> Hashable:
    """Return who is counted for a request: its principal, or the connection that it came on where nobody has a name."""
    return request.frame.sender or request.frame.source


class SessionLoan:
    """A request that is with the server, or waits for its turn.

    Args:
        label: Random text that the names of all loans at this server begin with.
        number: Our id for it.
        request: The client's.
        subject: The tool or prompt that it is about; empty where it is about something else.

    Attributes:
        number: Our id for it; of one that a task was made of, the first one.
        name: What it is called among parked calls; no other call of any server is called so.
        key: The id that it has now, as a key.
        method: What it asks.
        may_ask: Whether the server may ask its client something meanwhile.
        request: The client's request that waits for the answer; None while nobody is there.
        frame: What is to be sent when its turn comes; None once it is with the server.
        questions: What the server has asked about it and is not answered; None before anything was asked.
        strategy: How its client is asked; None before anything was.
        task: What its client is told of it, where it is a task for that.
        round: How often its client was asked by a result.
        outcome: The server's answer, where it came while nobody was there.
        is_left: Whether nobody waits for it any more, and the server may still be about it.
        alarm: What it waits for now, if that has an end.
        replay: What the client has answered already, where the call is made again for that.
        wants_task: Whether the server was asked to make a task of it.
        task_id: The task that it is at the server; None where it is none there.
        token: Our progress token, where the server knows it by another id meanwhile.
        missing: A capability that its client lacks, and for which the server has asked.
        subject: The tool or prompt that it is about.
        sender: Whose it is, where the server has the calls of several people.
        holder: Who is counted for it: this sender, or the connection that it came on where nobody has a name.
        due_s: When it goes on even if it is not its turn; 0 while nothing has held it up.
        is_slow: Whether it has held up others for so long that nobody waits for its end any more.
        turn: Which of the calls that have waited it is, in the order of sending; 0 where it was sent at once.
    """

    # Most loans never have these: they are found here, and not written for each call.
    questions: OpenQuestions | None = None
    strategy: Strategy | None = None
    task: Task | None = None
    round: int = 0
    outcome: Frame | None = None
    is_left: bool = False
    alarm: Alarm | None = None
    replay: Replay | None = None
    wants_task: bool = False
    task_id: str | None = None
    token: bytes | None = None
    missing: str | None = None
    due_s: float = 0.0
    is_slow: bool = False
    turn: int = 0

    def __init__(self, label: str, number: int, request: PerRequestCall, subject: str) -> None:
        self.number = number
        self.name = f"{label}-{number}"
        self.key = b"%d" % number
        self.method = request.method
        self.may_ask = request.method in FACTS.input_required
        self.request: PerRequestCall | None = request
        self.subject = subject
        self.sender = request.frame.sender
        self.holder = holder_of(request)
        self.frame: Frame | None = None

    @property
    def is_at_work(self) -> bool:
        """Whether the server may be asking just now, without saying what it is about: about a task it says so."""
        return self.may_ask and self.frame is None and self.task_id is None

    @property
    def waits_for_client(self) -> bool:
        """Whether the server waits for answers of the client, which is to come back with them."""
        return self.request is None and bool(self.questions)


Hook = Callable[[Frame], None]
"""What to do with the answer to a request of our own."""


class EndListener(Protocol):
    """Who hears how calls end that nobody waits for."""

    def let_go(self, loan: SessionLoan) -> None:
        """Nobody waits for this any more; what was asked about it is still there."""


class SessionLoans:
    """The requests that are with one server.

    Args:
        upstream: The server's edge.
        restore_ids: Whether an answer may have an id of the other type.
        label: Random text, the beginning of all names.
        schedule: Has done later what is to be done later.
        bridging: Has the clock, and how long a parked call is kept: as long as a server may speak of one that is over.

    Attributes:
        schedule: Has done later what is to be done later.
        guesses: Whether a question about one of several calls of one principal may be put to any of these.
        table: The requests, by their ids.
        turns: How many calls have been sent that had to wait.
        listener: Who hears of calls that nobody waits for.
        is_asking: Whether the server has asked something, and not on the stream of a request: then nothing says which
            of several calls it is about, so such calls take turns.
    """

    listener: EndListener

    __slots__ = (
        "_asking", "_bridging", "_hooks", "_label", "_queue", "_upstream", "guesses", "is_asking", "listener",
        "schedule", "table", "turns",
    )  # fmt: skip

    def __init__(
        self,
        upstream: UpstreamEdge,
        restore_ids: bool,
        label: str,
        schedule: Schedule,
        bridging: Bridging,
    ) -> None:
        self.guesses = may_keep(bridging.questions)
        self._upstream = upstream
        self._label = label
        self.table: Loans[SessionLoan] = Loans(restore_ids)
        self._hooks: dict[bytes, Hook] = {}
        self._queue: list[SessionLoan] = []
        self.turns = 0
        self._asking: set[tuple[str, str]] = set()
        self._bridging = bridging
        self.schedule = schedule
        self.is_asking = False

    def __iter__(self) -> Iterator[SessionLoan]:
        return iter(self.table.by_key.values())

    def take_open(self) -> list[bytes]:
        """Return the ids of all requests that the server will not answer any more: it has gone.

        Our own are among them, and those that are kept until it knows more: what it asked first has gone with it.
        """
        self.table.senders, self.table.callers = set(), set()  # of the next server, which has had nothing yet
        for loan in self.table.by_key.values():
            if loan in self._queue:
                self.table.note(loan.sender, loan.sender if loan.may_ask else None)
            else:
                loan.frame = None
        return [*(loan.key for loan in self.table.by_key.values() if loan.frame is None), *self._hooks]

    def new_loan(self, request: PerRequestCall) -> SessionLoan:
        """Begin with a request; nothing is sent."""
        self.table.latest += 1
        name = request.params.get("name")
        subject = name if isinstance(name, str) and len(name) <= _NAME_CHARACTERS else ""
        loan = SessionLoan(self._label, self.table.latest, request, subject)
        sender = loan.sender
        if sender not in self.table.callers or sender not in self.table.senders:
            self.table.note(sender, sender if loan.may_ask else None)
        return loan

    def start(self, loan: SessionLoan) -> None:
        """Send a request to the server, or let it wait for its turn."""
        self.table.by_key[loan.key] = loan
        if self.is_asking and loan.may_ask and self._must_wait(loan):
            if not loan.due_s:
                loan.due_s = self._bridging.steady_s() + self.turn_s
                self.wait(loan, self.turn_s, self._end_turns)
            self._queue.append(loan)
        else:
            self._send(loan)

    def hold(self, loan: SessionLoan) -> None:
        """Keep a request until it is started."""
        self.table.by_key[loan.key] = loan

    def find_task(self, task_id: object) -> SessionLoan | None:
        """Return the loan that is this task at the server."""
        found = (loan for loan in self.table.by_key.values() if loan.task_id is not None and loan.task_id == task_id)
        return next(found, None)

    def find_asking(self, key: bytes) -> SessionLoan | None:
        """Return the loan about which the server has asked something under this id."""
        return next((loan for loan in self.table.by_key.values() if loan.questions and key in loan.questions), None)

    def find_by_token(self, token: object) -> SessionLoan | None:
        """Return the loan that has this progress token of ours."""
        if isinstance(token, bool) or not isinstance(token, int):
            return None
        key = b"%d" % token
        return self.table.find(key) or next((loan for loan in self.table.by_key.values() if loan.token == key), None)

    def find_for(self, request: PerRequestCall) -> SessionLoan | None:
        """Return the loan whose answer this request waits for."""
        return next((loan for loan in self.table.by_key.values() if loan.request is request), None)

    def take_hook(self, key: bytes) -> Hook | None:
        """Take off the table what hears the answer to a request of our own, which has this id."""
        return self._hooks.pop(key, None) or self._hooks.pop(self.table.twin(key), None)

    def finish(self, loan: SessionLoan) -> None:
        """Record that a request is over; those that wait for their turn go on."""
        self.table.by_key.pop(loan.key, None)
        self.go_on()

    def give_up(self, loan: SessionLoan) -> None:
        """Record that nobody waits for the answer to a request, which may still come."""
        if loan.frame is None:
            if loan.wants_task and loan.task_id is None:  # it may be one by the time that the server hears of this
                keep_latest(self._hooks, loan.key, self._cancel_created, _HOOKS)
        elif loan in self._queue:
            self._queue.remove(loan)
        self.schedule.stop(loan.alarm)
        self.finish(loan)

    def wait(self, loan: SessionLoan, after_s: float, then: Callable[[SessionLoan], None]) -> None:
        """Do something with a call after so many seconds, in place of what it has waited for."""
        if loan.alarm is not None:
            self.schedule.stop(loan.alarm)
        loan.alarm = self.schedule.after(after_s, lambda: then(loan))

    def go_on(self) -> None:
        """Send what waits and can go now, the oldest first."""
        while self._queue:
            others = self._find_others()
            loan = next((one for one in self._queue if not self._is_held(one, others)), None)
            if loan is None:
                return
            self._queue.remove(loan)
            self._send(loan)

    def find_at_work(self) -> list[SessionLoan]:
        """Return the calls that the server may ask about just now."""
        return [loan for loan in self.table.by_key.values() if loan.is_at_work]

    def _must_wait(self, loan: SessionLoan) -> bool:
        """Whether a call has to wait: others are under way, or have asked what this one is likely to ask as well."""
        return self._is_held(loan, self._find_others())

    def _find_others(self) -> bool | None:
        """Whether all calls that others wait for wait for their clients; None where there are none."""
        found = None
        if self.guesses or self.table.is_called_by_several:  # of its own there may be thousands
            return None
        for other in self.table.by_key.values():
            if other.is_at_work and (other.waits_for_client or not other.is_slow):
                if not other.waits_for_client:
                    return False
                found = True
        return found

    def _is_held(self, loan: SessionLoan, others: bool | None) -> bool:
        if others is None:
            return False
        return not others or len(self._asking) >= _ASKING or (loan.method, loan.subject) in self._asking

    @property
    def turn_s(self) -> float:
        """How long anything waits for the clients of other calls."""
        return min(TURN_S, self._bridging.keeper().ttl_s)

    def _end_turns(self, _: SessionLoan) -> None:
        """Let the calls go on that have waited too long; nobody waits for those that held them up any more."""
        now_s = self._bridging.steady_s()
        for holding in self.find_at_work():
            holding.is_slow = True
        for loan in [one for one in self._queue if one.due_s <= now_s]:
            self._queue.remove(loan)
            self._send(loan)

    def note_asking(self, loan: SessionLoan) -> None:
        """Record that the server has asked about this: it is likely to do so again."""
        if len(self._asking) < _ASKING:
            self._asking.add((loan.method, loan.subject))

    def follow(self, loan: SessionLoan, method: str, params: dict[str, Any]) -> None:
        """Ask for the answer to a request by another request: it is known by the id of that one from now on."""
        self.table.by_key.pop(loan.key, None)
        loan.token, loan.key = loan.token or loan.key, self.table.next_key()
        self.table.by_key[loan.key] = loan
        self._upstream.send(request_frame(loan.key, method, params))

    def leave(self, loan: SessionLoan, reason: str) -> None:
        """Tell the server that nobody waits for a call any more, and wait a moment for its end."""
        self._let_go(loan)
        if loan.frame is None:
            self._tell_cancelled(loan, reason)
        if loan.frame is None and loan.may_ask:
            loan.is_left = True
            self.wait(loan, SETTLE_S, self.give_up)
        else:
            self.give_up(loan)

    def refuse(self, loan: SessionLoan, reason: str) -> None:
        """Give the server a moment to end a call by itself, which is cancelled if it does not."""
        self._let_go(loan)
        loan.is_left = True
        self.wait(loan, GRACE_S, lambda loan: self.leave(loan, reason))

    def _let_go(self, loan: SessionLoan) -> None:
        loan.request = None
        self.listener.let_go(loan)
        if loan.questions:
            loan.questions.clear()

    def _tell_cancelled(self, loan: SessionLoan, reason: str) -> None:
        """Tell the server so, and wait for the end."""
        if loan.task_id is not None:  # "tasks/cancel MUST be used" for those (2025-11-25/basic/utilities/tasks)
            self._cancel_task(loan.task_id)
            return
        self._upstream.send(cancellation(loan.key, reason))

    def _cancel_created(self, answer: Frame) -> None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            self._cancel_task(decoded(answer).body["result"]["task"]["taskId"])

    def _cancel_task(self, task_id: Any) -> None:
        self.send_own("tasks/cancel", {"taskId": task_id}, lambda answer: None)

    def send_own(self, method: str, params: dict[str, Any], hook: Hook, key: bytes | None = None) -> None:
        """Send the server a request of our own."""
        key = key or self.table.next_key()
        keep_latest(self._hooks, key, hook, _HOOKS)
        self._upstream.send(request_frame(key, method, params))

    def find_asked(self, stream: bytes | None, task_id: str | None) -> list[SessionLoan]:
        """Return the requests that a question of the server may be about.

        Args:
            stream: The id of the request on whose stream it came; None where it came on none.
            task_id: The task that it names.

        Returns:
            Empty where it is about none of them, or nothing says whose it is and several principals have called.
        """
        if stream is not None or task_id is not None:
            named = self.table.find(stream) or self.find_task(task_id)
            return [named] if named is not None and named.may_ask else []
        self.is_asking = True
        return [] if self.table.is_called_by_several else self.find_at_work()

    def find_certain(self, stream: bytes | None, task_id: str | None) -> SessionLoan | None:
        """Return the request that a question of the server is about; None where that may be another one."""
        named = self.table.find(stream) or self.find_task(task_id)
        return self.find_only() if named is None and stream is None and task_id is None else named

    @property
    def can_be_asked(self) -> bool:
        """Whether there is any request that a question may be about."""
        return any(loan.may_ask and loan.frame is None for loan in self.table.by_key.values())

    def find_only(self) -> SessionLoan | None:
        """Return the only request that the server can be speaking of; None if there are several, or none.

        Of several principals none is told what may be about a call of another that has been answered.
        """
        begun = [loan for loan in self.table.by_key.values() if loan.frame is None]
        return begun[0] if len(begun) == 1 and not self.table.is_of_several else None

    def clear(self) -> None:
        """Forget everything: the server is gone."""
        self.table.by_key.clear()
        self._hooks.clear()
        self._queue.clear()
        del self.listener

    def _send(self, loan: SessionLoan) -> None:
        assert loan.frame is not None
        if loan.alarm is not None:  # it has waited
            self.schedule.stop(loan.alarm)
            self.turns += 1
            loan.turn = self.turns
        frame, loan.frame = loan.frame, None
        self._upstream.send(frame._replace(sender=loan.sender) if loan.sender else frame)
