"""Rounds of questions: what goes to the client, and what it comes to."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.bridge.posing import Answered, Asked, Pose, Posing, Refused, WhenUnaskable
from dragoman.core.bridge.questions import Question
from dragoman_spec import HANDSHAKE_REVISIONS

A, B, C, D = HANDSHAKE_REVISIONS
ALL = {"elicitation": {"form": {}, "url": {}}, "roots": {}}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
ASK = {"method": "elicitation/create", "params": FORM}
VISIT = {"method": "elicitation/create", "params": {"mode": "url", "message": "Go", "url": "https://x.example/"}}
ROOTS = {"method": "roots/list"}
YES = {"action": "accept", "content": {}}


def posing(revision: str = D, capabilities: Any = ALL, **more: Any) -> Posing:
    return Posing(Asked(revision, capabilities, **more))


def answer(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 9, "result": result}


@pytest.mark.parametrize(("revision", "several"), [(A, False), (B, False), (C, True), (D, True)])
def test_clients_take_several_questions_at_once_or_not(revision: str, several: bool) -> None:
    assert Asked(revision, {}).takes_several is several


def test_no_questions_are_answered_at_once() -> None:
    assert posing().begin({}) == Answered({}, ())


def test_a_round_ends_with_all_answers_in_the_order_in_which_they_came() -> None:
    desk = posing()
    assert desk.begin({"a": ASK, "b": ROOTS}) == Pose(
        {"a": Question("elicitation/create", FORM), "b": Question("roots/list", None)}
    )
    assert desk.take_answer("b", answer({"roots": []})) is None
    assert desk.take_answer("a", answer(YES)) == Answered({"b": {"roots": []}, "a": YES}, ())


def test_a_visit_is_named() -> None:
    desk = posing()
    posed = desk.begin({"a": VISIT})
    assert isinstance(posed, Pose)
    name = (posed.questions["a"].params or {})["elicitationId"]
    assert desk.take_answer("a", answer({"action": "accept"})) == Answered({"a": {"action": "accept"}}, ())
    assert desk.visited == (name,)


def test_what_is_known_or_declined_is_not_asked() -> None:
    desk = posing(A, {"roots": {}}, roots=[{"uri": "file:///a"}], unaskable=WhenUnaskable.DECLINE)
    assert desk.begin({"a": ROOTS, "b": ASK}) == Answered(
        {"a": {"roots": [{"uri": "file:///a"}]}, "b": {"action": "decline"}}, ()
    )


def test_a_refusal_ends_the_round() -> None:
    desk = posing(capabilities={"roots": {}})
    refused = desk.begin({"a": ROOTS, "b": ASK})
    assert refused == Refused(
        "The server asks for input: Who?. It cannot be asked: the client did not declare the capability elicitation."
    )
    assert desk.take_answer("a", answer({"roots": []})) is None


@pytest.mark.parametrize(
    ("revision", "body"), [(D, {"error": {"code": 1, "message": "no"}}), (A, answer({"roots": 5}))]
)
def test_after_a_refusal_nothing_more_is_taken(revision: str, body: dict[str, Any]) -> None:
    desk = posing(revision)
    desk.begin({"a": ROOTS, "b": ROOTS})
    assert isinstance(desk.take_answer("a", body), Refused)
    assert desk.take_answer("b", answer({"roots": []})) is None


def test_urls_can_be_told_by_an_error_where_no_request_goes() -> None:
    refused = posing(can_ask=False).begin({"a": VISIT})
    assert isinstance(refused, Refused)
    assert [url["url"] for url in refused.urls] == ["https://x.example/"]
    assert posing(can_ask=False).begin({"a": VISIT, "b": ASK}) == Refused(
        "The server asks for input: Go (https://x.example/). It cannot be asked: no request can reach the client "
        "during a call."
    )
