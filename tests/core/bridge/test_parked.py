"""A server asks in the middle of a call, and its per-request client comes back with answers: as conversations."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.bridge.asking import AskedCall, Turned
from dragoman.core.bridge.parked import ExpiredCall, Parking
from dragoman.core.bridge.questions import Question
from dragoman.core.bridge.seal import Seal
from dragoman.core.bridge.state import Binding, Keeper, Moment, Reason, State, digest_params
from dragoman.errors import RemoteProtocolError

C, D, E = "2025-06-18", "2025-11-25", "2026-07-28"
NONCE = b"n" * 12
ALL = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
YES = {"action": "accept", "content": {"name": "x"}}
BINDING = Binding("files", "tools/call", digest_params({"name": "add"}), "alice")


def caller(capabilities: Any = ALL, revision: str = D) -> AskedCall:
    return AskedCall(BINDING, capabilities, revision)


def parking(**more: Any) -> Parking:
    return Parking(Keeper(Seal(b"k" * 32, b"i" * 16), ttl_s=60), **more)


def ask(desk: Parking, number: int = 1, call: str = "c", method: str = "elicitation/create", **more: Any) -> Any:
    params = {"elicitation/create": FORM, "roots/list": None}.get(method, {})
    return desk.ask(call, b"%d" % number, method, more.pop("params", params), caller(**more))


def park(desk: Parking, call: str = "c", now_s: float = 0.0) -> tuple[dict[str, Any], State]:
    """Park a call: the questions that the client gets, and the state that it brings back."""
    result = desk.compose(call, Moment(now_s, now_s), NONCE)
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "result": result}, E, method="tools/call")
    return result["inputRequests"], desk.keeper.read(result["requestState"], BINDING, now_s)


def reason_of(caught: Any) -> str:
    assert caught.value.code == -32602
    reason: str = caught.value.data["reason"]
    return reason


def test_a_question_is_answered_by_the_retry() -> None:
    desk = parking()
    assert ask(desk) == Question("elicitation/create", FORM)
    questions, state = park(desk)
    assert questions == {"question-1": {"method": "elicitation/create", "params": FORM}}
    resumed = desk.resume(state, {"question-1": YES}, ALL)
    assert resumed == ("c", [(b"1", YES)], None, False, ())
    assert desk.finish("c", {"result": {}})
    assert len(desk) == 0


def test_three_questions_in_a_row_take_three_retries() -> None:
    desk = parking()
    for number in (1, 2, 3):
        ask(desk, number)
        questions, state = park(desk)
        assert list(questions) == [f"question-{number}"]
        assert desk.resume(state, {f"question-{number}": YES}, ALL).replies == [(b"%d" % number, YES)]
    assert desk.finish("c", {"result": {}})


def test_two_questions_at_once_are_asked_together() -> None:
    desk = parking()
    ask(desk, 1)
    ask(desk, 2, method="roots/list")
    questions, state = park(desk)
    assert questions["question-2"] == {"method": "roots/list"}
    answers = {"question-2": {"roots": []}, "question-1": YES, "question-9": YES}
    assert desk.resume(state, answers, ALL).replies == [(b"1", YES), (b"2", {"roots": []})]


def test_a_question_that_comes_while_the_call_is_parked_is_asked_next() -> None:
    desk = parking()
    ask(desk, 1)
    _, state = park(desk)
    ask(desk, 2)
    resumed = desk.resume(state, {"question-1": YES}, ALL)
    assert resumed.asks_again
    questions, state = park(desk)
    assert list(questions) == ["question-2"]
    assert not desk.resume(state, {"question-2": YES}, ALL).asks_again


@pytest.mark.parametrize("answers", [None, {}, {"other": YES}])
def test_what_is_not_answered_is_asked_again(answers: Any) -> None:
    desk = parking()
    ask(desk)
    _, state = park(desk)
    assert desk.resume(state, answers, ALL) == ("c", [], None, True, ())
    questions, state = park(desk)
    assert list(questions) == ["question-1"]
    assert desk.resume(state, {"question-1": YES}, ALL).replies == [(b"1", YES)]


def test_an_answer_is_in_the_form_of_the_server() -> None:
    desk = parking()
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
    ask(desk, method="sampling/createMessage", params=params, revision=C)
    _, state = park(desk)
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    resumed = desk.resume(state, {"question-1": {"role": "assistant", "model": "m", "content": blocks}}, ALL)
    assert resumed.replies[0][1]["content"] == {"type": "text", "text": "a\nb"}
    assert resumed.losses


@pytest.mark.parametrize(
    ("answers", "pointer"),
    [
        ([], "/params/inputResponses"),
        ({"question-1": 5}, "/params/inputResponses/question-1"),
        ({"question-1": {"action": "accept", "content": 5}}, "/params/inputResponses/question-1"),
    ],
)
def test_an_answer_that_is_none_can_be_given_again(answers: Any, pointer: str) -> None:
    desk = parking()
    ask(desk, revision=C)
    _, state = park(desk)
    with pytest.raises(RemoteProtocolError) as caught:
        desk.resume(state, answers, ALL)
    assert caught.value.data == {"reason": "answer-malformed", "pointer": pointer}
    assert desk.resume(state, {"question-1": YES}, ALL).replies == [(b"1", YES)]


def test_a_state_is_good_for_one_retry() -> None:
    desk = parking()
    ask(desk)
    _, state = park(desk)
    desk.resume(state, {"question-1": YES}, ALL)
    with pytest.raises(RemoteProtocolError) as caught:
        desk.resume(state, {"question-1": YES}, ALL)
    assert reason_of(caught) == Reason.USED.value


def test_an_earlier_state_is_not_good_for_a_later_round() -> None:
    desk = parking()
    ask(desk)
    _, first = park(desk)
    desk.resume(first, None, ALL)
    park(desk)
    with pytest.raises(RemoteProtocolError) as caught:
        desk.resume(first, {"question-1": YES}, ALL)
    assert reason_of(caught) == Reason.USED.value


def test_a_call_that_has_ended_is_unknown() -> None:
    desk = parking()
    ask(desk)
    _, state = park(desk)
    desk.forget("c")
    with pytest.raises(RemoteProtocolError) as caught:
        desk.resume(state, None, ALL)
    assert reason_of(caught) == Reason.UNKNOWN.value


def test_a_response_that_comes_while_nobody_is_there_is_kept() -> None:
    desk = parking()
    ask(desk)
    _, state = park(desk)
    assert not desk.finish("c", {"result": {"content": []}})
    resumed = desk.resume(state, {"question-1": YES}, ALL)
    assert resumed == ("c", [], {"result": {"content": []}}, False, ())
    assert len(desk) == 0


def test_a_call_without_questions_is_answered_at_once() -> None:
    assert parking().finish("other", {})


def test_a_question_that_is_withdrawn_is_not_asked() -> None:
    desk = parking()
    ask(desk, 1)
    ask(desk, 2)
    _, state = park(desk)
    desk.withdraw("c", b"1")
    desk.withdraw("other", b"1")
    resumed = desk.resume(state, {"question-1": YES, "question-2": YES}, ALL)
    assert resumed.replies == [(b"2", YES)]


def test_calls_whose_clients_do_not_come_back_are_given_up() -> None:
    desk = parking()
    for number, call in enumerate("abcd"):
        ask(desk, call=call)
        if call != "d":
            park(desk, call, now_s=float(number))
    desk.finish("b", {})
    desk.finish("c", {})
    assert desk.find_next_expiry() == 60.0
    assert desk.expire(59.9) == []
    assert desk.expire(60.0) == [ExpiredCall("a", True)]
    assert desk.expire(100.0) == [ExpiredCall("b", False), ExpiredCall("c", False)]
    assert desk.find_next_expiry() is None
    assert len(desk) == 1


def test_a_call_with_its_client_there_does_not_expire() -> None:
    desk = parking()
    ask(desk)
    _, state = park(desk)
    desk.resume(state, None, ALL)
    assert desk.expire(1e9) == []


@pytest.mark.parametrize(
    ("method", "declared"),
    [
        ("roots/list", {}),
        ("elicitation/create", {"elicitation": {"url": {}}}),
        ("elicitation/create", {"roots": {}}),
    ],
)
def test_what_a_caller_did_not_declare_is_an_error_to_the_server_alone(method: str, declared: Any) -> None:
    desk = parking()
    turned = ask(desk, method=method, capabilities=declared)
    assert isinstance(turned, Turned)
    assert turned.reply.code == -32601
    assert turned.error is None
    assert len(desk) == 0


def test_a_retry_says_anew_what_may_be_asked() -> None:
    desk = parking()
    ask(desk)
    _, state = park(desk)
    desk.resume(state, {"question-1": YES}, {})
    assert isinstance(ask(desk, 2), Turned)


def test_what_no_client_can_be_asked_is_refused_and_the_call_goes_on() -> None:
    turned = ask(parking(), method="tasks/get")
    assert isinstance(turned, Turned)
    assert turned.reply.code == -32601
    assert turned.error is None


def test_a_malformed_question_ends_the_call() -> None:
    turned = ask(parking(), params=None)
    assert isinstance(turned, Turned)
    assert turned.error is not None
    assert "params" in turned.error.message


def test_calls_and_questions_have_a_limit() -> None:
    desk = parking(most_calls=2, most_questions=1)
    ask(desk, call="a")
    ask(desk, call="b")
    for turned in (ask(desk, call="c"), ask(desk, 2, call="a")):
        assert isinstance(turned, Turned)
        assert turned.error is not None
        assert turned.error.code == -32603
    assert len(desk) == 2


def test_a_wall_clock_that_is_set_changes_nothing_for_a_call_that_waits() -> None:
    desk = parking()
    ask(desk)
    text = desk.compose("c", Moment(1000.0, 5.0), NONCE)["requestState"]
    assert desk.find_next_expiry() == 65.0
    state = desk.keeper.read(text, BINDING, 1000.0 + 86400, desk)
    assert desk.resume(state, {"question-1": YES}, ALL).replies == [(b"1", YES)]


def test_a_call_that_was_given_up_came_too_late_by_the_wall_clock_too() -> None:
    desk = parking()
    ask(desk)
    text = desk.compose("c", Moment(1000.0, 5.0), NONCE)["requestState"]
    desk.expire(65.0)
    with pytest.raises(RemoteProtocolError) as caught:
        desk.keeper.read(text, BINDING, 1061.0, desk)
    assert reason_of(caught) == Reason.EXPIRED.value


def test_no_principal_has_all_places() -> None:
    desk = parking(shares=True, most_calls=4)
    for call in ("c", "d"):
        assert isinstance(ask(desk, call=call), Question)
    assert isinstance(ask(desk, call="e"), Turned)
    assert desk.has_room("ben")
    assert not desk.has_room("alice")
    assert parking(most_calls=1).has_room("alice")
