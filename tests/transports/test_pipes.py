"""Descriptors without blocking: pipes, sockets, files, /dev/null, terminals."""

from __future__ import annotations

import asyncio
import os
import pty
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.transports.pipes import (
    FEW_BYTES,
    HIGH_WATER_BYTES,
    READ_BYTES,
    PipeReader,
    PipeWriter,
    enlarge_pipe,
    is_pollable,
    open_reader,
    open_writer,
)
from dragoman.transports.threads import ThreadReader, ThreadWriter
from tests.support.systems import OF_LOOP
from tests.support.waiting import pass_time, run
from tests.transports.recorder import Recorder


def make_reader(fd: int, recorder: Recorder) -> PipeReader | ThreadReader:
    reader = open_reader(fd, recorder.data_received, lambda: recorder.ended("end"))
    reader.resume()
    return reader


def make_writer(fd: int, recorder: Recorder) -> PipeWriter | ThreadWriter:
    return open_writer(fd, recorder.broken, recorder.pause_writing, recorder.resume_writing)


def a_pipe() -> tuple[int, int]:
    return os.pipe()


def a_socket() -> tuple[int, int]:
    one, other = socket.socketpair()
    return one.detach(), other.detach()


@pytest.mark.parametrize("connect", [a_pipe, a_socket])
@pytest.mark.parametrize("size", [0, 1, 5000, 5_000_000])
def test_bytes_cross_whole_and_then_the_end(connect: Callable[[], tuple[int, int]], size: int) -> None:
    async def main() -> None:
        read_fd, write_fd = connect()
        recorder = Recorder()
        make_reader(read_fd, recorder)
        writer = make_writer(write_fd, recorder)
        data = os.urandom(size)
        writer.write(data[: size // 3])
        writer.write(data[size // 3 :])
        await writer.close()
        await recorder.until(lambda: recorder.end is not None)
        assert recorder.data == data
        assert not recorder.paused

    run(main())


@pytest.mark.parametrize("kind", [pytest.param(PipeReader, marks=OF_LOOP), ThreadReader])
def test_many_short_lines_are_not_handed_on_at_once(kind: type[PipeReader | ThreadReader]) -> None:
    """Each takes time, and nobody else has a turn meanwhile. What is paused waits, and the end comes last."""

    async def main() -> None:
        read_fd, write_fd = os.pipe()
        enlarge_pipe(write_fd)
        recorder, parts = Recorder(), list[bytes]()

        def take(part: bytes) -> None:
            assert recorder.end is None
            parts.append(part)
            if len(parts) in (1, 7):
                reader.pause()
                asyncio.get_running_loop().call_later(0.01, reader.resume)

        reader = kind(read_fd, take, lambda: recorder.ended("end"))
        writer = make_writer(write_fd, recorder)
        told = b"x" * 3_000_000 + b"\n" + b"x\n" * 400_000 + b"x" * 3_000_000 + b"\n"
        writer.write(told)
        reader.resume()
        await writer.close()
        await recorder.until(lambda: recorder.end is not None)
        assert b"".join(parts) == told
        assert max(part.count(b"\n") for part in parts) < 16_000
        assert max(map(len, parts)) >= FEW_BYTES, "long lines are read fast"

    run(main())


def test_a_reader_that_pauses_leaves_bytes_in_the_pipe() -> None:
    async def main() -> None:
        read_fd, write_fd = os.pipe()
        recorder = Recorder()
        reader = make_reader(read_fd, recorder)
        reader.resume()
        reader.pause()
        reader.pause()
        os.write(write_fd, b"x")
        await pass_time(0.02)
        assert recorder.data == b""
        reader.resume()
        await recorder.until(lambda: recorder.data == b"x")
        reader.close()
        reader.close()
        reader.resume()
        os.close(write_fd)

    run(main())


def test_a_writer_says_when_it_is_full_and_when_there_is_room() -> None:
    async def main() -> None:
        read_fd, write_fd = os.pipe()
        recorder = Recorder()
        writer = make_writer(write_fd, recorder)
        size = 64 * 1024
        for _ in range(HIGH_WATER_BYTES // size + 3):
            writer.write(b"x" * size)
        assert recorder.paused
        reader = make_reader(read_fd, recorder)
        await recorder.until(lambda: not recorder.paused)
        assert recorder.pauses == 1
        await writer.close()
        await recorder.until(lambda: recorder.end is not None)
        reader.close()

    run(main())


@pytest.mark.parametrize("kept", [False, True])
def test_a_reader_that_is_gone_is_told_once(kept: bool) -> None:
    async def main() -> None:
        read_fd, write_fd = os.pipe()
        recorder = Recorder()
        writer = make_writer(write_fd, recorder)
        if kept:
            writer.write(b"x" * 1_000_000)
        os.close(read_fd)
        writer.write(b"y")
        await recorder.until(lambda: recorder.break_reason is not None)
        assert recorder.break_reason == "broken pipe"
        writer.write(b"z")
        await writer.close()

    run(main())


def test_a_writer_can_be_aborted_with_bytes_in_hand() -> None:
    async def main() -> None:
        read_fd, write_fd = os.pipe()
        writer = make_writer(write_fd, Recorder())
        writer.write(b"x" * 1_000_000)
        writer.abort()
        writer.abort()
        await writer.close()
        os.close(read_fd)

    run(main())


def written(read_fd: int) -> bytes:
    try:
        return os.read(read_fd, READ_BYTES)
    except BlockingIOError:
        return b""


@OF_LOOP
def test_what_is_written_while_the_peer_is_silent_goes_out_together() -> None:
    async def main() -> None:
        read_fd, write_fd = os.pipe()
        os.set_blocking(read_fd, False)
        writer = make_writer(write_fd, Recorder())
        writer.write(b"1")
        assert written(read_fd) == b"1"
        writer.write(b"2")
        writer.write(b"3")
        assert written(read_fd) == b""
        await pass_time(0)
        assert written(read_fd) == b"23"
        writer.joins = False  # the peer has said something
        writer.write(b"4")
        assert written(read_fd) == b"4"
        writer.abort()
        os.close(read_fd)

    run(main())


def test_what_waits_for_the_end_of_a_turn_is_written_before_the_end_and_not_after_an_abort() -> None:
    async def main() -> None:
        for ends_well in (True, False):
            read_fd, write_fd = os.pipe()
            recorder = Recorder()
            writer = make_writer(write_fd, recorder)
            writer.write(b"1")
            writer.write(b"2")
            if ends_well:
                await writer.close()
            else:
                writer.abort()
                await pass_time(0)
            assert os.read(read_fd, 10) == (b"12" if ends_well else b"1")
            assert os.read(read_fd, 10) == b""
            assert recorder.break_reason is None
            os.close(read_fd)

    run(main())


def test_more_pieces_than_go_into_one_write_go_out_in_order() -> None:
    async def main() -> None:
        read_fd, write_fd = os.pipe()
        recorder = Recorder()
        make_reader(read_fd, recorder)
        writer = make_writer(write_fd, recorder)
        lines = [b"%d\n" % number for number in range(500)]
        for line in lines:
            writer.write(line)
        await writer.close()
        await recorder.until(lambda: recorder.end is not None)
        assert recorder.data == b"".join(lines)

    run(main())


def test_files_are_read_and_written_without_an_event_loop_that_can_wait_for_them(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "in").write_bytes(b"x" * 3_000_000)
        recorder = Recorder()
        make_reader(os.open(tmp_path / "in", os.O_RDONLY), recorder)
        await recorder.until(lambda: recorder.end is not None)
        assert len(recorder.data) == 3_000_000
        writer = make_writer(os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT), recorder)
        writer.write(recorder.data)
        await writer.close()
        assert (tmp_path / "out").read_bytes() == recorder.data

    run(main())


def test_a_file_can_be_paused(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "in").write_bytes(b"x" * 10)
        recorder = Recorder()
        reader = make_reader(os.open(tmp_path / "in", os.O_RDONLY), recorder)
        reader.pause()
        await pass_time(0.01)
        assert recorder.data == b""
        reader.resume()
        await recorder.until(lambda: recorder.end is not None)

    run(main())


def test_dev_null_ends_at_once() -> None:
    async def main() -> None:
        recorder = Recorder()
        make_reader(os.open(os.devnull, os.O_RDONLY), recorder)
        await recorder.until(lambda: recorder.end is not None)

    run(main())


def test_a_terminal_keeps_its_flags_and_its_end_is_an_end() -> None:
    async def main() -> None:
        outer, inner = pty.openpty()
        recorder = Recorder()
        make_reader(outer, recorder)
        writer = make_writer(inner, recorder)
        assert os.get_blocking(inner)
        writer.write(b"hello")
        await recorder.until(lambda: recorder.data == b"hello")
        await writer.close()
        await recorder.until(lambda: recorder.end is not None)  # a terminal says EIO, not end of file

    run(main())


def test_what_can_be_waited_for(tmp_path: Path) -> None:
    read_fd, write_fd = os.pipe()
    file_fd = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
    enlarge_pipe(write_fd)
    enlarge_pipe(file_fd)
    assert is_pollable(read_fd)
    assert not is_pollable(file_fd)
    for fd in (read_fd, write_fd, file_fd):
        os.close(fd)


@OF_LOOP
def test_a_read_that_would_block_is_tried_again() -> None:
    async def main() -> None:
        read_fd, write_fd = os.pipe()
        os.set_blocking(read_fd, False)
        recorder = Recorder()
        reader = make_reader(read_fd, recorder)
        reader._read()
        assert recorder.end is None
        os.close(write_fd)
        await recorder.until(lambda: recorder.end is not None)

    run(main())


@OF_LOOP
def test_readers_share_what_they_read_into() -> None:
    async def main() -> None:
        pipes = [os.pipe() for _ in range(100)]
        tracemalloc.start()
        try:
            recorders = [Recorder() for _ in pipes]
            readers = [make_reader(read_fd, recorder) for (read_fd, _), recorder in zip(pipes, recorders, strict=True)]
            for _, write_fd in pipes:
                os.write(write_fd, b"hello")
            for recorder in recorders:
                await recorder.until(lambda recorder=recorder: recorder.data == b"hello")
            assert tracemalloc.get_traced_memory()[1] < 2 * READ_BYTES
        finally:
            tracemalloc.stop()
        for reader, (_, write_fd) in zip(readers, pipes, strict=True):
            reader.close()
            os.close(write_fd)

    run(main())


@pytest.mark.parametrize("connect", [a_pipe, a_socket])
def test_a_reader_that_pauses_notices_that_the_other_end_is_closed_and_reads_the_rest(
    connect: Callable[[], tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.transports.pipes.LOOK_S", 0.01)

    async def main() -> None:
        read_fd, write_fd = connect()
        recorder = Recorder()
        reader = make_reader(read_fd, recorder)
        reader.pause()
        os.write(write_fd, b"last words")
        await pass_time(0.05)
        assert recorder.data == b""
        os.close(write_fd)
        await recorder.until(lambda: recorder.end == "end")
        assert recorder.data == b"last words"
        reader.pause()
        reader.close()

    run(main())
