"""A call that asks something is made again with the recorded answers, where it may run twice; or nobody is asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.conversation import (
    Step,
    an_error,
    client,
    expect_to_client,
    expect_to_server,
    notification,
    request,
    result,
    server,
)
from tests.proxy.test_per_request import asks, opening
from tests.proxy.test_per_request_asked import ACCEPTED, DONE, DONE_NEW, FORM, Client, call, elicit
from tests.proxy.validity import hold

AGAIN = "the call is made again once its client has answered"
READS = {"name": "greet", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
WRITES = {"name": "greet", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": False}}


def begin(tool: dict[str, Any]) -> list[Step]:
    """What a tool is like has to be known, so the tools are listed first."""
    return [
        client(call(1)),
        *opening(tools={}),
        expect_to_server(lambda frame: (frame["id"], frame["method"]) == (1, "tools/list")),
        server(result(1, {"tools": [{"name": "other", "inputSchema": {"type": "object"}}], "nextCursor": "more"})),
        expect_to_server(request(2, "tools/list", cursor="more")),
        server(result(2, {"tools": [tool]})),
        *called(3),
    ]


def called(key: int) -> list[Step]:
    return [expect_to_server(request(key, "tools/call", name="greet", arguments={}))]


def ended(key: int) -> list[Step]:
    """The server is told that the call is over, and says so itself."""
    return [
        expect_to_server(notification("notifications/cancelled", requestId=key, reason=AGAIN)),
        server({"jsonrpc": "2.0", "id": key, "error": {"code": 0, "message": "Request cancelled"}}),
    ]


def test_a_tool_that_only_reads_runs_again_for_each_answer() -> None:
    peer = Client()
    hold(
        [
            *begin(READS),
            server(elicit(7, "a")),
            *ended(3),
            peer.is_asked(1, **{"question-1": "a"}),
            peer.retries(2, **{"question-1": ACCEPTED}),
            *called(4),
            server(elicit(8, "a")),
            expect_to_server(result(8, ACCEPTED)),
            server(elicit(9, "b")),
            *ended(4),
            peer.is_asked(2, **{"question-2": "b"}),
            peer.retries(3, **{"question-2": ACCEPTED}),
            *called(5),
            server(elicit(10, "a")),
            expect_to_server(result(10, ACCEPTED)),
            server(elicit(11, "b")),
            expect_to_server(result(11, ACCEPTED)),
            server(result(5, DONE)),
            expect_to_client(result(3, DONE_NEW)),
        ],
        questions="replay",
    )


def test_a_tool_of_which_the_user_says_so_needs_no_list() -> None:
    peer = Client()
    hold(
        [
            client(call(1)),
            *opening(tools={}),
            *called(1),
            server(elicit(7)),
            *ended(1),
            peer.is_asked(1, **{"question-1": "Who?"}),
        ],
        questions="replay",
        repeatable=frozenset({"greet"}),
    )


def test_a_state_may_be_used_twice() -> None:
    """It stands for answers, and not for a call."""
    peer = Client()
    hold(
        [
            *begin(READS),
            server(elicit(7)),
            *ended(3),
            peer.is_asked(1, **{"question-1": "Who?"}),
            peer.retries(2, **{"question-1": ACCEPTED}),
            *called(4),
            peer.retries(3, **{"question-1": ACCEPTED}),
            server(result(4, DONE)),
            expect_to_client(result(2, DONE_NEW)),
            *called(5),
            server(result(5, DONE)),
            expect_to_client(result(3, DONE_NEW)),
        ],
        questions="replay",
    )


def test_an_answer_is_not_given_to_another_question() -> None:
    peer = Client()
    hold(
        [
            *begin(READS),
            server(elicit(7, "Delete a?")),
            *ended(3),
            peer.is_asked(1, **{"question-1": "Delete a?"}),
            peer.retries(2, **{"question-1": ACCEPTED}),
            *called(4),
            server(elicit(8, "Delete b?")),
            expect_to_server(an_error(8, -32603, "something else")),
            expect_to_client(an_error(2, -32602, "other-question")),
        ],
        questions="replay",
    )


def test_an_answer_that_is_missing_is_asked_for_again() -> None:
    peer = Client()
    hold(
        [
            *begin(READS),
            server(elicit(7)),
            *ended(3),
            peer.is_asked(1, **{"question-1": "Who?"}),
            peer.retries(2),
            *called(4),
            server(elicit(8)),
            *ended(4),
            peer.is_asked(2, **{"question-1": "Who?"}),
        ],
        questions="replay",
    )


@pytest.mark.parametrize("setting", ["replay", "refuse"])
def test_a_tool_that_writes_is_not_run_twice(setting: str) -> None:
    first = begin(WRITES) if setting == "replay" else [client(call(1)), *opening(tools={}), *called(1)]
    hold(
        [
            *first,
            server(elicit(7)),
            expect_to_server(an_error(7, -32603, "not wanted")),
            expect_to_client(
                lambda frame: frame["result"]["isError"] and "Who?" in frame["result"]["content"][0]["text"]
            ),
        ],
        questions=setting,
    )


def test_a_prompt_is_refused_with_an_error() -> None:
    hold(
        [
            client(asks(1, "prompts/get", has=FORM, name="p")),
            *opening(prompts={}),
            expect_to_server(request(1, "prompts/get", name="p")),
            server(elicit(7)),
            expect_to_server(an_error(7, -32603, "cannot be asked")),
            expect_to_client(an_error(1, -32603, "not passed on")),
        ],
        questions="refuse",
    )


@pytest.mark.parametrize("setting", ["task", "park", "replay", "refuse"])
def test_what_was_not_declared_is_an_error_to_the_server_however_it_would_be_asked(setting: str) -> None:
    hold(
        [
            client(call(1, has={})),
            *opening(tools={}),
            *called(1),
            server(elicit(7)),
            expect_to_server(an_error(7, -32601, "did not declare")),
            server(result(1, DONE)),
            expect_to_client(result(1, DONE_NEW)),
        ],
        questions=setting,
        repeatable=frozenset({"greet"}),
    )


def test_a_question_that_is_none_ends_the_call() -> None:
    hold(
        [
            *begin(READS),
            server({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create"}),
            expect_to_server(lambda frame: frame["id"] == 7 and "error" in frame),
            expect_to_client(an_error(1, -32603, "params")),
        ],
        questions="replay",
    )


def test_what_is_too_long_to_be_carried_along_ends_the_call() -> None:
    peer = Client()
    long = {"action": "accept", "content": {"name": "x" * 1_200_000}}
    hold(
        [
            *begin(READS),
            server(elicit(7, "a")),
            *ended(3),
            peer.is_asked(1, **{"question-1": "a"}),
            peer.retries(2, **{"question-1": long}),
            *called(4),
            server(elicit(8, "a")),
            expect_to_server(result(8, long)),
            server(elicit(9, "b")),
            expect_to_server(an_error(9, -32603, "too long")),
            expect_to_client(an_error(2, -32603, "too long")),
        ],
        questions="replay",
    )
