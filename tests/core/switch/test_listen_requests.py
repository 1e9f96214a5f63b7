"""Per-request clients hear of a server with a handshake by listen requests: as conversations."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman_spec
from dragoman.core.envelope import Refusal
from dragoman.core.switch.to_session import subscriptions
from dragoman.core.switch.to_session.subscriptions import ListenRequests
from tests.core.rules.test_hostile import OBJECTS, VALUES

E = "2026-07-28"
CAPABILITIES = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"subscribe": True, "listChanged": True}}
UPDATED = "notifications/resources/updated"
TOOLS = "notifications/tools/list_changed"
ACK = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
A, B = "file:///a", "file:///b"
ONE = "one"


class TellListener(NamedTuple):
    to: str
    method: str
    params: dict[str, Any]


class Refuse(NamedTuple):
    to: str
    error: Refusal


class End(NamedTuple):
    to: str
    result: dict[str, Any]


class Subscribe(NamedTuple):
    uri: str


class Unsubscribe(NamedTuple):
    uri: str


@dataclass(frozen=True)
class Asked:
    name: str
    id: Any
    params: Any

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def frame(self) -> Any:
        """The principal is what stands before the slash in its name."""
        return SimpleNamespace(sender=self.name.partition("/")[0], source=())


class Desk:
    """The listen requests at a server, with what they do written down."""

    def __init__(self, capabilities: Any, shares_server: bool = False) -> None:
        self.said: list[Any] = []
        self.requests: dict[str, Any] = {}
        self.settling: dict[str, Any] = {}
        front = SimpleNamespace(
            tell=lambda to, method, params: self.said.append(TellListener(to.name, method, params)),
            refuse=lambda to, *error: self.said.append(Refuse(to.name, Refusal(*error))),
        )
        promoting: Any = SimpleNamespace(listeners={}, listen=lambda to: None, stop_listening=lambda to: None)
        served: Any = SimpleNamespace(
            front=front,
            put_result=lambda to, result: self.said.append(End(to.name, result)),
            loans=SimpleNamespace(send_own=self.send_own),
            capabilities=capabilities,
            bridging=SimpleNamespace(shares_channel=True, shares_server=shares_server),
        )
        self.listens = ListenRequests(served, promoting)

    def send_own(self, method: str, params: dict[str, Any], hook: Any) -> None:
        uri = params["uri"]
        if method == "resources/subscribe":
            self.settling[uri] = hook
        self.said.append(Subscribe(uri) if method == "resources/subscribe" else Unsubscribe(uri))

    def take(self) -> list[Any]:
        said, self.said = self.said, []
        return said

    def open(self, name: str, request_id: Any, params: Any) -> list[Any]:
        self.requests[name] = Asked(name, request_id, params)
        self.listens.open(self.requests[name])
        return self.take()

    def settle(self, uri: str, agreed: bool) -> list[Any]:
        self.settling[uri](SimpleNamespace(kind="result" if agreed else "error"))
        return self.take()

    def hear(self, method: str, params: Any) -> list[Any]:
        self.listens.hear(method, params)
        return self.take()

    def close(self, name: str) -> list[Any]:
        self.listens.cancel(self.requests[name])
        return self.take()

    def end_all(self, reason: str) -> list[Any]:
        self.listens.end_all(reason)
        return self.take()


def tag(request_id: Any, **params: Any) -> dict[str, Any]:
    return {**params, "_meta": {"io.modelcontextprotocol/subscriptionId": request_id}}


def listens() -> Desk:
    return Desk(CAPABILITIES)


def open_(desk: Desk, to: str = "one", request_id: Any = 1, **notifications: Any) -> list[Any]:
    commands = desk.open(to, request_id, {"notifications": notifications})
    for command in commands:
        if isinstance(command, TellListener):
            dragoman_spec.validate({"jsonrpc": "2.0", "method": command.method, "params": command.params}, E)
    return list(commands)


def test_a_filter_without_resources_is_acknowledged_at_once() -> None:
    asked = {"toolsListChanged": True, "resourcesListChanged": False}
    assert open_(listens(), **asked) == [TellListener(ONE, ACK, tag(1, notifications={"toolsListChanged": True}))]


def test_what_the_server_does_not_promise_is_left_out() -> None:
    desk = Desk({"tools": {"listChanged": False}, "resources": 5})
    asked = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": [A]}
    assert open_(desk, **asked) == [TellListener(ONE, ACK, tag(1, notifications={}))]


def test_resources_are_subscribed_to_before_the_acknowledgement() -> None:
    desk = listens()
    assert open_(desk, resourceSubscriptions=[A, B, A]) == [Subscribe(A), Subscribe(B)]
    assert desk.settle(A, True) == []
    assert desk.settle(B, True) == [TellListener(ONE, ACK, tag(1, notifications={"resourceSubscriptions": [A, B]}))]


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


def test_listeners_and_resources_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOST", 2)
    monkeypatch.setattr(subscriptions, "MOST_URIS", 1)
    desk = listens()
    open_(desk, resourceSubscriptions=[A])
    (refused,) = open_(desk, "two", resourceSubscriptions=[B])
    assert isinstance(refused, Refuse)
    open_(desk, "two", resourceSubscriptions=[A])
    (refused,) = open_(desk, "three")
    assert isinstance(refused, Refuse)
    assert refused.error.code == -32603
    assert len(desk.listens) == 2


def test_of_several_principals_none_takes_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOST", 4)
    monkeypatch.setattr(subscriptions, "MOST_URIS", 4)
    desk = Desk(CAPABILITIES, shares_server=True)
    (refused,) = open_(desk, "ann/1", resourceSubscriptions=["x:1", "x:2", "x:3"])
    assert isinstance(refused, Refuse)
    open_(desk, "ann/2", resourceSubscriptions=["x:1", "x:2"])
    (refused,) = open_(desk, "ann/3", resourceSubscriptions=["x:3"])
    assert isinstance(refused, Refuse)
    assert open_(desk, "ben/1", resourceSubscriptions=["x:3"]) == [Subscribe("x:3")]
    open_(desk, "ann/4", toolsListChanged=True)
    (refused,) = open_(desk, "ann/5", toolsListChanged=True)
    assert isinstance(refused, Refuse)
    assert isinstance(open_(desk, "cat/1", toolsListChanged=True)[0], TellListener)


def test_the_end_is_said_in_both_ways() -> None:
    desk = listens()
    open_(desk, "one", "x", toolsListChanged=True)
    told, ended = desk.end_all("the server closed")
    assert told == TellListener(ONE, CANCELLED, {"requestId": "x", "reason": "the server closed"})
    assert ended == End(ONE, {"resultType": "complete", **tag("x")})
    dragoman_spec.validate({"jsonrpc": "2.0", "id": "x", "result": ended.result}, E, method="subscriptions/listen")
    assert len(desk.listens) == 0


@given(OBJECTS, VALUES, OBJECTS, st.sampled_from([UPDATED, TOOLS]))
def test_nothing_that_a_peer_says_breaks_it(capabilities: Any, value: Any, params: Any, method: str) -> None:
    desk = Desk({"tools": {"listChanged": True}, "resources": {"subscribe": True}, **capabilities})
    desk.open("one", value, value)
    desk.open("two", 1, {"notifications": params})
    desk.open("three", 2, {"notifications": {"resourceSubscriptions": [A], "toolsListChanged": True}})
    for uri in list(desk.settling):
        desk.settle(uri, True)
    desk.hear(method, params)
