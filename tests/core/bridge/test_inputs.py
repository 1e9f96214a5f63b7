"""A per-request server wants input of a client with a handshake: calls as conversations."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.bridge.inputs import FailCall, FinishCall, InputLoop, Retry
from dragoman.core.bridge.posing import Asked, Pose, WhenUnaskable
from dragoman_spec import HANDSHAKE_REVISIONS

A, B, C, D = HANDSHAKE_REVISIONS

CALL = {"name": "add", "arguments": {"a": 1}, "_meta": {"progressToken": 3}}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
ASK = {"method": "elicitation/create", "params": FORM}
VISIT = {"method": "elicitation/create", "params": {"mode": "url", "message": "Go", "url": "https://x.example/"}}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5},
}
TOOLED = {"method": "sampling/createMessage", "params": {**SAMPLE["params"], "tools": []}}  # type: ignore[dict-item]
ROOTS = {"method": "roots/list"}
ALL = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
DONE = {"resultType": "complete", "content": []}
YES = {"action": "accept", "content": {"name": "x"}}


def loop(revision: str = D, method: str = "tools/call", capabilities: Any = ALL, **more: Any) -> InputLoop:
    client = {name: more.pop(name) for name in ("can_ask", "roots", "unaskable") if name in more}
    return InputLoop(method, CALL, Asked(revision, capabilities, **client), **more)


def wants(state: str | None = None, **questions: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"resultType": "input_required"}
    if questions:
        result["inputRequests"] = questions
    return result if state is None else {**result, "requestState": state}


def answer(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 9, "result": result}


def posed(step: Any) -> list[str]:
    assert isinstance(step, Pose), step
    return list(step.questions)


def failure(step: Any) -> str:
    """The reason that a model reads."""
    assert isinstance(step, FinishCall), step
    assert step.result["isError"] is True
    text: str = step.result["content"][0]["text"]
    return text


def test_a_complete_result_goes_on_at_once() -> None:
    assert loop().take_result(DONE) == FinishCall(DONE)


def test_a_question_is_posed_and_the_call_tried_again() -> None:
    call = loop()
    step = call.take_result(wants("st\u2028ate", who=ASK))
    assert isinstance(step, Pose)
    assert posed(step) == ["who"]
    assert step.questions["who"].params == FORM
    retry = call.take_answer("who", answer(YES))
    assert retry == Retry({**CALL, "inputResponses": {"who": YES}, "requestState": "st\u2028ate"})
    assert call.take_answer("who", answer(YES)) is None
    assert call.take_result(DONE) == FinishCall(DONE)


def test_without_a_state_none_goes_back() -> None:
    call = loop()
    call.take_result(wants("s", who=ASK))
    call.take_answer("who", answer(YES))
    call.take_result(wants(None, again=ASK))
    assert call.take_answer("again", answer(YES)) == Retry({**CALL, "inputResponses": {"again": YES}})


def test_three_rounds_each_carry_their_own_answers() -> None:
    call = loop()
    for number in "123":
        assert posed(call.take_result(wants(number, **{f"q{number}": ASK}))) == [f"q{number}"]
        retry = call.take_answer(f"q{number}", answer(YES))
        assert retry == Retry({**CALL, "inputResponses": {f"q{number}": YES}, "requestState": number})
    assert call.take_result(DONE) == FinishCall(DONE)


@pytest.mark.parametrize("revision", [C, D])
def test_newer_clients_are_asked_all_at_once(revision: str) -> None:
    call = loop(revision, capabilities={"elicitation": {}, "roots": {}})
    assert posed(call.take_result(wants(one=ASK, two=ROOTS))) == ["one", "two"]
    assert call.take_answer("two", answer({"roots": []})) is None
    assert call.take_answer("one", answer(YES)) == Retry(
        {**CALL, "inputResponses": {"one": YES, "two": {"roots": []}}},
    )


@pytest.mark.parametrize("revision", [A, B])
def test_the_first_clients_are_asked_one_by_one(revision: str) -> None:
    call = loop(revision, capabilities={"sampling": {}, "roots": {}})
    assert posed(call.take_result(wants(one=SAMPLE, two=ROOTS))) == ["one"]
    sampled = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "a"}}
    assert posed(call.take_answer("one", answer(sampled))) == ["two"]
    assert isinstance(call.take_answer("two", answer({"roots": []})), Retry)


def test_what_nobody_asked_is_not_an_answer() -> None:
    call = loop()
    call.take_result(wants(who=ASK))
    assert call.take_answer("other", answer(YES)) is None
    assert isinstance(call.take_answer("who", answer(YES)), Retry)


def test_known_roots_are_not_asked_for() -> None:
    roots = [{"uri": "file:///a"}]
    assert loop(roots=roots).take_result(wants("s", where=ROOTS)) == Retry(
        {**CALL, "inputResponses": {"where": {"roots": roots}}, "requestState": "s"}
    )


def test_rounds_without_questions_wait_longer_each_time() -> None:
    call = loop()
    waits = [call.take_result(wants("s")) for _ in range(3)]
    assert [step.after_s for step in waits if isinstance(step, Retry)] == [0.25, 0.5, 1.0]
    assert waits[0] == Retry({**CALL, "requestState": "s"}, 0.25)


def test_a_question_ends_the_waiting() -> None:
    call = loop()
    for _ in range(3):
        call.take_result(wants("s"))
    call.take_result(wants("s", who=ASK))
    assert call.take_answer("who", answer(YES)) == Retry({**CALL, "inputResponses": {"who": YES}, "requestState": "s"})
    assert isinstance(call.take_result(wants("s")), Retry)


def test_a_server_that_only_makes_wait_is_given_up() -> None:
    call = loop()
    for _ in range(3):
        call.take_result(wants("s"))
    assert "4 times" in failure(call.take_result(wants("s")))


def test_a_server_that_asks_for_ever_is_given_up() -> None:
    call = loop()
    for _ in range(10):
        call.take_result(wants(who=ASK))
        call.take_answer("who", answer(YES))
    assert "11 times" in failure(call.take_result(wants(who=ASK)))


@pytest.mark.parametrize(
    ("revision", "capabilities", "question", "reason"),
    [
        (D, {}, ASK, "capability elicitation."),
        (D, {"elicitation": {"url": {}}}, ASK, "capability elicitation.form."),
        (D, {"elicitation": {}}, VISIT, "Go (https://x.example/). It cannot be asked"),
        (C, {"elicitation": {}}, VISIT, "capability elicitation.url."),
        (C, ALL, VISIT, "cannot open a URL"),
        (A, ALL, ASK, "has no elicitation"),
        (D, {"sampling": {}}, TOOLED, "capability sampling.tools."),
        (D, {}, ROOTS, "capability roots."),
    ],
)
def test_what_a_client_cannot_be_asked_fails_the_tool(
    revision: str, capabilities: Any, question: Any, reason: str
) -> None:
    call = loop(revision, capabilities=capabilities)
    assert reason in failure(call.take_result(wants(who=question)))


def test_the_reason_names_the_question() -> None:
    assert failure(loop(capabilities={}).take_result(wants(who=ASK))) == (
        "The server asks for input: Who?. It cannot be asked: the client did not declare the capability elicitation."
    )


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
def test_what_has_no_failed_result_fails_with_an_error(method: str) -> None:
    step = loop(method=method, capabilities={}).take_result(wants(who=ASK))
    assert isinstance(step, FailCall)
    assert step.code == -32603
    assert step.data == {"method": method}


def test_a_form_may_be_declined_for_the_client() -> None:
    call = loop(A, capabilities={}, unaskable=WhenUnaskable.DECLINE)
    assert call.take_result(wants(who=ASK)) == Retry({**CALL, "inputResponses": {"who": {"action": "decline"}}})


def test_other_questions_are_not_declined_for_it() -> None:
    call = loop(A, capabilities={}, unaskable=WhenUnaskable.DECLINE)
    assert "capability sampling" in failure(call.take_result(wants(who=SAMPLE)))


def test_a_client_out_of_reach_is_not_asked() -> None:
    assert "no request can reach" in failure(loop(can_ask=False).take_result(wants(who=ASK)))


def test_a_client_out_of_reach_is_sent_to_a_url_by_an_error() -> None:
    step = loop(can_ask=False, method="prompts/get").take_result(wants(who=VISIT))
    assert isinstance(step, FailCall)
    assert step.code == -32042
    (asked,) = step.data["elicitations"]
    assert {**asked, "elicitationId": ""} == {**VISIT["params"], "elicitationId": ""}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("revision", "capabilities", "questions"),
    [(C, ALL, {"a": VISIT}), (D, {"elicitation": {}}, {"a": VISIT}), (D, ALL, {"a": VISIT, "b": ASK})],
)
def test_that_error_is_for_clients_that_know_it(revision: str, capabilities: Any, questions: Any) -> None:
    assert failure(loop(revision, capabilities=capabilities, can_ask=False).take_result(wants(**questions)))


def test_a_visited_url_is_told_to_be_complete() -> None:
    call = loop()
    step = call.take_result(wants("s", who=VISIT))
    assert isinstance(step, Pose)
    name = (step.questions["who"].params or {})["elicitationId"]
    call.take_answer("who", answer({"action": "accept"}))
    assert call.take_result(DONE) == FinishCall(DONE, (name,))


def test_a_url_that_nobody_visited_is_not() -> None:
    call = loop()
    call.take_result(wants("s", who=VISIT))
    assert call.take_answer("who", answer({"action": "decline"})) == Retry(
        {**CALL, "inputResponses": {"who": {"action": "decline"}}, "requestState": "s"}
    )
    assert call.take_result(DONE) == FinishCall(DONE)


def test_an_error_of_the_client_ends_the_call() -> None:
    call = loop()
    call.take_result(wants(one=ASK, two=ROOTS))
    error = {"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "not now"}}
    assert failure(call.take_answer("one", error)) == "The client did not answer elicitation/create: not now (-1)"
    assert call.take_answer("two", answer({"roots": []})) is None


def test_an_answer_that_is_none_ends_the_call() -> None:
    call = loop(A)
    call.take_result(wants(where=ROOTS))
    assert "cannot be passed on" in failure(call.take_answer("where", answer({"roots": 5})))


def test_a_question_that_is_malformed_ends_the_call() -> None:
    params = {"messages": 5, "maxTokens": 5}
    step = loop(A).take_result(wants(who={"method": "sampling/createMessage", "params": params}))
    assert "expected a list" in failure(step)


def test_losses_of_an_answer_come_with_the_retry() -> None:
    call = loop()
    call.take_result(wants(where=ROOTS))
    step = call.take_answer("where", answer({"roots": [], "_meta": {"com.example/a": 1}}))
    assert isinstance(step, Retry)
    assert [loss.pointer for loss in step.losses] == ["/result/_meta"]


@pytest.mark.parametrize("result", [{"resultType": "odd"}, {"resultType": "input_required"}])
def test_a_result_that_is_invalid_is_an_error(result: Any) -> None:
    step = loop().take_result(result)
    assert isinstance(step, FailCall)
    assert step.code == -32603
