"""Rules about what is due to whom, and how it flows: each is broken by the least that breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.world.peers.words import error, notification, question, request, result
from tests.world.plan import ClientPlan, Plan, ServerPlan
from tests.world.record import Record
from tests.world.rules import Talk, judge
from tests.world.system import System
from tests.world.worlds import RULE_BOOKS

REVISION = "2025-11-25"
OPENED = {"protocolVersion": REVISION, "capabilities": {}, "serverInfo": {"name": "s0", "version": "1"}}
READY = notification("notifications/initialized")
Said = tuple[Any, ...]
"""When, who, does what, a frame, and perhaps on which stream."""


def call(key: Any, number: int = 0, *steps: list[Any], who: str = "c0", token: Any = None) -> dict[str, Any]:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    arguments = {"secret": f"secret-{who}-{number}", "steps": list(steps or (["answer", "text"],))}
    return request(key, "tools/call", {"name": "s0_a", "arguments": arguments, **meta})


def text(key: Any, number: int = 0, said: int = 1, who: str = "c0", run: str = "s0.1") -> dict[str, Any]:
    return result(key, {"content": [{"type": "text", "text": f"secret-{who}-{number} #{said} of {run}"}]})


def log(number: int = 0, said: int = 1, level: str = "info", who: str = "c0", run: str = "s0.1") -> dict[str, Any]:
    return notification("notifications/message", {"level": level, "data": f"secret-{who}-{number} #{said} of {run}"})


def progress(token: Any, number: int = 0, said: int = 1) -> dict[str, Any]:
    told = {"progressToken": token, "progress": said, "message": f"secret-c0-{number} #{said} of s0.1"}
    return notification("notifications/progress", told)


def cancel(key: Any) -> dict[str, Any]:
    return notification("notifications/cancelled", {"requestId": key})


def asks(key: Any, number: int = 1, run: str = "s0.1") -> dict[str, Any]:
    method, params = question("sampling", f"secret-c0-0 nonce-{run}-{number}")
    return request(key, method, params)


def reply(key: Any, number: int = 1) -> dict[str, Any]:
    said = {"type": "text", "text": f"secret-c0-0 nonce-s0.1-{number}"}
    return result(key, {"role": "assistant", "model": "c0", "content": said})


def opened(who: str = "c0", run: str = "s0.1", at_s: float = 0.0, level: str = REVISION) -> list[Said]:
    """Give how a session opens."""
    params = {"protocolVersion": level, "capabilities": {}, "clientInfo": {"name": who, "version": "1"}}
    return [
        (at_s, who, "says", request(0, "initialize", params)),
        (at_s, run, "opens", None),
        (at_s, run, "hears", request(0, "initialize", params)),
        (at_s, run, "says", result(0, OPENED)),
        (at_s, who, "hears", result(0, OPENED)),
        (at_s, who, "says", READY),
        (at_s, run, "hears", READY),
    ]


def over(at_s: float, run: str = "s0.1", who: str = "c0") -> list[Said]:
    return [(at_s, who, "leaves", None), (at_s, who, "ends", ""), (at_s, run, "ends", "")]


def asked(at_s: float, frame: Any, run: str = "s0.1", who: str = "c0", other: Any = None) -> list[Said]:
    """Give a request of a client on its way; `other` is what the server hears of it."""
    return [(at_s, who, "says", frame), (at_s, run, "hears", other or frame)]


def told(at_s: float, frame: Any, run: str = "s0.1", who: str = "c0", other: Any = None) -> list[Said]:
    return [(at_s, run, "says", frame), (at_s, who, "hears", other or frame)]


def broken(*parts: Sequence[Said], logged: str = "", words: Any = (), via: str = "", **more: Any) -> set[str]:
    """Give the names of the rules that a conversation breaks."""
    revisions = more.pop("revisions", {})
    plan = Plan(**{"cell": "direct", "seed": 1, **more})
    plan.clients = plan.clients or [ClientPlan("c0", "ada", REVISION, ["sampling"]), ClientPlan("c1", "bob", REVISION)]
    plan.servers = plan.servers or [ServerPlan("s0", [REVISION])]
    system = System("test")
    record = Record(system)
    record.revisions = dict.fromkeys(("c0", "c1", "s0.1", "s0.2"), REVISION) | revisions
    record.log += [("WARNING", logged)] if logged else []
    record.words += words
    start_s = system.now_s
    for at_s, peer, what, frame, *on in sorted((said for part in parts for said in part), key=lambda said: said[0]):
        system.now_s = start_s + at_s
        event = record.add(peer, what, frame, via=on[0] if on else via)
        event.there = event.turn
    return {finding.rule for finding in judge(plan, Talk(record))}


def client(*acts: dict[str, Any], name: str = "c0", manner: str = "good", has: tuple[str, ...] = ()) -> ClientPlan:
    return ClientPlan(name, "ada", REVISION, list(has), manner, list(acts))


WELL = (opened(), asked(1, call(1)), told(1, text(1)), over(2))
SHARED = {"cell": "shared", "scope": "shared"}
LATE = {"cell": "direct", "clients": [client({"do": "call", "at": 0})]}
SUBSCRIBE = request(1, "resources/subscribe", {"uri": "world://s0/common"})
UPDATED = notification("notifications/resources/updated", {"uri": "world://s0/common"})
CHANGED = notification("notifications/tools/list_changed")


def level(name: str) -> dict[str, Any]:
    return request(1, "logging/setLevel", {"level": name})


def test_rules_are_in_the_books_that_worlds_read() -> None:
    assert {book.__name__.rpartition(".")[2] for book in RULE_BOOKS} >= {"promises", "askings", "flows", "dues"}


def test_a_conversation_in_which_all_is_well_breaks_no_rule() -> None:
    assert broken(*WELL) == set()
    assert broken(*WELL, **SHARED) == set()


NO = error(1, -1, "no")
FULL = error(1, -1, "more than 2 requests are unanswered")

BREAKS: dict[str, tuple[Sequence[Sequence[Said]], dict[str, Any]]] = {
    "told-once": ((*WELL, [(1, "c0", "hears", log()), (1, "c0", "hears", log())]), SHARED),
    "prompt": ((opened(), asked(1, call(1)), [(1, "s0.1", "says", text(1)), (4, "c0", "hears", text(1))], over(5)), {}),
    "let-go": (
        (opened(), asked(1, call(1)), [(2, "c0", "hears", error(1, -1, "too late"))], over(40)),
        SHARED,
    ),
    "idle-wait": (
        (opened(), [(1, "c0", "says", call(1)), (9, "s0.1", "hears", call(1))], told(9, text(1)), over(9)),
        SHARED,
    ),
    "in-vain": (
        (opened(), [(1, "c0", "says", call(1)), (2, "c0", "says", cancel(1)), (3, "s0.1", "hears", call(1))], over(9)),
        {},
    ),
    "passes": ((*WELL[:-1], [(1, "s0.1", "says", CHANGED)], over(2)), {}),
    "calm-log": (WELL, {"logged": "something is wrong"}),
    "known-ids": ((*WELL[:-1], [(1, "s0.1", "hears", cancel(7))], over(2)), SHARED),
    "served": ((opened(), asked(1, call(1)), told(1, text(1), other=error(1, -1, "no")), over(2)), SHARED),
    "level-told": (
        (
            opened(),
            asked(1, level("debug"), other=level("error")),
            told(1, result(1, {})),
            asked(2, call(2)),
            told(2, text(2)),
            over(3),
        ),
        SHARED,
    ),
    "logs-heard": (
        (opened(), asked(1, call(1)), [(1, "s0.1", "says", log())], told(2, text(1, said=2)), over(3)),
        {"options": {"restarts": 1}, "clients": [client({"do": "junk", "at": 0}, name="c1"), client()]},
    ),
    "started-again": (
        (opened(), asked(1, call(1)), told(1, text(1)), [(50, "s0.1", "dies", None), (50, "c0", "ends", "it is lost")]),
        {"options": {"restarts": 1}, "clients": [client()]},
    ),
    "closed-in-time": (
        (*WELL[:-1], [(2, "c0", "leaves", None), (2, "c0", "ends", ""), (90, "s0.1", "ends", "")]),
        {},
    ),
    "noticed-silent": (
        (opened(), asked(1, call(1)), [(2, "s0.1", "falls silent", None)], over(200)),
        {"options": {"health_s": 20.0}, "clients": [client()]},
    ),
    "own-stream": (
        (opened(), asked(1, call(1, token=7)), told(1, progress(7)), told(2, text(1, said=2)), over(3)),
        {"front": "http", "via": "listening"},
    ),
    "progress-heard": (
        (opened(), asked(1, call(1, token=7)), [(1, "s0.1", "says", progress(7))], told(2, text(1, said=2)), over(3)),
        {},
    ),
    "asked-who-can": (
        (
            opened(),
            asked(1, call(1, 0, ["ask", "sampling"], ["answer", "text"])),
            [(1, "s0.1", "says", asks(1)), (1, "s0.1", "hears", error(1, -32601, "no"))],
            told(2, text(1)),
            over(3),
        ),
        {},
    ),
    "cancel-heard": (
        (opened(), asked(1, call(1)), [(2, "c0", "says", cancel(1))], over(3)),
        LATE,
    ),
    "in-time": (
        (opened(), asked(1, call(1)), told(60, text(1)), over(61)),
        {"options": {"request_timeout_s": 5.0}},
    ),
    "limit": (
        (opened(), asked(1, call(1)), asked(1, call(2, 1)), told(2, text(1)), told(2, text(2, 1)), over(3)),
        {"options": {"open_requests": 1}},
    ),
    "updates-heard": (
        (
            opened(),
            asked(1, SUBSCRIBE),
            told(1, result(1, {})),
            asked(2, call(2)),
            [(2, "s0.1", "says", UPDATED)],
            told(3, text(2)),
            over(4),
        ),
        {},
    ),
    "declared": (
        (
            opened(),
            asked(1, call(1)),
            told(1, asks(1)),
            [(1, "c0", "says", error(1, -1, "no")), (1, "s0.1", "hears", error(1, -1, "no"))],
            told(2, text(1)),
            over(3),
        ),
        {"clients": [client(has=("roots",))], **SHARED},
    ),
    "question-answered": (
        (opened(), asked(1, call(1)), [(1, "s0.1", "says", asks(1))], told(2, text(1)), over(90)),
        SHARED,
    ),
    "withdrawn": (
        (
            opened(),
            asked(1, call(1)),
            told(1, asks(1)),
            [(2, "s0.1", "says", cancel(1)), (3, "s0.1", "hears", reply(1))],
            told(4, text(1)),
            over(5),
        ),
        SHARED,
    ),
    "gone-told": (
        (
            opened(),
            asked(1, call(1)),
            told(1, asks(1)),
            [(2, "s0.1", "dies", None), (2, "c0", "hears", error(1, -1, "it is gone"))],
            [(90, "c0", "leaves", None)],
        ),
        SHARED,
    ),
    "changes-told": (
        (
            opened(),
            [(5, "s0.1", "dies", None)],
            opened("c1", "s0.2", 6),
            over(90, "s0.2"),
            [(90, "c1", "leaves", None)],
        ),
        SHARED,
    ),
    "level": (
        (
            opened(),
            asked(1, level("error")),
            told(1, result(1, {})),
            asked(2, call(2)),
            told(2, log(level="debug")),
            told(3, text(2, said=2)),
            over(4),
        ),
        SHARED,
    ),
    "updates-shared": (
        (opened(), asked(1, SUBSCRIBE), told(1, result(1, {})), [(2, "s0.1", "says", UPDATED)], over(9)),
        SHARED,
    ),
    "unsubscribed": (
        (opened(), asked(1, SUBSCRIBE), told(1, result(1, {})), over(9)),
        SHARED,
    ),
    "loss-told": (
        (
            opened(),
            asked(1, call(1)),
            told(1, result(1, {**text(1)["result"], "structuredContent": {}}), other=text(1)),
            over(2),
        ),
        {},
    ),
    "limit-named": (
        (
            opened(),
            asked(1, call(1)),
            [(1, "c0", "hears", error(1, -1, "more than 2 requests are unanswered"))],
            over(2),
        ),
        {"options": {"open_requests": 2}},
    ),
    "progress": ((*WELL[:-1], [(1, "c0", "hears", progress(9))], over(2)), {}),
    "own-rounds": (
        (
            opened(),
            asked(1, call(1)),
            [
                (
                    1,
                    "s0.1",
                    "hears",
                    request(2, "tools/call", {**call(2)["params"], "inputResponses": {"q": "secret-c1-4"}}),
                )
            ],
            told(2, text(1)),
            over(3),
        ),
        {},
    ),
    "no-defect": (
        (*WELL[:-1], [(1, "c0", "hears", log(said=3)), (2, "c0", "hears", error(5, -1, "internal error"))], over(3)),
        {},
    ),
}


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_notices_what_breaks_it(rule: str) -> None:
    parts, more = BREAKS[rule]
    assert rule in broken(*parts, **more)


def test_what_is_taken_for_well_is_taken_so_by_every_rule() -> None:
    """What comes late because of a slow server is no fault of ours."""
    late = (opened(), asked(1, call(1, 0, ["wait", 9.0], ["answer", "text"])), told(10, text(1)), over(10))
    assert broken(*late) == set()
    assert broken(*late, **SHARED) == set()


@pytest.mark.parametrize(("answered_s", "is_late"), [(54, False), (65, True)])
def test_the_time_of_a_request_runs_once_somebody_has_signed_in(answered_s: float, is_late: bool) -> None:
    back = [(50.0, "person", "has come back", {"server": "s0", "status": 200})]
    parts = (opened(), asked(1, call(1)), back, told(answered_s, text(1)), over(66))
    assert ("in-time" in broken(*parts, options={"request_timeout_s": 5.0})) is is_late
