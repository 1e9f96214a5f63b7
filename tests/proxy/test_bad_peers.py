"""Peers of both eras that say what no peer should: the other one hears an error, and the proxy goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.conversation import (
    Step,
    an_error,
    client,
    error,
    expect_to_client,
    expect_to_server,
    hold,
    initialize,
    request,
    result,
    server,
)
from tests.proxy.per_request import asks as wants_input
from tests.proxy.per_request import opening as handshake_client
from tests.proxy.test_per_request import IDENTITY, OLD, asks, opening
from tests.proxy.test_per_request_asked import ACCEPTED, DONE, DONE_NEW, FORM, Client, begin, elicit
from tests.proxy.test_per_request_questions import CAN, COLOR, Q, calling

NOT_OBJECTS = [5, "x", [], [1], True]


ALL: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}


def serves_on(has: Any = FORM) -> list[Step]:
    """A per-request client calls a server with a handshake, which answers."""
    return [
        client(asks("on", "tools/list", has=has)),
        expect_to_server(lambda frame: frame["method"] == "tools/list"),
    ]


@pytest.mark.parametrize("params", NOT_OBJECTS)
@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list"])
def test_a_question_whose_params_are_no_object_ends_its_call(method: str, params: Any) -> None:
    hold(
        [
            *begin(has=ALL),
            server({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}),
            expect_to_server(an_error(7, -32602, "/params")),
            expect_to_client(an_error(1, -32603, "cannot be asked")),
            server(result(1, DONE)),
            *serves_on(ALL),
        ]
    )


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"content": {}},
        5,
        None,
        {"action": 5},
        {"action": "maybe"},
        {"action": "accept", "content": {"name": {"first": "Ada"}}},
        {"action": "accept", "content": "Ada"},
        {"action": "accept", "content": {"name": 5}},
    ],
)
def test_an_answer_that_says_nothing_may_be_given_again(answer: Any) -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            peer.retries(2, **{"question-1": answer}),
            expect_to_client(an_error(2, -32602, "answer-malformed")),
            peer.retries(3, **{"question-1": ACCEPTED}),
            expect_to_server(result(7, ACCEPTED)),
            server(result(1, DONE)),
            expect_to_client(result(3, DONE_NEW)),
        ]
    )


@pytest.mark.parametrize("answer", [*NOT_OBJECTS, None])
def test_what_a_client_answers_that_is_no_response_ends_its_call(answer: Any) -> None:
    hold(
        [
            *calling(has=CAN),
            server(wants_input(1, "s", color=COLOR)),
            expect_to_client(lambda frame: frame["method"] == "elicitation/create"),
            client({"jsonrpc": "2.0", "id": f"{Q}1", "result": answer}),
            expect_to_client(lambda frame: frame["result"]["isError"] and "not a response" in str(frame)),
        ]
    )


@pytest.mark.parametrize("answer", [{}, {"content": {"color": "red"}}, {"action": 5}])
def test_a_client_whose_answer_is_not_one_has_closed_the_form(answer: Any) -> None:
    """The server says what becomes of its call."""
    hold(
        [
            *calling(has=CAN),
            server(wants_input(1, "s", color=COLOR)),
            expect_to_client(lambda frame: frame["method"] == "elicitation/create"),
            client({"jsonrpc": "2.0", "id": f"{Q}1", "result": answer}),
            expect_to_server(lambda frame: frame["params"]["inputResponses"] == {"color": {"action": "cancel"}}),
        ]
    )


@pytest.mark.parametrize("name", [{}, [1], None, 5])
def test_a_tool_whose_name_is_no_text_is_for_the_server_to_judge(name: Any) -> None:
    hold(
        [
            *handshake_client(),
            client(request("a", "tools/call", name=name)),
            expect_to_server(stamped_loosely(1, name)),
            server(error(1, -32602)),
            expect_to_client(error("a", -32602)),
        ]
    )


def stamped_loosely(key: int, name: Any) -> Any:
    return lambda frame: (frame["id"], frame["params"]["name"]) == (key, name)


@pytest.mark.parametrize("code", [{}, [], None, "-32601", 1.5])
def test_a_refusal_with_a_code_that_is_no_number_is_a_refusal(code: Any) -> None:
    hold(
        [
            client(initialize(OLD)),
            expect_to_server(lambda frame: frame["method"] == "initialize"),
            server({"jsonrpc": "2.0", "id": 0, "error": {"code": code, "message": "no"}}),
            expect_to_client(lambda frame: frame["id"] == 0 and "error" in frame),
        ]
    )


def test_a_response_that_is_both_is_none() -> None:
    hold(
        [
            *begin(),
            server({"jsonrpc": "2.0", "id": 1, "result": DONE, "error": {"code": 1, "message": "x"}}),
            expect_to_client(an_error(1, -32603, "found both")),
            *serves_on(),
        ]
    )


def test_the_result_of_a_method_that_nobody_knows_is_complete() -> None:
    answer = {"resultType": "complete", "n": 5, "_meta": IDENTITY}
    hold(
        [
            client(asks(1, "acme/count")),
            *opening(),
            expect_to_server(lambda frame: frame["method"] == "acme/count"),
            server(result(1, {"n": 5})),
            expect_to_client(result(1, answer)),
        ]
    )


@pytest.mark.parametrize("said", ["input_required", "task", "zzz", 5, None])
def test_a_result_type_that_a_server_of_the_handshake_era_makes_up_means_nothing(said: Any) -> None:
    hold(
        [
            *begin(),
            server(result(1, {**DONE, "resultType": said})),
            expect_to_client(result(1, DONE_NEW)),
        ]
    )


@pytest.mark.parametrize("answer", [{"resultType": "zzz"}, {"resultType": "input_required"}, 5])
def test_what_nobody_can_read_has_a_line_in_the_log(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    hold([*calling(), server({"jsonrpc": "2.0", "id": 1, "result": answer}), expect_to_client(an_error("a", -32603))])
    assert [record.message for record in caplog.records if record.message.startswith("tools/call fails: ")]
