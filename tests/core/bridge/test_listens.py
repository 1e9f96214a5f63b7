"""Per-request clients hear of a server with a handshake by listen requests: as conversations."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.bridge.listens import End, Listens, Refuse, Subscribe, TellListener, Unsubscribe

E = "2026-07-28"
CAPABILITIES = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"subscribe": True, "listChanged": True}}
UPDATED = "notifications/resources/updated"
TOOLS = "notifications/tools/list_changed"
ACK = "notifications/subscriptions/acknowledged"
A, B = "file:///a", "file:///b"
ONE = "one"


def tag(request_id: Any, **params: Any) -> dict[str, Any]:
    return {**params, "_meta": {"io.modelcontextprotocol/subscriptionId": request_id}}


def listens(**more: Any) -> Listens[str]:
    return Listens(CAPABILITIES, **more)


def open_(desk: Listens[str], to: str = "one", request_id: Any = 1, **notifications: Any) -> list[Any]:
    commands = desk.open(to, request_id, {"notifications": notifications})
    for command in commands:
        if isinstance(command, TellListener):
            dragoman_spec.validate({"jsonrpc": "2.0", "method": command.method, "params": command.params}, E)
    return list(commands)


def test_a_filter_without_resources_is_acknowledged_at_once() -> None:
    asked = {"toolsListChanged": True, "resourcesListChanged": False}
    assert open_(listens(), **asked) == [TellListener(ONE, ACK, tag(1, notifications={"toolsListChanged": True}))]


def test_what_the_server_does_not_promise_is_left_out() -> None:
    desk: Listens[str] = Listens({"tools": {"listChanged": False}, "resources": 5})
    asked = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": [A]}
    assert open_(desk, **asked) == [TellListener(ONE, ACK, tag(1, notifications={}))]


def test_resources_are_subscribed_to_before_the_acknowledgement() -> None:
    desk = listens()
    assert open_(desk, resourceSubscriptions=[A, B, A]) == [Subscribe(A), Subscribe(B)]
    assert desk.settle(A, True) == []
    assert desk.settle(B, True) == [TellListener(ONE, ACK, tag(1, notifications={"resourceSubscriptions": [A, B]}))]


def test_a_resource_that_the_server_refuses_is_left_out() -> None:
    desk = listens()
    open_(desk, toolsListChanged=True, resourceSubscriptions=[A, B])
    open_(desk, "two", resourcesListChanged=True)
    desk.settle(A, False)
    agreed = {"toolsListChanged": True, "resourceSubscriptions": [B]}
    assert desk.settle(B, True) == [TellListener(ONE, ACK, tag(1, notifications=agreed))]
    assert desk.hear(UPDATED, {"uri": A}) == []


def test_a_resource_is_subscribed_to_once_and_given_up_with_its_last_listener() -> None:
    desk = listens()
    open_(desk, resourceSubscriptions=[A])
    assert open_(desk, "two", resourceSubscriptions=[A]) == []
    acknowledged = {command.to for command in desk.settle(A, True) if isinstance(command, TellListener)}
    assert acknowledged == {"one", "two"}
    assert [command.method for command in open_(desk, "three", resourceSubscriptions=[A])] == [ACK]
    assert desk.close("one") == []
    assert desk.close("two") == []
    assert desk.close("three") == [Unsubscribe(A)]
    assert open_(desk, resourceSubscriptions=[A]) == [Subscribe(A)]


def test_an_answer_for_what_nobody_wants_any_more_changes_nothing() -> None:
    desk = listens()
    open_(desk, resourceSubscriptions=[A])
    assert desk.close("one") == [Unsubscribe(A)]
    assert desk.settle(A, True) == []


def test_a_notice_goes_to_everybody_who_asked_for_it_under_their_own_ids() -> None:
    desk = listens()
    open_(desk, "one", 1, toolsListChanged=True)
    open_(desk, "two", 1, toolsListChanged=True)
    open_(desk, "other", "1", toolsListChanged=True)
    open_(desk, "three", 1, resourcesListChanged=True)
    assert desk.hear(TOOLS, None) == [
        TellListener("one", TOOLS, tag(1)),
        TellListener("two", TOOLS, tag(1)),
        TellListener("other", TOOLS, tag("1")),
    ]


def test_a_notice_keeps_what_else_it_says() -> None:
    desk = listens()
    open_(desk, resourceSubscriptions=[A])
    desk.settle(A, True)
    (told,) = desk.hear(UPDATED, {"uri": A + "/below", "_meta": {"com.example/a": 1}})
    assert isinstance(told, TellListener)
    assert told.params == {
        "uri": A + "/below",
        "_meta": {"com.example/a": 1, "io.modelcontextprotocol/subscriptionId": 1},
    }


@pytest.mark.parametrize(
    ("method", "params"),
    [("notifications/message", {}), ("notifications/progress", None), (UPDATED, {"uri": B}), (UPDATED, {"uri": 5})],
)
def test_what_nobody_asked_for_is_told_to_nobody(method: str, params: Any) -> None:
    desk = listens()
    open_(desk, toolsListChanged=True, resourceSubscriptions=[A])
    desk.settle(A, True)
    assert desk.hear(method, params) == []


def test_what_happens_before_the_acknowledgement_comes_after_it() -> None:
    desk = listens()
    open_(desk, toolsListChanged=True, resourceSubscriptions=[A, B])
    assert desk.hear(TOOLS, None) == []
    assert desk.hear(TOOLS, None) == []
    assert desk.hear(UPDATED, {"uri": A}) == []
    assert desk.hear(UPDATED, {"uri": B}) == []
    desk.settle(A, True)
    commands = desk.settle(B, False)
    assert [
        (command.method, command.params.get("uri")) for command in commands if isinstance(command, TellListener)
    ] == [
        (ACK, None),
        (TOOLS, None),
        (UPDATED, A),
    ]


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"resourceSubscriptions": A}},
        {"notifications": {"resourceSubscriptions": None}},
        {"notifications": {"resourceSubscriptions": [5]}},
    ],
)
def test_a_filter_that_is_none_is_refused(params: Any) -> None:
    (refused,) = listens().open("one", 1, params)
    assert isinstance(refused, Refuse)
    assert refused.error.code == -32602


def test_listeners_and_resources_have_a_limit() -> None:
    desk = listens(most=2, most_uris=1)
    open_(desk, resourceSubscriptions=[A])
    (refused,) = open_(desk, "two", resourceSubscriptions=[B])
    assert isinstance(refused, Refuse)
    open_(desk, "two", resourceSubscriptions=[A])
    (refused,) = open_(desk, "three")
    assert isinstance(refused, Refuse)
    assert refused.error.code == -32603
    assert len(desk) == 2


def test_the_end_is_said_in_both_ways() -> None:
    desk = listens()
    open_(desk, "one", "x", toolsListChanged=True)
    (ended,) = desk.end_all("the server closed")
    assert ended == End(
        "one",
        {"resultType": "complete", **tag("x")},
        {"requestId": "x", "reason": "the server closed"},
    )
    dragoman_spec.validate({"jsonrpc": "2.0", "id": "x", "result": ended.result}, E, method="subscriptions/listen")
    assert len(desk) == 0
