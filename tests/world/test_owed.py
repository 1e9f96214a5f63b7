"""Rules about what is owed at the beginning and the end, and about what several share: each is broken by the least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dragoman.transports.http.streams import Stream, StreamConnection
from tests.world.peers.words import PER_REQUEST, error, question, request, result
from tests.world.plan import ClientPlan, Plan, ServerPlan
from tests.world.record import Record
from tests.world.rules import RULES, Talk, judge
from tests.world.system import System
from tests.world.test_access import BREAKS as OF_ACCESS
from tests.world.test_children import BREAKS as OF_CHILDREN
from tests.world.test_edges import BREAKS as OF_EDGES
from tests.world.test_flows import BREAKS as OF_FLOWS
from tests.world.test_flows import (
    NO,
    REVISION,
    SHARED,
    SUBSCRIBE,
    UPDATED,
    WELL,
    Said,
    asked,
    asks,
    broken,
    call,
    cancel,
    client,
    log,
    opened,
    over,
    progress,
    reply,
    text,
    told,
)
from tests.world.test_rules import BREAKS as OF_RULES
from tests.world.test_signins import BREAKS as OF_SIGNINS
from tests.world.worlds import run_world

PING = request("p", "ping")
ASKING = client(has=("sampling",))
WANTS = (asked(1, SUBSCRIBE), told(1, result(1, {})))
AGAIN = request("dragoman-again-1", "resources/subscribe", SUBSCRIBE["params"])
LEAVING = client({"do": "leave", "at": 2})
OVER_HTTP = {"front": "http", "servers": [ServerPlan("s0", [REVISION], link="http")]}
KEEPING = {**OVER_HTTP, "events": True}
BROKEN: Said = (1, "c0", "is refused", {"id": 9, "status": 404, "resumes": True})
SEVERAL = {"front": "http", "instances": 2, "servers": [ServerPlan("s0", [REVISION], link="http")]}


def on(events: Sequence[Said], via: str) -> list[tuple[Any, ...]]:
    """Give what was said and heard on a stream of this name."""
    return [(*event, via) for event in events]


def asking(key: Any) -> dict[str, Any]:
    method, params = question("sampling", "secret-c0-0 nonce-s0.1-1")
    return request(key, method, params)


BREAKS: dict[str, tuple[Sequence[Sequence[Said]], dict[str, Any]]] = {
    "reply-heard": (
        (opened(), asked(1, call(1)), told(1, asks(1)), [(2, "c0", "says", reply(1))], told(3, text(1)), over(4)),
        SHARED,
    ),
    "given-up": (
        (opened(), asked(1, call(1, token=7)), asked(2, cancel(1)), told(3, progress(7)), over(4)),
        SHARED,
    ),
    "ping-answered": (
        ([*opened(), (1, "s0.1", "says", PING), (5, "s0.1", "hears", result("p", {}))], over(9)),
        SHARED,
    ),
    "subscribed-once": (
        (opened(), *WANTS, [(2, "s0.1", "hears", request(2, "resources/subscribe", SUBSCRIBE["params"]))], over(3)),
        SHARED,
    ),
    "update-wanted": ((opened(), told(1, UPDATED), over(2)), SHARED),
    "update-heard": ((opened(), *WANTS, [(2, "s0.1", "says", UPDATED)], over(9)), SHARED),
    "not-again": (
        (
            opened(),
            asked(1, SUBSCRIBE),
            [(1, "c0", "hears", NO), (2, "s0.1", "dies", None)],
            opened(run="s0.2", at_s=3),
            [(4, "s0.2", "hears", AGAIN)],
        ),
        SHARED,
    ),
    "ends-soon": ((*WELL[:-1], [(2, "c0", "leaves", None), (20, "c0", "ends", ""), (20, "s0.1", "ends", "")]), {}),
    "opens": (
        ([(0, "c0", "says", request(0, "initialize")), (1, "c0", "hears", error(0, -1, "no"))], over(2)),
        {"clients": [client()]},
    ),
    "last-words": ((opened(), asked(1, call(1)), over(2)), {}),
    "drained": ((*WELL[:-1], [(2, "c0", "is told to drain", None)], over(60)), {}),
    "asked-alone": (
        (
            opened(),
            asked(1, call(1)),
            [(1, "s0.1", "says", asks(1)), (1, "s0.1", "hears", error(1, -1, "it may be about any of 2"))],
            told(2, text(1)),
            over(3),
        ),
        {"clients": [ASKING], **SHARED},
    ),
    "deleted": ((*WELL[:-1], [(2, "c0", "leaves", None), (2, "c0", "ends", "")]), {**OVER_HTTP, "clients": [client()]}),
    "tried-again": (
        (opened(), [(5, "s0.1", "dies", None)], [(190, "c0", "leaves", None)]),
        {"router": True, "options": {"restarts": 2}, "clients": [client()], "scope": "shared"},
    ),
    "called-once": ((opened(), asked(1, call(1)), asked(2, call(2), run="s0.2"), told(3, text(1)), over(4)), SEVERAL),
    "refused-why": ((*WELL[:-1], [(1, "c0", "is refused", {"id": 9, "status": 404})]), SEVERAL),
    "goes-on": ((*WELL[:-1], [(1, "c0", "is refused", {"id": 9, "status": 404})]), SEVERAL),
    "resumable": ((*WELL[:-1], [BROKEN]), KEEPING),
    "one-id": (
        (opened(), asked(1, call(1)), told(1, asks(1)), told(1, asks(1, 2)), told(2, text(1)), over(3)),
        {"clients": [ASKING]},
    ),
    "question-ended": (
        (opened(), asked(1, call(1)), [(1, "s0.1", "says", asks(1))], told(2, text(1)), over(90)),
        {"clients": [ClientPlan("c0", "ada", PER_REQUEST, ["sampling"])]},
    ),
    "refused-at-once": (
        (
            [(0, "c0", "says", request(0, "initialize")), (0, "c0", "hears", error(0, -1, "no"))],
            [(1, "c0", "says", call(1)), (9, "c0", "hears", error(1, -1, "no"))],
            over(20),
        ),
        {},
    ),
    "wanted-once": ((opened(), *WANTS, [(2, "s0.1", "hears", {**SUBSCRIBE, "id": 2})], over(3)), {}),
    "sent-on": ((*WELL, [(1, "s0", "turns away", call(1))] * 3), OVER_HTTP),
    "over-told": (
        (
            opened(),
            asked(1, call(1)),
            [(1, "c0", "hears", asking(5))],
            asked(2, cancel(1)),
            [(60, "c0", "leaves", None)],
        ),
        {"clients": [ASKING], "revisions": {"s0.1": PER_REQUEST}},
    ),
    "call-stream": (
        (
            opened(),
            on(asked(1, call(1)), "2/1"),
            on(told(1, log()), "2/1"),
            told(2, text(1, said=2)),
            over(3),
        ),
        {**OVER_HTTP, "clients": [client()]},
    ),
}


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_notices_what_breaks_it(rule: str) -> None:
    parts, more = BREAKS[rule]
    assert rule in broken(*parts, **more)


@pytest.mark.parametrize(
    ("events", "more"),
    [
        ([BROKEN], {**KEEPING, "faults": [{"do": "kill"}]}),
        ([BROKEN], {**KEEPING, "events": False}),
        ([(1, "c0", "leaves", None), BROKEN], KEEPING),
        ([(1, "c0", "is refused", {"id": 9, "status": 404})], KEEPING),
    ],
)
def test_a_stream_that_cannot_go_on_breaks_no_rule(events: list[Said], more: dict[str, Any]) -> None:
    assert "resumable" not in broken(*WELL[:-1], events, **more)


def broken_streams() -> set[str]:
    """Give the rules that a session breaks whose client loses the stream of a call, and takes it up again."""
    steps = [["progress"], ["wait", 10.0], ["progress"], ["answer", "text"]]
    acts: list[dict[str, Any]] = [{"at": 0.0, "do": "call", "n": 0, "server": "s0", "progress": True, "steps": steps}]
    plan = Plan("http", 1, front="http", servers=[ServerPlan("s0", [REVISION])])
    plan.clients = [ClientPlan("c0", "ada", REVISION, acts=[*acts, {"at": 5.0, "do": "break", "n": 1}])]
    outcome = run_world(plan)
    talk = Talk(outcome.record)
    assert any(event.what == "loses its streams" for event in talk.by_peer["c0"])
    return {finding.rule for finding in outcome.findings}


def test_an_event_that_comes_again_on_a_stream_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_streams() == set()
    attach = Stream.attach

    def attach_from_the_first(stream: Stream, connection: StreamConnection, after: int | None = None) -> None:
        attach(stream, connection, None if after is None else 0)

    monkeypatch.setattr(Stream, "attach", attach_from_the_first)
    assert "resumed" in broken_streams()


def test_rows_that_are_left_over_break_a_rule() -> None:
    record = Record(System("test"))
    record.left_over = ["UpstreamPool._upstreams[]._desk.sessions has 1 rows"]
    plan_of_one = Plan("direct", 1)
    assert {finding.rule for finding in judge(plan_of_one, Talk(record))} == {"no-rows"}


def test_each_rule_is_broken_by_some_test() -> None:
    """A rule that cannot fail says nothing."""
    assert set(RULES) <= {*BREAKS, *OF_ACCESS, *OF_CHILDREN, *OF_EDGES, *OF_FLOWS, *OF_RULES, *OF_SIGNINS, "no-rows"}
