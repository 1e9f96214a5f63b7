"""The event parser: the rules of the format, and that no split of the bytes makes a difference."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.lines import Overlong
from dragoman.transports.upstream.events import EventParser, SseEvent, only_data

LIMIT = 64


def parse(*chunks: bytes, limit_bytes: int = LIMIT) -> tuple[list[SseEvent | Overlong], str | None, float | None]:
    parser = EventParser(limit_bytes)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events, parser.last_id, parser.retry_s


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [SseEvent(b"a")]),
        (b"data:a\n\n", [SseEvent(b"a")]),
        (b"data:  a\n\n", [SseEvent(b" a")]),
        (b"data: a\r\n\r\n", [SseEvent(b"a")]),
        (b"data: a\r\r", [SseEvent(b"a")]),
        (b"data: a\ndata: b\n\n", [SseEvent(b"a\nb")]),
        (b"data\n\n", [SseEvent(b"")]),
        (b"data\ndata\n\n", [SseEvent(b"\n")]),
        (b"\xef\xbb\xbfdata: a\n\n", [SseEvent(b"a")]),
        (b"event: endpoint\ndata: /m\n\n", [SseEvent(b"/m", b"endpoint")]),
        (b"event: x\n\ndata: a\n\n", [SseEvent(b"a")]),
        (b": comment\n\n\n\n", []),
        (b"banner\nfoo: bar\n\n", []),
        (b"data: half", []),
        (b"data: half\n", []),
        (b"data: \xff\n\n", [SseEvent(b"\xff")]),
        (b"data: a\x00b\n\n", [SseEvent(b"a\x00b")]),
        (b"data: " + b"x" * LIMIT + b"\n\n", [SseEvent(b"x" * LIMIT)]),
        (b"data: " + b"x" * (LIMIT + 1) + b"\n\ndata: a\n\n", [Overlong(b"x" * (LIMIT + 1), LIMIT), SseEvent(b"a")]),
        (b"data: " + b"x" * 40 + b"\ndata: " + b"y" * 40 + b"\n\n", [Overlong(b"x" * 40 + b"\n" + b"y" * 40, LIMIT)]),
        (b"n" * 5000 + b"\ndata: a\n\n", [SseEvent(b"a")]),
    ],
)
def test_a_stream_gives_these_events(stream: bytes, expected: list[SseEvent | Overlong]) -> None:
    assert parse(stream)[0] == expected


@pytest.mark.parametrize(
    ("stream", "last_id"),
    [
        (b"id: 1\ndata: a\n\n", "1"),
        (b"id: 1\n\n", "1"),
        (b"id: 1\ndata\n\nid: 2\ndata", "1"),
        (b"id: 1\n\ndata: a\n\n", "1"),
        (b"id: 1\n\nid\n\n", None),
        (b"id: 1\n\nid: a\x00b\n\n", "1"),
        (b"id: 1\n\nid: " + b"x" * 5000 + b"\n\n", "1"),
        (b"id: \xc3\xa9\n\n", "é"),
        (b"id: \xff\n\n", None),
    ],
)
def test_the_last_id_is_that_of_the_last_event_that_has_one(stream: bytes, last_id: str | None) -> None:
    assert parse(stream, limit_bytes=10_000)[1] == last_id


@pytest.mark.parametrize(
    ("stream", "retry_s"),
    [
        (b"retry: 1500\n", 1.5),
        (b"retry: 0\n", 0),
        (b"retry: 0012345678\n", 12345.678),
        (b"retry: 86400000\n", 86400),
        (b"retry: 1000000000\n", 86400),
        (b"retry: 1234567890\n", 86400),
        (b"retry: " + b"9" * 7000 + b"\n", 86400),
        (b"retry: soon\n", None),
        (b"retry: -1\n", None),
        (b"retry\n", None),
    ],
)
def test_retry_counts_at_once_and_only_in_digits(stream: bytes, retry_s: float | None) -> None:
    assert parse(stream)[2] == retry_s


def test_an_event_of_very_many_lines_costs_its_bytes() -> None:
    parser = EventParser(10_000_000)
    chunk = b"data:\ndata: x\n" * 1000
    tracemalloc.start()
    for _ in range(100):
        assert not parser.feed(chunk)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert parser.pending == 299_999
    assert kept < 400_000
    assert peak < 800_000
    assert parser.feed(b"\n") == [SseEvent((b"\nx\n" * 100_000)[:-1])]
    assert not parser.pending


@pytest.mark.parametrize("beginning", [b":", b"event: ", b"id: ", b"", b"datas: ", b"\xef\xbb\xbf:"])
def test_a_line_without_end_that_is_no_data_is_not_kept(beginning: bytes) -> None:
    parser = EventParser(10_000_000)
    parser.feed(beginning)
    for _ in range(100):
        parser.feed(b"x" * 10_000)
        assert parser.pending < 20_000
    assert parser.feed(b"\n\ndata: a\n\n") == [SseEvent(b"a")]


def test_a_line_of_data_without_end_is_kept_only_as_long_as_the_event_may_be() -> None:
    parser = EventParser(100_000)
    parser.feed(b"data: " + b"x" * 60_000 + b"\ndata: ")
    for _ in range(100):
        parser.feed(b"x" * 10_000)
        assert parser.pending < 110_000
    assert parser.feed(b"\n\n") == [Overlong(b"x" * 512, 100_000)]


def test_a_name_that_is_too_long_is_no_name_that_is_known() -> None:
    assert parse(b"event: " + b"x" * 10_000 + b"\ndata: a\n\n")[0] == [SseEvent(b"a", b"x" * 512)]


def test_a_new_connection_forgets_half_an_event_and_keeps_the_id() -> None:
    parser = EventParser(LIMIT)
    parser.feed(b"id: 4\n\ndata: ha")
    parser.restart()
    assert parser.feed(b"data: whole\n\n") == [SseEvent(b"whole")]
    assert parser.last_id == "4"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("name", [b"", b"event: message\n"])
@pytest.mark.parametrize("before", [b"data:", b"data: "])
def test_a_stream_that_is_one_message_is_read_at_once(end: bytes, name: bytes, before: bytes) -> None:
    stream = (name + before + b'{"a": 1}\n\n').replace(b"\n", end)
    assert only_data(stream).strip() == b'{"a": 1}'


@pytest.mark.parametrize(
    "stream", [b"", b"data: {}\n", b"id: 1\ndata: {}\n\n", b": hello\n\ndata: {}\n\n", b"event: x\ndata: {}\n\n"]
)
def test_any_other_stream_is_left_to_the_parser(stream: bytes) -> None:
    assert only_data(stream) == b""


@given(
    st.lists(st.sampled_from([b"data: ", b"{}", b"\n", b"\r\n", b"event: message\n", b"id: 1\n", b"\r"])).map(b"".join)
)
def test_what_is_read_at_once_is_what_the_parser_reads(stream: bytes) -> None:
    data = only_data(stream).strip()
    if data.startswith(b"{") and not {b"\n", b"\r"} & {data[at : at + 1] for at in range(len(data))}:
        (event,), last_id, _ = parse(stream)
        assert isinstance(event, SseEvent)
        assert event.data.strip() == data
        assert event.name in (b"", b"message")
        assert last_id is None


PIECES = [b"\x00", b"\xff", b"y" * 50, b"z" * 5000, b"data: z\n\n", b"data: "]
FRAGMENTS = st.sampled_from(
    [
        *PIECES,
        b"data:",
        b" ",
        b"a",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"id: 7\n",
        b"event: x",
        b"retry: 5",
        b":",
        b"\xef\xbb\xbf",
    ]
)


@given(st.lists(FRAGMENTS | st.binary(max_size=8), max_size=30).map(b"".join), st.data())
def test_any_split_gives_the_same_events(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    whole = parse(stream)
    assert parse(*chunks) == whole
    assert parse(*(stream[i : i + 1] for i in range(len(stream)))) == whole
