"""One task in two forms."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.rules.tasks import (
    leave_off_relation,
    offer_tasks,
    read_relation,
    read_support,
    relate,
    take_task,
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


def test_a_task_in_the_older_form() -> None:
    assert to_older_task(NEWER) == OLDER


def test_the_time_that_a_task_is_kept_is_required() -> None:
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


def test_the_answer_that_creates_a_task_in_the_older_form() -> None:
    meta = {"_meta": {"com.example/m": 1}}
    assert to_older_creation({"resultType": "task", **NEWER, **meta}) == {"task": OLDER, **meta}


def test_an_answer_that_creates_a_task_is_valid_in_the_older_form() -> None:
    created = to_older_creation({"resultType": "task", **NEWER})
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "result": created}, D, method="tools/call")
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "result": to_older_task(NEWER)}, D, method="tasks/get")


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
    ("tool", "support"),
    [
        (None, "forbidden"),
        ({}, "forbidden"),
        ({"execution": 5}, "forbidden"),
        ({"execution": {"taskSupport": 5}}, "forbidden"),
        ({"execution": {"taskSupport": "optional"}}, "optional"),
        ({"execution": {"taskSupport": "required"}}, "required"),
    ],
)
def test_a_tool_says_whether_it_runs_as_a_task(tool: Any, support: str) -> None:
    assert read_support(tool) == support


def test_a_result_of_a_task_is_a_result() -> None:
    related = {"io.modelcontextprotocol/related-task": {"taskId": "t"}}
    assert leave_off_relation({"content": [], "_meta": related}) == {"content": []}
    assert leave_off_relation({"_meta": {**related, "com.example/m": 1}}) == {"_meta": {"com.example/m": 1}}
    plain = {"_meta": {"com.example/m": 1}}
    assert leave_off_relation(plain) is plain


@pytest.mark.parametrize("params", [None, 5, {}, {"_meta": 5}, {"_meta": {}}])
def test_most_requests_are_about_no_task(params: Any) -> None:
    assert read_relation(params) is None


@pytest.mark.parametrize("related", [5, None, {}, {"taskId": 5}])
def test_a_request_that_names_no_readable_task_is_about_one_that_nobody_has(related: Any) -> None:
    assert read_relation({"_meta": {"io.modelcontextprotocol/related-task": related}}) == ""


def test_which_task_a_request_is_about_is_read() -> None:
    assert read_relation(relate({"a": 1}, "t")) == "t"


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
