"""Tasks of a client of 2025-11-25 at a server without a handshake that has the tasks extension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dragoman_spec
from dragoman.core.translate import OnLoss
from dragoman.middleware import Answer, Message, Proceed
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy import conversation
from tests.proxy.conversation import (
    Peer,
    Step,
    an_error,
    client,
    client_closes,
    error,
    expect_to_client,
    expect_to_server,
    notification,
    request,
    result,
    server,
    time_passes,
)
from tests.proxy.per_request import IDENTITY, asks, complete, opening, stamped
from tests.proxy.test_per_request import TASKS
from tests.proxy.test_per_request_questions import COLOR, RED, poses
from tests.proxy.validity import NEW, frames, is_request
from tests.proxy.validity import validate_heard as validate

OLDER = HANDSHAKE_REVISIONS[-1]
TOLD = {"cancel": {}, "requests": {"tools": {"call": {}}}}
WHEN = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
TASK = {"taskId": "t", "status": "working", **WHEN, "ttlMs": 60000, "pollIntervalMs": 100}
OLD_TASK = {"taskId": "t", "status": "working", **WHEN, "ttl": 60000, "pollInterval": 100}
RELATED = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t"}}}
DONE = {"content": [{"type": "text", "text": "done"}]}
CAN = {"elicitation": {}}
WITH_TASKS = {"elicitation": {"form": {}}, "extensions": TASKS}


def hold(steps: list[Step], **config: Any) -> None:
    """Hold a conversation, and hold what both sides have heard against their schemas."""
    conversation.hold(steps, check=check, **config)


def check(client: Peer, server: Peer) -> None:
    asked = {frame["id"]: frame["method"] for frame in frames(client.said) if is_request(frame)}
    wanted = {frame["id"] for frame in frames(client.said) if "task" in frame.get("params", {})}
    for frame in frames(client.heard):
        method = "tasks/create" if frame.get("id") in wanted else asked.get(frame.get("id"))
        if "result" in frame and method == "tasks/create":
            dragoman_spec.validate({**frame, "result": frame["result"]["task"]}, OLDER, "tasks/get")
        elif "result" in frame and method == "tasks/result":
            dragoman_spec.validate(frame, OLDER, "tools/call")
        else:
            dragoman_spec.validate(frame, OLDER, None if "method" in frame else method)
    validate(server, NEW)


def begin(task: dict[str, Any] | None = None, has: dict[str, Any] | None = None) -> list[Step]:
    """The session is open, and the client has called a tool as a task."""
    wanted = {"task": {} if task is None else task}
    return [
        *opening(OLDER, CAN if has is None else has, tools={}, extensions=TASKS),
        client(request("a", "tools/call", name="x", **wanted)),
        expect_to_server(stamped(1, "tools/call", None if has else WITH_TASKS, name="x")),
    ]


def created(has: dict[str, Any] | None = None) -> list[Step]:
    return [
        *begin(has=has),
        server(result(1, {"resultType": "task", **TASK, "_meta": IDENTITY})),
        expect_to_client(result("a", {"task": OLD_TASK})),
    ]


def polls(number: int) -> Step:
    return expect_to_server(stamped(number, "tasks/get", WITH_TASKS, taskId="t"))


def found(number: int, status: str, **payload: Any) -> Step:
    return server(complete(number, **{**TASK, "status": status, **payload}))


# What the client is told


def test_it_is_told_that_tools_run_as_tasks() -> None:
    steps = opening(OLDER, CAN, tools={}, extensions=TASKS)
    steps[5] = expect_to_client(
        lambda frame: frame["result"]["capabilities"] == {"logging": {}, "tools": {}, "tasks": TOLD}
    )
    tools = [{"name": "x", "inputSchema": {"type": "object"}}]
    hold(
        [
            *steps,
            client(request(1, "tools/list")),
            expect_to_server(stamped(1, "tools/list")),
            server(complete(1, tools=tools, ttlMs=0, cacheScope="private")),
            expect_to_client(result(1, {"tools": [{**tools[0], "execution": {"taskSupport": "optional"}}]})),
        ]
    )


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS[:-1])
def test_older_clients_are_told_of_no_tasks(revision: str) -> None:
    steps = opening(revision, {}, tools={}, extensions=TASKS)
    steps[5] = expect_to_client(lambda frame: frame["result"]["capabilities"] == {"logging": {}, "tools": {}})
    conversation.hold(
        [
            *steps,
            client(request(1, "tools/call", name="x")),
            expect_to_server(stamped(1, "tools/call", {}, name="x")),
            server(complete(1, content=[])),
            expect_to_client(result(1, {"content": []})),
        ]
    )


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"])
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS[:-1])
def test_an_older_session_uses_no_task_whose_id_it_knows(revision: str, method: str) -> None:
    conversation.hold(
        [
            *opening(revision, {}, tools={}, extensions=TASKS),
            client(request(1, method, taskId="t")),
            expect_to_client(an_error(1, -32601, method)),
        ]
    )


def test_a_session_cannot_update_a_task_whose_id_it_knows() -> None:
    hold(
        [
            *opening(OLDER, CAN, tools={}, extensions=TASKS),
            client(request(1, "tasks/update", taskId="t", inputResponses={})),
            expect_to_client(an_error(1, -32601, "tasks/update")),
        ]
    )


def test_a_call_that_asks_for_no_task_gets_none() -> None:
    hold(
        [
            *opening(OLDER, CAN, tools={}, extensions=TASKS),
            client(request(1, "tools/call", name="x")),
            expect_to_server(stamped(1, "tools/call", {"elicitation": {"form": {}}}, name="x")),
            server(result(1, {"resultType": "task", **TASK})),
            expect_to_client(an_error(1, -32603, "'task'")),
        ]
    )


# A task


def test_a_task_is_made_and_looked_at() -> None:
    hold(
        [
            *created(),
            client(request("b", "tasks/get", taskId="t")),
            polls(2),
            found(2, "working", statusMessage="half"),
            expect_to_client(result("b", {**OLD_TASK, "statusMessage": "half"})),
        ]
    )


def test_its_result_is_waited_for() -> None:
    hold(
        [
            *created(),
            client(request("b", "tasks/result", taskId="t")),
            polls(2),
            found(2, "working"),
            polls(3),
            found(3, "working", statusMessage="half"),
            expect_to_client(notification("notifications/tasks/status", **OLD_TASK, statusMessage="half")),
            polls(4),
            found(4, "completed", result={**DONE, "resultType": "complete", "_meta": IDENTITY}),
            expect_to_client(notification("notifications/tasks/status", **{**OLD_TASK, "status": "completed"})),
            expect_to_client(result("b", {**DONE, **RELATED})),
        ]
    )


def test_its_questions_are_put_to_the_client_once() -> None:
    asked = {"inputRequests": {"color": COLOR}}
    hold(
        [
            *created(),
            client(request("b", "tasks/result", taskId="t")),
            polls(2),
            found(2, "input_required", **asked),
            expect_to_client(poses(1, "elicitation/create", OLDER, message="Which?", **RELATED)),
            client(result("dragoman-question-1", RED)),
            expect_to_server(stamped(3, "tasks/update", WITH_TASKS, taskId="t", inputResponses={"color": RED})),
            server(complete(3)),
            polls(4),
            found(4, "input_required", **asked),
            polls(5),
            found(5, "completed", result=DONE),
            expect_to_client(notification("notifications/tasks/status", **{**OLD_TASK, "status": "completed"})),
            expect_to_client(result("b", {**DONE, **RELATED})),
        ]
    )


def test_an_error_that_ends_it_is_thrown_again() -> None:
    hold(
        [
            *created(),
            client(request("b", "tasks/result", taskId="t")),
            polls(2),
            found(2, "failed", error={"code": -32603, "message": "broken"}),
            expect_to_client(error("b", -32603, "broken")),
        ]
    )


def test_a_question_that_cannot_be_put_ends_it() -> None:
    model = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    hold(
        [
            *created(),
            client(request("b", "tasks/result", taskId="t")),
            polls(2),
            found(2, "input_required", inputRequests={"m": model}),
            expect_to_server(stamped(3, "tasks/cancel", WITH_TASKS, taskId="t")),
            expect_to_client(lambda frame: frame["id"] == "b" and frame["result"]["isError"]),
        ]
    )


@pytest.mark.parametrize("status", ["cancelled", "working", "completed"])
def test_a_cancellation_is_answered_with_what_has_become_of_it(status: str) -> None:
    payload = {"result": DONE} if status == "completed" else {}
    hold(
        [
            *created(),
            client(request("b", "tasks/cancel", taskId="t")),
            expect_to_server(stamped(2, "tasks/cancel", WITH_TASKS, taskId="t")),
            server(complete(2)),
            polls(3),
            found(3, status, **payload),
            expect_to_client(result("b", {**OLD_TASK, "status": status})),
        ]
    )


def test_who_stops_waiting_stops_no_task() -> None:
    hold(
        [
            *created(),
            client(request("b", "tasks/result", taskId="t")),
            polls(2),
            client(notification("notifications/cancelled", requestId="b")),
            expect_to_server(notification("notifications/cancelled", requestId=2)),
            client(request("c", "tasks/get", taskId="t")),
            polls(3),
            found(3, "working"),
            expect_to_client(result("c", OLD_TASK)),
        ]
    )


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
def test_an_error_of_the_server_is_told(method: str) -> None:
    hold(
        [
            *created(),
            client(request("b", method, taskId="t")),
            expect_to_server(lambda frame: frame["method"] in ("tasks/get", method)),
            server(error(2, -32602, "Task has expired")),
            expect_to_client(error("b", -32602, "Task has expired")),
        ]
    )


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
@pytest.mark.parametrize("task_id", ["other", 5])
def test_a_task_of_another_session_is_not_there(method: str, task_id: Any) -> None:
    conversation.hold(
        [
            *created(),
            client(request("b", method, taskId=task_id)),
            expect_to_client(an_error("b", -32602, "no such task")),
        ]
    )


def test_there_is_no_list_of_tasks() -> None:
    hold([*created(), client(request("b", "tasks/list")), expect_to_client(an_error("b", -32601, "tasks/list"))])


def test_how_long_it_is_kept_is_for_the_server_to_say() -> None:
    hold(
        [
            *begin(task={"ttl": 5000}),
            server(result(1, {"resultType": "task", **TASK})),
            expect_to_client(result("a", {"task": OLD_TASK})),
        ]
    )


def test_a_call_that_wants_input_first_gets_its_task_afterwards() -> None:
    hold(
        [
            *begin(),
            server(asks(1, "s", color=COLOR)),
            expect_to_client(poses(1, "elicitation/create", OLDER)),
            client(result("dragoman-question-1", RED)),
            expect_to_server(
                stamped(2, "tools/call", WITH_TASKS, name="x", inputResponses={"color": RED}, requestState="s")
            ),
            server(result(2, {"resultType": "task", **TASK})),
            expect_to_client(result("a", {"task": OLD_TASK})),
        ]
    )


# A server that answers at once


class Client:
    """A client that keeps the id of the task that it was given."""

    def __init__(self) -> None:
        self.task: Any = None

    def is_given_a_task(self, status: str) -> Step:
        def matches(frame: Any) -> bool:
            task = frame["result"]["task"]
            self.task = task["taskId"]
            return (frame["id"], task["status"], task["ttl"]) == ("a", status, 3_600_000)

        return expect_to_client(matches)

    def says(self, key: Any, method: str) -> Step:
        return client(lambda: request(key, method, taskId=self.task))

    def hears(self, what: Callable[[Any], bool]) -> Step:
        return expect_to_client(lambda frame: what(frame["result"]))


@pytest.mark.parametrize(("more", "status"), [({}, "completed"), ({"isError": True}, "failed")])
def test_a_result_that_comes_at_once_is_a_task_that_has_ended(more: dict[str, Any], status: str) -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(complete(1, **DONE, **more, _meta=IDENTITY)),
            peer.is_given_a_task(status),
            peer.says("b", "tasks/get"),
            peer.hears(lambda found: found["taskId"] == peer.task and found["status"] == status),
            peer.says("c", "tasks/result"),
            peer.hears(
                lambda found: (
                    found == {**DONE, **more, "_meta": {"io.modelcontextprotocol/related-task": {"taskId": peer.task}}}
                )
            ),
            peer.says("d", "tasks/cancel"),
            expect_to_client(an_error("d", -32602, "has ended")),
        ]
    )


def test_an_error_that_comes_at_once_is_one() -> None:
    hold([*begin(), server(error(1, -32602, "no tool x")), expect_to_client(error("a", -32602, "no tool x"))])


def test_a_server_without_the_extension_runs_no_tasks() -> None:
    conversation.hold(
        [
            *opening(OLDER, {}, tools={}),
            client(request(1, "tasks/get", taskId="t")),
            expect_to_client(an_error(1, -32601, "tasks/get")),
        ]
    )


# Around it


def test_middleware_sees_requests_about_tasks_and_what_comes_of_them() -> None:
    seen: list[tuple[str, Any]] = []

    async def look(message: Message, proceed: Proceed) -> Answer:
        answer = await proceed(message)
        seen.append((message.method, answer.result))
        return answer

    hold(
        [
            *created(),
            client(request("b", "tasks/get", taskId="t")),
            polls(2),
            found(2, "working"),
            expect_to_client(result("b", OLD_TASK)),
            client(request("c", "tasks/result", taskId="t")),
            polls(3),
            found(3, "completed", result=DONE),
            expect_to_client(result("c", {**DONE, **RELATED})),
        ],
        middleware=(look,),
        request_timeout_s=30.0,
    )
    assert [(method, found["status"]) for method, found in seen[:2]] == [
        ("tools/call", "working"),
        ("tasks/get", "working"),
    ]
    assert seen[2:] == [("tasks/result", {**DONE, **RELATED})]


def test_middleware_may_refuse_to_say_what_came_of_a_task() -> None:
    async def hide(message: Message, proceed: Proceed) -> Answer:
        return Answer.fail(-32000, "hidden") if message.method == "tasks/result" else await proceed(message)

    hold(
        [
            *created(),
            client(request("c", "tasks/result", taskId="t")),
            expect_to_client(error("c", -32000, "hidden")),
        ],
        middleware=(hide,),
    )


# What goes wrong


def test_a_list_that_cannot_be_had_is_an_error() -> None:
    hold(
        [
            *opening(OLDER, CAN, tools={}, extensions=TASKS),
            client(request(1, "tools/list")),
            expect_to_server(stamped(1, "tools/list")),
            server(error(1, -32603, "broken")),
            expect_to_client(error(1, -32603, "broken")),
        ]
    )


def test_a_call_that_cannot_be_read_is_refused() -> None:
    conversation.hold(
        [
            *opening(OLDER, CAN, tools={}, extensions=TASKS),
            client(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",}}\n'),
            expect_to_client(lambda frame: frame["id"] == 1 and "error" in frame),
        ]
    )


def test_a_task_without_a_name_is_an_error() -> None:
    members = {"resultType": "task", **TASK, "taskId": 5}
    conversation.hold([*begin(), server(result(1, members)), expect_to_client(an_error("a", -32603, "without a name"))])


LOSSY = {"content": [], "structuredContent": [1]}


def test_a_result_that_cannot_be_carried_whole_is_refused_where_that_is_wanted() -> None:
    hold(
        [
            *begin(),
            server(complete(1, **LOSSY)),
            expect_to_client(an_error("a", -32603, "structuredContent")),
        ],
        on_loss=OnLoss.REFUSE_ALL,
    )


def test_so_is_the_result_of_a_task() -> None:
    hold(
        [
            *created(),
            client(request("b", "tasks/result", taskId="t")),
            polls(2),
            found(2, "completed", result=LOSSY),
            expect_to_client(an_error("b", -32603, "structuredContent")),
        ],
        on_loss=OnLoss.REFUSE_ALL,
    )


def test_a_capability_that_a_task_needs_is_named() -> None:
    required = {"requiredCapabilities": {"sampling": {}}}
    hold(
        [
            *created(),
            client(request("b", "tasks/get", taskId="t")),
            polls(2),
            server(error(2, -32021, "Missing required client capability", **required)),
            expect_to_client(an_error("b", -32602, "sampling")),
        ]
    )


def test_an_answer_about_a_task_that_is_garbled_is_an_error() -> None:
    hold(
        [
            *created(),
            client(request("b", "tasks/get", taskId="t")),
            polls(2),
            server({"jsonrpc": "2.0", "id": 2, "result": {}, "error": {"code": 1, "message": "both"}}),
            expect_to_client(an_error("b", -32603, "not a response")),
        ]
    )


def test_an_update_that_is_refused_ends_the_waiting() -> None:
    hold(
        [
            *created(has={"elicitation": {}, "roots": {}}),
            client(request("b", "tasks/result", taskId="t")),
            expect_to_server(lambda frame: frame["method"] == "tasks/get"),
            found(2, "input_required", inputRequests={"roots": {"method": "roots/list"}, "color": COLOR}),
            expect_to_client(poses(1, "roots/list")),
            expect_to_client(poses(2, "elicitation/create")),
            client(result("dragoman-question-1", {"roots": []})),
            client(result("dragoman-question-2", RED)),
            expect_to_server(lambda frame: frame["method"] == "tasks/update"),
            server(error(3, -32602, "Task has expired")),
            expect_to_client(error("b", -32602, "Task has expired")),
        ]
    )


def test_who_stops_waiting_is_not_asked_any_more() -> None:
    hold(
        [
            *created(),
            client(request("b", "tasks/result", taskId="t")),
            polls(2),
            found(2, "input_required", inputRequests={"color": COLOR}),
            expect_to_client(poses(1, "elicitation/create")),
            client(notification("notifications/cancelled", requestId="b")),
            expect_to_client(lambda frame: frame["params"]["requestId"] == "dragoman-question-1"),
        ]
    )


def test_nothing_is_polled_for_who_does_not_wait() -> None:
    hold(
        [
            *created(),
            client(request("b", "tasks/result", taskId="t")),
            polls(2),
            found(2, "working"),
            client(notification("notifications/cancelled", requestId="b")),
            time_passes(0.3),
        ]
    )


def test_who_has_closed_is_not_asked() -> None:
    hold(
        [
            *created(),
            client(request("b", "tasks/result", taskId="t")),
            polls(2),
            client_closes(),
            found(2, "input_required", inputRequests={"color": COLOR, "again": COLOR}),
            expect_to_server(stamped(3, "tasks/cancel", WITH_TASKS, taskId="t")),
            expect_to_client(lambda frame: frame["id"] == "b" and frame["result"]["isError"]),
        ]
    )


@pytest.mark.parametrize("limit", ["_MOST", "_MOST_OWN", "_MOST_BYTES"])
def test_there_is_a_limit_to_the_tasks_of_a_session(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"dragoman.core.switch.to_stateless.tasking.{limit}", 1)
    peer = Client()
    hold(
        [
            *begin(),
            server(complete(1, **DONE)),
            peer.is_given_a_task("completed"),
            client(request("c", "tools/call", name="x", task={})),
            expect_to_server(lambda frame: frame["id"] == 2),
            server(complete(2, **DONE)),
            expect_to_client(lambda frame: frame["id"] == "c"),
            peer.says("b", "tasks/get"),
            expect_to_client(an_error("b", -32602, "no such task")),
        ]
    )
