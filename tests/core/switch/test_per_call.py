"""A fresh server for every request, without transports: what each of them and the client hear."""

from __future__ import annotations

import dataclasses
from typing import Any

from dragoman.core.commands import Alarm, Close, Open, Send, Wake
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.settings import Settings
from dragoman.core.switch.per_call import PerCall
from dragoman.proxy import ProxyConfig, make_bridging
from dragoman.transports.lines import LineFramer
from tests.proxy.conversation import READY, an_error, error, initialize, initialized, notification, request, result
from tests.support.wired import wiring

REVISION = "2025-11-25"
Heard = list[tuple[UpstreamEdge | None, Any]]


class Alone:
    """One client and its servers; None is the client."""

    def __init__(self, limit: int = 64) -> None:
        self.now_s = 0.0
        bridging = dataclasses.replace(make_bridging(ProxyConfig()), steady_s=lambda: self.now_s)
        wired = dataclasses.replace(wiring(Settings(expect_echo=False)), bridging=bridging)
        self.switch = PerCall(wired, limit)
        self.framer = LineFramer()
        self.framers: dict[UpstreamEdge, LineFramer] = {}
        self.closed: list[UpstreamEdge] = []
        self.heard: Heard = []
        self.alarms: dict[Alarm, float] = {}

    def client_says(self, *frames: Any) -> list[UpstreamEdge]:
        """Let the client speak; give the servers that are opened for it."""
        for frame in self.framer.feed(_lines(frames)):
            self.switch.front.take(frame)
        return self.take_out()

    def server_says(self, upstream: UpstreamEdge, *frames: Any) -> Heard:
        """Let a server speak; give what everybody hears."""
        for frame in self.framers[upstream].feed(_lines(frames)):
            upstream.take(frame)
        self.take_out()
        return self.heard

    def server_ends(self, upstream: UpstreamEdge, *frames: Any) -> Heard:
        """Let a server speak, and then end without a line feed."""
        framer = self.framers[upstream]
        for frame in [*framer.feed(_lines(frames)), *framer.finish()]:
            upstream.take(frame)
        upstream.close("gone")
        self.take_out()
        return self.heard

    def opens(self, **capabilities: Any) -> None:
        """Open the session."""
        [first] = self.client_says(initialize(REVISION, key="i", **capabilities))
        self.server_says(first, initialized(REVISION, "i"))
        self.client_says(READY)

    def accepts(self, upstream: UpstreamEdge) -> Heard:
        return self.server_says(upstream, initialized(REVISION, "i"))

    def asks(self, frame: Any) -> UpstreamEdge:
        """Let the client ask; give the server, which has the request by then."""
        [upstream] = self.client_says(frame)
        assert self.accepts(upstream)[-1] == (upstream, frame)
        return upstream

    def take_out(self) -> list[UpstreamEdge]:
        """Take out what has come out of the switch; give the servers that are opened."""
        opened = []
        self.heard = []
        for command in self.switch.outbox.take_all():
            if isinstance(command, Open):
                opened.append(command.edge)
                self.framers[command.edge] = LineFramer()
            elif isinstance(command, Close):
                self.closed.append(command.edge)
                self.switch.gone(command.edge)
            elif isinstance(command, Wake) and isinstance(command.edge, Alarm):
                self.alarms.pop(command.edge, None)
                if command.after_s is not None:
                    self.alarms[command.edge] = command.after_s
            elif isinstance(command, Send):
                to = command.edge if isinstance(command.edge, UpstreamEdge) else None
                self.heard += [(to, decode(frame.raw)) for frame in command.frames]
        return opened


def _lines(frames: tuple[Any, ...]) -> bytes:
    return b"".join(frame if isinstance(frame, bytes) else encode_line(frame) for frame in frames)


def opened() -> Alone:
    alone = Alone()
    alone.opens(elicitation={})
    return alone


def test_a_refusal_of_initialize_is_passed_on_and_opens_nothing() -> None:
    alone = Alone()
    [first] = alone.client_says(initialize(REVISION, key="i"))
    refusal = error("i", -32603, "no API key")
    assert alone.server_says(first, refusal) == [(None, refusal)]
    assert alone.client_says(request(1, "tools/list")) == []


