"""Calls of one client overlap, at a server that asks without saying what about, and any of them may be asked."""

from __future__ import annotations

import pytest

from tests.proxy.conversation import Step, an_error, client, expect_to_client, expect_to_server, result, server
from tests.proxy.test_per_request import asks
from tests.proxy.test_per_request_asked import ACCEPTED, DONE, DONE_NEW, FORM, Client, begin, call, elicit
from tests.proxy.test_per_request_tasks import HAS
from tests.proxy.test_per_request_tasks import Client as TaskClient
from tests.proxy.test_per_request_turns import sent, told_of
from tests.proxy.validity import hold


def asks_of_no_call() -> list[Step]:
    """From here on it is known that the server asks."""
    return [
        *begin(name="first"),
        server(result(1, DONE)),
        expect_to_client(result(1, DONE_NEW)),
        server(elicit(7)),
        expect_to_server(an_error(7, -32601, "no call is open")),
    ]


def two_calls() -> list[Step]:
    return [*begin(name="other"), client(call(2)), sent(2, "greet"), server(elicit(7))]


def test_calls_of_one_client_go_on_at_once_after_a_question() -> None:
    hold(
        [
            *asks_of_no_call(),
            client(call(2)),
            client(call(3)),
            sent(2, "greet"),
            sent(3, "greet"),
            server(result(3, DONE)),
            expect_to_client(result(3, DONE_NEW)),
            server(result(2, DONE)),
            expect_to_client(result(2, DONE_NEW)),
        ]
    )


def test_calls_of_one_client_go_on_beside_one_of_the_same_tool_that_waits_for_it() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            client(call(2)),
            sent(2, "greet"),
            server(result(2, DONE)),
            expect_to_client(result(2, DONE_NEW)),
        ]
    )


def test_each_of_several_calls_of_one_tool_is_asked_something() -> None:
    """Servers ask in the order of calls, so each gets its own question; and nobody waits for another's client."""
    peers = [Client(), Client(), Client()]
    steps: list[Step] = [*begin()]
    for number in (2, 3):
        steps += [client(call(number)), sent(number, "greet")]
    for number, peer in enumerate(peers, 1):
        steps += [
            server(elicit(number + 6, f"Who is {number}?")),
            peer.is_asked(number, **{"question-1": f"Who is {number}?"}),
        ]
    for number, peer in enumerate(peers, 1):
        steps += [
            peer.retries(number + 3, **{"question-1": ACCEPTED}),
            expect_to_server(result(number + 6, ACCEPTED)),
            server(result(number, DONE)),
            expect_to_client(result(number + 3, DONE_NEW)),
        ]
    hold(steps)


@pytest.mark.parametrize("asker", [1, 2])
def test_of_several_tools_the_newest_call_is_asked_and_the_answer_helps_whichever_it_was(asker: int) -> None:
    peer = Client()
    hold(
        [
            *two_calls(),
            peer.is_asked(2, **{"question-1": "Who?"}),
            peer.retries(3, **{"question-1": ACCEPTED}),
            expect_to_server(result(7, ACCEPTED)),
            server(result(asker, DONE)),
            expect_to_client(result({1: 1, 2: 3}[asker], DONE_NEW)),
        ]
    )


def test_a_question_is_put_to_another_call_if_the_one_that_was_asked_ends() -> None:
    peer, other = Client(), Client()
    hold(
        [
            *two_calls(),
            peer.is_asked(2, **{"question-1": "Who?"}),
            server(result(2, DONE)),
            other.is_asked(1, **{"question-1": "Who?"}),
            other.retries(3, name="other", **{"question-1": ACCEPTED}),
            expect_to_server(result(7, ACCEPTED)),
            peer.retries(4, **{"question-1": ACCEPTED}),
            expect_to_client(result(4, DONE_NEW)),
            server(result(1, DONE)),
            expect_to_client(result(3, DONE_NEW)),
        ]
    )


def test_a_question_is_refused_if_nobody_comes_back_to_the_call_that_was_asked() -> None:
    """The server would wait for ever if it was about another call."""
    peer = Client()
    hold(
        [
            *two_calls(),
            peer.is_asked(2, **{"question-1": "Who?"}),
            expect_to_server(an_error(7, -32603, "did not come back")),
            told_of(2),
            server(result(1, DONE)),
            expect_to_client(result(1, DONE_NEW)),
        ],
        parked_s=0.2,
    )


def second_is_a_task(peer: TaskClient) -> list[Step]:
    """Two calls, of which the second one is asked something and becomes a task."""
    return [
        *begin(name="other", has=HAS),
        client(asks(2, "tools/call", name="greet", has=HAS)),
        sent(2, "greet"),
        server(elicit(7)),
        peer.is_given_a_task(2),
    ]


ENDS = [
    expect_to_server(an_error(7, -32601, "not clear")),
    told_of(2),
    server(result(1, DONE)),
    expect_to_client(result(1, DONE_NEW)),
]


def test_a_question_is_refused_if_the_task_that_was_asked_is_cancelled() -> None:
    """The server would wait for ever if it was about another call."""
    peer = TaskClient()
    hold([*second_is_a_task(peer), peer.says(3, "tasks/cancel"), peer.acknowledged(3), *ENDS])


def test_a_question_is_refused_if_the_time_of_the_task_that_was_asked_is_over() -> None:
    hold([*second_is_a_task(TaskClient()), *ENDS], task_s=0.2)


def test_who_calls_without_a_pause_lets_others_have_their_turn() -> None:
    hold(
        [
            *asks_of_no_call(),
            client(call(2)),
            sent(2, "greet"),
            client(call(3)),
            client(call(4)),
            server(result(2, DONE)),
            expect_to_client(result(2, DONE_NEW)),
            sent(3, "greet"),
            server(result(3, DONE)),
            expect_to_client(result(3, DONE_NEW)),
            sent(4, "greet"),
        ],
        whose={3: "Ben"},
    )


@pytest.mark.parametrize("questions", ["refuse", "task"])
def test_where_a_question_ends_its_call_one_goes_after_the_other(questions: str) -> None:
    """A wrong guess would end a call that asked nothing."""
    hold(
        [
            *asks_of_no_call(),
            client(call(2)),
            sent(2, "greet"),
            client(call(3)),
            client(asks(4, "resources/list", has=FORM)),
            expect_to_server(lambda frame: frame["method"] == "resources/list"),
            server(result(2, DONE)),
            expect_to_client(result(2, DONE_NEW)),
            sent(3, "greet"),
        ],
        questions=questions,
    )
