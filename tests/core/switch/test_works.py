"""What a server with a handshake is at work on: tables that do not grow, and calls that are compared with none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.core.commands import Schedule
from dragoman.core.edges.per_request_front import Request
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.edges.wiring import Bridging
from dragoman.core.envelope import Frame
from dragoman.core.switch.to_session.attribution import OpenQuestion, UnclearQuestions
from dragoman.core.switch.to_session.reading import Served
from dragoman.core.switch.to_session.works import Work, Works

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


def make_works() -> Works:
    """Works of a server that asks without saying what about, where the calls of one sender are as good as one."""
    upstream, schedule = (
        SimpleNamespace(send=lambda frame: None),
        SimpleNamespace(after=lambda *what: None, stop=lambda *alarms: None),
    )
    works = Works(cast(UpstreamEdge, upstream), True, "x", cast(Schedule, schedule), BRIDGING)
    works.is_asking = True
    return works


def make_call(works: Works, sender: str) -> Work:
    frame = Frame(b"", "request", b"1", "tools/call", sender=sender)
    work = works.new_work(cast(Request, SimpleNamespace(method=frame.method, params={"name": "ask"}, frame=frame)))
    work.frame = frame
    return work


def begin(works: Works, sender: str = "") -> Work:
    """A call that is with the server, unless it has to wait for its turn."""
    work = make_call(works, sender)
    works.start(work)
    return work


def ask(unclear: UnclearQuestions, works: Works, about: Work) -> OpenQuestion:
    """A question that may be about any call of a sender, and is put to this one."""
    about.questions = cast(Any, Questions([b"q"]))
    question = OpenQuestion(b"q", "elicitation/create", {}, about.sender, works.loans.latest, works.turns, 0.0, about)
    unclear.open.append(question)
    return question


def test_a_call_is_compared_with_no_other_where_it_need_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    works, looked = make_works(), []
    monkeypatch.setattr(Work, "is_at_work", property(looked.append))
    for sender in ("Ann", "Ann", "Ben", "Ann"):
        assert begin(works, sender).frame is None
    assert looked == []


def test_a_question_that_was_guessed_wrong_is_about_an_older_call_of_the_same_sender() -> None:
    works = make_works()
    put: list[Any] = []
    served = SimpleNamespace(works=works, upstream=None, bridging=BRIDGING)
    asker = SimpleNamespace(put_question=lambda *what: put.append(what), has_room=lambda work: True)
    unclear = UnclearQuestions(cast(Served, served), asker)
    older, other, asked = begin(works, "Ann"), make_call(works, "Ben"), begin(works, "Ann")
    question = ask(unclear, works, asked)
    begin(works, "Ann")
    works.start(other)
    works.loans.take(asked.key)
    unclear.finish(asked)
    assert put == [(older, question)]


def test_questions_of_our_own_that_nobody_answers_do_not_pile_up() -> None:
    sent: list[Frame] = []
    upstream, schedule = cast(UpstreamEdge, SimpleNamespace(send=sent.append)), cast(Schedule, None)
    works = Works(upstream, True, "x", schedule, BRIDGING)
    answered: list[Any] = []
    for _ in range(5000):
        works.send_own("tasks/cancel", {"taskId": "t"}, answered.append)
    assert len(sent) == 5000
    assert works.loans.take(b"1") is None
    assert len(works.take_open()) == 4096


def test_of_several_principals_none_is_told_what_names_no_request() -> None:
    works = make_works()
    works.is_asking = False
    call = begin(works, "Ann")
    assert works.find_only() is call
    works.finish(call)
    begin(works, "Ben")
    assert works.find_only() is None, "it may be about the call that was answered"


def test_of_several_principals_none_is_asked_what_names_no_request() -> None:
    works = make_works()
    call = begin(works, "Ann")
    assert works.find_asked(None, None) == [call]
    works.finish(call)
    other = begin(works, "Ben")
    assert works.find_asked(None, None) == []
    assert works.find_asked(other.key, None) == [other]


def test_callers_without_a_name_are_one() -> None:
    works = make_works()
    works.finish(begin(works))
    call = begin(works)
    assert works.find_asked(None, None) == [call]
    assert works.find_only() is call
    begin(works, "Ann")
    assert works.find_asked(None, None) == [], "who has no name may be anybody"


def test_a_server_that_is_started_again_has_had_nobody_yet() -> None:
    works = make_works()
    for sender in ("Ann", "Ben"):
        works.finish(begin(works, sender))
    assert works.take_open() == []
    call = begin(works, "Ben")
    assert works.find_asked(None, None) == [call]
    assert works.find_only() is call
