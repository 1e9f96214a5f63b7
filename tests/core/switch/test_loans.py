"""What a server with a handshake is at work on: tables that do not grow, and calls that are compared with none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.core.commands import Schedule
from dragoman.core.edges.per_request_front import PerRequestCall
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.edges.wiring import Bridging
from dragoman.core.envelope import Frame, read_params
from dragoman.core.switch.to_session.attribution import OpenQuestion, UnclearQuestions
from dragoman.core.switch.to_session.loans import SessionLoan, SessionLoans, holder_of
from dragoman.core.switch.to_session.reading import Served

BRIDGING = cast(
    Bridging,
    SimpleNamespace(
        questions="auto",
        shares_server=True,
        steady_s=lambda: 0.0,
        keeper=lambda: SimpleNamespace(ttl_s=600.0),
    ),
)


class Questions(list[bytes]):
    """Those of a call: what the server is answered does not matter here."""

    withdraw = list[bytes].remove


def make_works(bridging: Bridging = BRIDGING) -> SessionLoans:
    """Works of a server that asks without saying what about, where the calls of one sender are as good as one."""
    upstream, schedule = (
        SimpleNamespace(send=lambda frame: None),
        SimpleNamespace(after=lambda *what: None, stop=lambda *alarms: None),
    )
    loans = SessionLoans(cast(UpstreamEdge, upstream), True, "x", cast(Schedule, schedule), bridging)
    loans.is_asking = True
    return loans


def make_call(loans: SessionLoans, sender: str) -> SessionLoan:
    frame = Frame(b"", "request", b"1", "tools/call", sender=sender)
    loan = loans.new_loan(
        cast(PerRequestCall, SimpleNamespace(method=frame.method, params={"name": "ask"}, frame=frame))
    )
    loan.frame = frame
    return loan


def begin(loans: SessionLoans, sender: str = "") -> SessionLoan:
    """A call that is with the server, unless it has to wait for its turn."""
    loan = make_call(loans, sender)
    loans.start(loan)
    return loan


def ask(unclear: UnclearQuestions, loans: SessionLoans, about: SessionLoan) -> OpenQuestion:
    """A question that may be about any call of a sender, and is put to this one."""
    about.questions = cast(Any, Questions([b"q"]))
    question = OpenQuestion(b"q", "elicitation/create", {}, about.sender, loans.table.latest, loans.turns, 0.0, about)
    unclear.open.append(question)
    return question


def test_a_call_is_compared_with_no_other_where_it_need_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    loans, looked = make_works(), []
    monkeypatch.setattr(SessionLoan, "is_at_work", property(looked.append))
    for sender in ("Ann", "Ann", "Ben", "Ann"):
        assert begin(loans, sender).frame is None
    assert looked == []


def test_calls_that_wait_their_turn_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    bridging = SimpleNamespace(**{**vars(BRIDGING), "questions": "refuse"})
    loans, looked, count = make_works(cast(Bridging, bridging)), [0], 80
    calls = [begin(loans, "Ann") for _ in range(count)]
    assert [call.frame is None for call in calls] == [True] + [False] * (count - 1)
    is_at_work = SessionLoan.is_at_work.fget
    assert is_at_work is not None

    def look(loan: SessionLoan) -> bool:
        looked[0] += 1
        return bool(is_at_work(loan))

    monkeypatch.setattr(SessionLoan, "is_at_work", property(look))
    for call in calls:
        assert call.frame is None
        loans.finish(call)
    assert looked[0] < count * count


def test_a_question_that_was_guessed_wrong_is_about_an_older_call_of_the_same_sender() -> None:
    loans = make_works()
    put: list[Any] = []
    served = SimpleNamespace(loans=loans, upstream=None, bridging=BRIDGING)
    asker = SimpleNamespace(put_question=lambda *what: put.append(what), has_room=lambda loan: True)
    unclear = UnclearQuestions(cast(Served, served), asker)
    older, other, asked = begin(loans, "Ann"), make_call(loans, "Ben"), begin(loans, "Ann")
    question = ask(unclear, loans, asked)
    begin(loans, "Ann")
    loans.start(other)
    loans.table.take(asked.key)
    unclear.finish(asked)
    assert put == [(older, question)]


def test_questions_of_our_own_that_nobody_answers_do_not_pile_up() -> None:
    sent: list[Frame] = []
    upstream, schedule = cast(UpstreamEdge, SimpleNamespace(send=sent.append)), cast(Schedule, None)
    loans = SessionLoans(upstream, True, "x", schedule, BRIDGING)
    answered: list[Any] = []
    for _ in range(5000):
        loans.send_own("tasks/cancel", {"taskId": "t"}, answered.append)
    assert len(sent) == 5000
    assert loans.table.take(b"1") is None
    assert len(loans.take_open()) == 4096


def test_of_several_principals_none_is_told_what_names_no_request() -> None:
    loans = make_works()
    loans.is_asking = False
    call = begin(loans, "Ann")
    assert loans.find_only() is call
    loans.finish(call)
    begin(loans, "Ben")
    assert loans.find_only() is None, "it may be about the call that was answered"


def test_of_several_principals_none_is_asked_what_names_no_request() -> None:
    loans = make_works()
    call = begin(loans, "Ann")
    assert loans.find_asked(None, None) == [call]
    loans.finish(call)
    other = begin(loans, "Ben")
    assert loans.find_asked(None, None) == []
    assert loans.find_asked(other.key, None) == [other]


def test_callers_without_a_name_are_one() -> None:
    loans = make_works()
    loans.finish(begin(loans))
    call = begin(loans)
    assert loans.find_asked(None, None) == [call]
    assert loans.find_only() is call
    begin(loans, "Ann")
    assert loans.find_asked(None, None) == [], "who has no name may be anybody"


@pytest.mark.parametrize(("sender", "source", "holder"), [("Ann", ("::1", 5), "Ann"), ("", ("::1", 5), ("::1", 5))])
def test_where_nobody_has_a_name_the_connection_is_counted(sender: str, source: tuple[str, int], holder: Any) -> None:
    frame = Frame(b"", "request", b"1", "tools/call", sender=sender, source=source)
    assert holder_of(cast(PerRequestCall, SimpleNamespace(frame=frame))) == holder


def test_a_task_that_is_made_of_a_call_after_it_was_given_up_is_cancelled() -> None:
    loans, sent = make_works(), list[Frame]()
    loans._upstream = cast(UpstreamEdge, SimpleNamespace(send=sent.append))
    loan = begin(loans)
    loan.wants_task = True
    loans.give_up(loan)
    hook = loans.take_hook(loan.key)
    assert hook is not None
    hook(Frame(b'{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t"}}}', "result", loan.key, None))
    assert [(frame.method, read_params(frame)) for frame in sent[1:]] == [("tasks/cancel", {"taskId": "t"})]
