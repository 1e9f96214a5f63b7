"""Frames on a byte stream, and the longest line, which is up to each transport."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import pytest

from dragoman.core.envelope import Frame, Malformed
from dragoman.core.lines import Overlong
from dragoman.transports.lines import LineFramer, join_lines
from dragoman.transports.memory import connect_pair
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildTransport, StandardStreams
from tests.support.frames import bytes_of
from tests.transports.recorder import Recorder

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
READY = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
LONG = b'{"jsonrpc":"2.0","id":2,"method":"x","params":{"x":"' + b"y" * 500 + b'"}}\n'


@pytest.mark.parametrize("size", [1, 7, 40, 1000])
def test_any_split_of_a_stream_gives_the_same_frames(size: int) -> None:
    framer, data = LineFramer(), PING + b"\n \r\n" + b"nonsense\n" + READY
    frames = [frame for start in range(0, len(data), size) for frame in framer.feed(data[start : start + size])]
    assert [type(frame) for frame in frames] == [Frame, Malformed, Frame]
    assert bytes_of(frames) == PING + b"nonsense\n" + READY
    assert framer.finish() == []


def tell(frame: Frame | Malformed) -> tuple[object, ...]:
    """What it is; how much is kept of a line that is too long depends on how it came."""
    return tuple(frame) if isinstance(frame, Frame) else tuple(frame)[:2]


@pytest.mark.parametrize("limit_bytes", [len(PING) - 1, len(PING), 10_000])
@pytest.mark.parametrize("checks_texts", [False, True])
def test_a_line_that_comes_alone_is_read_as_it_is_among_others(limit_bytes: int, checks_texts: bool) -> None:
    two_texts = b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}{"b":{"c":2}}\n'
    for line in (PING, READY, two_texts, b"nonsense\n", b"\n", PING + PING, PING[:-1], LONG):
        alone, parts = (LineFramer(limit_bytes, checks_texts) for _ in range(2))
        pieces = [line[start : start + 5] for start in range(0, len(line), 5)]
        found, expected = alone.feed(line), [frame for piece in pieces for frame in parts.feed(piece)]
        assert list(map(tell, found)) == list(map(tell, expected))
        assert alone.finish() == parts.finish()


def test_a_line_that_ends_what_was_kept_is_not_taken_for_one_alone() -> None:
    framer = LineFramer()
    assert framer.feed(b"nonsense") == []
    [found] = framer.feed(PING)
    assert isinstance(found, Malformed)
    assert found.line == b"nonsense" + PING


def test_a_last_line_without_line_feed_is_a_frame_if_it_is_whole() -> None:
    whole, cut = LineFramer(), LineFramer()
    assert whole.feed(PING[:-1]) == cut.feed(LONG[:-2]) == []
    assert whole.finish() == [Frame(PING, "request", b"1", "ping")]
    [found] = cut.finish()
    assert isinstance(found, Malformed)
    assert (found.key, found.line) == (b"2", LONG[:-2] + b"\n")


def test_frames_are_joined_as_they_came() -> None:
    frames = [Frame(PING, "request", b"1", "ping"), Frame(READY, "notification", None, "notifications/initialized")]
    assert join_lines(frames) == PING + READY
    assert join_lines(frames[:1]) is PING


def check(recorder: Recorder) -> None:
    """Of a line that is too long its beginning is told, and the next one is read."""
    assert bytes(recorder.data) == LONG[:256] + PING


def test_a_child_may_not_write_longer_lines_than_its_transport_takes() -> None:
    async def main() -> None:
        code = f"import sys; sys.stdout.buffer.write({LONG + PING[:-1]!r})"
        child = ChildTransport(spawn([sys.executable, "-c", code]), limit_bytes=300)
        recorder = Recorder()
        child.start(recorder)
        await recorder.until(lambda: recorder.end is not None)
        check(recorder)
        await child.close()

    asyncio.run(main())


def test_a_client_may_not_write_longer_lines_than_our_streams_take() -> None:
    async def main() -> None:
        (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
        streams, recorder = StandardStreams(in_read, out_write, 300), Recorder()
        streams.start(recorder)
        os.write(in_write, LONG + PING[:-1])
        os.close(in_write)
        await recorder.until(lambda: recorder.end is not None)
        check(recorder)
        await streams.close()
        os.close(out_read)

    asyncio.run(main())


def test_both_ends_in_memory_may_speak_in_frames() -> None:
    async def main() -> None:
        left, right = connect_pair(limit_bytes=300)
        one, other = Recorder(), Recorder()
        left.start(one)
        right.start(other)
        left.write(LONG)
        left.send(LineFramer().feed(PING))  # type: ignore[arg-type]
        await other.until(lambda: other.reads == 2)
        check(other)
        right.write(READY[:-1])
        await right.close()
        await one.until(lambda: one.end is not None)
        assert bytes(one.data) == READY

    asyncio.run(main())


def test_a_line_that_was_too_long_says_so() -> None:
    [found] = LineFramer(300).feed(LONG)
    assert isinstance(found, Malformed)
    assert found.key == b"2"
    assert found.line == Overlong(LONG[:256], 300)


def an_answer(*values: object, between: str = "") -> bytes:
    return between.join(json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}) for value in values).encode() + b"\n"


@pytest.mark.parametrize("between", ["", " ", "\t", "5", "[{}]", '"}"', '","', '"]"', ' "{" , '])
@pytest.mark.parametrize("size", [1, 5_000, 500_000])
def test_two_texts_on_one_line_are_no_frame_where_texts_are_checked(between: str, size: int) -> None:
    line = an_answer({"a": "x" * size}, {}, between=between)
    [found] = LineFramer(checks_texts=True).feed(line)
    assert isinstance(found, Malformed)
    assert (found.key, found.is_response, found.reason) == (b"1", True, "the line is not one JSON text")


@pytest.mark.parametrize(
    "value",
    [
        {"a": [{}, {"b": [[], [{}]]}, 5], "c": {}},
        {"a": "}{ }{" * 1_000, "b": [{}]},
        {"a": ["}{", {"\\": '"}{"'}] * 500},
        {"a": "}{" * 200_000},
        {"n": [10**400, 1.0] * 300},
    ],
)
def test_one_text_is_a_frame_whatever_is_in_its_strings(value: object) -> None:
    line = an_answer(value)
    [found] = LineFramer(checks_texts=True).feed(line)
    assert isinstance(found, Frame)
    assert found.raw == line
