"""Rules about what is owed at the beginning and the end, and about what several share: each is broken by the least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.world.peers.words import PER_REQUEST, error, question, request, result
from tests.world.plan import ClientPlan, Plan, ServerPlan
from tests.world.record import Record
from tests.world.rules import RULES, Talk, judge
from tests.world.system import System
from tests.world.test_access import BREAKS as OF_ACCESS
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

PING = request("p", "ping")
ASKING = client(has=("sampling",))
WANTS = (asked(1, SUBSCRIBE), told(1, result(1, {})))
AGAIN = request("dragoman-again-1", "resources/subscribe", SUBSCRIBE["params"])
LEAVING = client({"do": "leave", "at": 2})
OVER_HTTP = {"front": "http", "servers": [ServerPlan("s0", [REVISION], link="http")]}
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


def test_rows_that_are_left_over_break_a_rule() -> None:
    record = Record(System("test"))
    record.left_over = ["UpstreamPool._upstreams[]._desk.sessions has 1 rows"]
    plan_of_one = Plan("direct", 1)
    assert {finding.rule for finding in judge(plan_of_one, Talk(record))} == {"no-rows"}


def test_each_rule_is_broken_by_some_test() -> None:
    """A rule that cannot fail says nothing."""
    assert set(RULES) <= {*BREAKS, *OF_ACCESS, *OF_FLOWS, *OF_RULES, "no-rows"}
