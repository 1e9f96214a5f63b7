"""A fresh server for every request of a client without a session: what each of them and the client hear."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.edges.upstream import UpstreamEdge
from tests.core.switch.test_per_call import Alone, Heard
from tests.proxy.conversation import READY, an_error, error, initialize, initialized, notification, request, result
from tests.proxy.per_request import NO_HANDSHAKE, discovered
from tests.proxy.test_per_request import IDENTITY, TASKS, asks
from tests.proxy.test_per_request_asked import ACCEPTED, FORM, SCHEMA

KEY = "dragoman-initialize"
QUESTION = request("q", "elicitation/create", message="Who?", requestedSchema=SCHEMA)


def begin(alone: Alone, frame: Any, **server_has: Any) -> UpstreamEdge:
    """Let the client ask; give the server, whose session is open by then."""
    [upstream] = alone.client_says(frame)
    [asked] = to_servers(alone.heard)
    if asked["method"] == "server/discover":  # the first one is asked what it is
        alone.server_says(upstream, error(asked["id"], -32601))
    alone.server_says(upstream, initialized("2025-11-25", KEY, **server_has))
    return upstream


def to_client(heard: Heard) -> list[Any]:
    return [frame for to, frame in heard if to is None]


def to_servers(heard: Heard) -> list[Any]:
    return [frame for to, frame in heard if to is not None]


def passes(alone: Alone) -> Heard:
    """Let all alarms go off."""
    alone.now_s += 0.1
    for alarm in list(alone.alarms):
        alarm.expire()
    alone.take_out()
    return alone.heard


def test_each_request_has_a_server_and_its_answer_ends_it() -> None:
    alone = Alone()
    first = begin(alone, asks(1, "tools/call", name="x"))
    assert to_servers(alone.heard) == [READY, request(1, "tools/call", name="x")]
    second = begin(alone, asks(2, "tools/call", name="y"))
    [answer] = to_client(alone.server_says(second, result(1, {"content": []})))
    assert answer == result(2, {"content": [], "resultType": "complete", "_meta": IDENTITY})
    assert alone.closed == [second]
    [answer] = to_client(alone.server_says(first, result(1, {"content": []})))
    assert answer["id"] == 1
    assert alone.closed == [second, first]


def test_what_has_to_last_is_neither_offered_nor_served() -> None:
    alone = Alone()
    upstream = begin(
        alone, asks(1, "server/discover"), tools={"listChanged": True}, resources={"subscribe": True}, tasks={}
    )
    [told] = to_client(alone.heard)
    assert told["result"]["capabilities"] == {"tools": {}, "resources": {}}
    assert alone.closed == [upstream]
    assert alone.client_says(asks(2, "subscriptions/listen", notifications={})) == []
    assert an_error(2, -32601, "scope request")(to_client(alone.heard)[0])
    alone.client_says(asks(3, "tasks/get", has={"extensions": TASKS}, taskId="t"))
    assert an_error(3, -32601, "scope request")(to_client(alone.heard)[0])


def test_a_question_is_answered_where_it_was_asked() -> None:
    alone = Alone()
    one = begin(alone, asks(1, "tools/call", has=FORM, name="x"))
    other = begin(alone, asks(2, "tools/call", has=FORM, name="x"))
    for upstream in (one, other):
        alone.server_says(upstream, QUESTION)
    first, second = to_client(passes(alone))
    assert (first["id"], second["id"]) == (1, 2)
    assert alone.closed == []
    retry = {"inputResponses": {"question-1": ACCEPTED}, "requestState": second["result"]["requestState"]}
    assert alone.client_says(asks(3, "tools/call", has=FORM, name="x", **retry)) == []
    assert alone.heard == [(other, result("q", ACCEPTED))]
    [answer] = to_client(alone.server_says(other, result(1, {"content": []})))
    assert answer["id"] == 3
    assert alone.closed == [other]
    assert alone.client_says(asks(4, "tools/call", has=FORM, name="x", **retry)) == []
    assert to_client(alone.heard)[0]["error"]["data"]["reason"] == "call-unknown"


def test_an_answer_that_comes_while_nobody_is_there_is_kept_and_its_server_ends() -> None:
    alone = Alone()
    upstream = begin(alone, asks(1, "tools/call", has=FORM, name="x"))
    alone.server_says(upstream, QUESTION)
    [asked] = to_client(passes(alone))
    alone.server_says(upstream, result(1, {"content": []}))
    assert alone.closed == [upstream]
    state = {"inputResponses": {}, "requestState": asked["result"]["requestState"]}
    assert alone.client_says(asks(2, "tools/call", has=FORM, name="x", **state)) == []
    assert to_client(alone.heard)[0]["result"]["content"] == []
    assert alone.switch._apart is not None
    assert not alone.switch._apart._runs


def test_a_server_that_is_gone_fails_its_request_alone() -> None:
    alone = Alone()
    one = begin(alone, asks(1, "tools/call", name="x"))
    other = begin(alone, asks(2, "tools/call", name="y"))
    [failed] = to_client(alone.server_ends(one))
    assert an_error(1, -32000, "gone")(failed)
    assert to_client(alone.server_says(other, result(1, {"content": []})))[0]["id"] == 2
    [never_open] = alone.client_says(asks(3, "tools/list"))
    [failed] = to_client(alone.server_ends(never_open))
    assert an_error(3, -32000, "gone")(failed)


def test_a_server_that_is_gone_fails_a_parked_call_when_its_client_comes_back() -> None:
    alone = Alone()
    upstream = begin(alone, asks(1, "tools/call", has=FORM, name="x"))
    alone.server_says(upstream, QUESTION)
    [asked] = to_client(passes(alone))
    assert to_client(alone.server_ends(upstream)) == []
    state = {"inputResponses": {}, "requestState": asked["result"]["requestState"]}
    alone.client_says(asks(2, "tools/call", has=FORM, name="x", **state))
    assert an_error(2, -32000, "gone")(to_client(alone.heard)[0])


def test_a_cancelled_request_ends_its_server() -> None:
    alone = Alone()
    upstream = begin(alone, asks(1, "tools/call", name="x"))
    alone.client_says(notification("notifications/cancelled", requestId=1))
    assert [frame["method"] for frame in to_servers(alone.heard)] == ["notifications/cancelled"]
    assert alone.closed == [upstream]


def test_there_may_be_so_many_servers_at_once() -> None:
    alone = Alone(limit=2)
    for key in (1, 2):
        begin(alone, asks(key, "tools/call", name="x"))
    assert alone.client_says(asks(3, "tools/list")) == []
    assert an_error(3, -32000, "more than 2 requests at once")(to_client(alone.heard)[0])


def test_a_server_without_a_handshake_serves_all() -> None:
    alone = Alone()
    [upstream] = alone.client_says(asks(1, "tools/list"))
    alone.server_says(upstream, error(KEY, -32022))
    alone.server_says(upstream, discovered("dragoman-discover-1", tools={}))
    assert [frame["method"] for frame in to_servers(alone.heard)] == ["tools/list"]
    assert alone.client_says(asks(2, "tools/list")) == []
    assert [frame["id"] for frame in to_servers(alone.heard)] == [2]
    assert alone.closed == []
    assert NO_HANDSHAKE["code"] == -32022


def test_a_client_may_open_a_session_after_all() -> None:
    alone = Alone()
    begin(alone, asks(1, "server/discover"))
    [first] = alone.client_says(initialize("2025-11-25", key="i"))
    [welcome] = to_client(alone.server_says(first, initialized("2025-11-25", "i")))
    assert welcome["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("reads", [True, False])
def test_a_tool_that_asks_may_not_become_a_task(reads: bool) -> None:
    alone = Alone()
    upstream = begin(alone, asks(1, "tools/call", has={**FORM, "extensions": TASKS}, name="x"), tools={})
    alone.server_says(upstream, QUESTION)
    [asked] = to_client(passes(alone))
    assert asked["result"]["resultType"] == "input_required"


def test_a_tool_that_runs_as_a_task_is_waited_for() -> None:
    """No later request could find its task."""
    alone = Alone()
    runs_tasks = {"requests": {"tools": {"call": {}}}}
    has = {**FORM, "extensions": TASKS}
    upstream = begin(alone, asks(1, "tools/call", has=has, name="x"), tools={}, tasks=runs_tasks)
    assert to_servers(alone.heard)[-1]["method"] == "tools/list"
    tool = {"name": "x", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
    alone.server_says(upstream, result(1, {"tools": [tool]}))
    assert "task" in to_servers(alone.heard)[-1]["params"]
    alone.server_says(upstream, result(2, {"task": {"taskId": "t", "status": "working", "ttl": None}}))
    assert to_servers(alone.heard)[-1]["method"] == "tasks/result"
    assert to_client(alone.heard) == []
    [answer] = to_client(alone.server_says(upstream, result(3, {"content": []})))
    assert answer == result(1, {"content": [], "resultType": "complete", "_meta": IDENTITY})
