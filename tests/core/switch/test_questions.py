"""What a shared server asks: of whom, and when of nobody."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.declared import find_missing, read_declared
from dragoman.core.exact_json import encode_line
from dragoman.core.serving.attribution import REMEMBERED
from tests.core.switch.talk import Talk
from tests.core.switch.test_shared import call
from tests.proxy.conversation import an_error, error, notification, request, result

ALL: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {}}
TASK = {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}


def elicit(key: Any, **params: Any) -> dict[str, Any]:
    return request(key, "elicitation/create", message="?", requestedSchema={"type": "object"}, **params)


def test_ping_is_answered_here() -> None:
    talk = Talk()
    talk.opens("a")
    assert talk.says("server", request("p", "ping")) == [("server", result("p", {}))]


def test_nobody_is_asked_for_tasks_which_the_server_was_not_told_of() -> None:
    talk = Talk()
    talk.opens("a", **ALL, tasks={})
    talk.says("a", call(1))
    [(to, frame)] = talk.says("server", request(0, "tasks/get", taskId="t1"))
    assert to == "server"
    assert an_error(0, -32601, "tasks")(frame)


def test_with_calls_of_two_sessions_under_way_nobody_is_asked() -> None:
    talk = Talk()
    talk.opens("a", "b", **ALL)
    talk.says("a", call(1))
    talk.says("b", call(1))
    [(to, frame)] = talk.says("server", elicit(0))
    assert to == "server"
    assert an_error(0, -32603, "2 sessions")(frame)


def test_from_then_on_sessions_take_turns() -> None:
    talk = Talk()
    number = talk.opens("a", "b", "c", **ALL)
    talk.says("a", call(1))
    talk.says("server", elicit(0))
    assert talk.switch.asks
    assert talk.says("b", call(1)) == []
    assert talk.says("c", call(1)) == []
    assert talk.says("b", request(2, "tools/list"))[0][0] == "server"
    heard = talk.says("server", result(number, {}))
    assert heard == [("a", result(1, {})), ("server", call(number + 1))]
    assert talk.says("server", elicit(1)) == [("b", elicit(1))]
    assert talk.says("server", result(number + 1, {}))[1] == ("server", call(number + 2))


def test_calls_that_wait_their_turn_are_not_compared_with_all_others() -> None:
    looked = [0]

    class Counted(dict[Any, Any]):
        def values(self) -> Any:
            looked[0] += len(self)
            return super().values()

    talk, count = Talk(asks=True, turn_s=10), 200
    number = talk.opens("a", "b", "c")
    loans = talk.switch._desk.loans
    loans.by_key = Counted(loans.by_key)
    talk.says("a", call(1))
    for key in range(count):
        assert talk.says("b", call(key)) == talk.says("c", call(key)) == []
    assert len(talk.says("server", result(number, {}))) == 2
    talk.time_passes(11)
    talk.says("server", *(result(key, {}) for key in range(number + 1, number + 1 + 2 * count)))
    assert not loans.by_key
    assert looked[0] <= 4 * count


def test_calls_of_one_session_do_not_wait_for_each_other() -> None:
    talk = Talk(asks=True)
    talk.opens("a", "b")
    assert talk.says("a", call(1))[0][0] == "server"
    assert talk.says("a", call(2))[0][0] == "server"
    assert talk.says("b", call(1)) == []
    assert talk.says("a", call(3)) == []  # first come, first served


def test_a_cancelled_call_leaves_the_queue_without_a_word() -> None:
    talk = Talk(asks=True)
    number = talk.opens("a", "b", "c")
    for name in "abc":
        talk.says(name, call(1))
    assert talk.says("b", notification("notifications/cancelled", requestId=1)) == []
    assert talk.says("server", result(number, {}))[1] == ("server", call(number + 2))


def test_who_waits_too_long_goes_on_and_nobody_waits_for_the_slow_one_again() -> None:
    talk = Talk(asks=True, turn_s=10)
    number = talk.opens("a", "b", "c", **ALL)
    for name in "abc":
        talk.says(name, call(1))
    assert talk.time_passes(9) == []
    assert talk.time_passes(2) == [("server", call(number + 1)), ("server", call(number + 2))]
    [(to, frame)] = talk.says("server", elicit(0))
    assert to == "server"
    assert an_error(0, -32603, "3 sessions")(frame)
    for later in (1, 2):
        assert talk.says("server", result(number + later, {})) == [("abc"[later], result(1, {}))]
    assert talk.says("b", call(2)) == [("server", call(number + 3))]


def test_the_queue_is_bounded() -> None:
    talk = Talk(asks=True, waiting_bytes=100)
    talk.opens("a", "b")
    talk.says("a", call(1))
    talk.says("b", call(1))
    [(to, frame)] = talk.says("b", call(2))
    assert to == "b"
    assert an_error(2, -32000, "waits")(frame)


def test_a_session_that_ends_leaves_the_queue_and_lets_others_in_once_its_call_is_cold() -> None:
    talk = Talk(asks=True, grace_s=5)
    number = talk.opens("a", "b", "c", **ALL)
    for name in "abc":
        talk.says(name, call(1))
    talk.leaves("b")
    assert [to for to, _ in talk.leaves("a")] == ["server"]
    [(to, frame)] = talk.says("server", elicit(0))  # about what a left behind: not for c
    assert to == "server"
    assert an_error(0, -32000, "closed")(frame)
    assert talk.time_passes(6) == [("server", call(number + 2))]


def test_the_stream_tells_whose_question_it_is() -> None:
    talk = Talk()
    number = talk.opens("a", "b", **ALL)
    talk.says("a", call(1))
    talk.says("b", call(1))
    assert talk.streams(number + 1, elicit(0)) == [("b", elicit(0))]
    assert not talk.switch.asks


def test_a_task_tells_whose_question_it_is() -> None:
    talk = Talk()
    number = talk.opens("a", "b", **ALL)
    talk.says("a", call(1, task={}, _meta={"progressToken": "t"}))
    talk.says("server", result(number, {"task": {"taskId": "t1", "status": "working"}}))
    talk.says("b", call(1))
    assert talk.says("server", elicit(0, _meta=TASK)) == [("a", elicit(0, _meta=TASK))]
    progress = notification("notifications/progress", progressToken=number, progress=1)
    assert talk.says("server", progress)[0][1]["params"]["progressToken"] == "t"
    status = notification("notifications/tasks/status", taskId="t1", status="completed")
    assert talk.says("server", status) == [("a", status)]


def test_tasks_of_others_are_neither_seen_nor_touched() -> None:
    talk = Talk()
    number = talk.opens("a", "b")
    talk.says("a", call(1, task={}))
    talk.says("server", result(number, {"task": {"taskId": "t1"}}))
    for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/update"):
        [(to, frame)] = talk.says("b", request(2, method, taskId="t1"))
        assert to == "b"
        assert an_error(2, -32602, "no such task")(frame)
    assert talk.says("a", request(2, "tasks/get", taskId="t1"))[0][0] == "server"
    for name, seen in (("a", [{"taskId": "t1"}]), ("b", [])):
        [(_, asked)] = talk.says(name, request(3, "tasks/list"))
        listed = result(asked["id"], {"tasks": [{"taskId": "t1"}, {"taskId": "t2"}]})
        assert talk.says("server", listed) == [(name, result(3, {"tasks": seen}))]


def test_of_a_list_of_tasks_the_pages_say_nothing_of_others() -> None:
    talk = Talk()
    number = talk.opens("a", "b")
    talk.says("a", call(1, task={}))
    talk.says("server", result(number, {"task": {"taskId": "t1"}}))
    for name, seen in (("a", [{"taskId": "t1"}]), ("b", [])):
        [(_, asked)] = talk.says(name, request(3, "tasks/list"))
        for cursor, task in (("c", "t2"), ("d", "t1")):
            page = result(asked["id"], {"tasks": [{"taskId": task}], "nextCursor": cursor})
            [(to, asked)] = talk.says("server", page)
            assert (to, asked["method"], asked["params"]["cursor"]) == ("server", "tasks/list", cursor)
        last = result(asked["id"], {"tasks": [{"taskId": "t3"}]})
        assert talk.says("server", last) == [(name, result(3, {"tasks": seen}))]


def test_a_list_of_tasks_without_end_is_cut_off() -> None:
    talk = Talk()
    talk.opens("a")
    [(_, asked)] = talk.says("a", request(3, "tasks/list"))
    for _ in range(2):
        [(to, asked)] = talk.says("server", result(asked["id"], {"tasks": [], "nextCursor": "c"}))
    assert (to, asked) == ("a", result(3, {"tasks": []}))


def test_a_list_of_tasks_is_cancelled_where_it_is() -> None:
    talk = Talk()
    talk.opens("a")
    [(_, asked)] = talk.says("a", request(3, "tasks/list"))
    [(_, asked)] = talk.says("server", result(asked["id"], {"tasks": [], "nextCursor": "c"}))
    [(to, told)] = talk.says("a", notification("notifications/cancelled", requestId=3))
    assert (to, told["params"]["requestId"]) == ("server", asked["id"])


@pytest.mark.parametrize("key", ["1", 1, "x"])
def test_roots_are_those_of_the_only_session(key: Any) -> None:
    talk = Talk()
    talk.opens("a", **ALL)
    assert talk.says("server", request(key, "roots/list")) == [("a", request(key, "roots/list"))]
    assert talk.says("a", result(key, {"roots": [1]})) == [("server", result(key, {"roots": [1]}))]


def test_of_several_sessions_there_are_no_roots() -> None:
    talk = Talk()
    talk.opens("a", "b", **ALL)
    assert talk.says("server", request(1, "roots/list")) == [("server", result(1, {"roots": []}))]
    assert not talk.switch.asks
    assert talk.says("a", notification("notifications/roots/list_changed")) == []


def test_a_session_without_roots_has_none() -> None:
    talk = Talk()
    talk.opens("a")
    assert talk.says("server", request(1, "roots/list")) == [("server", result(1, {"roots": []}))]


@pytest.mark.parametrize(
    ("method", "params", "capabilities", "missing"),
    [
        ("roots/list", {}, {}, "roots"),
        ("roots/list", {}, {"roots": {}}, None),
        ("sampling/createMessage", {}, {"elicitation": {}}, "sampling"),
        ("sampling/createMessage", {}, {"sampling": {}}, None),
        ("sampling/createMessage", {"tools": []}, {"sampling": {}}, "sampling.tools"),
        ("sampling/createMessage", {"tools": []}, {"sampling": {"tools": {}}}, None),
        ("elicitation/create", {}, {}, "elicitation"),
        ("elicitation/create", {}, {"elicitation": {}}, None),
        ("elicitation/create", {"mode": "form"}, {"elicitation": {"form": {}}}, None),
        ("elicitation/create", {}, {"elicitation": {"url": {}}}, "elicitation.form"),
        ("elicitation/create", {"mode": "url"}, {"elicitation": {}}, "elicitation.url"),
        ("elicitation/create", {"mode": "url"}, {"elicitation": {"form": {}}}, "elicitation.url"),
        ("elicitation/create", {"mode": "url"}, {"elicitation": {"url": {}}}, None),
        ("vendor/ask", {}, {}, None),
    ],
)
def test_nobody_is_asked_what_it_did_not_declare(
    method: str, params: dict[str, Any], capabilities: dict[str, Any], missing: str | None
) -> None:
    assert find_missing(method, params, read_declared(capabilities)) == missing


def test_what_was_not_declared_is_refused_here() -> None:
    talk = Talk()
    talk.opens("a")
    talk.says("a", call(1))
    [(to, frame)] = talk.says("server", elicit(0))
    assert to == "server"
    assert an_error(0, -32601, "elicitation")(frame)


def test_a_question_can_be_withdrawn() -> None:
    talk = Talk()
    talk.opens("a", **ALL)
    talk.says("server", elicit(0))
    withdrawn = notification("notifications/cancelled", requestId=0)
    assert talk.says("server", withdrawn) == [("a", withdrawn)]
    assert talk.says("server", withdrawn) == []
    assert talk.says("a", result(0, {})) == []


def test_progress_on_a_question_crosses_from_who_was_asked() -> None:
    talk = Talk()
    talk.opens("a", "b", **ALL)
    talk.says("a", call(1))
    talk.says("server", elicit(0, _meta={"progressToken": 5}))
    progress = notification("notifications/progress", progressToken=5, progress=1)
    assert talk.says("b", progress) == []
    assert talk.says("a", progress) == [("server", progress)]


def test_questions_to_a_session_that_ends_are_answered() -> None:
    talk = Talk()
    talk.opens("a", **ALL)
    talk.says("server", elicit("q"))
    [(to, frame)] = talk.leaves("a")
    assert to == "server"
    assert an_error("q", -32000, "closed")(frame)


def test_too_many_questions_are_refused() -> None:
    talk = Talk(questions=1)
    talk.opens("a", **ALL)
    talk.says("server", elicit(1))
    [(to, frame)] = talk.says("server", elicit(2))
    assert to == "server"
    assert an_error(2, -32000, "too many", "1, with 1 places")(frame)


def test_the_end_of_an_elicitation_elsewhere_is_told_to_who_was_sent_there() -> None:
    talk = Talk()
    number = talk.opens("a", "b", elicitation={"url": {}})
    talk.says("a", call(1))
    talk.says("server", elicit(0, mode="url", url="https://x", elicitationId="e1"))
    talk.says("a", result(0, {"action": "accept"}))
    talk.says("server", result(number, {}))
    talk.says("b", call(1))
    needed = error(number + 1, -32042, "first", elicitations=[{"elicitationId": "e2", "url": "https://y"}])
    talk.says("server", needed)
    for name, owner in (("e1", "a"), ("e2", "b")):
        done = notification("notifications/elicitation/complete", elicitationId=name)
        assert talk.says("server", done) == [(owner, done)]
        assert talk.says("server", done) == []


def test_with_nobody_there_nobody_is_asked() -> None:
    talk = Talk()
    talk.opens("a", **ALL)
    talk.leaves("a")
    [(to, frame)] = talk.says("server", elicit(0))
    assert to == "server"
    assert an_error(0, -32603, "no client")(frame)


def test_of_too_many_elicitations_the_oldest_is_forgotten() -> None:
    talk = Talk()
    talk.opens("a", elicitation={"url": {}})
    talk.says("a", call(1))
    for number in range(REMEMBERED + 1):
        talk.says("server", elicit(number, mode="url", url="https://x", elicitationId=f"e{number}"))
        talk.says("a", result(number, {"action": "accept"}))
    heard = [
        talk.says("server", notification("notifications/elicitation/complete", elicitationId=name))
        for name in ("e0", "e1")
    ]
    assert [len(one) for one in heard] == [0, 1]


@pytest.mark.parametrize(("length", "told"), [(1024, True), (1025, False)])
def test_an_elicitation_of_a_very_long_name_is_not_remembered(length: int, told: bool) -> None:
    talk = Talk()
    talk.opens("a", elicitation={"url": {}})
    talk.says("a", call(1))
    talk.says("server", elicit(0, mode="url", url="https://x", elicitationId="e" * length))
    done = notification("notifications/elicitation/complete", elicitationId="e" * length)
    assert bool(talk.says("server", done)) is told


def test_a_question_beside_one_request_is_about_that_whatever_else_is_open() -> None:
    talk = Talk()
    number = talk.opens("a", "b", **ALL)
    talk.says("a", call(1))
    talk.says("b", call(1))
    assert [to for to, _ in talk.says_beside(elicit(0), number)] == ["a"]
    assert [to for to, _ in talk.says_beside(elicit(1), number + 1)] == ["b"]


def test_a_question_beside_a_request_that_nobody_has_is_nobodys() -> None:
    talk = Talk()
    number = talk.opens("a", **ALL)
    talk.says("a", call(1))
    [(to, frame)] = talk.says_beside(elicit(0), number, number + 5)
    assert (to, frame["error"]["code"]) == ("server", -32603)


def test_a_question_while_somebody_lists_is_not_about_a_call_that_was_answered_before() -> None:
    """Where the sessions are those of one principal: whoever works with the server now is who it asks."""
    talk = Talk(is_for_all=False)
    number = talk.opens("a", "b", **ALL)
    talk.says("b", call(1))
    talk.says("server", result(number, {}))
    talk.says("a", request(1, "tools/list"))
    assert [to for to, _ in talk.says("server", elicit(0))] == ["a"]


@pytest.mark.parametrize(("spare_bytes", "waits"), [(0, True), (-1, False)])
def test_calls_wait_for_their_turn_up_to_the_limit(spare_bytes: int, waits: bool) -> None:
    talk = Talk()
    talk.opens("a", "b")
    talk.says("a", call(1))
    [(_, sent)] = talk.says("b", call(1))
    talk = Talk(asks=True, waiting_bytes=len(encode_line(sent)) + spare_bytes)
    talk.opens("a", "b")
    talk.says("a", call(1))
    assert (talk.says("b", call(1)) == []) is waits
