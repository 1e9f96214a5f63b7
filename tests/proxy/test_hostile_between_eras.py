"""Frames in an order that no good peer would choose, between a client without a handshake and a server with one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proxy import conversation
from tests.proxy.conversation import an_error, client, expect_to_client, expect_to_server, result, server, time_passes
from tests.proxy.test_per_request import TASKS, asks
from tests.proxy.test_per_request_asked import ACCEPTED, DONE, DONE_NEW, FORM, Client, begin
from tests.proxy.test_per_request_asked import call as plain_call
from tests.proxy.test_per_request_tasks import TASK, begin_at_tasks, call, creates, elicit, fetches
from tests.proxy.validity import hold


@pytest.mark.parametrize("name", [["x"], {"x": 1}])
@pytest.mark.parametrize("questions", ["auto", "replay"])
def test_a_call_whose_name_is_none_is_its_servers_affair(name: Any, questions: str) -> None:
    """Which may ask about it; no revision has such a call."""
    conversation.hold(
        [
            *begin(name=name),
            server(elicit(7)),
            *([expect_to_server(lambda frame: frame["id"] == 7)] if questions == "replay" else []),
            expect_to_client(lambda frame: frame["id"] == 1 and "result" in frame),
        ],
        questions=questions,
        repeatable=frozenset({"greet"}),
    )


@pytest.mark.parametrize("asked_first", [True, False])
def test_a_call_that_becomes_a_task_after_its_server_has_asked_goes_on(asked_first: bool) -> None:
    """Before its client is asked, and while it is to come back."""
    peer = Client()
    asked = peer.is_asked("a", **{"question-1": "Who?"})
    becomes = [server(result(2, {"task": TASK})), expect_to_server(fetches)]
    hold(
        [
            *begin_at_tasks("required"),
            expect_to_server(creates),
            server(elicit(7)),
            *([asked, *becomes] if asked_first else [*becomes, asked]),
            time_passes(0.3),
            client(lambda: call("b", inputResponses={"question-1": ACCEPTED}, requestState=peer.state)),
            expect_to_server(result(7, ACCEPTED)),
            server(result(3, DONE)),
            expect_to_client(result("b", DONE_NEW)),
        ],
        questions="park",
    )


@pytest.mark.parametrize("questions", ["park", "task"])
def test_a_question_under_an_id_that_is_in_use_is_dropped_and_the_first_one_answered(questions: str) -> None:
    tasks = {**FORM, "extensions": TASKS}
    seen: dict[str, str] = {}

    def is_asked(frame: Any) -> bool:
        found = frame["result"]
        seen.update({name: found[name] for name in ("taskId", "requestState") if name in found})
        return bool(frame["id"] == 1)

    def answers() -> dict[str, Any]:
        answered = {"inputResponses": {"question-1": ACCEPTED}}
        if questions == "task":
            return asks(2, "tasks/update", has=tasks, taskId=seen["taskId"], **answered)
        return plain_call(2, has=tasks, requestState=seen["requestState"], **answered)

    hold(
        [
            *begin(has=tasks),
            server(elicit(7, "a")),
            *([expect_to_client(is_asked)] if questions == "task" else []),
            server(elicit(7, "b")),
            *([expect_to_client(is_asked)] if questions == "park" else []),
            client(answers),
            expect_to_server(result(7, ACCEPTED)),
            *([expect_to_client(lambda frame: frame["id"] == 2)] if questions == "task" else []),
        ],
        questions=questions,
    )


def test_a_question_that_waits_keeps_its_id() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            client(plain_call(2)),
            expect_to_server(lambda frame: frame["id"] == 2),
            server(elicit(7, "a")),
            server(elicit(7, "b")),
            server(result(1, DONE)),
            expect_to_client(result(1, DONE_NEW)),
            peer.is_asked(2, **{"question-1": "a"}),
        ]
    )


def test_a_question_with_an_id_without_end_is_refused() -> None:
    hold([*begin(), server(elicit("x" * 2000)), expect_to_server(an_error("x" * 2000, -32600, "1024"))])
