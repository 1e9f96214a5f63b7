"""A per-request server wants input of a client with a handshake: calls, and tasks, as conversations."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.rules.inputs import AskedClient, run_rounds, wait_for_task
from dragoman.core.rules.questions import Question
from dragoman.core.rules.routines import Ask, Done, Pause, Pose
from dragoman.errors import ProtocolError
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.core.rules.stepping import Stepped

A, B, C, D = HANDSHAKE_REVISIONS

CALL = {"name": "add", "arguments": {"a": 1}, "_meta": {"progressToken": 3}}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
ASK = {"method": "elicitation/create", "params": FORM}
VISIT = {"method": "elicitation/create", "params": {"mode": "url", "message": "Go", "url": "https://x.example/"}}
ROOTS = {"method": "roots/list"}
ALL = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
DONE = {"resultType": "complete", "content": []}
YES = {"action": "accept", "content": {"name": "x"}}
WAIT_ON = Pose({})
GET = Ask("tasks/get", {"taskId": "t1"})
RELATED = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}}


def call(
    result: Any, revision: str = D, method: str = "tools/call", capabilities: Any = ALL, roots: Any = None
) -> tuple[Stepped, Any]:
    """A call whose first result is this, and its first step."""
    routine = Stepped(run_rounds(method, CALL, AskedClient(revision, capabilities, roots), result))
    return routine, routine.step()


def wants(state: str | None = None, **questions: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"resultType": "input_required"}
    if questions:
        result["inputRequests"] = questions
    return result if state is None else {**result, "requestState": state}


def answer(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 9, "result": result}


def retry(**params: Any) -> Ask:
    return Ask("tools/call", {**CALL, **params})


def posed(step: Any) -> list[str]:
    assert isinstance(step, Pose), step
    return list(step.questions)


def failure(step: Any) -> str:
    """The reason that a model reads."""
    assert isinstance(step, Done), step
    assert step.result["isError"] is True
    text: str = step.result["content"][0]["text"]
    return text


def test_a_complete_result_is_the_end() -> None:
    assert call(DONE)[1] == Done(DONE)


def test_a_question_is_posed_and_the_call_tried_again() -> None:
    routine, step = call(wants("st\u2028ate", who=ASK))
    assert step == Pose({"who": Question("elicitation/create", FORM)})
    assert routine.step(("who", answer(YES))) == retry(inputResponses={"who": YES}, requestState="st\u2028ate")
    assert routine.step(DONE) == Done(DONE)


def test_without_a_state_none_goes_back() -> None:
    routine, _ = call(wants("s", who=ASK))
    routine.step(("who", answer(YES)))
    routine.step(wants(None, again=ASK))
    assert routine.step(("again", answer(YES))) == retry(inputResponses={"again": YES})


@pytest.mark.parametrize("revision", [C, D])
def test_newer_clients_are_asked_all_at_once(revision: str) -> None:
    routine, step = call(wants(one=ASK, two=ROOTS), revision, capabilities={"elicitation": {}, "roots": {}})
    assert posed(step) == ["one", "two"]
    assert routine.step(("two", answer({"roots": []}))) == WAIT_ON
    assert routine.step(("one", answer(YES))) == retry(inputResponses={"two": {"roots": []}, "one": YES})


def test_what_nobody_asked_is_not_an_answer() -> None:
    routine, _ = call(wants(who=ASK))
    assert routine.step(("other", answer(YES))) == WAIT_ON
    assert isinstance(routine.step(("who", answer(YES))), Ask)


def test_known_roots_are_not_asked_for() -> None:
    roots = [{"uri": "file:///a"}]
    _, step = call(wants("s", where=ROOTS), roots=roots)
    assert step == retry(inputResponses={"where": {"roots": roots}}, requestState="s")


def test_rounds_without_questions_wait_longer_each_time() -> None:
    routine, step = call(wants("s"))
    for pause_s in (0.25, 0.5, 1.0):
        assert step == Pause(pause_s)
        assert routine.step() == retry(requestState="s")
        step = routine.step(wants("s"))
    assert "4 times" in failure(step)


def test_the_reason_names_the_question() -> None:
    assert failure(call(wants(who=ASK), capabilities={})[1]) == (
        "The server asks for input: Who?. It cannot be asked: the client did not declare the capability elicitation."
    )


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
def test_what_has_no_failed_result_fails_with_an_error(method: str) -> None:
    _, step = call(wants(who=ASK), method=method, capabilities={})
    assert isinstance(step, ProtocolError)
    assert step.code == -32603
    assert step.data == {"method": method}


def test_a_visited_url_is_told_to_be_complete() -> None:
    routine, step = call(wants("s", who=VISIT))
    name = (step.questions["who"].params or {})["elicitationId"]
    routine.step(("who", answer({"action": "accept"})))
    assert routine.step(DONE) == Done(DONE, (name,))


def test_a_url_that_nobody_visited_is_not() -> None:
    routine, _ = call(wants("s", who=VISIT))
    said = routine.step(("who", answer({"action": "decline"})))
    assert said == retry(inputResponses={"who": {"action": "decline"}}, requestState="s")
    assert routine.step(DONE) == Done(DONE)


def test_an_error_of_the_client_ends_the_call() -> None:
    routine, _ = call(wants(one=ASK, two=ROOTS))
    error = {"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "not now"}}
    assert failure(routine.step(("one", error))) == "The client did not answer elicitation/create: not now (-1)"


def test_an_answer_that_is_none_ends_the_call() -> None:
    routine, _ = call(wants(where=ROOTS), A)
    assert "cannot be passed on" in failure(routine.step(("where", answer({"roots": 5}))))


def test_a_question_that_is_malformed_ends_the_call() -> None:
    params = {"messages": 5, "maxTokens": 5}
    _, step = call(wants(who={"method": "sampling/createMessage", "params": params}), A)
    assert "expected a list" in failure(step)


def test_losses_of_an_answer_come_with_the_retry() -> None:
    routine, _ = call(wants(where=ROOTS))
    step = routine.step(("where", answer({"roots": [], "_meta": {"com.example/a": 1}})))
    assert isinstance(step, Ask)
    assert [loss.pointer for loss in step.losses] == ["/result/_meta"]


@pytest.mark.parametrize("result", [{"resultType": "odd"}, {"resultType": "input_required"}])
def test_a_result_that_is_invalid_is_an_error(result: Any) -> None:
    _, step = call(result)
    assert isinstance(step, ProtocolError)
    assert step.code == -32603


@pytest.mark.parametrize(("revision", "several"), [(A, False), (B, False), (C, True), (D, True)])
def test_clients_take_several_questions_at_once_or_not(revision: str, several: bool) -> None:
    assert AskedClient(revision, {}).takes_several is several


# A client of 2025-11-25 waits for a task


def wait(capabilities: Any = None) -> Stepped:
    declared = {"elicitation": {"form": {}, "url": {}}, "roots": {}} if capabilities is None else capabilities
    routine = Stepped(wait_for_task("t1", AskedClient("2025-11-25", declared)))
    assert routine.step() == GET
    return routine


def task(status: Any, **more: Any) -> dict[str, Any]:
    return {"resultType": "complete", "taskId": "t1", "status": status, "ttlMs": None, **more}


def asking(**questions: Any) -> dict[str, Any]:
    return task("input_required", inputRequests=questions)


@pytest.mark.parametrize(
    ("advised", "after_s"),
    [(5000, 5.0), (None, 1.0), ("5", 1.0), (True, 1.0), (0, 0.1), (-5, 0.1), (1e9, 60.0), (250.5, 0.2505)],
)
def test_a_task_at_work_is_asked_for_as_it_advises(advised: Any, after_s: float) -> None:
    routine = wait()
    assert routine.step(task("working", pollIntervalMs=advised)) == Pause(after_s)
    assert routine.step() == GET


def test_a_task_that_has_ended_gives_its_result() -> None:
    assert wait().step(task("completed", result={"content": []})) == Done({"content": []})


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"code": 7, "message": "x", "data": [1]}, (7, "x", [1])),
        ({"code": "7"}, (-32603, "", None)),
        ({"code": True, "message": "x"}, (-32603, "x", None)),
    ],
)
def test_a_task_that_failed_gives_its_error(error: Any, told: Any) -> None:
    failed = wait().step(task("failed", error=error))
    assert isinstance(failed, ProtocolError)
    assert (failed.code, failed.message, failed.data) == told


@pytest.mark.parametrize(
    "broken",
    [
        {},
        task("cancelled"),
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
def test_a_task_that_has_no_result_is_an_error(broken: dict[str, Any]) -> None:
    failed = wait().step(broken)
    assert isinstance(failed, ProtocolError)
    assert (failed.code, failed.data) == (-32603, {"taskId": "t1"})


def test_a_question_says_which_task_it_is_about_and_is_answered_by_an_update() -> None:
    routine = wait()
    assert routine.step(asking(who=ASK)) == Pose({"who": Question("elicitation/create", {**FORM, **RELATED})})
    update = Ask("tasks/update", {"taskId": "t1", "inputResponses": {"who": YES}})
    assert routine.step(("who", answer(YES))) == update
    assert routine.step({}) == GET


def test_a_question_is_asked_once_however_often_it_is_seen() -> None:
    routine = wait()
    routine.step(asking(who=ASK))
    routine.step(("who", answer(YES)))
    routine.step({})
    assert routine.step(asking(who=ASK)) == Pause(1.0)
    routine.step()
    assert posed(routine.step(asking(who=ASK, where=ROOTS))) == ["where"]


def test_a_question_that_cannot_be_asked_gives_the_task_up() -> None:
    routine = wait({})
    assert routine.step(asking(who=ASK)) == Ask("tasks/cancel", {"taskId": "t1"}, is_awaited=False)
    assert "did not declare the capability elicitation" in failure(routine.step())
