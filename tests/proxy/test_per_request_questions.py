"""A server without a handshake wants input: its client, which has one, is asked by requests while its call is open."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.middleware import Answer, Message, Proceed
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import (
    Step,
    an_error,
    client,
    error,
    expect_to_client,
    expect_to_server,
    hold,
    notification,
    request,
    result,
    server,
    time_passes,
)
from tests.proxy.per_request import asks, complete, opening, stamped, valid
from tests.support.waiting import hang

A, B, C, D = HANDSHAKE_REVISIONS
FORM = {"type": "object", "properties": {"color": {"type": "string"}}}
COLOR = {"method": "elicitation/create", "params": {"mode": "form", "message": "Which?", "requestedSchema": FORM}}
ROOTS = {"method": "roots/list"}
MESSAGES = [{"role": "user", "content": {"type": "text", "text": "Hi"}}]
MODEL = {"method": "sampling/createMessage", "params": {"messages": MESSAGES, "maxTokens": 5}}
CAN = {"elicitation": {}, "roots": {}, "sampling": {}}
RED = {"action": "accept", "content": {"color": "red"}}
HOME = {"roots": [{"uri": "file:///home"}]}
Q = "dragoman-question-"


def poses(number: int, method: str, revision: str = D, **params: Any) -> Any:
    """Match a question to the client: valid in its revision, with these params."""

    def matches(frame: Any) -> bool:
        found = frame.get("params", {})
        same = (frame["id"], frame["method"]) == (f"{Q}{number}", method)
        return same and valid(frame, revision) and {name: found.get(name) for name in params} == params

    matches.__name__ = f"poses({number}, {method}, {params})"
    return matches


def calling(revision: str = D, has: dict[str, Any] | None = None) -> list[Step]:
    """The session is open, and the client has called a tool."""
    return [
        *opening(revision, CAN if has is None else has),
        client(request("a", "tools/call", name="x")),
        expect_to_server(stamped(1, "tools/call", name="x")),
    ]


def done(number: int) -> list[Step]:
    return [server(complete(number, content=[])), expect_to_client(result("a", {"content": []}))]


@pytest.mark.parametrize("revision", [C, D])
def test_a_person_is_asked_and_the_call_goes_on(revision: str) -> None:
    hold(
        [
            *calling(revision),
            server(asks(1, "s1", color=COLOR)),
            expect_to_client(poses(1, "elicitation/create", revision, message="Which?")),
            client(result(f"{Q}1", RED)),
            expect_to_server(stamped(2, "tools/call", name="x", inputResponses={"color": RED}, requestState="s1")),
            *done(2),
        ]
    )


def test_a_session_ends_while_its_client_has_two_questions_before_it() -> None:
    hold(
        [
            *calling(),
            server(asks(1, one=COLOR, two=MODEL)),
            expect_to_client(poses(1, "elicitation/create")),
            expect_to_client(poses(2, "sampling/createMessage")),
        ]
    )


def test_two_questions_at_once_are_answered_in_any_order() -> None:
    hold(
        [
            *calling(),
            server(asks(1, "s", color=COLOR, roots=ROOTS)),
            expect_to_client(poses(1, "elicitation/create")),
            expect_to_client(poses(2, "roots/list")),
            client(result(f"{Q}2", HOME)),
            client(result(f"{Q}1", RED)),
            expect_to_server(
                stamped(2, "tools/call", name="x", inputResponses={"roots": HOME, "color": RED}, requestState="s")
            ),
            *done(2),
        ]
    )


def test_an_old_client_is_asked_one_after_the_other() -> None:
    hold(
        [
            *calling(A, {"roots": {}, "sampling": {}}),
            server(asks(1, "s", model=MODEL, roots=ROOTS)),
            expect_to_client(poses(1, "sampling/createMessage", A)),
            client(result(f"{Q}1", {"role": "assistant", "content": {"type": "text", "text": "Ho"}, "model": "m"})),
            expect_to_client(poses(2, "roots/list", A)),
            client(result(f"{Q}2", HOME)),
            expect_to_server(lambda frame: {"model", "roots"} == frame["params"]["inputResponses"].keys()),
            *done(2),
        ]
    )


def test_a_round_without_questions_waits_and_comes_again() -> None:
    hold(
        [
            *calling(),
            server(asks(1, "later")),
            expect_to_server(stamped(2, "tools/call", name="x", requestState="later")),
            *done(2),
        ]
    )


def test_a_server_that_never_comes_to_an_end_is_given_up() -> None:
    rounds: list[Step] = []
    for number in range(1, 11):
        rounds += [
            server(asks(number, None, roots=ROOTS)),
            expect_to_client(poses(number, "roots/list")),
            client(result(f"{Q}{number}", HOME)),
            expect_to_server(stamped(number + 1, "tools/call", name="x", inputResponses={"roots": HOME})),
        ]
    hold(
        [
            *calling(),
            *rounds,
            server(asks(11, None, roots=ROOTS)),
            expect_to_client(lambda frame: frame["id"] == "a" and frame["result"]["isError"]),
        ]
    )


def test_a_client_that_cannot_be_asked_reads_the_question() -> None:
    hold(
        [
            *calling(B, {}),
            server(asks(1, "s", color=COLOR)),
            expect_to_client(lambda frame: frame["result"]["isError"] and "Which?" in str(frame["result"]["content"])),
        ]
    )


def test_a_client_that_answers_with_an_error_ends_the_call() -> None:
    hold(
        [
            *calling(),
            server(asks(1, "s", color=COLOR, roots=ROOTS)),
            expect_to_client(poses(1, "elicitation/create")),
            expect_to_client(poses(2, "roots/list")),
            client(error(f"{Q}1", -1, "the window is closed")),
            expect_to_client(lambda frame: frame["method"] == "notifications/cancelled" and valid(frame, D)),
            expect_to_client(lambda frame: "the window is closed" in str(frame["result"]["content"])),
        ]
    )


def test_cancelling_a_call_takes_its_questions_back() -> None:
    hold(
        [
            *calling(),
            server(asks(1, "s", color=COLOR)),
            expect_to_client(poses(1, "elicitation/create")),
            client(notification("notifications/cancelled", requestId="a")),
            expect_to_client(lambda frame: frame["params"]["requestId"] == f"{Q}1" and valid(frame, D)),
            client(result(f"{Q}1", RED)),
            client(request("p", "ping")),
            expect_to_client(result("p", {})),
        ]
    )


def test_cancelling_a_call_that_waits_ends_it() -> None:
    hold(
        [
            *calling(),
            server(asks(1, "later")),
            client(request("p", "ping")),
            expect_to_client(result("p", {})),
            client(notification("notifications/cancelled", requestId="a")),
            time_passes(0.3),
            client(request("q", "ping")),
            expect_to_client(result("q", {})),
        ]
    )


def test_a_url_is_visited_and_the_client_hears_of_its_end() -> None:
    visit = {"method": "elicitation/create", "params": {"mode": "url", "message": "Go", "url": "https://x.test/"}}
    names: list[str] = []

    def is_url(frame: Any) -> bool:
        names.append(frame["params"]["elicitationId"])
        return valid(frame, D) and bool(frame["params"]["url"] == "https://x.test/")

    def ends(frame: Any) -> bool:
        method, name = frame["method"], frame["params"]["elicitationId"]
        return valid(frame, D) and (method, [name]) == ("notifications/elicitation/complete", names)

    hold(
        [
            *calling(D, {"elicitation": {"url": {}}}),
            server(asks(1, "s", visit=visit)),
            expect_to_client(is_url),
            client(result(f"{Q}1", {"action": "accept"})),
            expect_to_server(
                stamped(2, "tools/call", name="x", inputResponses={"visit": {"action": "accept"}}, requestState="s")
            ),
            *done(2),
            expect_to_client(ends),
        ]
    )


def test_roots_are_asked_for_once_until_they_change() -> None:
    again = [client(request("a", "tools/call", name="x"))]
    hold(
        [
            *calling(D, {"roots": {"listChanged": True}}),
            server(asks(1, None, roots=ROOTS)),
            expect_to_client(poses(1, "roots/list")),
            client(result(f"{Q}1", HOME)),
            expect_to_server(stamped(2, "tools/call", name="x", inputResponses={"roots": HOME})),
            *done(2),
            *again,
            expect_to_server(stamped(3, "tools/call", name="x")),
            server(asks(3, None, roots=ROOTS)),
            expect_to_server(stamped(4, "tools/call", name="x", inputResponses={"roots": HOME})),
            *done(4),
            client(notification("notifications/roots/list_changed")),
            *again,
            expect_to_server(stamped(5, "tools/call", name="x")),
            server(asks(5, None, roots=ROOTS)),
            expect_to_client(poses(2, "roots/list")),
            client(error(f"{Q}2", -32603, "gone")),
            expect_to_client(lambda frame: frame["result"]["isError"]),
        ]
    )


def test_an_error_in_place_of_a_result_is_one_outside_of_tools() -> None:
    hold(
        [
            *opening(A, {}),
            client(request("a", "prompts/get", name="p")),
            expect_to_server(stamped(1, "prompts/get", name="p")),
            server(asks(1, None, color=COLOR)),
            expect_to_client(an_error("a", -32603, "Which?")),
        ]
    )


# Around it


def test_a_call_that_takes_too_long_is_cancelled_at_the_server() -> None:
    hold(
        [
            *calling(),
            expect_to_server(lambda frame: frame["params"]["requestId"] == 1),
            expect_to_client(an_error("a", -32000, "within")),
        ],
        request_timeout_s=0.1,
    )


def test_the_time_of_a_call_does_not_run_while_its_client_is_asked() -> None:
    hold(
        [
            *calling(),
            server(asks(1, "s", color=COLOR)),
            expect_to_client(poses(1, "elicitation/create")),
            time_passes(0.5),
            client(result(f"{Q}1", RED)),
            expect_to_server(stamped(2, "tools/call", name="x", inputResponses={"color": RED}, requestState="s")),
            *done(2),
        ],
        request_timeout_s=0.2,
    )


def test_middleware_may_answer_in_the_place_of_a_client() -> None:
    async def answer(message: Message, proceed: Proceed) -> Answer:
        return Answer.succeed(HOME) if message.method == "roots/list" else await proceed(message)

    hold(
        [
            *calling(D, {"roots": {}}),
            server(asks(1, "s", r=ROOTS)),
            expect_to_server(stamped(2, "tools/call", name="x", inputResponses={"r": HOME}, requestState="s")),
            *done(2),
        ],
        middleware=(answer,),
    )


def test_a_question_that_middleware_still_has_is_taken_back_without_a_word() -> None:
    async def hang_on(message: Message, proceed: Proceed) -> Answer:
        if message.method == "roots/list":
            await hang()
        return await proceed(message)

    hold(
        [
            *calling(D, {"roots": {}}),
            server(asks(1, "s", r=ROOTS)),
            time_passes(0.01),
            client(notification("notifications/cancelled", requestId="a")),
            client(request("p", "ping")),
            expect_to_client(result("p", {})),
        ],
        middleware=(hang_on,),
    )
