"""Pairing lines: who sent what, what arrived, who answered instead."""

from __future__ import annotations

import json
from typing import Any

from dragoman.core.commands import Side
from dragoman.core.envelope import Frame
from dragoman.core.translate import Crossing
from dragoman.demo.crossings import DemoCrossing, Line, Record, pair_lines, scenes
from dragoman_spec import Loss

OLD, NEW = "2024-11-05", "2025-11-25"
REQUEST = {"id": 1, "method": "tools/list"}
LOSS = Loss("/result/title", "dropped", 5)


def sent(side: Side, frame: Any) -> Line:
    return Line(side, True, json.dumps(frame).encode() + b"\n")


def got(side: Side, frame: Any) -> Line:
    return Line(side, False, json.dumps(frame).encode() + b"\n")


def lossy(side: Side, frame: Any) -> Crossing:
    before = Frame(json.dumps(frame).encode(), "result", b"1", None)
    return Crossing(side, NEW, OLD, "tools/list", before, before, (LOSS,))


def crossing(*lines: Line, translations: tuple[Crossing, ...] = ()) -> DemoCrossing:
    return pair_lines(Record(OLD, NEW, list(lines), list(translations)))[0]


def test_frame_that_arrives_as_it_was_sent_has_the_same_bytes() -> None:
    assert crossing(sent(Side.CLIENT, REQUEST), got(Side.SERVER, REQUEST)) == DemoCrossing(
        Side.CLIENT, REQUEST, REQUEST, True, (), None
    )


def test_frame_that_arrives_changed_has_its_losses() -> None:
    before, after = {"id": 1, "result": {"title": "Add"}}, {"id": 1, "result": {}}
    found = crossing(sent(Side.SERVER, before), got(Side.CLIENT, after), translations=(lossy(Side.SERVER, before),))
    assert found == DemoCrossing(Side.SERVER, before, after, False, (LOSS,), None)


def test_losses_of_the_other_direction_are_not_taken() -> None:
    other_way = lossy(Side.CLIENT, REQUEST)
    assert crossing(sent(Side.SERVER, REQUEST), got(Side.CLIENT, REQUEST), translations=(other_way,)).losses == ()


def test_request_that_does_not_arrive_has_the_answer_of_the_proxy() -> None:
    refusal = {"id": 1, "error": {"code": -32601, "message": "no"}}
    found = crossing(sent(Side.SERVER, REQUEST), got(Side.SERVER, refusal))
    assert (found.after, found.answer) == (None, refusal)


def test_result_that_arrives_as_an_error_is_paired_with_it() -> None:
    before, after = {"id": 1, "result": {}}, {"id": 1, "error": {"code": -32603, "message": "no"}}
    assert crossing(sent(Side.CLIENT, before), got(Side.SERVER, after)).after == after


def test_ids_of_other_types_are_not_confused() -> None:
    assert crossing(sent(Side.CLIENT, REQUEST), got(Side.SERVER, {**REQUEST, "id": "1"})).after is None


def test_notification_that_is_swallowed_has_no_answer() -> None:
    found = crossing(sent(Side.SERVER, {"method": "notifications/tasks/status"}))
    assert (found.after, found.answer) == (None, None)


def test_scenes_begin_with_the_requests_of_the_client() -> None:
    question = {"id": "ask-1", "method": "ping"}
    lines = [sent(Side.CLIENT, REQUEST), sent(Side.SERVER, question), sent(Side.CLIENT, {**REQUEST, "id": 2})]
    told = [[one.before for one in scene] for scene in scenes(pair_lines(Record(OLD, NEW, lines)))]
    assert told == [[REQUEST, question], [{**REQUEST, "id": 2}]]
