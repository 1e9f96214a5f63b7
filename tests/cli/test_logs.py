"""A log that never waits for its reader."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.cli.logs import (
    ALIKE,
    LINE,
    LINE_BYTES,
    LINE_OF_MANY,
    THE_SAME,
    WHILE_S,
    Flood,
    OneLine,
    PatientHandler,
    Whose,
)
from dragoman.cli.stderr import PatientWriter
from dragoman.core.label import LABEL


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    yield ends
    for fd in ends:
        with contextlib.suppress(OSError):
            os.close(fd)


def handler_on(fd: int) -> PatientHandler:
    return PatientHandler(PatientWriter(fd).write, OneLine(LINE))


def a_record(text: str) -> logging.LogRecord:
    return logging.LogRecord("dragoman.x", logging.WARNING, "", 0, text, (), None)


def test_a_line_says_level_place_and_text(pipe: tuple[int, int]) -> None:
    handler_on(pipe[1]).emit(a_record("lost: é \ud800"))
    assert os.read(pipe[0], 999) == "WARNING dragoman.x: lost: é \\ud800\n".encode()


def test_what_peers_say_makes_no_other_line(pipe: tuple[int, int]) -> None:
    handler_on(pipe[1]).emit(a_record("GET /\nERROR dragoman: all is lost \x1b[31m\u2028\n"))
    assert os.read(pipe[0], 999) == b"WARNING dragoman.x: GET /\\nERROR dragoman: all is lost \\x1b[31m\\u2028\n"


def test_lines_for_which_there_is_no_room_are_counted(pipe: tuple[int, int]) -> None:
    handler = handler_on(pipe[1])
    os.set_blocking(pipe[0], False)
    for _ in range(1000):
        handler.emit(a_record("x" * 500))
    kept = os.read(pipe[0], 10_000_000).count(b"\n")
    handler.emit(a_record("again"))
    assert os.read(pipe[0], 9999) == b"(%d lines left out) WARNING dragoman.x: again\n" % (1000 - kept)


def test_a_long_line_is_cut(pipe: tuple[int, int]) -> None:
    handler_on(pipe[1]).emit(a_record("x" * 9999))
    line = os.read(pipe[0], 9999)
    assert len(line) == LINE_BYTES
    assert line.endswith(b"x...\n")


def test_nobody_there_is_no_reason_to_fail(pipe: tuple[int, int]) -> None:
    handler = handler_on(pipe[1])
    os.close(pipe[0])
    handler.emit(a_record("anyone?"))
    os.close(pipe[1])
    handler.emit(a_record("anyone?"))


def test_a_file_takes_every_line(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        handler_on(file.fileno()).emit(a_record("kept"))
    assert (tmp_path / "log").read_bytes() == b"WARNING dragoman.x: kept\n"


def test_the_end_of_a_long_trace_is_kept(pipe: tuple[int, int]) -> None:
    record = a_record("x" * 9999)
    record.exc_info = (ValueError, ValueError("what went wrong"), None)
    handler_on(pipe[1]).emit(record)
    line = os.read(pipe[0], 9999)
    assert len(line) <= LINE_BYTES
    assert line.endswith(b"ValueError: what went wrong\n")


def test_among_many_sessions_a_line_says_when_and_whose(pipe: tuple[int, int]) -> None:
    handler = PatientHandler(PatientWriter(pipe[1]).write, OneLine(LINE_OF_MANY, "%Y"))
    handler.addFilter(Whose())
    token = LABEL.set("session 3 of ada")
    handler.handle(a_record("lost"))
    LABEL.reset(token)
    handler.handle(a_record("found"))
    said = os.read(pipe[0], 999).decode()
    assert re.fullmatch(
        r"\d{4} WARNING dragoman\.x \[session 3 of ada\]: lost\n\d{4} WARNING dragoman\.x: found\n", said
    )


def records(count: int, level: int = logging.WARNING) -> list[logging.LogRecord]:
    return [logging.LogRecord("dragoman.x", level, "", 0, "no frame: %s", (n,), None) for n in range(count)]


def test_of_very_many_alike_warnings_some_are_written_and_the_others_counted() -> None:
    now = 0.0
    flood = Flood(lambda: now)
    written = [record.getMessage() for record in records(1000) if flood.filter(record)]
    assert written[0] == "no frame: 0"
    assert written[-1] == f"no frame: {ALIKE - 1} (more like this is left out for {WHILE_S:g} s)"
    assert len(written) == ALIKE
    now = WHILE_S
    (later,) = [record for record in records(1) if flood.filter(record)]
    assert later.getMessage() == f"no frame: 0 ({1000 - ALIKE} more like this left out before)"


def test_requests_that_all_fail_for_one_reason_are_summed_up() -> None:
    now = 0.0
    flood = Flood(lambda: now)

    def failed(count: int, reason: str) -> list[str]:
        made = [
            logging.LogRecord("dragoman.x", logging.WARNING, "", 0, "request %d failed: %s", (number, reason), None)
            for number in range(count)
        ]
        for record in made:
            record.same = reason
        return [record.getMessage() for record in made if flood.filter(record)]

    assert len(failed(100, "refused")) == THE_SAME
    assert failed(1, "timed out") == ["request 0 failed: timed out"]
    now = WHILE_S
    left = 100 - THE_SAME
    assert failed(1, "refused") == [f"request 0 failed: refused ({left} more like this left out before)"]


def test_a_flood_of_one_kind_keeps_no_other_kind_out() -> None:
    flood = Flood(lambda: 0.0)
    for record in records(1000):
        flood.filter(record)
    assert flood.filter(a_record("all is lost"))


def test_who_asks_for_details_gets_all_of_them() -> None:
    flood = Flood(lambda: 0.0)
    assert all(flood.filter(record) for record in records(1000, logging.INFO))


def test_kinds_without_end_are_not_kept() -> None:
    flood = Flood(lambda: 0.0)
    assert all(flood.filter(a_record(f"kind {number}")) for number in range(5000))
    assert len(flood._kinds) <= 1000
