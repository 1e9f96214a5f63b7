"""What is told of a call that has become a task for its per-request client."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.rules.asking import CallOwner, OpenQuestions
from dragoman.core.rules.promoted import Task
from dragoman.core.rules.state import Binding

CALLER = CallOwner(Binding("files", "tools/call", "digest", "alice"), {"elicitation": {}, "roots": {}}, "2025-11-25")
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
YES = {"action": "accept", "content": {}}
START = 1_800_000_000.0


def promoted(told: dict[str, Any] | None = None) -> Task:
    return Task("t", OpenQuestions(CALLER), START, 60_000, told or {})


def test_a_call_becomes_a_task() -> None:
    assert promoted().describe() == {
        "taskId": "t",
        "status": "working",
        "createdAt": "2027-01-15T08:00:00.000Z",
        "lastUpdatedAt": "2027-01-15T08:00:00.000Z",
        "ttlMs": 60000,
        "pollIntervalMs": 1000,
    }


def test_what_the_server_asks_stands_in_the_task_until_it_is_answered() -> None:
    task = promoted()
    task.questions.add_question(b"7", "elicitation/create", FORM)
    task.questions.add_question(b"8", "roots/list", None)
    found = task.detail()
    assert found["status"] == "input_required"
    assert found["inputRequests"] == {
        "question-1": {"method": "elicitation/create", "params": FORM},
        "question-2": {"method": "roots/list"},
    }
    task.questions.take_answers({"question-1": YES})
    assert list(task.detail()["inputRequests"]) == ["question-2"]
    task.questions.withdraw(b"8")
    found = task.detail()
    assert found["status"] == "working"
    assert "inputRequests" not in found


@pytest.mark.parametrize("how", ["completed", "failed"])
def test_a_response_ends_the_task(how: str) -> None:
    task = promoted()
    task.questions.add_question(b"7", "roots/list", None)
    assert task.end(how, {"result": {"content": []}}, START + 1)
    found = task.detail()
    assert (found["status"], found["result"]) == (how, {"content": []})
    assert found["lastUpdatedAt"] == "2027-01-15T08:00:01.000Z"
    assert "inputRequests" not in found


def test_a_task_does_not_leave_its_last_state() -> None:
    task = promoted()
    assert task.end("completed", {"result": 1}, START)
    assert not task.end("completed", {"result": 2}, START)
    assert not task.end("cancelled", {}, START)
    assert (task.detail()["status"], task.detail()["result"]) == ("completed", 1)


def test_what_the_server_says_of_its_own_task_is_said_of_this_one() -> None:
    task = promoted({"ttl": 5000, "pollInterval": 50, "statusMessage": "begun"})
    found = task.describe()
    assert (found["ttlMs"], found["pollIntervalMs"], found["statusMessage"]) == (5000, 50, "begun")
    task.note({"status": "working", "statusMessage": "half"}, START + 1)
    assert task.describe()["statusMessage"] == "half"
    task.note({"status": "cancelled"}, START + 2)
    task.note({"status": "working", "statusMessage": "late"}, START + 3)
    assert (task.describe()["status"], task.describe()["statusMessage"]) == ("cancelled", "half")


@pytest.mark.parametrize(
    "told", [{"ttl": None}, {"ttl": -1}, {"ttl": "x"}, {"ttl": True}, {"ttl": 1e300}, {"ttl": float("nan")}]
)
def test_a_time_that_is_none_is_not_taken(told: dict[str, Any]) -> None:
    found = promoted({**told, "statusMessage": 5}).describe()
    assert found["ttlMs"] == 60000
    assert "statusMessage" not in found
