"""Rules about tasks, about who is let in, and about arrays: each is broken by the least that breaks it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman.guard.guard import TokenGuard
from tests.world.arrays import KNOW
from tests.world.peers.words import PER_REQUEST, request, result, secrets_in
from tests.world.plan import ClientPlan, Plan, ServerPlan
from tests.world.rules import Talk
from tests.world.test_flows import REVISION, Said, asked, broken, call, client, opened, over, text, told
from tests.world.worlds import run_world

ARRAYS = KNOW[0]
STANDS = {"taskId": "t1", "createdAt": "", "lastUpdatedAt": "", "ttl": 1}


def task(status: str = "working") -> dict[str, Any]:
    return {**STANDS, "status": status}


def task_call(key: Any, follow: str = "poll", how: str = "text") -> dict[str, Any]:
    frame = call(key, 0, ["answer", how])
    frame["params"]["arguments"]["follow"] = follow
    return frame


def about(key: Any, method: str) -> dict[str, Any]:
    return request(key, method, {"taskId": "t1"})


def comes_to(key: Any, said: str = "secret-c0-0 is done") -> dict[str, Any]:
    return result(key, {"content": [{"type": "text", "text": said}]})


def begun(follow: str = "poll") -> list[Said]:
    return [*opened(), *asked(1, task_call(1, follow)), *told(1, result(1, {"task": task()}))]


FETCHED = [*asked(3, about(2, "tasks/result")), *told(3, comes_to(2))]
ENDED = [*asked(2, about(8, "tasks/get")), *told(2, result(8, task("completed")))]

SHOWN = {"cell": "guard", "front": "http", "guard": {"asks": True, "lives_s": 90}}


def shows(what: str, **more: Any) -> dict[str, Any]:
    return {**SHOWN, "clients": [ClientPlan("c0", "ada", REVISION, shows=what, **more)]}


def gives(at_s: float, for_s: float = 90.0) -> list[Said]:
    return [(at_s, "issuer", "gives", {"whom": "c0", "for_s": for_s})]


REFUSED: Said = (1, "c0", "is refused", {"id": 1, "status": 401})
ASKED: Said = (1, "issuer", "is asked", {"path": "/keys"})

WELL: dict[str, tuple[Sequence[Sequence[Said]], dict[str, Any]]] = {
    "task": ((begun(), ENDED, FETCHED, over(4)), {}),
    "token": ((gives(0), opened(), asked(1, call(1)), told(1, text(1)), over(2)), shows("token")),
    "nobody": (([(0, "c0", "says", call(1)), (0, "c0", "is refused", {"id": 1, "status": 401, "asks": "token"})],),
               shows("nothing")),
}  # fmt: skip

ARRAY = (
    (1, "c0", "says an array", [2, 3], "array 1"),
    *((1, "c0", "says", call(key, key), "array 1") for key in (2, 3)),
    *((1, "s0.1", "hears", call(key, key)) for key in (2, 3)),
    *((1, "s0.1", "says", text(key, key)) for key in (2, 3)),
)
OF_ARRAYS: dict[str, Any] = {"clients": [ClientPlan("c0", "ada", ARRAYS)], "revisions": {"c0": ARRAYS, "s0.1": ARRAYS}}


def heard_in_arrays(*arrays: list[int]) -> list[Said]:
    """Give answers as they come in arrays of these ids."""
    said: list[Said] = []
    for number, keys in enumerate(arrays, 2):
        said.append((2, "c0", "hears an array", keys, f"array {number}"))
        said += [(2, "c0", "hears", text(key, key), f"array {number}") for key in keys]
    return said


BREAKS: dict[str, tuple[Sequence[Sequence[Said]], dict[str, Any]]] = {
    "own-task": (
        (
            begun(),
            opened("c1"),
            asked(2, about(2, "tasks/get"), who="c1"),
            told(2, result(2, task()), who="c1"),
            over(3),
        ),
        {"cell": "tasks", "scope": "shared"},
    ),
    "task-ends": ((begun(), ENDED, asked(3, about(9, "tasks/get")), told(3, result(9, task("failed"))), over(4)), {}),
    "task-result": (
        (begun(), ENDED, over(4)),
        {"clients": [client({"do": "call", "at": 0})]},
    ),
    "task-cancelled": (
        (
            begun("cancel"),
            [(2, "c0", "says", about(2, "tasks/cancel")), (2, "c0", "hears", result(2, task("cancelled")))],
            over(4),
        ),
        {"clients": [client({"do": "call", "at": 0})]},
    ),
    "guarded": ((opened(), asked(1, call(1)), told(1, text(1)), over(2)), shows("forged")),
    "shut-out": ((gives(0), opened(), asked(200, call(1)), told(200, text(1)), over(201)), shows("old token")),
    "socket-ends": (
        (gives(0), opened(), asked(300, call(1)), told(300, text(1)), over(301)),
        shows("token", way="websocket"),
    ),
    "token-counts": ((gives(0), opened(), [(1, "c0", "says", call(1)), REFUSED], over(2)), shows("token")),
    "challenged": (([(1, "c0", "says", call(1)), REFUSED],), shows("nothing")),
    "asked-seldom": ((gives(0), opened(), [ASKED] * 4, over(2)), shows("token")),
    "array": ((opened(level=ARRAYS), ARRAY, heard_in_arrays([2], [3]), over(3)), OF_ARRAYS),
    "no-array": ((opened(), asked(1, call(1)), [(2, "c0", "hears an array", [1], "array 1")], over(3)), {}),
    "own-path": ((gives(0), opened(), asked(1, call(1)), told(1, text(1)), over(2)), shows("token", path="s7")),
}


@pytest.mark.parametrize("case", WELL)
def test_what_is_well_breaks_no_rule(case: str) -> None:
    parts, more = WELL[case]
    assert broken(*parts, **more) == set()


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_notices_what_breaks_it(rule: str) -> None:
    parts, more = BREAKS[rule]
    assert rule in broken(*parts, **more)


def test_an_array_that_is_answered_with_one_breaks_no_rule() -> None:
    assert "array" not in broken(opened(level=ARRAYS), ARRAY, heard_in_arrays([2, 3]), over(3), **OF_ARRAYS)


def test_an_answer_to_what_was_in_an_array_comes_not_alone() -> None:
    alone = [(2, "c0", "hears", text(2, 2)), *heard_in_arrays([3])]
    assert "array" in broken(opened(level=ARRAYS), ARRAY, alone, over(3), **OF_ARRAYS)


def test_a_task_that_is_told_of_twice_with_other_results_is_noticed() -> None:
    again = [*asked(4, about(5, "tasks/result")), *told(4, comes_to(5, "secret-c0-0 is something else"))]
    assert "task-ends" in broken(begun(), ENDED, FETCHED, again, over(5))


def test_a_task_that_is_never_to_end_is_not_waited_for() -> None:
    assert "task-result" in result_of("text")
    assert "task-result" not in result_of("never")


def result_of(how: str) -> set[str]:
    """Give the rules that a task breaks that was told to come to this, and comes to nothing."""
    begins = [*opened(), *asked(1, task_call(1, how=how)), *told(1, result(1, {"task": task()}))]
    return broken(begins, over(4), clients=[client({"do": "call", "at": 0})])


@pytest.mark.parametrize(
    ("answer", "said", "breaks"),
    [
        ({"resultType": "input_required", "inputRequests": {}}, {"isError": True}, False),
        ({"resultType": "input_required", "inputRequests": {}}, {}, True),
        ({"resultType": "complete", "content": []}, {"isError": True}, True),
    ],
)
def test_a_task_ends_in_our_words_where_its_server_has_only_asked(
    answer: dict[str, Any], said: dict[str, Any], breaks: bool
) -> None:
    ends = result(2, {"content": [{"type": "text", "text": "c0 cannot be asked"}], **said})
    parts = (
        opened(),
        asked(1, task_call(1)),
        [(1, "s0.1", "says", result(1, answer)), (1, "c0", "hears", result(1, {"task": task("failed")}))],
        [(2, "c0", "says", about(2, "tasks/result")), (2, "c0", "hears", ends)],
        over(3),
    )
    assert ("task-ends" in broken(*parts)) is breaks


@pytest.mark.parametrize(
    ("front", "named", "breaks"), [("http", "t1", False), ("http", "t2", True), ("lines", "t1", True)]
)
def test_an_id_of_a_task_may_be_sealed_for_who_has_no_session(front: str, named: str, breaks: bool) -> None:
    """Then it is to be that of the same call."""
    makes = [result(1, {"resultType": "task", **task(), "taskId": name}) for name in ("t1", "sealed")]
    said = {"inputResponses": {"q0": {"action": "accept", "content": {"answer": "secret-c0-0 nonce-s0.1-1"}}}}
    heard = [request(2, "tasks/update", {"taskId": name, **said}) for name in (named, "sealed")]
    parts = (
        asked(1, task_call(1)),
        told(1, makes[0], other=makes[1]),
        asked(2, heard[1], other=heard[0]),
        told(2, result(2, {"resultType": "complete"})),
        over(3),
    )
    clients = [ClientPlan("c0", "ada", PER_REQUEST)]
    more: dict[str, Any] = {"front": front, "clients": clients, "revisions": {"c0": PER_REQUEST, "s0.1": PER_REQUEST}}
    assert ("same" in broken(*parts, **more)) is breaks


def test_a_client_that_is_cut_off_waits_for_its_task_no_more() -> None:
    act = {"at": 0.0, "do": "call", "n": 0, "server": "s0", "progress": False, "follow": "both"}
    plan = Plan("direct", 1, servers=[ServerPlan("s0", [REVISION], tasks="optional")])
    acts = [{**act, "steps": [["wait", 30.0], ["answer", "text"]]}, {"at": 5.0, "do": "cut", "n": 1}]
    plan.clients = [ClientPlan("c0", "ada", REVISION, acts=acts, tasks=True)]
    outcome = run_world(plan)
    assert [one.frame["method"] for one in Talk(outcome.record).asked["c0"]][-1] == "tasks/get"
    assert outcome.findings == []


def test_a_token_that_was_withdrawn_counts_for_a_minute_where_the_issuer_is_asked() -> None:
    parts = [*gives(0, 3600), (1, "issuer", "withdraws", "c0")], opened()
    soon = (*parts, asked(50, call(1)), told(50, text(1)), over(51))
    late = (*parts, asked(70, call(1)), told(70, text(1)), over(71))
    assert "shut-out" not in broken(*soon, **shows("token"))
    assert "shut-out" in broken(*late, **shows("token"))


def test_an_array_to_a_session_that_is_drained_reaches_no_server() -> None:
    plan = Plan("direct", 1, servers=[ServerPlan("s0", [ARRAYS])], faults=[{"at": 10.0, "do": "drain", "client": 0}])
    calls = [
        {"at": at_s, "do": "call", "n": n, "server": "s0", "progress": False, "steps": steps}
        for n, (at_s, steps) in enumerate(((0.0, [["wait", 30.0], ["answer", "text"]]), (12.0, [["answer", "text"]])))
    ]
    calls.append({**calls[1], "n": 2})
    calls[1]["array"] = calls[2]["array"] = 1
    plan.clients = [ClientPlan("c0", "ada", ARRAYS, acts=calls)]
    outcome = run_world(plan)
    talk = Talk(outcome.record)
    [first, *others] = [one for one in talk.asked["c0"] if one.frame["method"] == "tools/call"]
    assert ["result" in one.answers[0].frame for one in (first, *others)] == [True, False, False]
    assert {one.answers[0].via for one in others} == {"array 2"}
    assert [len(secrets_in(one.params)) for one in talk.got["s0.1"]] == [0, 1]
    assert outcome.findings == []


def test_who_has_a_secret_that_is_revoked_is_served_no_more() -> None:
    revoked: Said = (1, "proxy", "lets in no more", "ada")
    parts = opened(), [revoked], asked(2, call(1)), told(2, text(1)), over(3)
    assert "shut-out" in broken(*parts, front="http", cell="http")


@pytest.mark.parametrize(("is_heard", "breaks"), [(False, False), (True, True)])
def test_who_is_refused_may_name_a_call_that_was_served_before(is_heard: bool, breaks: bool) -> None:
    """So does the answer to a question about a call, which a task brings to its server."""
    update = request(2, "tasks/update", {"taskId": "t1", "inputResponses": {"q0": {"role": "secret-c0-0"}}})
    said: list[Said] = [(2, "c0", "says", update), (2, "c0", "is refused", {"id": 2, "status": 401})]
    revoked: Said = (1.5, "proxy", "lets in no more", "ada")
    parts = opened(), asked(1, call(1)), told(1, text(1)), [revoked], said, over(3)
    heard: list[Said] = [(2, "s0.1", "hears", update)] if is_heard else []
    assert ("shut-out" in broken(*parts, heard, front="http", cell="http")) is breaks


def guarded_world() -> set[str]:
    """Give the rules that a session breaks whose client shows a token."""
    act = {"at": 0.0, "do": "call", "n": 0, "server": "s0", "progress": False, "steps": [["answer", "text"]]}
    plan = Plan("guard", 1, front="http", servers=[ServerPlan("s0", [REVISION])])
    plan.guard = {"asks": False, "lives_s": 300}
    plan.clients = [ClientPlan("c0", "ada", REVISION, acts=[act], shows="token")]
    return {finding.rule for finding in run_world(plan).findings}


def test_a_token_in_the_log_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert guarded_world() == set()
    examine = TokenGuard.examine

    def examine_aloud(guard: TokenGuard, token: str) -> Any:
        logging.getLogger("dragoman.guard").info("examines %s", token)
        return examine(guard, token)

    monkeypatch.setattr(TokenGuard, "examine", examine_aloud)
    assert guarded_world() == {"no-token"}
