"""A client with a handshake hears of a per-request server by one listen stream: as conversations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.envelope import Frame, Refusal, decoded
from dragoman.core.rules.capabilities import Path
from dragoman.core.rules.names import FACTS, NEWER
from dragoman.core.rules.notifications import write_filter
from dragoman.core.switch.to_stateless import subscriptions
from dragoman.core.switch.to_stateless.subscriptions import ClientSubscriptions
from tests.core.rules.test_hostile import OBJECTS, VALUES

CAPABILITIES = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"subscribe": True}}
LISTS = {"promptsListChanged": True, "toolsListChanged": True}
UPDATED = "notifications/resources/updated"
TOOLS = "notifications/tools/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
A, B = "file:///a", "file:///b"


class OpenListen(NamedTuple):
    stream: int
    filter: dict[str, Any]
    after_s: float


class CloseListen(NamedTuple):
    stream: int


class AnswerClient(NamedTuple):
    key: bytes
    error: Refusal | None


class TellClient(NamedTuple):
    method: str
    params: dict[str, Any] | None


@dataclass
class Asked:
    key: bytes
    method: str


class Desk:
    """The subscriptions of a client, with what they do written down; streams are numbered as they are opened."""

    def __init__(self, capabilities: Any) -> None:
        self.said: list[Any] = []
        self.streams: list[Any] = []
        self.now_s = 0.0
        self.schedule = SimpleNamespace(after=self.after, stop=self.close)
        self.edge = SimpleNamespace(withdraw=self.close)
        self.front = SimpleNamespace(take_answer=self.answer, take_server=self.tell)
        hop: Any = SimpleNamespace(
            path=Path("2025-06-18", NEWER),
            schedule=self.schedule,
            edge=self.edge,
            front=self.front,
            tools=SimpleNamespace(hear=lambda method: None),
            now_s=lambda: self.now_s,
            send=lambda lent, params: self.open(lent.answer.__self__, params["notifications"], 0.0),
        )
        self.subscriptions = ClientSubscriptions(hop, capabilities)

    # What they do.

    def open(self, stream: Any, wanted: dict[str, Any], after_s: float) -> int:
        self.streams.append(stream)
        self.said.append(OpenListen(len(self.streams), wanted, after_s))
        return len(self.streams)

    def after(self, after_s: float, send: Any) -> int:
        return self.open(send.__self__, write_filter(send.__self__.asked), after_s)

    def close(self, number: int | None) -> None:
        self.said += [] if number is None else [CloseListen(number)]

    def answer(self, call: Any, frame: Frame, own: bool) -> None:
        error = decoded(frame).body.get("error")
        refusal = None if error is None else Refusal(error["code"], error["message"], error.get("data", {}))
        self.said.append(AnswerClient(call.key, refusal))

    def tell(self, frame: Frame) -> None:
        self.said.append(TellClient(frame.method or "", decoded(frame).body.get("params")))

    # What is done to them.

    def take(self) -> list[Any]:
        said, self.said = self.said, []
        return said

    def reach(self) -> list[Any]:
        self.subscriptions.reach()
        return self.take()

    def subscribe(self, key: bytes, uri: str, method: str = "resources/subscribe") -> list[Any]:
        call: Any = Asked(key, method)
        self.subscriptions.take_request(call, {"uri": uri})
        return self.take()

    def unsubscribe(self, key: bytes, uri: str) -> list[Any]:
        return self.subscribe(key, uri, "resources/unsubscribe")

    def acknowledge(self, stream: int, granted: Any, now_s: float) -> list[Any]:
        return self.hear(stream, ACKNOWLEDGED, {"notifications": granted}, now_s)

    def hear(self, stream: int, method: str, params: Any, now_s: float) -> list[Any]:
        self.now_s = now_s
        body = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
        self.subscriptions.hear(self.streams[stream - 1], Frame(b"", "notification", None, method, body))
        return self.take()

    def end(self, stream: int, now_s: float, error: Any = None) -> list[Any]:
        self.now_s = now_s
        self.subscriptions.end(self.streams[stream - 1], error)
        return self.take()


def listener(capabilities: Any = CAPABILITIES) -> Desk:
    return Desk(capabilities)


def listening(*uris: str) -> Desk:
    """A listener whose first stream, with these resources and the lists, is acknowledged."""
    found = listener()
    found.reach()
    found.acknowledge(1, LISTS, 0.0)
    for number, uri in enumerate(uris, 2):
        found.subscribe(b"%d" % number, uri)
        found.acknowledge(number, {**LISTS, "resourceSubscriptions": list(uris)}, 0.0)
    return found


def uris(*names: str) -> dict[str, Any]:
    return {**LISTS, "resourceSubscriptions": list(names)}


def test_a_client_that_hears_nothing_and_asks_for_nothing_needs_no_stream() -> None:
    assert listener({}).reach() == []


def test_a_client_that_can_hear_hears_of_the_lists_that_are_promised() -> None:
    assert listener().reach() == [OpenListen(1, LISTS, 0.0)]


@pytest.mark.parametrize(("more", "opened"), [({}, []), (CAPABILITIES, [OpenListen(1, LISTS, 0.0)])])
def test_a_client_listens_to_no_list_that_its_revision_has_no_notice_of(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], opened: list[Any]
) -> None:
    """A revision to come may let its clients listen to more lists than there are."""
    method = "notifications/skills/list_changed"
    listens = {**FACTS.subscriptions, "skillsListChanged": method}
    announced = {**FACTS.announced, method: "skills.listChanged"}
    monkeypatch.setattr(subscriptions, "FACTS", replace(FACTS, subscriptions=listens, announced=announced))
    assert listener({**more, "skills": {"listChanged": True}}).reach() == opened


def test_a_subscription_is_answered_when_it_is_acknowledged() -> None:
    desk = listening()
    assert desk.subscribe(b"5", A) == [OpenListen(2, uris(A), 0.0)]
    assert desk.acknowledge(2, uris(A), 0.0) == [CloseListen(1), AnswerClient(b"5", None)]


def test_a_subscription_alone_opens_a_stream() -> None:
    desk = listener()
    assert desk.subscribe(b"5", A) == [OpenListen(1, {"resourceSubscriptions": [A]}, 0.0)]
    assert desk.acknowledge(1, {"resourceSubscriptions": [A]}, 0.0) == [AnswerClient(b"5", None)]
    assert desk.unsubscribe(b"6", A) == [AnswerClient(b"6", None), CloseListen(1)]


def test_subscriptions_that_come_meanwhile_share_the_next_stream() -> None:
    desk = listening()
    desk.subscribe(b"5", A)
    assert desk.subscribe(b"6", B) == []
    assert desk.subscribe(b"7", B) == []
    assert desk.acknowledge(2, uris(A), 0.0) == [
        CloseListen(1),
        AnswerClient(b"5", None),
        OpenListen(3, uris(A, B), 0.0),
    ]
    assert desk.acknowledge(3, uris(A, B), 0.0) == [CloseListen(2), AnswerClient(b"6", None), AnswerClient(b"7", None)]


def test_a_subscription_that_is_there_is_answered_at_once() -> None:
    assert listening(A).subscribe(b"9", A) == [AnswerClient(b"9", None)]


def test_a_subscription_that_the_server_leaves_out_is_refused() -> None:
    desk = listening()
    desk.subscribe(b"5", A)
    closed, answer = desk.acknowledge(2, LISTS, 0.0)
    assert closed == CloseListen(1)
    assert isinstance(answer, AnswerClient)
    assert answer.error is not None
    assert (answer.error.code, answer.error.data) == (-32602, {"uri": A})


@pytest.mark.parametrize("capabilities", [{}, {"resources": {}}, {"resources": {"subscribe": False}}, {"resources": 5}])
def test_a_server_that_promises_none_offers_no_subscriptions(capabilities: Any) -> None:
    (answer,) = listener(capabilities).subscribe(b"5", A)
    assert isinstance(answer, AnswerClient)
    assert answer.error is not None
    assert answer.error.code == -32601


def test_subscriptions_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOST_URIS", 1)
    desk = listener()
    desk.subscribe(b"1", A)
    (answer,) = desk.subscribe(b"2", B)
    assert isinstance(answer, AnswerClient)
    assert answer.error is not None
    assert desk.subscribe(b"3", A) == []


def test_taking_a_subscription_back_opens_a_smaller_stream() -> None:
    desk = listening(A, B)
    assert desk.unsubscribe(b"9", A) == [AnswerClient(b"9", None), OpenListen(4, uris(B), 0.0)]
    assert desk.acknowledge(4, uris(B), 0.0) == [CloseListen(3)]


def test_taking_back_what_is_on_its_way_answers_both() -> None:
    desk = listening()
    desk.subscribe(b"5", A)
    assert desk.unsubscribe(b"6", A) == [AnswerClient(b"5", None), AnswerClient(b"6", None)]
    assert desk.acknowledge(2, uris(A), 0.0) == [CloseListen(1), OpenListen(3, LISTS, 0.0)]


def test_taking_back_what_is_not_there_is_answered() -> None:
    assert listening().unsubscribe(b"6", A) == [AnswerClient(b"6", None)]


@pytest.mark.parametrize(
    ("method", "params", "told"),
    [
        (TOOLS, {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}}, None),
        (TOOLS, None, None),
        (UPDATED, {"uri": A, "_meta": {"io.modelcontextprotocol/subscriptionId": 1}}, {"uri": A}),
        (UPDATED, {"uri": A, "_meta": {"com.example/a": 1}}, {"uri": A, "_meta": {"com.example/a": 1}}),
    ],
)
def test_a_notice_loses_the_name_of_the_subscription(method: str, params: Any, told: Any) -> None:
    assert listening(A).hear(2, method, params, 0.0) == [TellClient(method, told)]


@pytest.mark.parametrize(
    ("stream", "method", "params"),
    [(1, "notifications/message", {}), (1, UPDATED, {"uri": 5}), (1, UPDATED, {"uri": [A]})],
)
def test_what_does_not_belong_on_the_stream_is_not_told(stream: int, method: str, params: Any) -> None:
    assert listening().hear(stream, method, params, 0.0) == []


def test_a_resource_that_was_given_up_is_not_told_of() -> None:
    desk = listening(A)
    desk.unsubscribe(b"9", A)
    assert desk.hear(2, UPDATED, {"uri": A}, 0.0) == []


def test_nothing_is_told_before_a_stream_is_acknowledged() -> None:
    desk = listener()
    desk.reach()
    assert desk.hear(1, TOOLS, None, 0.0) == []


def test_what_both_streams_bring_is_told_once() -> None:
    desk = listening()
    desk.subscribe(b"5", A)
    assert desk.hear(1, TOOLS, None, 10.0) == [TellClient(TOOLS, None)]
    desk.acknowledge(2, uris(A), 0.0)
    assert desk.hear(2, TOOLS, None, 10.5) == []
    assert desk.hear(2, UPDATED, {"uri": A}, 10.5) == [TellClient(UPDATED, {"uri": A})]
    assert desk.hear(2, TOOLS, None, 12.5) == [TellClient(TOOLS, None)]


def test_what_one_stream_brings_twice_is_told_twice() -> None:
    desk = listening()
    assert desk.hear(1, TOOLS, None, 10.0) == desk.hear(1, TOOLS, None, 10.1) == [TellClient(TOOLS, None)]


def test_a_stream_that_was_replaced_and_has_ended_brings_nothing() -> None:
    desk = listening(A)
    assert desk.end(1, 0.0) == []
    assert desk.hear(1, TOOLS, None, 0.0) == []


def test_a_stream_that_is_cut_at_once_waits_longer_each_time() -> None:
    desk = listening()
    for stream, pause_s in ((1, 1.0), (2, 2.0), (3, 4.0)):
        assert desk.end(stream, 10.0) == [OpenListen(stream + 1, LISTS, pause_s)]
        desk.acknowledge(stream + 1, LISTS, 10.0)
    assert desk.end(4, 40.0) == [OpenListen(5, LISTS, 1.0)]  # it lasted


def test_a_new_wish_does_not_wait_for_what_broke_before() -> None:
    desk = listening()
    desk.end(1, 0.0)
    desk.acknowledge(2, LISTS, 0.0)
    assert desk.subscribe(b"5", A) == [OpenListen(3, uris(A), 0.0)]


def test_each_failure_waits_longer() -> None:
    desk = listening()
    opened = [desk.end(stream, 0.0)[0] for stream in range(1, 8)]
    assert [command.after_s for command in opened if isinstance(command, OpenListen)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_stream_that_breaks_while_the_next_is_on_its_way_is_replaced_by_it() -> None:
    desk = listening()
    desk.subscribe(b"5", A)
    assert desk.end(1, 0.0) == []
    assert desk.acknowledge(2, uris(A), 0.0) == [
        AnswerClient(b"5", None),
        TellClient("notifications/prompts/list_changed", None),
        TellClient(UPDATED, {"uri": A}),
        TellClient(TOOLS, None),
    ]


def test_a_stream_that_does_not_open_leaves_the_old_one() -> None:
    desk = listening()
    desk.subscribe(b"5", A)
    assert desk.end(2, 0.0) == [OpenListen(3, uris(A), 1.0)]
    assert desk.hear(1, TOOLS, None, 0.0) == [TellClient(TOOLS, None)]


def test_an_error_is_passed_on_to_whoever_waits() -> None:
    desk = listening()
    desk.subscribe(b"5", A)
    desk.subscribe(b"6", B)
    answer, opened = desk.end(2, 0.0, {"code": -32603, "message": "no"})
    assert answer == AnswerClient(b"5", Refusal(-32603, "no", {}))
    assert opened == OpenListen(3, uris(B), 1.0)


def test_an_error_that_is_none_is_invalid_params() -> None:
    desk = listening()
    desk.subscribe(b"5", A)
    assert desk.end(2, 0.0, {"code": "x"})[0] == AnswerClient(b"5", Refusal(-32602, "the server does not listen", {}))


def test_a_server_without_listen_streams_is_not_asked_again() -> None:
    desk = listener()
    desk.subscribe(b"5", A)
    assert desk.end(1, 0.0, {"code": -32601, "message": "unknown"}) == [
        AnswerClient(b"5", Refusal(-32601, "unknown", {}))
    ]
    assert desk.reach() == []
    (answer,) = desk.subscribe(b"6", A)
    assert isinstance(answer, AnswerClient)


def test_what_comes_of_a_stream_that_nobody_knows_changes_nothing() -> None:
    desk = listening()
    assert desk.acknowledge(1, LISTS, 0.0) == []


def test_a_server_that_grants_less_than_before_is_not_asked_for_ever() -> None:
    desk = listening(A)
    desk.subscribe(b"5", B)
    assert desk.acknowledge(3, uris(B), 0.0) == [CloseListen(2), AnswerClient(b"5", None)]


@pytest.mark.parametrize("granted", [None, 5, {"toolsListChanged": 1}, {"resourceSubscriptions": 5}])
def test_a_filter_that_is_none_grants_nothing(granted: Any) -> None:
    desk = listener()
    desk.reach()
    assert desk.acknowledge(1, granted, 0.0) == []
    assert desk.hear(1, "notifications/message", None, 0.0) == []


@given(OBJECTS, VALUES, OBJECTS, st.sampled_from([UPDATED, TOOLS]))
def test_nothing_that_a_server_says_breaks_it(capabilities: Any, value: Any, params: Any, method: str) -> None:
    desk = listener({"tools": {"listChanged": True}, "resources": {"subscribe": True}, **capabilities})
    desk.reach()
    desk.subscribe(b"1", A)
    for stream in range(1, len(desk.streams) + 1):
        desk.acknowledge(stream, value, 0.0)
        desk.hear(stream, method, params, 0.0)
        desk.end(stream, 0.0, params)
