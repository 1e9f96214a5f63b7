"""One task in two forms."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.bridge.tasks import (
    TERMINAL,
    needs_task,
    offer_tasks,
    relate,
    take_task,
    to_newer_creation,
    to_newer_task,
    to_older_creation,
    to_older_task,
)

D = "2025-11-25"
OLDER = {
    "taskId": "t1",
    "status": "working",
    "statusMessage": "at it",
    "createdAt": "2025-11-25T10:30:00Z",
    "lastUpdatedAt": "2025-11-25T10:40:00Z",
    "ttl": 60000,
    "pollInterval": 5000,
    "com.example/x": 1,
}
NEWER = {
    "taskId": "t1",
    "status": "working",
    "statusMessage": "at it",
    "createdAt": "2025-11-25T10:30:00Z",
    "lastUpdatedAt": "2025-11-25T10:40:00Z",
    "ttlMs": 60000,
    "pollIntervalMs": 5000,
    "com.example/x": 1,
}


def test_a_task_has_two_forms() -> None:
    assert to_newer_task(OLDER) == NEWER
    assert to_older_task(NEWER) == OLDER


def test_the_time_that_a_task_is_kept_is_required_in_both() -> None:
    assert to_newer_task({"taskId": "t"}) == {"taskId": "t", "ttlMs": None}
    assert to_older_task({"taskId": "t"}) == {"taskId": "t", "ttl": None}


@pytest.mark.parametrize(
    "payload",
    [
        {"result": {"content": []}},
        {"error": {"code": 1, "message": "x"}},
        {"inputRequests": {}},
        {"resultType": "complete"},
    ],
)
def test_what_a_task_carries_stays_out_of_the_older_form(payload: dict[str, Any]) -> None:
    assert to_older_task({**NEWER, **payload}) == OLDER


def test_a_task_of_the_extension_carries_its_result() -> None:
    assert to_newer_task(OLDER, result={"content": []}) == {**NEWER, "result": {"content": []}}


def test_the_answer_that_creates_a_task_has_two_forms() -> None:
    meta = {"_meta": {"com.example/m": 1}}
    assert to_older_creation({"resultType": "task", **NEWER, **meta}) == {"task": OLDER, **meta}
    assert to_newer_creation({"task": OLDER, **meta}) == {"resultType": "task", **NEWER, **meta}


def test_an_answer_that_creates_a_task_is_valid_in_the_older_form() -> None:
    created = to_older_creation({"resultType": "task", **NEWER})
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "result": created}, D, method="tools/call")
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "result": to_older_task(NEWER)}, D, method="tasks/get")


def test_an_answer_without_a_task_creates_an_empty_one() -> None:
    assert to_newer_creation({"task": 5}) == {"resultType": "task", "ttlMs": None}


@pytest.mark.parametrize("params", [None, {}, {"_meta": 5}, {"message": "m", "_meta": {"progressToken": 1}}])
def test_a_request_says_which_task_it_is_about(params: Any) -> None:
    related = relate(params, "t1")
    assert related["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": "t1"}
    assert {name: related[name] for name in (params or {}) if name != "_meta"} == {
        name: value for name, value in (params or {}).items() if name != "_meta"
    }


def test_every_tool_may_be_run_as_a_task() -> None:
    tools = [{"name": "a"}, {"name": "b", "execution": {"x": 1}}, {"name": "c", "execution": 5}, "odd"]
    assert offer_tasks({"tools": tools})["tools"] == [
        {"name": "a", "execution": {"taskSupport": "optional"}},
        {"name": "b", "execution": {"x": 1, "taskSupport": "optional"}},
        {"name": "c", "execution": {"taskSupport": "optional"}},
        "odd",
    ]
    broken = {"tools": 5}
    assert offer_tasks(broken) is broken


@pytest.mark.parametrize(
    ("tool", "needed"),
    [
        (None, False),
        ({}, False),
        ({"execution": 5}, False),
        ({"execution": {"taskSupport": "optional"}}, False),
        ({"execution": {"taskSupport": "required"}}, True),
    ],
)
def test_some_tools_run_as_tasks_only(tool: Any, needed: bool) -> None:
    assert needs_task(tool) is needed


def test_what_a_call_says_about_tasks_comes_off() -> None:
    params, said, losses = take_task({"name": "add", "task": {"ttl": 5}})
    assert (params, said) == ({"name": "add"}, {"ttl": 5})
    assert [(loss.pointer, loss.value) for loss in losses] == [("/params/task/ttl", 5)]
    assert take_task({"name": "add", "task": None}) == ({"name": "add"}, {}, ())


def test_a_call_that_says_nothing_about_tasks_stays_the_same_object() -> None:
    params = {"name": "add"}
    found, said, losses = take_task(params)
    assert found is params
    assert (said, losses) == (None, ())


def test_three_states_are_the_end() -> None:
    assert sorted(TERMINAL) == ["cancelled", "completed", "failed"]
