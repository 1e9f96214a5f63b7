"""Error -32042 of a server with a handshake, for a per-request client: visits, and the call made again."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.rules.state import Binding, Keeper, Reason, Seal, State, digest_params
from dragoman.core.rules.urls import KIND, ask_to_visit, refuse_visit, resume_visit
from dragoman.errors import RemoteProtocolError

E = "2026-07-28"
KEEPER = Keeper(Seal(b"k" * 32, b"i" * 16))
CALL = {"name": "add", "_meta": {"progressToken": 1}}
BINDING = Binding("files", "tools/call", digest_params(CALL))
VISIT = {"mode": "url", "elicitationId": "e1", "url": "https://x.example/", "message": "Go"}
CAN = {"elicitation": {"url": {}}}
ACCEPT = {"action": "accept"}


def error(*elicitations: Any, code: int = -32042) -> dict[str, Any]:
    return {"code": code, "message": "URL needed", "data": {"elicitations": list(elicitations)}}


def ask(given: Any, capabilities: Any = CAN) -> dict[str, Any] | None:
    return ask_to_visit(given, KEEPER, BINDING, capabilities, 0.0, b"n" * 12)


def state_of(result: dict[str, Any] | None) -> State:
    assert result is not None
    return KEEPER.read(result["requestState"], BINDING, 1.0)


def test_the_error_becomes_a_question_for_each_url() -> None:
    result = ask(error(VISIT, {"url": "https://y.example/", "message": 5}))
    assert result is not None
    assert result["inputRequests"] == {
        "url-1": {
            "method": "elicitation/create",
            "params": {"mode": "url", "message": "Go", "url": "https://x.example/"},
        },
        "url-2": {
            "method": "elicitation/create",
            "params": {"mode": "url", "message": "", "url": "https://y.example/"},
        },
    }
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "result": result}, E, method="tools/call")
    assert state_of(result) == State(KIND, extra=[["url-1", "url-2"], ["e1"]])


@pytest.mark.parametrize(
    ("given", "capabilities"),
    [
        (error(VISIT, code=-32603), CAN),
        (error(), CAN),
        (error(5, {"url": 5}), CAN),
        ({"code": -32042, "message": "x"}, CAN),
        ({"code": -32042, "message": "x", "data": {"elicitations": {}}}, CAN),
        (error(VISIT), {"elicitation": {}}),
        (error(VISIT), {}),
    ],
)
def test_other_errors_and_other_clients_ask_for_nothing(given: Any, capabilities: Any) -> None:
    assert ask(given, capabilities) is None


def test_a_client_that_cannot_visit_reads_the_urls() -> None:
    refused = refuse_visit(error(VISIT))
    assert (refused.code, refused.message) == (-32603, "URL needed https://x.example/")
    assert refused.data == {"original": error(VISIT)}


def test_after_the_visits_the_call_is_made_again() -> None:
    state = state_of(ask(error(VISIT)))
    retry = {**CALL, "inputResponses": {"url-1": ACCEPT}, "requestState": "s"}
    assert resume_visit(state, retry) == (CALL, ("e1",))


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_without_a_visit_it_is_not(action: str) -> None:
    state = state_of(ask(error(VISIT, VISIT)))
    answers = {"url-1": ACCEPT, "url-2": {"action": action}}
    assert resume_visit(state, {**CALL, "inputResponses": answers}) == (None, ("e1", "e1"))


@pytest.mark.parametrize("answers", [None, 5, {}, {"url-1": 5}, {"url-1": {}}, {"url-1": {"action": ["accept"]}}])
def test_an_answer_that_is_none_is_refused(answers: Any) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        resume_visit(state_of(ask(error(VISIT))), {**CALL, "inputResponses": answers})
    assert caught.value.data == {"reason": Reason.MALFORMED.value, "pointer": "/params/inputResponses/url-1"}
