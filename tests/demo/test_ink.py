"""Ink: colour where it is wanted, lines that fit."""

from __future__ import annotations

import io

import pytest

from dragoman.demo.ink import Ink, choose_ink, fit_encoding
from dragoman.demo.shorten import Span, Tone


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_pipe_gets_text_of_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    assert choose_ink(io.StringIO(), False) == Ink(colour=False, width=100)


@pytest.mark.parametrize(("columns", "width"), [("70", 70), ("300", 100), ("20", 60)])
def test_width_is_that_of_the_terminal_within_bounds(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert choose_ink(Terminal(), True).width == width


def test_lines_end_between_members() -> None:
    assert list(Ink().lines([Span('{"a":1,"b":2}')], 8)) == ['{"a":1,', '"b":2}']


def test_lines_end_before_an_object_rather_than_in_it() -> None:
    assert list(Ink().lines([Span('[{"a":1,"b":2},{"a":3,"b":4}]')], 22)) == ['[{"a":1,"b":2},', '{"a":3,"b":4}]']


def test_text_without_an_end_is_cut() -> None:
    assert list(Ink().lines([Span("x" * 25)], 10)) == ["x" * 10, "x" * 10, "x" * 5]


def test_words_stay_whole_and_leave_no_space_at_the_end() -> None:
    assert list(Ink().lines([Span("aaaa bbbb cccc")], 10)) == ["aaaa bbbb", "cccc"]


def test_each_line_is_painted_for_itself() -> None:
    lines = list(Ink(colour=True).lines([Span("{"), Span('"a":1,"b":2', Tone.GONE), Span("}")], 8))
    assert lines == ['{\x1b[31m"a":1,\x1b[0m', '\x1b[31m"b":2\x1b[0m}']


def test_signs_that_a_stream_cannot_write_are_replaced() -> None:
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert fit_encoding("a → b…é", ascii_only) == "a -> b...\\xe9"
