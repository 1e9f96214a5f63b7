"""Questions and answers, as requests there and as parts of a result here."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.rules.questions import Question, describe, embed, embed_answer, is_question, unembed, unembed_answer
from dragoman_spec import HANDSHAKE_REVISIONS

A, B, C, D = HANDSHAKE_REVISIONS
E = "2026-07-28"

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
VISIT = {"mode": "url", "message": "Go there", "url": "https://x.example/"}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}


def validate_embedded(method: str, params: Any) -> None:
    question = {"method": method} if params is None else {"method": method, "params": params}
    result = {"resultType": "input_required", "inputRequests": {"k": question}}
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "result": result}, E, method="tools/call")


def test_three_questions_can_be_embedded() -> None:
    asked = ["elicitation/create", "roots/list", "sampling/createMessage", "ping", "tasks/get", None, 5, []]
    assert [method for method in asked if is_question(method)] == asked[:3]


@pytest.mark.parametrize(
    ("params", "revision"),
    [(FORM, A), (FORM, B), (VISIT, C), ({**FORM, "mode": "url"}, B)],
)
def test_a_question_that_the_client_cannot_be_asked_is_refused(params: Any, revision: str) -> None:
    with pytest.raises(dragoman_spec.TranslationError):
        unembed({"method": "elicitation/create", "params": params}, revision)


def test_what_a_question_loses_is_said() -> None:
    params = {
        "message": "m",
        "requestedSchema": {"type": "object", "properties": {"n": {"type": "string", "default": "d"}}},
    }
    losses = unembed({"method": "elicitation/create", "params": params}, C).losses
    assert [loss.pointer for loss in losses] == ["/params/requestedSchema/properties/n/default"]


@pytest.mark.parametrize(
    ("method", "result", "revision"),
    [
        ("roots/list", {"roots": [{"uri": "file:///a"}]}, A),
        ("sampling/createMessage", {"role": "assistant", "model": "m", "content": {"type": "text", "text": "a"}}, A),
        ("elicitation/create", {"action": "accept", "content": {"name": "x"}}, C),
        ("elicitation/create", {"action": "cancel"}, D),
    ],
)
def test_a_result_becomes_an_answer_and_a_result_again(method: str, result: Any, revision: str) -> None:
    answer = embed_answer(method, {**result, "_meta": {}}, revision)
    assert answer == (result, ())
    call = {"name": "add", "inputResponses": {"k": answer.result}, "_meta": META}
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, E)
    assert unembed_answer(Question(method, {}), answer.result, revision) == (result, ())


META = {"io.modelcontextprotocol/protocolVersion": E, "io.modelcontextprotocol/clientCapabilities": {}}


def test_meta_of_an_answer_is_lost_unless_it_says_nothing() -> None:
    related = {"io.modelcontextprotocol/related-task": {"taskId": "t"}}
    assert embed_answer("roots/list", {"roots": [], "_meta": related}, D) == ({"roots": []}, ())
    (loss,) = embed_answer("roots/list", {"roots": [], "_meta": {"com.example/a": 1}}, D).losses
    assert (loss.pointer, loss.value) == ("/result/_meta", {"com.example/a": 1})


@pytest.mark.parametrize(
    ("method", "params", "revision"),
    [
        ("roots/list", None, A),
        ("sampling/createMessage", SAMPLE, A),
        ("elicitation/create", FORM, C),
        ("elicitation/create", {"mode": "form", **FORM}, D),
        ("elicitation/create", VISIT, D),
    ],
)
def test_a_request_becomes_an_embedded_question(method: str, params: Any, revision: str) -> None:
    found = embed(method, params, revision)
    assert found == (method, params, ())
    validate_embedded(method, found.params)


def test_what_has_no_place_in_an_embedded_question_is_left_off() -> None:
    given = {**VISIT, "elicitationId": "e1", "task": {"ttl": 5}, "_meta": {"progressToken": 7}}
    question = embed("elicitation/create", given, D)
    assert question.params == VISIT
    assert [loss.pointer for loss in question.losses] == ["/params/elicitationId", "/params/task"]
    assert all(loss.kind == "dropped" for loss in question.losses)


def test_roots_have_no_params_unless_they_say_something() -> None:
    assert embed("roots/list", {"_meta": {"progressToken": 1}}, D) == ("roots/list", {}, ())
    meta = {"_meta": {"com.example/a": 1}}
    assert embed("roots/list", meta, D) == ("roots/list", meta, ())


@pytest.mark.parametrize(("method", "params"), [("sampling/createMessage", None), ("elicitation/create", None)])
def test_a_request_that_is_malformed_is_not_embedded(method: str, params: Any) -> None:
    with pytest.raises(dragoman_spec.TranslationError):
        embed(method, params, D)


def test_an_answer_that_an_older_server_cannot_read_is_changed_with_a_loss() -> None:
    sampling = Question("sampling/createMessage", SAMPLE)
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    reply = unembed_answer(sampling, {"role": "assistant", "model": "m", "content": blocks}, C)
    assert reply.result["content"] == {"type": "text", "text": "a\nb"}
    assert reply.losses


@pytest.mark.parametrize(
    ("embedded", "text"),
    [
        ({"method": "elicitation/create", "params": FORM}, "The server asks for input: Who?"),
        ({"method": "elicitation/create", "params": VISIT}, "The server asks for input: Go there (https://x.example/)"),
        ({"method": "sampling/createMessage"}, "The server asks for a completion by the client's model"),
        ({"method": "roots/list", "params": 5}, "The server asks for roots"),
        ({"method": "other"}, "The server asks something"),
    ],
)
def test_a_question_is_described(embedded: Any, text: str) -> None:
    assert describe(embedded) == text
