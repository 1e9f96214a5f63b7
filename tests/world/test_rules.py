"""Rules: each is broken by a conversation that breaks it, and by nothing else in a world where all is well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.world.peers.words import error, notification, question, request, result
from tests.world.plan import ClientPlan, Plan, ServerPlan
from tests.world.promises import every_server_is_let_go
from tests.world.record import Event, Record
from tests.world.rules import RULES, Talk, judge
from tests.world.situations import MARKS, all_steps, marks_of
from tests.world.system import System
from tests.world.talk import Asked

REVISION = "2025-11-25"
CALL = {"name": "s0_a", "arguments": {"secret": "secret-c0-0", "steps": [["answer", "text"]]}}
OPENS = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "c0", "version": "1"}}
OPENED = {"protocolVersion": REVISION, "capabilities": {}, "serverInfo": {"name": "s0", "version": "1"}}

Change = Callable[[list[tuple[str, str, Any]]], None]


def said(number: int) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"secret-c0-{number} #1 of s0.1"}]}


def conversation() -> list[tuple[str, str, Any]]:
    """Give a session with one call, in which a question is asked."""
    asks, params = question("sampling", "secret-c0-0 nonce-s0.1-1")
    answered = {"role": "assistant", "model": "c0", "content": {"type": "text", "text": "secret-c0-0 nonce-s0.1-1"}}
    return [
        ("c0", "says", request(1, "initialize", OPENS)),
        ("s0.1", "hears", request(1, "initialize", OPENS)),
        ("s0.1", "says", result(1, OPENED)),
        ("c0", "hears", result(1, OPENED)),
        ("c0", "says", request(2, "tools/call", CALL)),
        ("s0.1", "hears", request(2, "tools/call", CALL)),
        ("s0.1", "says", request(1, asks, params)),
        ("c0", "hears", request(1, asks, params)),
        ("c0", "says", result(1, answered)),
        ("s0.1", "hears", result(1, answered)),
        ("s0.1", "says", result(2, said(0))),
        ("c0", "hears", result(2, said(0))),
        ("c0", "leaves", None),
        ("s0.1", "ends", "it is over"),
    ]


def broken(events: list[tuple[str, str, Any]], **more: Any) -> set[str]:
    """Give the names of the rules that a conversation breaks."""
    plan = Plan("direct", 1, **more)
    plan.clients = [ClientPlan("c0", "ada", REVISION, ["sampling"]), ClientPlan("c1", "bob", REVISION)]
    plan.servers = [ServerPlan("s0", [REVISION])]
    record = Record(System("test"))
    record.revisions = {"c0": REVISION, "c1": REVISION, "s0.1": REVISION}
    for peer, what, frame in events:
        event = record.add(peer, what, frame)
        event.there = event.turn
    return {finding.rule for finding in judge(plan, Talk(record))}


def twice(events: list[tuple[str, str, Any]]) -> None:
    events.insert(12, ("c0", "hears", result(2, said(0))))


def without_answer(events: list[tuple[str, str, Any]]) -> None:
    del events[11]


def unasked(events: list[tuple[str, str, Any]]) -> None:
    events.insert(12, ("c0", "hears", result(9, {})))


def foreign(events: list[tuple[str, str, Any]]) -> None:
    events.insert(12, ("c1", "hears", notification("notifications/message", {"level": "info", "data": "secret-c0-0"})))


def mixed_up(events: list[tuple[str, str, Any]]) -> None:
    other = {"role": "assistant", "model": "c0", "content": {"type": "text", "text": "secret-c0-0 nonce-s0.1-7"}}
    events[9] = ("s0.1", "hears", result(1, other))


def again_under_one_id(events: list[tuple[str, str, Any]]) -> None:
    events.insert(8, ("c0", "hears", request(1, "roots/list")))


def invalid(events: list[tuple[str, str, Any]]) -> None:
    events[11] = ("c0", "hears", result(2, {"content": [{"type": "text", "words": "secret-c0-0"}]}))


def out_of_order(events: list[tuple[str, str, Any]]) -> None:
    told = [
        notification("notifications/message", {"level": "info", "data": f"secret-c0-0 #{n} of s0.1"}) for n in (3, 2)
    ]
    events[8:8] = [("c0", "hears", frame) for frame in told]


def called_twice(events: list[tuple[str, str, Any]]) -> None:
    events.insert(10, ("s0.1", "hears", request(3, "tools/call", CALL)))


def too_early(events: list[tuple[str, str, Any]]) -> None:
    events.insert(1, ("s0.1", "hears", request(7, "tools/list")))


def changed(events: list[tuple[str, str, Any]]) -> None:
    events[11] = ("c0", "hears", result(2, {**said(0), "isError": True}))


def failed(events: list[tuple[str, str, Any]]) -> None:
    events[11] = ("c0", "hears", error(2, -32000, "no"))


def other_revision(events: list[tuple[str, str, Any]]) -> None:
    events[3] = ("c0", "hears", result(1, {**OPENED, "protocolVersion": "2025-06-18"}))


def never_ends(events: list[tuple[str, str, Any]]) -> None:
    del events[13]


BREAKS: dict[str, Change] = {
    "one-answer": twice,
    "asked-for": unasked,
    "own-secrets": foreign,
    "own-answers": mixed_up,
    "ids": again_under_one_id,
    "valid": invalid,
    "order": out_of_order,
    "once": called_twice,
    "handshake": too_early,
    "same": changed,
    "calm": failed,
    "revision": other_revision,
    "goes": never_ends,
}


def test_a_conversation_in_which_all_is_well_breaks_no_rule() -> None:
    assert broken(conversation()) == set()


@pytest.mark.parametrize(("rule", "change"), BREAKS.items(), ids=BREAKS)
def test_a_rule_notices_what_breaks_it(rule: str, change: Change) -> None:
    events = conversation()
    change(events)
    assert rule in broken(events)
    assert rule in RULES


def test_a_function_is_a_rule_by_its_name() -> None:
    assert RULES["goes"] is every_server_is_let_go


def test_an_answer_that_does_not_come_is_noticed() -> None:
    events = conversation()
    without_answer(events)
    assert "one-answer" in broken(events)


def test_marks_see_what_happened_and_nothing_else() -> None:
    record = Record(System("test"))
    for peer, what, frame in conversation():
        record.add(peer, what, frame)
    assert marks_of(Plan("direct", 1), Talk(record)) == ["a question is answered"]
    assert len(MARKS) >= 18


def test_every_step_of_both_edges_is_in_the_table() -> None:
    steps = all_steps()
    assert ("client", "ready", "client closed") in steps
    assert ("server", "opening", "accepted") in steps
    assert len(steps) == len(set(steps))


@pytest.mark.parametrize(("via", "is_first"), [("array 3", True), ("array 4", False), ("", False)])
def test_of_two_questions_of_one_id_in_one_array_the_first_is_answered_first(via: str, is_first: bool) -> None:
    """What comes in two arrays at one moment was taken back in between, or would have been refused."""
    first, second = (Event(n, 0.0, "s0.1", "says", {"id": 1}, 148, there) for n, there in enumerate(("array 3", via)))
    answer = Event(2, 0.1, "s0.1", "hears", {"id": 1}, 190, "")
    assert Asked(second, [], before=Asked(first, [])).is_younger_than(answer) is is_first


@pytest.mark.parametrize(("number", "is_first"), [(1, True), (2, False)])
def test_an_answer_with_the_number_of_the_second_of_an_array_is_to_that(number: int, is_first: bool) -> None:
    frames = ({"id": 1}, {"id": 1, "params": "nonce-s0.1-2"})
    first, second = (Event(n, 0.0, "s0.1", "says", frame, 148, "array 3") for n, frame in enumerate(frames))
    answer = Event(2, 0.1, "s0.1", "hears", {"id": 1, "result": f"nonce-s0.1-{number}"}, 190, "")
    assert Asked(second, [], before=Asked(first, [])).is_younger_than(answer) is is_first
