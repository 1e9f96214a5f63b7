"""A stream becomes lines."""

from __future__ import annotations

import pytest

from dragoman.core.lines import LineSplitter, Overlong, show

LINES = [b"one\n", b"\n", b'{"a":1}\r\n', b"x" * 50 + b"\n", b"last\n"]


WHOLE = b"".join(LINES)


@pytest.mark.parametrize("tail", [b"", b"rest"])
def test_lines_come_out_whole_however_they_are_fed(tail: bytes) -> None:
    for at in range(len(WHOLE) + 1):
        splitter = LineSplitter()
        lines = splitter.feed(WHOLE[:at]) + splitter.feed(WHOLE[at:] + tail)
        assert lines == LINES
        assert splitter.finish() == ([tail + b"\n"] if tail else [])


def test_lines_come_out_whole_fed_byte_by_byte() -> None:
    splitter = LineSplitter()
    assert [line for i in range(len(WHOLE)) for line in splitter.feed(WHOLE[i : i + 1])] == LINES


def test_one_whole_line_is_handed_on_without_a_copy() -> None:
    line = b"x" * 100 + b"\n"
    assert LineSplitter().feed(line)[0] is line


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_a_line_over_the_limit_is_not_kept(size: int) -> None:
    splitter = LineSplitter(limit_bytes=20)
    data = b"a" * 19 + b"\n" + b"b" * 500 + b"\n" + b"c\n"
    lines = [line for i in range(0, len(data), size) for line in splitter.feed(data[i : i + size])]
    assert lines[0] == b"a" * 19 + b"\n"
    assert isinstance(lines[1], Overlong)
    assert set(lines[1].head) == {ord("b")} or lines[1].head.endswith(b"\n")
    assert lines[2] == b"c\n"


def test_a_single_read_over_the_limit_is_refused() -> None:
    assert isinstance(LineSplitter(limit_bytes=20).feed(b"b" * 21 + b"\n")[0], Overlong)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"hello\r\n", "'hello'"),
        ("\x1b[2J\u2028é\n".encode(), r"'\x1b[2J\u2028\xe9'"),
        (b"\xff\xfe\n", r"'\\xff\\xfe'"),
        (b"x" * 121 + b"\n", f"'{'x' * 120}'..."),
        (Overlong(b"head", 10), "'head'..."),
    ],
)
def test_a_line_is_shown_shortened_and_escaped(line: bytes | Overlong, shown: str) -> None:
    assert show(line) == shown
