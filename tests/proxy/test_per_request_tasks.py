"""Calls at a server with a handshake that are tasks for their per-request clients, which know the tasks extension."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.core.switch.to_session import promoting
from dragoman.proxy import make_bridging
from tests.proxy.conversation import (
    READY,
    Step,
    an_error,
    client,
    client_closes,
    error,
    expect_end,
    expect_to_client,
    expect_to_server,
    initialized,
    notification,
    request,
    result,
    server,
    server_closes,
    server_restarts,
    time_passes,
)
from tests.proxy.test_per_request import IDENTITY, TASKS, asks, opening
from tests.proxy.test_per_request_asked import ACCEPTED, DONE, DONE_NEW, SCHEMA, elicit
from tests.proxy.validity import hold

HAS = {"elicitation": {"form": {}}, "extensions": TASKS}
WITHOUT = {"elicitation": {"form": {}}}
RELATED = "io.modelcontextprotocol/related-task"
RUNS_TASKS = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
ASKED = {
    "method": "elicitation/create",
    "params": {"message": "Who?", "requestedSchema": SCHEMA},
}


class Client:
    """A client that keeps the id of the task that it was given."""

    def __init__(self) -> None:
        self.task: Any = None

    def is_given_a_task(self, key: Any, status: str = "working", **members: Any) -> Step:
        def matches(frame: Any) -> bool:
            found = frame["result"]
            self.task = found["taskId"]
            known = (frame["id"], found["resultType"], found["status"], found["_meta"])
            assert {name: found[name] for name in members} == members
            return known == (key, "task", status, IDENTITY)

        return expect_to_client(matches)

    def says(self, key: Any, method: str, has: Any = None, **params: Any) -> Step:
        return client(lambda: asks(key, method, has=HAS if has is None else has, taskId=self.task, **params))

    def finds(self, key: Any, status: str, **members: Any) -> Step:
        """Expect the answer to `tasks/get`."""

        def matches(frame: Any) -> bool:
            found = frame["result"]
            assert {name: found.get(name) for name in ("inputRequests", "result", "error") if name in found} == members
            known = (frame["id"], found["resultType"], found["status"], found["taskId"])
            return known == (key, "complete", status, self.task)

        return expect_to_client(matches)

    def acknowledged(self, key: Any) -> Step:
        return expect_to_client(result(key, {"resultType": "complete", "_meta": IDENTITY}))


def call(key: Any, has: Any = None, **params: Any) -> dict[str, Any]:
    return asks(key, "tools/call", has=HAS if has is None else has, name="greet", arguments={}, **params)


def begin(key: Any = 1, revision: str = "2025-11-25", **how: Any) -> list[Step]:
    return [
        client(call(key, **how)),
        *opening(revision, tools={}),
        expect_to_server(lambda frame: frame["method"] == "tools/call"),
    ]


# A call that asks something becomes a task


def test_a_call_that_asks_nothing_is_answered_as_ever() -> None:
    hold([*begin(), server(result(1, DONE)), expect_to_client(result(1, DONE_NEW))])


def test_an_error_of_the_server_is_that_of_the_task() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            server(error(1, -32603, "broken")),
            expect_to_server(an_error(7, -32603, "the call is over")),
            peer.says(2, "tasks/get"),
            peer.finds(2, "failed", error={"code": -32603, "message": "broken"}),
        ]
    )


def test_a_task_is_cancelled() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            peer.says(2, "tasks/cancel"),
            expect_to_server(
                notification("notifications/cancelled", requestId=1, reason="the client cancelled the task")
            ),
            peer.acknowledged(2),
            peer.says(3, "tasks/get"),
            peer.finds(3, "cancelled"),
            peer.says(4, "tasks/cancel"),
            peer.acknowledged(4),
        ]
    )


def test_what_the_client_did_not_declare_is_not_the_end_of_the_task() -> None:
    peer = Client()
    sample = request(8, "sampling/createMessage", messages=[], maxTokens=1)
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            server(sample),
            expect_to_server(an_error(8, -32601, "did not declare")),
            peer.says(2, "tasks/get"),
            expect_to_client(lambda frame: frame["result"]["status"] == "input_required"),
        ]
    )


def test_a_first_question_that_cannot_be_asked_makes_no_task() -> None:
    hold(
        [
            *begin(has={"extensions": TASKS}),
            server(elicit(7)),
            expect_to_server(an_error(7, -32601, "did not declare")),
            server(result(1, DONE)),
            expect_to_client(result(1, DONE_NEW)),
        ]
    )


def test_a_task_that_nobody_ends_is_given_up() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            expect_to_server(lambda frame: frame["method"] == "notifications/cancelled"),
            peer.says(2, "tasks/get"),
            expect_to_client(an_error(2, -32602, "state-expired")),
        ],
        task_s=0.2,
    )


def test_tasks_are_over_when_the_client_has_gone() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            client_closes(),
            expect_to_server(lambda frame: frame["method"] == "notifications/cancelled"),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def one_ends_and_another_begins(first: Client, second: Client) -> list[Step]:
    return [
        *begin(),
        server(elicit(7)),
        first.is_given_a_task(1),
        server(result(1, DONE)),
        expect_to_server(an_error(7, -32603, "the call is over")),
        first.says(2, "tasks/get"),
        first.finds(2, "completed", result=DONE_NEW),
        client(call(3)),
        expect_to_server(lambda frame: frame["method"] == "tools/call"),
        server(elicit(8)),
        second.is_given_a_task(3),
    ]


def test_of_tasks_that_have_ended_the_oldest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promoting, "_KEPT", 1)
    first, second = Client(), Client()
    hold(
        [
            *one_ends_and_another_begins(first, second),
            first.says(4, "tasks/get"),
            expect_to_client(an_error(4, -32602, "call-unknown")),
            second.says(5, "tasks/get"),
            second.finds(5, "input_required", inputRequests={"question-1": ASKED}),
        ],
        most_parked=1,
    )


def test_there_is_a_limit_to_what_results_hold_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promoting, "_MOST_BYTES", 250)  # one result has about 160
    first, second = Client(), Client()
    hold(
        [
            *one_ends_and_another_begins(first, second),
            server(result(2, DONE)),
            expect_to_server(an_error(8, -32603, "the call is over")),
            second.says(4, "tasks/get"),
            second.finds(4, "completed", result=DONE_NEW),
            first.says(5, "tasks/get"),
            expect_to_client(an_error(5, -32602, "call-unknown")),
        ]
    )


def test_who_has_most_results_loses_one_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promoting, "_MOST_BYTES", 500)
    ben, ann = Client(), Client()
    large = {**DONE, "content": [{"type": "text", "text": "x" * 1000}]}
    hold(
        [
            *one_ends_and_another_begins(ben, ann),
            server(result(2, large)),
            expect_to_server(an_error(8, -32603, "the call is over")),
            ann.says(4, "tasks/get"),
            expect_to_client(an_error(4, -32602, "call-unknown")),
            ben.says(5, "tasks/get"),
            ben.finds(5, "completed", result=DONE_NEW),
        ],
        whose={1: ("Ben",), 2: ("Ben",), 5: ("Ben",), 3: ("Ann",), 4: ("Ann",)},
        shares_server=True,
    )


def test_a_wall_clock_that_is_set_ends_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    peer, wall_s = Client(), [1_800_000_000.0]

    def a_day_later() -> dict[str, Any]:
        wall_s[0] += 86_400
        return asks(2, "tasks/get", has=HAS, taskId=peer.task)

    monkeypatch.setattr(
        "dragoman.proxy.make_bridging", lambda told: replace(make_bridging(told), now=lambda: wall_s[0])
    )
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            client(a_day_later),
            peer.finds(2, "input_required", inputRequests={"question-1": ASKED}),
        ]
    )


# Requests about tasks


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_task_is_found_by_its_caller_alone(method: str) -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            peer.says(2, method),
            expect_to_client(an_error(2, -32602, "other-caller")),
            peer.says(3, "tasks/get"),
            peer.finds(3, "input_required", inputRequests={"question-1": ASKED}),
        ],
        whose={2: "Ben"},
    )


def test_the_state_of_a_parked_call_is_no_task() -> None:
    peer = Client()

    def is_parked(frame: Any) -> bool:
        peer.task = frame["result"]["requestState"]
        return bool(frame["result"]["resultType"] == "input_required")

    hold(
        [
            *begin(has=WITHOUT),
            server(elicit(7)),
            expect_to_client(is_parked),
            peer.says(2, "tasks/get"),
            expect_to_client(an_error(2, -32602, "other-request")),
        ]
    )


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_who_did_not_declare_the_extension_has_no_tasks(method: str) -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            peer.says(2, method, has=WITHOUT),
            expect_to_client(an_error(2, -32021, "io.modelcontextprotocol/tasks", "requiredCapabilities")),
        ]
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda task: "t", "state-unreadable"),
        (lambda task: None, "state-unreadable"),
        (lambda task: task[:-4] + ("AAAA" if not task.endswith("AAAA") else "BBBB"), "state-unreadable"),
    ],
)
def test_a_task_that_was_never_given_is_not_found(change: Callable[[Any], Any], reason: str) -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            client(lambda: asks(2, "tasks/get", has=HAS, taskId=change(peer.task))),
            expect_to_client(an_error(2, -32602, reason)),
        ]
    )


def test_an_answer_that_is_none_changes_nothing() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            peer.says(2, "tasks/update", inputResponses={"question-1": 5}),
            expect_to_client(an_error(2, -32602, "answer-malformed")),
            peer.says(3, "tasks/update", inputResponses={"other": ACCEPTED}),
            peer.acknowledged(3),
            peer.says(4, "tasks/get"),
            peer.finds(4, "input_required", inputRequests={"question-1": ASKED}),
        ]
    )


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
def test_methods_of_the_older_tasks_are_not_there(method: str) -> None:
    hold([client(asks(1, method, has=HAS, taskId="t")), expect_to_client(an_error(1, -32601, method))])


# Who hears of tasks without asking


def listens(key: Any, peer: Client, has: Any = None, **more: Any) -> Step:
    wanted = lambda: asks(key, "subscriptions/listen", has=has or HAS, notifications={"taskIds": [peer.task], **more})  # noqa: E731
    return client(wanted)


def test_a_listener_hears_of_its_task() -> None:
    peer = Client()
    tag = {"io.modelcontextprotocol/subscriptionId": "l"}

    def acknowledges(frame: Any) -> bool:
        return bool(frame["params"] == {"notifications": {"taskIds": [peer.task]}, "_meta": tag})

    def hears(status: str, **members: Any) -> Step:
        def matches(frame: Any) -> bool:
            params = frame["params"]
            assert {name: params[name] for name in members} == members
            return (frame["method"], params["status"], params["taskId"], params["_meta"]) == (
                "notifications/tasks",
                status,
                peer.task,
                tag,
            )

        return expect_to_client(matches)

    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            listens("l", peer),
            expect_to_client(
                lambda frame: frame["params"] == {"notifications": {"taskIds": [peer.task]}, "_meta": tag}
            ),
            peer.says(2, "tasks/update", inputResponses={"question-1": ACCEPTED}),
            expect_to_server(result(7, ACCEPTED)),
            hears("working"),
            peer.acknowledged(2),
            server(result(1, DONE)),
            hears("completed", result=DONE_NEW),
        ]
    )


def test_who_did_not_declare_the_extension_hears_of_no_tasks() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            listens("l", peer, has=WITHOUT),
            expect_to_client(an_error("l", -32021, "io.modelcontextprotocol/tasks")),
        ]
    )


def test_a_listener_is_told_which_tasks_it_hears_of() -> None:
    def acknowledges(frame: Any) -> bool:
        return bool(frame["params"]["notifications"] == {})

    hold(
        [
            client(asks(1, "subscriptions/listen", has=HAS, notifications={"taskIds": ["other"]})),
            *opening(tools={}),
            expect_to_client(acknowledges),
            client(asks(2, "subscriptions/listen", has=HAS, notifications={"taskIds": "other"})),
            expect_to_client(an_error(2, -32602, "taskIds")),
        ]
    )


# Tools that run as tasks at the server


def listed(support: str) -> list[dict[str, Any]]:
    tool = {"name": "greet", "inputSchema": {"type": "object"}}
    return [{**tool, "execution": {"taskSupport": support}} if support else tool]


def begin_at_tasks(support: str, has: Any = None) -> list[Step]:
    """The tools are listed before the first call, since nothing is known of them."""
    return [
        client(call("a", has=has)),
        *opening(tools={}, tasks=RUNS_TASKS),
        expect_to_server(lambda frame: (frame["method"], frame["id"]) == ("tools/list", 1)),
        server(result(1, {"tools": listed(support)})),
    ]


TASK = {
    "taskId": "t",
    "status": "working",
    "statusMessage": "begun",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
    "ttl": 60000,
    "pollInterval": 50,
}
RELATES = {RELATED: {"taskId": "t"}}


def asked_of(task: str, key: Any) -> dict[str, Any]:
    asked = elicit(key)
    return {**asked, "params": {**asked["params"], "_meta": {RELATED: {"taskId": task}}}}


def creates(frame: Any) -> bool:
    return bool(frame["method"] == "tools/call" and frame["params"]["task"] == {"ttl": 3_600_000})


def fetches(frame: Any) -> bool:
    return bool(frame["method"] == "tasks/result" and frame["params"] == {"taskId": "t"})


def test_a_client_without_tasks_waits_for_the_result_of_one() -> None:
    hold(
        [
            *begin_at_tasks("required", has=WITHOUT),
            expect_to_server(creates),
            server(result(2, {"task": TASK})),
            expect_to_server(fetches),
            server(result(3, {**DONE, "_meta": RELATES})),
            expect_to_client(result("a", DONE_NEW)),
        ]
    )


def test_it_is_asked_by_a_result_meanwhile() -> None:
    seen: dict[str, Any] = {}

    def is_asked(frame: Any) -> bool:
        seen["state"] = frame["result"]["requestState"]
        return bool(frame["result"]["inputRequests"] == {"question-1": ASKED})

    hold(
        [
            *begin_at_tasks("required", has=WITHOUT),
            expect_to_server(creates),
            server(result(2, {"task": TASK})),
            expect_to_server(fetches),
            server(asked_of("t", 7)),
            expect_to_client(is_asked),
            client(lambda: call("b", WITHOUT, inputResponses={"question-1": ACCEPTED}, requestState=seen["state"])),
            expect_to_server(result(7, ACCEPTED)),
            server(result(3, DONE)),
            expect_to_client(result("b", DONE_NEW)),
        ]
    )


@pytest.mark.parametrize(("support", "has"), [("optional", WITHOUT), ("forbidden", HAS), ("", HAS)])
def test_other_calls_ask_for_no_task(support: str, has: Any) -> None:
    hold(
        [
            *begin_at_tasks(support, has=has),
            expect_to_server(request(2, "tools/call", name="greet", arguments={})),
            server(result(2, DONE)),
            expect_to_client(result("a", DONE_NEW)),
        ]
    )


def test_a_server_may_answer_at_once_all_the_same() -> None:
    hold(
        [
            *begin_at_tasks("required"),
            expect_to_server(creates),
            server(result(2, DONE)),
            expect_to_client(result("a", DONE_NEW)),
        ]
    )


def test_a_task_of_the_server_is_cancelled_by_its_name() -> None:
    peer = Client()
    hold(
        [
            *begin_at_tasks("required"),
            expect_to_server(creates),
            server(result(2, {"task": TASK})),
            peer.is_given_a_task("a"),
            expect_to_server(fetches),
            peer.says(1, "tasks/cancel"),
            expect_to_server(request(4, "tasks/cancel", taskId="t")),
            peer.acknowledged(1),
            server(result(4, {**TASK, "status": "cancelled"})),
            peer.says(2, "tasks/get"),
            peer.finds(2, "cancelled"),
        ]
    )


def test_a_call_that_is_cancelled_leaves_no_task_behind() -> None:
    hold(
        [
            *begin_at_tasks("required"),
            expect_to_server(creates),
            client(notification("notifications/cancelled", requestId="a")),
            expect_to_server(notification("notifications/cancelled", requestId=2)),
            server(result(2, {"task": TASK})),
            expect_to_server(request(3, "tasks/cancel", taskId="t")),
        ]
    )


def test_what_the_server_says_of_its_task_is_told() -> None:
    peer = Client()
    status = notification("notifications/tasks/status", **{**TASK, "statusMessage": "half"})
    hold(
        [
            *begin_at_tasks("required"),
            expect_to_server(creates),
            server(result(2, {"task": TASK})),
            peer.is_given_a_task("a"),
            expect_to_server(fetches),
            server(status),
            peer.says(1, "tasks/get"),
            expect_to_client(lambda frame: frame["result"]["statusMessage"] == "half"),
            server(notification("notifications/tasks/status", **{**TASK, "status": "cancelled"})),
            peer.says(2, "tasks/get"),
            peer.finds(2, "cancelled"),
        ]
    )


def test_progress_of_a_task_that_a_client_waits_for_is_told() -> None:
    asked = asks("a", "tools/call", has=WITHOUT, meta={"progressToken": "p"}, name="greet", arguments={})
    hold(
        [
            client(asked),
            *opening(tools={}, tasks=RUNS_TASKS),
            expect_to_server(lambda frame: frame["method"] == "tools/list"),
            server(result(1, {"tools": listed("required")})),
            expect_to_server(creates),
            server(result(2, {"task": TASK})),
            expect_to_server(fetches),
            server(notification("notifications/progress", progressToken=2, progress=1)),
            expect_to_client(notification("notifications/progress", progressToken="p", progress=1)),
            server(result(3, DONE)),
            expect_to_client(result("a", DONE_NEW)),
        ]
    )


def test_a_question_about_a_task_that_is_not_there_is_put_to_nobody() -> None:
    peer = Client()
    hold(
        [
            *begin_at_tasks("required"),
            expect_to_server(creates),
            server(result(2, {"task": TASK})),
            peer.is_given_a_task("a"),
            expect_to_server(fetches),
            server(asked_of("other", 7)),
            expect_to_server(an_error(7, -32601, "not clear")),
        ]
    )


# A server that is started again


def test_a_call_whose_tool_was_being_looked_up_goes_on_at_the_next_server() -> None:
    seen: dict[str, Any] = {}

    def opens_again(frame: Any) -> bool:
        seen["id"] = frame["id"]
        return bool(frame["method"] == "initialize")

    hold(
        [
            client(call("a")),
            *opening(tools={}, tasks=RUNS_TASKS),
            expect_to_server(lambda frame: frame["method"] == "tools/list"),
            server_closes(),
            time_passes(1.5),
            server_restarts(),
            expect_to_server(opens_again),
            server(lambda: initialized("2025-11-25", seen["id"], tools={}, tasks=RUNS_TASKS)),
            expect_to_server(READY),
            expect_to_server(lambda frame: frame["method"] == "tools/call"),
        ],
        restarts=3,
    )


# What goes wrong


def test_a_question_that_the_server_takes_back_is_not_asked_any_more() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            server(notification("notifications/cancelled", requestId=7)),
            peer.says(2, "tasks/get"),
            peer.finds(2, "working"),
        ]
    )


def test_an_answer_that_cannot_be_read_fails_the_task() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            server(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],}}\n'),
            expect_to_server(an_error(7, -32603, "the call is over")),
            peer.says(2, "tasks/get"),
            expect_to_client(lambda frame: frame["result"]["error"]["code"] == -32603),
        ]
    )


def test_a_url_that_a_task_needs_visited_first_fails_it() -> None:
    peer = Client()
    one = {"mode": "url", "message": "Log in", "url": "https://example.com/login", "elicitationId": "e1"}
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            server(error(1, -32042, "visit", elicitations=[one])),
            expect_to_server(an_error(7, -32603, "the call is over")),
            peer.says(2, "tasks/get"),
            expect_to_client(lambda frame: "https://example.com/login" in frame["result"]["error"]["message"]),
        ]
    )


def test_what_an_answer_cannot_carry_is_left_out() -> None:
    peer = Client()
    hold(
        [
            *begin(revision="2025-06-18"),
            server(elicit(7)),
            peer.is_given_a_task(1),
            peer.says(
                2, "tasks/update", inputResponses={"question-1": {"action": "accept", "content": {"name": ["Ada"]}}}
            ),
            expect_to_server(result(7, ACCEPTED)),
            peer.acknowledged(2),
        ]
    )


def test_a_task_that_has_ended_is_forgotten() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_given_a_task(1),
            server(result(1, DONE)),
            expect_to_server(an_error(7, -32603, "the call is over")),
            peer.says(2, "tasks/get"),
            peer.finds(2, "completed", result=DONE_NEW),
            time_passes(0.3),
            peer.says(3, "tasks/get"),
            expect_to_client(an_error(3, -32602, "state-expired")),
        ],
        task_s=0.2,
    )


def test_a_task_of_the_server_for_which_there_is_no_room_is_cancelled() -> None:
    peer = Client()
    hold(
        [
            *begin_at_tasks("required"),
            expect_to_server(creates),
            server(result(2, {"task": TASK})),
            peer.is_given_a_task("a"),
            expect_to_server(fetches),
            client(call("b")),
            expect_to_server(creates),
            server(result(4, {"task": {**TASK, "taskId": "u"}})),
            expect_to_client(an_error("b", -32603, "too many tasks")),
            expect_to_server(request(5, "tasks/cancel", taskId="u")),
        ],
        most_parked=1,
    )


def test_a_task_that_cannot_be_read_is_an_error() -> None:
    hold(
        [
            *begin_at_tasks("required"),
            expect_to_server(creates),
            server(b'{"jsonrpc":"2.0","id":2,"result":{"task":{},}}\n'),
            expect_to_client(an_error("a", -32603, "not a response")),
        ]
    )


def test_what_is_said_of_a_task_that_is_not_there_is_for_nobody() -> None:
    hold(
        [
            *begin_at_tasks("required", has=WITHOUT),
            expect_to_server(creates),
            server(notification("notifications/tasks/status", **TASK)),
            server(result(2, {"task": TASK})),
            expect_to_server(fetches),
            server(notification("notifications/tasks/status", **TASK)),
            server(result(3, DONE)),
            expect_to_client(result("a", DONE_NEW)),
        ]
    )


def test_a_call_that_is_cancelled_while_its_tool_is_looked_up_is_not_made() -> None:
    hold(
        [
            client(call("a")),
            *opening(tools={}, tasks=RUNS_TASKS),
            expect_to_server(lambda frame: frame["method"] == "tools/list"),
            client(call("b")),
            client(notification("notifications/cancelled", requestId="a")),
            client(asks("c", "server/discover")),
            expect_to_client(lambda frame: frame["id"] == "c"),
            server(result(1, {"tools": [*listed("optional"), {"title": "nameless"}, 5]})),
            expect_to_server(creates),
            server(result(2, DONE)),
            expect_to_client(result("b", DONE_NEW)),
        ]
    )


def test_tools_that_cannot_be_listed_run_as_no_tasks() -> None:
    hold(
        [
            client(call("a")),
            *opening(tools={}, tasks=RUNS_TASKS),
            expect_to_server(lambda frame: frame["method"] == "tools/list"),
            server(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[],}}\n'),
            expect_to_server(request(2, "tools/call", name="greet", arguments={})),
            server(result(2, DONE)),
            expect_to_client(result("a", DONE_NEW)),
        ]
    )
