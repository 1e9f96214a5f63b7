"""Writing a trace: whole lines, in a file of one's own, and never at the cost of a session."""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.peek import peek
from dragoman.trace.lines import Noted, Where
from dragoman.trace.writer import LineWriter, open_target
from tests.proxy.conversation import notification
from tests.support.waiting import wait_until

PATIENCE_S = 60.0


def entry(text: str) -> Noted:
    frame = peek(json.dumps(notification("notifications/message", data=text)).encode() + b"\n")
    assert frame is not None
    return Noted(time.time(), Where("", 1, "client"), "received", frame)


def lines_of(data: bytes) -> list[Any]:
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def text_of(line: Any) -> str:
    text: str = line["frame"]["params"]["data"]
    return text


class Pipe:
    """A pipe whose reader takes nothing until it is told to."""

    def __init__(self, queue_bytes: int) -> None:
        self.read_fd, fd = os.pipe()
        self.writer = LineWriter(fd, "a pipe", queue_bytes)

    def read_all(self) -> bytes:
        with os.fdopen(self.read_fd, "rb") as reader:
            return reader.read()


def test_a_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    os.close(open_target(str(tmp_path / "trace")))
    assert stat.S_IMODE((tmp_path / "trace").stat().st_mode) == 0o600


def test_lines_are_appended_in_order(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    for session in range(2):
        writer = LineWriter(open_target(str(path)), "a file")
        for number in range(100):
            writer.put(entry(f"{session} {number}"))
        writer.close()
    expected = [f"{session} {number}" for session in range(2) for number in range(100)]
    assert [text_of(line) for line in lines_of(path.read_bytes())] == expected


def test_what_the_reader_of_a_pipe_does_not_take_is_dropped_and_counted() -> None:
    pipe = Pipe(queue_bytes=50_000)
    began = time.monotonic()
    for _ in range(200):
        pipe.writer.put(entry("x" * 10_000))
    assert time.monotonic() - began < PATIENCE_S
    closing = threading.Timer(0.2, pipe.writer.close)
    closing.start()
    lines = lines_of(pipe.read_all())
    closing.join()
    missing = sum(line["lines"] for line in lines if line["direction"] == "dropped")
    whole = [line for line in lines if line["direction"] == "received"]
    assert all(text_of(line) == "x" * 10_000 for line in whole)
    assert 0 < len(whole) < 200
    assert len(whole) + missing <= 200


def test_a_line_after_a_gap_says_how_many_are_missing() -> None:
    pipe = Pipe(queue_bytes=1)
    for _ in range(50):
        pipe.writer.put(entry("x" * 10_000))  # the thread is stuck in one of the first
    reader = os.fdopen(pipe.read_fd, "rb")
    seen: list[Any] = []
    while not any(line["direction"] == "dropped" for line in seen):
        pipe.writer.put(entry("later"))
        seen.append(json.loads(reader.readline()))
    gap = next(line for line in seen if line["direction"] == "dropped")
    assert gap["lines"] > 0
    pipe.writer.close()
    reader.close()


def test_a_reader_that_never_takes_anything_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dragoman.trace.writer.STALL_S", 0.1)
    pipe = Pipe(queue_bytes=1_000_000)
    for _ in range(50):
        pipe.writer.put(entry("x" * 10_000))
    pipe.writer.close()
    assert "lines of the trace to a pipe are missing" in caplog.text
    pipe.read_all()


def test_a_reader_that_goes_away_ends_the_trace_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    pipe = Pipe(queue_bytes=1_000_000)
    os.close(pipe.read_fd)
    pipe.writer.put(entry("x"))
    pipe.writer.close()
    pipe.writer.put(entry("too late"))
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warned[0] == "the trace to a pipe has ended: Broken pipe"


def test_a_pipe_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="nobody reads this pipe yet"):
        open_target(str(tmp_path / "pipe"))


def test_a_file_that_was_moved_is_opened_again_though_nothing_comes(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    writer = LineWriter(open_target(str(path)), str(path))
    writer.put(entry("one"))
    wait_until(lambda: path.stat().st_size > 0)
    path.rename(tmp_path / "moved")
    wait_until(path.exists)  # by itself
    path.rename(tmp_path / "moved again")
    writer.reopen()
    wait_until(path.exists)
    writer.put(entry("two"))
    writer.close()
    assert [text_of(line) for line in lines_of(path.read_bytes())] == ["two"]
    assert [text_of(line) for line in lines_of((tmp_path / "moved").read_bytes())] == ["one"]
