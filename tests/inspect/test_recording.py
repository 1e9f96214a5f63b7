"""What a viewer keeps: the last lines, up to so many bytes, and little of large ones in the list."""

from __future__ import annotations

import asyncio
import json

from dragoman.inspect.recording import BATCH_BYTES, LARGE_BYTES, Recording
from dragoman.inspect.site import LineSource
from dragoman.inspect.viewer import FileLines


def numbers(lines: list[bytes]) -> list[int]:
    return [json.loads(line)["n"] for line in lines]


def test_lines_are_numbered_and_read_from_any_on() -> None:
    recording = Recording()
    for word in "abc":
        recording.add(b'{"word":"%b"}\n' % word.encode())
    lines, following = recording.read(2)
    assert [json.loads(line) for line in lines] == [{"n": 2, "word": "b"}, {"n": 3, "word": "c"}]
    assert following == 4


def test_a_number_that_nothing_has_yet_is_waited_for() -> None:
    recording = Recording()
    recording.add(b'{"word":"a"}')
    for number in (2, 10**30):  # as a browser may ask for it
        assert recording.read(number) == ([], number)


def test_the_oldest_go_when_there_is_too_much() -> None:
    recording = Recording(most_bytes=10_000)
    for number in range(100):
        recording.add(b'{"number":%d,"text":"%b"}' % (number, b"x" * 500))
    lines, following = recording.read(1)
    assert following == 101
    assert recording.first > 80
    assert numbers(lines) == list(range(recording.first, 101))
    assert recording.find(1) is None


def test_one_line_that_is_larger_than_everything_is_kept() -> None:
    recording = Recording(most_bytes=1000)
    recording.add(b'{"text":"%b"}' % (b"x" * 5000))
    assert recording.find(1) is not None


def test_a_large_line_is_short_in_the_list_and_whole_by_its_number() -> None:
    recording = Recording()
    frame = {"long": "x" * LARGE_BYTES, "many": list(range(10_000)), "deep": json.loads("[" * 90 + "]" * 90)}
    line = json.dumps({"direction": "sent", "frame": frame}).encode()
    recording.add(line)
    (short,), _ = recording.read(1)
    assert len(short) < 3000
    assert json.loads(short)["large"] == len(line)
    assert recording.find(1) == line


def test_a_batch_has_its_size_and_the_rest_comes_next() -> None:
    recording = Recording()
    for _ in range(100):
        recording.add(b'{"text":"%b"}' % (b"x" * (LARGE_BYTES // 2)))
    lines, following = recording.read(1)
    assert 1 < len(lines) < BATCH_BYTES // (LARGE_BYTES // 2) + 2
    assert numbers(recording.read(following)[0])[0] == following


def test_a_browser_is_sent_what_comes_and_how_many_it_has_missed() -> None:
    async def read() -> tuple[bytes, bytes, bytes]:
        recording = Recording(most_bytes=2000)
        for _ in range(20):
            recording.add(b'{"text":"%b"}' % (b"x" * 300))
        source = LineSource(recording, 1)
        first = source.take_part()[0]
        recording.tell_status({"ready": True})
        recording.add(b'{"text":"last"}')
        assert source.wake.is_set()
        second = source.take_part()[0]
        recording.end()
        return first, second, source.take_part()[0]

    first, second, third = asyncio.run(read())
    assert first.startswith(b"event: missing\ndata: 1")
    assert b"event: lines" in first
    assert b'"text":"last"' in second
    assert b'event: status\ndata: {"ready":true}' in second
    assert third == b"event: over\ndata: {}\n\n"


def test_lines_come_whole_however_they_are_cut_and_one_without_an_end_does_not_fill_the_memory() -> None:
    text = b"one\n\ntwo and more\nthree"
    for size in range(1, len(text)):
        lines = FileLines()
        found = [line for at in range(0, len(text), size) for line in lines.take(text[at : at + size])]
        assert found == [b"one", b"", b"two and more"]
        assert lines.where == len(text)
    lines, piece = FileLines(most_bytes=1000), b"x" * 300
    assert [line for _ in range(1000) for line in lines.take(piece)] == []
    (long, then) = lines.take(b"\nthen\n")
    assert (len(long) < 2000, then) == (True, b"then")