def test_an_answer_to_initialize_that_cannot_be_read_is_an_error() -> None:
    alone = Alone()
    [first] = alone.client_says(initialize(REVISION, key="i"))
    [(to, frame)] = alone.server_says(first, b'{"jsonrpc":"2.0","id":"i","result":{nonsense}}\n')
    assert to is None
    assert an_error("i", -32603, "cannot be read")(frame)


def test_what_does_not_last_is_not_offered() -> None:
    alone = Alone()
    [first] = alone.client_says(initialize(REVISION, key="i"))
    [(to, frame)] = alone.server_says(first, initialized(REVISION, "i", tools={"listChanged": True}))
    assert to is None
    assert frame["result"]["capabilities"] == {"tools": {}}
    assert alone.closed == [first]


def test_an_answer_that_is_not_a_response_fails_the_request() -> None:
    alone = opened()
    upstream = alone.asks(request(1, "tools/list"))
    [(to, frame)] = alone.server_says(upstream, b'{"x":1,"jsonrpc":"2.0","id":1,"result":[]}\n')
    assert to is None
    assert an_error(1, -32000, "not a response")(frame)
    assert upstream in alone.closed


def test_a_server_that_goes_after_its_answer_is_not_missed() -> None:
    alone = opened()
    upstream = alone.asks(request(1, "tools/list"))
    assert alone.server_says(upstream, result(1, {"tools": []})) == [(None, result(1, {"tools": []}))]
    assert alone.server_ends(upstream) == []


def test_what_comes_after_the_answer_is_not_heard() -> None:
    alone = opened()
    upstream = alone.asks(request(1, "tools/list"))
    news = notification("notifications/message", level="info", data="late")
    assert alone.server_says(upstream, result(1, {"tools": []}), news) == [(None, result(1, {"tools": []}))]


def test_a_server_that_is_still_opening_hears_nothing_of_a_cancellation() -> None:
    alone = opened()
    [upstream] = alone.client_says(request(1, "tools/list"))
    alone.client_says(notification("notifications/cancelled", requestId=1))
    assert alone.heard == []
    assert upstream in alone.closed


def test_an_unreadable_notification_of_the_client_goes_nowhere() -> None:
    alone = opened()
    upstream = alone.asks(request(1, "tools/list"))
    alone.client_says(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{nonsense}}\n')
    assert alone.heard == []
    assert upstream not in alone.closed


def test_what_a_server_asked_is_withdrawn_when_it_is_gone() -> None:
    alone = opened()
    upstream = alone.asks(request(1, "tools/call", name="t"))
    question = request("q", "elicitation/create", message="?", requestedSchema={"type": "object", "properties": {}})
    [(_, asked)] = alone.server_says(upstream, question)
    heard = [frame for to, frame in alone.server_says(upstream, result(1, {"content": []})) if to is None]
    withdrawn = next(frame for frame in heard if frame.get("method") == "notifications/cancelled")
    assert withdrawn["params"]["requestId"] == asked["id"]


def test_of_two_answers_in_one_array_the_first_counts() -> None:
    alone = opened()
    upstream = alone.asks(request(1, "tools/call", name="t"))
    both = [result(1, {"content": [], "first": True}), result(1, {"content": [], "first": False})]
    assert alone.server_says(upstream, both) == [(None, both[0])]


def test_a_whole_answer_without_line_feed_counts_when_the_server_ends() -> None:
    alone = opened()
    upstream = alone.asks(request(1, "tools/list"))
    last = encode_line(result(1, {"tools": []})).rstrip()
    assert alone.server_ends(upstream, last) == [(None, result(1, {"tools": []}))]


def test_half_an_answer_fails_the_request_when_the_server_ends() -> None:
    alone = opened()
    upstream = alone.asks(request(1, "tools/list"))
    [(_, frame)] = alone.server_ends(upstream, encode_line(result(1, {"tools": []}))[:-2])
    assert an_error(1, -32000, "in the middle of a frame")(frame)


def test_a_fresh_server_that_speaks_another_revision_fails_its_request() -> None:
    alone = opened()
    [upstream] = alone.client_says(request(1, "tools/list"))
    [(to, frame)] = alone.server_says(upstream, initialized("2024-11-05", "i"))
    assert to is None
    assert an_error(1, -32000, "2024-11-05", REVISION)(frame)
