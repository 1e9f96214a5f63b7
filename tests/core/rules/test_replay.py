"""A call that may be made twice is made again with recorded answers: as conversations."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.rules.asking import CallOwner, RefusedQuestion
from dragoman.core.rules.questions import Question, Reply
from dragoman.core.rules.replay import KIND, Replay, resume_replay
from dragoman.core.rules.state import Binding, Keeper, Reason, Seal, State, digest_params
from dragoman.errors import RemoteProtocolError

C, D, E = "2025-06-18", "2025-11-25", "2026-07-28"
KEEPER = Keeper(Seal(b"k" * 32, b"1" * 16))
REPLICA = Keeper(Seal(b"k" * 32, b"2" * 16))
BINDING = Binding("files", "tools/call", digest_params({"name": "add"}))
ALL = {"elicitation": {"form": {}, "url": {}}, "roots": {}}
YES = {"action": "accept", "content": {"name": "x"}}


def whose(capabilities: Any = ALL, revision: str = D) -> CallOwner:
    return CallOwner(BINDING, capabilities, revision)


def form(message: str, **more: Any) -> dict[str, Any]:
    return {"message": message, "requestedSchema": {"type": "object", "properties": {}}, **more}


def ask(attempt: Replay, message: str, **more: Any) -> Reply | Question | RefusedQuestion:
    return attempt.take_question("elicitation/create", form(message, **more))


def compose(attempt: Replay, question: Any) -> dict[str, Any]:
    result = attempt.compose(question, KEEPER, 0.0, b"n" * 12)
    assert isinstance(result, dict)
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "result": result}, E, method="tools/call")
    return result


def retry(result: dict[str, Any], answers: Any, capabilities: Any = ALL) -> Replay:
    return resume_replay(REPLICA.read(result["requestState"], BINDING, 1.0), answers, whose(capabilities))


def test_three_questions_take_four_attempts_in_any_replica() -> None:
    attempt = Replay(whose())
    for number in range(3):
        for before in range(number):
            assert ask(attempt, f"q{before}") == Reply({"action": "accept", "content": {"n": before}})
        question = ask(attempt, f"q{number}")
        assert question == Question("elicitation/create", form(f"q{number}"))
        result = compose(attempt, question)
        assert list(result["inputRequests"]) == [f"question-{number + 1}"]
        attempt = retry(result, {f"question-{number + 1}": {"action": "accept", "content": {"n": number}}})
    assert [ask(attempt, f"q{number}") for number in range(3)] == [
        Reply({"action": "accept", "content": {"n": number}}) for number in range(3)
    ]


@pytest.mark.parametrize("answers", [None, {}, {"question-9": YES}])
def test_what_is_not_answered_is_asked_again(answers: Any) -> None:
    attempt = Replay(whose())
    result = compose(attempt, ask(attempt, "q"))
    assert ask(retry(result, answers), "q") == Question("elicitation/create", form("q"))


@pytest.mark.parametrize(
    ("answers", "pointer"), [(5, "/params/inputResponses"), ({"question-1": 5}, "/params/inputResponses/question-1")]
)
def test_an_answer_that_is_none_is_refused(answers: Any, pointer: str) -> None:
    attempt = Replay(whose())
    result = compose(attempt, ask(attempt, "q"))
    with pytest.raises(RemoteProtocolError) as caught:
        retry(result, answers)
    assert caught.value.data == {"reason": Reason.MALFORMED.value, "pointer": pointer}


def test_a_server_that_asks_something_else_is_refused() -> None:
    attempt = Replay(whose())
    attempt = retry(compose(attempt, ask(attempt, "delete a?")), {"question-1": YES})
    turned = ask(attempt, "delete b?")
    assert isinstance(turned, RefusedQuestion)
    assert turned.error is not None
    assert turned.error.data == {"reason": Reason.OTHER_QUESTION.value}


def test_what_is_new_each_time_does_not_make_another_question() -> None:
    attempt = Replay(whose())
    visit = {"mode": "url", "message": "m", "url": "u:x"}
    question = attempt.take_question("elicitation/create", {**visit, "elicitationId": "1"})
    attempt = retry(compose(attempt, question), {"question-1": {"action": "accept"}})
    again = attempt.take_question(
        "elicitation/create",
        {**visit, "elicitationId": "2", "_meta": {"progressToken": 7}},
    )
    assert again == Reply({"action": "accept"})


def test_what_a_caller_did_not_declare_is_not_asked() -> None:
    turned = ask(Replay(whose({"roots": {}})), "q")
    assert isinstance(turned, RefusedQuestion)
    assert (turned.reply.code, turned.error) == (-32601, None)


def test_roots_are_asked_without_params() -> None:
    attempt = Replay(whose())
    result = compose(attempt, attempt.take_question("roots/list", None))
    assert result["inputRequests"] == {"question-1": {"method": "roots/list"}}


def test_a_record_that_is_too_long_to_carry_is_not_carried() -> None:
    attempt = Replay(whose(), [("d", {"action": "accept", "content": {"a": "x" * 1024 * 1024}})])
    question = Question("roots/list", None)
    assert isinstance(attempt.compose(question, KEEPER, 0.0, b"n" * 12), RefusedQuestion)


def test_the_kind_of_state_is_its_own() -> None:
    attempt = Replay(whose())
    state = KEEPER.read(compose(attempt, ask(attempt, "q"))["requestState"], BINDING, 0.0)
    assert isinstance(state, State)
    assert (state.kind, state.call) == (KIND, "")
