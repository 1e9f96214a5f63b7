"""Short JSON: what fits is whole, what differs stays."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.demo.shorten import Span, Tone, compare, shorten

LONG = "x" * 200


@pytest.mark.parametrize(
    ("value", "room", "short"),
    [
        ({"jsonrpc": "2.0", "id": 1, "method": "ping"}, 80, '{"id":1,"method":"ping"}'),
        ({"a": LONG}, 30, '{"a":"xxxxxxxxxxxxxxxxxxx…"}'),
        ({"a": [1, 2, 3], "b": 2}, 12, '{"a":[…],…}'),
        ([1, 22, 333], 8, "[1,22,…]"),
        ([], 8, "[]"),
        ({"a": {}}, 8, '{"a":{}}'),
        ({"é": "→"}, 80, '{"é":"→"}'),
    ],
)
def test_shorten_spells_what_there_is_room_for(value: Any, room: int, short: str) -> None:
    assert shorten(value, room) == short


@pytest.mark.parametrize("room", range(20, 120, 7))
def test_short_text_fits(room: int) -> None:
    frame = {"id": 1, "result": {"tools": [{"name": LONG, "inputSchema": {"type": "object"}}, {"name": "b"}] * 4}}
    assert len(shorten(frame, room)) <= room


def text(spans: list[Span], tone: Tone | None = None) -> str:
    return "".join(span.text for span in spans if tone in (None, span.tone))


def test_compare_marks_what_only_one_has() -> None:
    before, after = {"name": "add", "title": "Add"}, {"name": "add"}
    assert text(compare(before, after, Tone.GONE), Tone.GONE) == '"title":"Add"'


def test_compare_leaves_out_what_both_have_but_what_tells_them_apart() -> None:
    before = {"name": "add", "inputSchema": {}, "description": "", "title": "Add"}
    after = {"name": "add", "inputSchema": {}, "description": ""}
    assert text(compare(before, after, Tone.GONE)) == '{"name":"add",…,"title":"Add"}'


def test_compare_spells_a_block_of_another_type_whole() -> None:
    audio = {"type": "audio", "data": "UklG", "mimeType": "audio/wav"}
    spoken = {"type": "text", "text": "[Audio content: audio/wav]"}
    assert text(compare([spoken], [audio], Tone.NEW), Tone.NEW) == '{"type":"text","text":"[Audio content: audio/wav]"}'


def test_compare_finds_items_by_name_when_one_is_gone() -> None:
    tools = [{"name": name, "inputSchema": {}} for name in ("a", "b", "c")]
    before = text(compare(tools, [tools[0], tools[2]], Tone.GONE), Tone.GONE)
    assert before == '{"name":"b","inputSchema":{}}'


def test_compare_shortens_what_is_long_and_dropped() -> None:
    schema = {"type": "object", "properties": {"seconds": {"type": "integer", "minimum": 1}}, "required": ["seconds"]}
    assert text(compare({"outputSchema": schema}, {}, Tone.GONE)) == '{"outputSchema":{…}}'


def test_compare_marks_a_number_that_changed() -> None:
    assert compare({"a": 1}, {"a": 2}, Tone.NEW) == [Span("{"), Span('"a":'), Span("1", Tone.NEW), Span("}")]
