"""The transport inside one process."""

from __future__ import annotations

from dragoman.transports.memory import HIGH_WATER_BYTES, connect_pair
from tests.support.waiting import pass_time, run
from tests.transports.recorder import Recorder


def test_bytes_cross_both_ways_in_order() -> None:
    async def main() -> None:
        left, right = connect_pair("left", "right")
        one, other = Recorder(), Recorder()
        left.write(b"early ")
        left.start_raw(one)
        right.start_raw(other)
        left.write(b"bird")
        right.write(b"worm")
        await other.until(lambda: other.data == b"early bird")
        await one.until(lambda: one.data == b"worm")

    run(main())


def test_nothing_arrives_while_the_writer_runs() -> None:
    async def main() -> None:
        left, right = connect_pair()
        other = Recorder()
        right.start_raw(other)
        left.write(b"x")
        assert other.data == b""
        await other.until(lambda: other.data == b"x")

    run(main())


def test_a_reader_that_pauses_hears_nothing_until_it_goes_on() -> None:
    async def main() -> None:
        left, right = connect_pair()
        one, other = Recorder(), Recorder()
        left.start_raw(one)
        right.start_raw(other)
        left.write(b"x")
        right.pause_reading()
        await pass_time(0.01)
        assert other.data == b""
        left.write(b"y" * (HIGH_WATER_BYTES + 1))
        assert one.paused
        right.resume_reading()
        await one.until(lambda: not one.paused)
        assert len(other.data) == HIGH_WATER_BYTES + 2

    run(main())


def test_closing_is_heard_after_the_last_bytes() -> None:
    async def main() -> None:
        left, right = connect_pair("left", "right")
        one, other = Recorder(), Recorder()
        left.start_raw(one)
        right.start_raw(other)
        left.write(b"last words")
        left.hurry()
        await left.close()
        await left.close()
        await other.until(lambda: other.end is not None)
        assert (other.data, other.end) == (b"last words", "left has closed")
        left.write(b"never")
        right.write(b"too late")
        await other.until(lambda: other.break_reason is not None)

    run(main())


def test_a_peer_that_only_ends_still_listens() -> None:
    async def main() -> None:
        left, right = connect_pair()
        one, other = Recorder(), Recorder()
        left.start_raw(one)
        right.start_raw(other)
        left.end()
        await other.until(lambda: other.end is not None)
        right.write(b"still there?")
        await one.until(lambda: one.data == b"still there?")

    run(main())
