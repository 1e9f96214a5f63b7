"""A client of 2025-11-25 waits for a task of a per-request server: as conversations."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.bridge.awaiting import GiveUp, Poll, TaskWait, Update
from dragoman.core.bridge.inputs import FailCall, FinishCall
from dragoman.core.bridge.posing import Asked, Pose

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
ASK = {"method": "elicitation/create", "params": FORM}
ROOTS = {"method": "roots/list"}
VISIT = {"method": "elicitation/create", "params": {"mode": "url", "message": "Go", "url": "https://x.example/"}}
YES = {"action": "accept", "content": {}}
RELATED = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}}


def wait(capabilities: Any = None, **more: Any) -> TaskWait:
    declared = {"elicitation": {"form": {}, "url": {}}, "roots": {}} if capabilities is None else capabilities
    return TaskWait("t1", Asked("2025-11-25", declared), **more)


def task(status: Any, **more: Any) -> dict[str, Any]:
    return {"resultType": "complete", "taskId": "t1", "status": status, "ttlMs": None, **more}


def asking(**questions: Any) -> dict[str, Any]:
    return task("input_required", inputRequests=questions)


def answer(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 9, "result": result}


@pytest.mark.parametrize(
    ("advised", "after_s"),
    [(5000, 5.0), (None, 1.0), ("5", 1.0), (True, 1.0), (0, 0.1), (-5, 0.1), (1e9, 60.0), (250.5, 0.2505)],
)
def test_a_task_at_work_is_asked_for_as_it_advises(advised: Any, after_s: float) -> None:
    assert wait().take_task(task("working", pollIntervalMs=advised)) == Poll(after_s)


def test_a_task_that_has_ended_gives_its_result() -> None:
    assert wait().take_task(task("completed", result={"content": []})) == FinishCall({"content": []})


@pytest.mark.parametrize(
    ("error", "fail"),
    [
        ({"code": 7, "message": "x", "data": [1]}, FailCall(7, "x", [1])),
        ({"code": "7"}, FailCall(-32603, "", None)),
        ({"code": True, "message": "x"}, FailCall(-32603, "x", None)),
    ],
)
def test_a_task_that_failed_gives_its_error(error: Any, fail: FailCall) -> None:
    assert wait().take_task(task("failed", error=error)) == fail


def test_a_task_that_was_cancelled_is_an_error() -> None:
    assert wait(shown_id="shown").take_task(task("cancelled")) == FailCall(
        -32603, "the task was cancelled", {"taskId": "shown"}
    )


@pytest.mark.parametrize(
    "broken",
    [
        {},
        task("odd"),
        task(["working"]),
        task("completed"),
        task("completed", result=5),
        task("failed", error="x"),
        task("input_required"),
        asking(a=5),
        asking(a={"method": "tools/call"}),
        asking(a={"method": "roots/list", "params": []}),
    ],
)
def test_a_task_that_is_none_is_an_error(broken: dict[str, Any]) -> None:
    failed = wait().take_task(broken)
    assert isinstance(failed, FailCall)
    assert (failed.code, failed.data) == (-32603, {"taskId": "t1"})


def test_a_question_says_which_task_it_is_about_and_is_answered_by_an_update() -> None:
    desk = wait()
    posed = desk.take_task(asking(who=ASK))
    assert isinstance(posed, Pose)
    assert posed.questions["who"].params == {**FORM, **RELATED}
    assert list(posed.questions) == ["who"]
    assert desk.take_answer("who", answer(YES)) == Update({"taskId": "t1", "inputResponses": {"who": YES}}, ())


def test_the_client_hears_its_own_name_of_the_task() -> None:
    posed = wait(shown_id="shown").take_task(asking(where=ROOTS))
    assert isinstance(posed, Pose)
    assert posed.questions["where"].params == {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "shown"}}}


def test_a_question_is_asked_once_however_often_it_is_seen() -> None:
    desk = wait()
    desk.take_task(asking(who=ASK))
    desk.take_answer("who", answer(YES))
    assert desk.take_task(asking(who=ASK)) == Poll(1.0)
    posed = desk.take_task(asking(who=ASK, where=ROOTS))
    assert isinstance(posed, Pose)
    assert list(posed.questions) == ["where"]


def test_a_visit_is_told_to_be_complete_at_the_end() -> None:
    desk = wait()
    posed = desk.take_task(asking(go=VISIT))
    assert isinstance(posed, Pose)
    name = (posed.questions["go"].params or {})["elicitationId"]
    desk.take_answer("go", answer({"action": "accept"}))
    assert desk.take_task(task("completed", result={})) == FinishCall({}, (name,))


def test_a_question_that_cannot_be_asked_gives_the_task_up() -> None:
    given_up = wait({}).take_task(asking(who=ASK))
    assert isinstance(given_up, GiveUp)
    assert given_up.result["isError"] is True
    assert "did not declare the capability elicitation" in given_up.result["content"][0]["text"]


def test_an_answer_to_nothing_changes_nothing() -> None:
    desk = wait()
    assert desk.take_answer("who", answer(YES)) is None
    desk.take_task(asking(who=ASK, where=ROOTS))
    assert desk.take_answer("other", answer(YES)) is None
    assert desk.take_answer("who", answer(YES)) is None
    assert isinstance(desk.take_answer("where", answer({"roots": []})), Update)
