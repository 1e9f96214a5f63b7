"""A call that has become a task for its per-request client: as conversations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dragoman.core.bridge.asking import AskedCall, Turned
from dragoman.core.bridge.promoted import ExpiredTask, PromotedTasks
from dragoman.core.bridge.seal import Seal
from dragoman.core.bridge.state import Binding, Keeper, Moment, State
from dragoman.errors import RemoteProtocolError

D = "2025-11-25"
KEEPER = Keeper(Seal(b"k" * 32, b"i" * 16), ttl_s=60)
BINDING = Binding("files", "tools/call", "digest", "alice")
CALLER = AskedCall(BINDING, {"elicitation": {}, "roots": {}}, D)
POLL = Binding("files", "tasks/get", "other", "alice")
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
YES = {"action": "accept", "content": {}}
START = 1_800_000_000.0


def at(time_s: float) -> Moment:
    return Moment(time_s, time_s)


def promoted(call: str = "c", **more: Any) -> tuple[PromotedTasks, str]:
    tasks = PromotedTasks(KEEPER, **more)
    result = tasks.promote(call, CALLER, at(START), b"n" * 12)
    assert result is not None
    return tasks, result["taskId"]


def get(tasks: PromotedTasks, task_id: str, now_s: float = START + 1) -> dict[str, Any]:
    return tasks.get({"taskId": task_id}, POLL, now_s)


def test_a_call_becomes_a_task() -> None:
    result = PromotedTasks(KEEPER, poll_ms=250).promote("c", CALLER, at(START), b"n" * 12)
    assert result is not None
    assert result == {
        "resultType": "task",
        "taskId": result["taskId"],
        "status": "working",
        "createdAt": "2027-01-15T08:00:00.000Z",
        "lastUpdatedAt": "2027-01-15T08:00:00.000Z",
        "ttlMs": 60000,
        "pollIntervalMs": 250,
    }


def test_what_the_server_asks_stands_in_the_task_until_it_is_answered() -> None:
    tasks, task_id = promoted()
    tasks.ask("c", b"7", "elicitation/create", FORM, START + 1)
    tasks.ask("c", b"8", "roots/list", None, START + 2)
    found = get(tasks, task_id)
    assert (found["resultType"], found["status"]) == ("complete", "input_required")
    assert found["lastUpdatedAt"] == "2027-01-15T08:00:02.000Z"
    assert found["inputRequests"] == {
        "question-1": {"method": "elicitation/create", "params": FORM},
        "question-2": {"method": "roots/list"},
    }
    update = {"taskId": task_id, "inputResponses": {"question-1": YES}}
    assert tasks.update(update, POLL, START + 3) == ([(b"7", YES)], ())
    assert list(get(tasks, task_id)["inputRequests"]) == ["question-2"]
    tasks.update({"taskId": task_id, "inputResponses": {"question-2": {"roots": []}}}, POLL, START + 4)
    found = get(tasks, task_id)
    assert (found["status"], found["lastUpdatedAt"]) == ("working", "2027-01-15T08:00:04.000Z")
    assert "inputRequests" not in found


def test_an_answer_counts_once() -> None:
    tasks, task_id = promoted()
    tasks.ask("c", b"7", "elicitation/create", FORM, START)
    update = {"taskId": task_id, "inputResponses": {"question-1": YES}}
    assert tasks.update(update, POLL, START).replies == [(b"7", YES)]
    assert tasks.update(update, POLL, START).replies == []


@pytest.mark.parametrize("responses", [None, {}, {"other": YES}])
def test_an_update_that_answers_nothing_changes_nothing(responses: Any) -> None:
    tasks, task_id = promoted()
    tasks.ask("c", b"7", "roots/list", None, START)
    assert tasks.update({"taskId": task_id, "inputResponses": responses}, POLL, START + 5) == ([], ())
    assert get(tasks, task_id)["status"] == "input_required"


def test_an_update_before_any_question_changes_nothing() -> None:
    tasks, task_id = promoted()
    tasks.update({"taskId": task_id}, POLL, START + 5)
    assert get(tasks, task_id)["lastUpdatedAt"] == "2027-01-15T08:00:00.000Z"


def test_a_question_that_is_taken_back_is_not_asked() -> None:
    tasks, task_id = promoted()
    tasks.ask("c", b"7", "roots/list", None, START)
    tasks.ask("c", b"8", "roots/list", None, START)
    tasks.withdraw("c", b"7", START)
    assert list(get(tasks, task_id)["inputRequests"]) == ["question-2"]
    tasks.withdraw("c", b"8", START)
    assert get(tasks, task_id)["status"] == "working"
    tasks.withdraw("c", b"8", START)
    tasks.withdraw("other", b"8", START)


def test_a_question_that_the_client_did_not_say_it_takes_is_turned_away() -> None:
    tasks, task_id = promoted()
    assert isinstance(tasks.ask("c", b"7", "sampling/createMessage", {"messages": [], "maxTokens": 1}, START), Turned)
    assert get(tasks, task_id)["status"] == "working"


@pytest.mark.parametrize(
    ("response", "status", "payload"),
    [
        ({"id": 1, "result": {"content": []}}, "completed", {"result": {"content": []}}),
        ({"id": 1, "error": {"code": 1, "message": "x"}}, "failed", {"error": {"code": 1, "message": "x"}}),
    ],
)
def test_a_response_ends_the_task(response: Any, status: str, payload: dict[str, Any]) -> None:
    tasks, task_id = promoted()
    tasks.ask("c", b"7", "roots/list", None, START)
    tasks.finish("c", response, START + 1)
    found = get(tasks, task_id)
    assert found["status"] == status
    assert {name: found.get(name) for name in payload} == payload
    assert "inputRequests" not in found


def test_a_task_does_not_leave_its_last_state() -> None:
    tasks, task_id = promoted()
    tasks.finish("c", {"result": 1}, START)
    tasks.finish("c", {"result": 2}, START)
    assert tasks.cancel({"taskId": task_id}, POLL, START) is None
    tasks.finish("other", {"result": 2}, START)
    assert get(tasks, task_id)["result"] == 1


def test_a_cancelled_task_cancels_its_call() -> None:
    tasks, task_id = promoted()
    tasks.promote("d", CALLER, at(START), b"m" * 12)
    tasks.ask("c", b"7", "roots/list", None, START)
    assert tasks.cancel({"taskId": task_id}, POLL, START) == "c"
    assert get(tasks, task_id)["status"] == "cancelled"
    tasks.finish("c", {"result": 1}, START)
    assert "result" not in get(tasks, task_id)


@pytest.mark.parametrize("other", [replace(POLL, principal="bob"), replace(POLL, server="mail")])
def test_a_task_is_for_its_caller_and_its_server(other: Binding) -> None:
    tasks, task_id = promoted()
    for method in (tasks.get, tasks.update, tasks.cancel):
        with pytest.raises(RemoteProtocolError):
            method({"taskId": task_id}, other, START)


@pytest.mark.parametrize("task_id", [None, 5, "", "t1"])
def test_a_task_that_nobody_made_is_unknown(task_id: Any) -> None:
    tasks, _ = promoted()
    with pytest.raises(RemoteProtocolError) as caught:
        tasks.get({"taskId": task_id}, POLL, START)
    assert caught.value.code == -32602


def test_a_state_of_another_kind_is_no_task() -> None:
    tasks, _ = promoted()
    other = KEEPER.write(State("park", "c"), replace(BINDING, method="tasks", digest=""), START, b"n" * 12)
    with pytest.raises(RemoteProtocolError) as caught:
        tasks.get({"taskId": other}, POLL, START)
    assert caught.value.data == {"reason": "call-unknown"}


def test_tasks_are_kept_for_a_time_from_their_beginning() -> None:
    tasks, task_id = promoted()
    tasks.promote("d", CALLER, at(START + 10), b"m" * 12)
    tasks.finish("d", {"result": 1}, START + 10)
    assert tasks.find_next_expiry() == START + 60
    assert tasks.expire(START + 59) == []
    assert tasks.expire(START + 70) == [ExpiredTask("c", True), ExpiredTask("d", False)]
    assert tasks.find_next_expiry() is None
    assert len(tasks) == 0
    with pytest.raises(RemoteProtocolError):
        get(tasks, task_id)


def test_there_are_only_so_many_tasks() -> None:
    tasks, _ = promoted(most=1)
    assert tasks.promote("d", CALLER, at(START), b"m" * 12) is None


def test_a_wall_clock_that_is_set_ends_no_task() -> None:
    tasks, task_id = promoted()
    assert get(tasks, task_id, START + 86400)["status"] == "working"
    assert tasks.expire(START + 59) == []


def test_what_the_server_says_of_its_own_task_is_said_of_this_one() -> None:
    tasks = PromotedTasks(KEEPER)
    told = {"ttl": 5000, "pollInterval": 50, "statusMessage": "begun"}
    result = tasks.promote("c", CALLER, at(START), b"n" * 12, told)
    assert result is not None
    assert (result["ttlMs"], result["pollIntervalMs"], result["statusMessage"]) == (5000, 50, "begun")
    assert tasks.find_next_expiry() == START + 5
    tasks.note("c", {"status": "working", "statusMessage": "half"}, START + 1)
    assert get(tasks, result["taskId"])["statusMessage"] == "half"
    tasks.note("c", {"status": "cancelled"}, START + 2)
    tasks.note("c", {"status": "working", "statusMessage": "late"}, START + 3)
    tasks.note("other", {"status": "working"}, START + 3)
    assert get(tasks, result["taskId"])["status"] == "cancelled"
    assert get(tasks, result["taskId"])["statusMessage"] == "half"


@pytest.mark.parametrize(
    "told", [{"ttl": None}, {"ttl": -1}, {"ttl": "x"}, {"ttl": True}, {"ttl": 1e300}, {"ttl": float("nan")}]
)
def test_a_time_that_is_none_is_not_taken(told: dict[str, Any]) -> None:
    result = PromotedTasks(KEEPER).promote("c", CALLER, at(START), b"n" * 12, {**told, "statusMessage": 5})
    assert result is not None
    assert result["ttlMs"] == 60000
    assert "statusMessage" not in result


def test_of_tasks_that_have_ended_the_oldest_makes_room() -> None:
    tasks = PromotedTasks(KEEPER, most=1)
    for number in range(5):
        assert tasks.has_room("")
        assert tasks.promote(f"c{number}", CALLER, at(START), b"n" * 12) is not None
        assert not tasks.has_room("")
        tasks.finish(f"c{number}", {"result": {}}, START)
    assert ["c0" in tasks, "c1" in tasks, len(tasks)] == [False, True, 4]


def test_a_notification_says_the_same_as_an_answer() -> None:
    tasks, task_id = promoted()
    tasks.ask("c", b"7", "roots/list", None, START)
    assert {"resultType": "complete", **(tasks.tell("c") or {})} == get(tasks, task_id)
    assert tasks.tell("other") is None


def test_a_task_is_found_by_its_caller_alone() -> None:
    tasks, task_id = promoted()
    assert tasks.find(task_id, POLL, START) == "c"
    with pytest.raises(RemoteProtocolError):
        tasks.find(task_id, replace(POLL, principal="bob"), START)


def test_there_is_a_limit_to_what_results_hold_together() -> None:
    tasks = PromotedTasks(KEEPER, most_bytes=100)
    for call, weight_bytes in (("a", 60), ("b", 40), ("c", 50), ("d", 101)):
        tasks.promote(call, CALLER, at(START), b"n" * 12)
        tasks.finish(call, {"result": {}}, START, weight_bytes)
        if call == "c":
            assert [known in tasks for known in "abc"] == [False, True, True]
    assert len(tasks) == 0
