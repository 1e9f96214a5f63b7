"""The selector of a proxy over pipes says what that of the standard library says, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from contextvars import ContextVar

import pytest

from dragoman.transports.poller import make_loop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="epoll is Linux's")

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


def make_all() -> Iterator[selectors.BaseSelector]:
    """The selector of the standard library, and ours."""
    from dragoman.transports.poller import Poller

    yield selectors.EpollSelector()
    yield Poller()


def told(wanted: int, *, writes: bytes = b"", ends: bool = False, resets: bool = False) -> list[int]:
    """Give what each of them says of a socket that is waited for in this way."""
    found = []
    for selector in make_all():
        ours, theirs = socket.socketpair()
        with closing(selector), ours, theirs:
            selector.register(ours.fileno(), WRITE, "first")
            selector.modify(ours.fileno(), wanted, "then")
            theirs.send(writes)
            if ends:
                theirs.shutdown(socket.SHUT_WR)
            if resets:
                theirs.close()
            [(key, mask)] = selector.select(0) or [(selector.get_key(ours.fileno()), 0)]
            assert (key.fd, key.events, key.data) == (ours.fileno(), wanted, "then")
            found.append(mask)
    return found


@pytest.mark.parametrize("wanted", [READ, WRITE, READ | WRITE])
@pytest.mark.parametrize(
    "how", [{}, {"writes": b"x"}, {"ends": True}, {"resets": True}, {"writes": b"x", "ends": True}]
)
def test_it_says_what_the_standard_one_says(wanted: int, how: dict[str, object]) -> None:
    standard, ours = told(wanted, **how)  # type: ignore[arg-type]
    assert ours == standard


def test_several_are_told_at_once_and_what_is_closed_is_forgotten() -> None:
    for selector in make_all():
        pairs = [os.pipe() for _ in range(100)]
        with closing(selector):
            for reader, writer in pairs:
                selector.register(reader, READ)
                os.write(writer, b"x")
            seen = {key.fd for _ in range(4) for key, _ in selector.select(0)}
            assert seen <= {reader for reader, _ in pairs}
            assert len(seen) >= 64
            reader, writer = pairs.pop()
            os.close(reader)
            assert selector.unregister(reader).fd == reader
            with pytest.raises(KeyError):
                selector.get_key(reader)
            os.close(writer)
        for pair in pairs:
            for fd in pair:
                os.close(fd)


def test_a_loop_waits_no_shorter_than_it_is_told() -> None:
    async def wait() -> float:
        loop = asyncio.get_running_loop()
        began, rung = time.monotonic(), asyncio.Event()
        loop.call_later(0.05, rung.set)
        await asyncio.wait_for(rung.wait(), 30)
        return time.monotonic() - began

    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(wait()) >= 0.049


def test_a_loop_reads_writes_and_is_woken_by_threads_and_signals() -> None:
    async def work() -> list[object]:
        loop = asyncio.get_running_loop()
        signalled = asyncio.Event()
        loop.add_signal_handler(10, signalled.set)
        os.kill(os.getpid(), 10)
        await asyncio.wait_for(signalled.wait(), 30)
        loop.remove_signal_handler(10)
        process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
        said, _ = await asyncio.wait_for(process.communicate(b"x" * 300_000), 30)
        return [await asyncio.to_thread(lambda: "thread"), len(said)]

    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(work()) == ["thread", 300_000]


def write_and_close(writer: int, *said: bytes) -> None:
    """Write, and end what is read."""
    for one in said:
        os.write(writer, one)
    os.close(writer)


def test_readers_that_take_turns_are_called_without_a_turn_of_the_loop_between_them() -> None:
    """Each says something to the other one: nothing else is done, and what waits for the end is told."""
    turns: list[str] = []
    calls: list[str] = []
    label = ContextVar("label", default="")

    async def play() -> list[str]:
        loop, done = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
        pipes = [os.pipe(), os.pipe()]

        def answer(own: int) -> None:
            os.read(pipes[own][0], 1)
            calls.append(f"{label.get()} {own}")
            if len(calls) == 20:
                done.set_result(None)
            else:
                os.write(pipes[1 - own][1], b"x")

        label.set("ours")
        for own in (0, 1):
            loop.add_reader(pipes[own][0], answer, own)
        label.set("another")
        loop.call_soon(turns.append, "first")
        os.write(pipes[0][1], b"x")
        await asyncio.sleep(0)
        selects = loop._poller.select  # type: ignore[attr-defined]

        def count(timeout: float | None = None) -> object:
            turns.append("turn")
            return selects(timeout)

        loop._poller.select = count  # type: ignore[attr-defined]
        await done
        for own in (0, 1):
            assert loop.remove_reader(pipes[own][0])
            assert not loop.remove_reader(pipes[own][0])
            for fd in pipes[own]:
                os.close(fd)
        return calls

    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(play()) == [f"ours {n % 2}" for n in range(20)]
    assert turns.count("turn") < 15  # most of them of the runner that ends


@pytest.mark.parametrize("how", ["soon", "later", "safely", "thread", "signal", "raises", "writer"])
def test_what_a_reader_leads_to_is_done_without_anything_else_to_be_read(how: str) -> None:
    problems: list[object] = []

    async def play() -> str:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[str] = loop.create_future()

        def note(_: object, context: dict[str, object]) -> None:
            problems.append(context["exception"])
            finish()

        loop.set_exception_handler(note)
        reader, writer = os.pipe()
        ours, theirs = socket.socketpair()

        def finish() -> None:
            if not done.done():
                done.set_result(how)

        def take() -> None:
            os.read(reader, 1)
            loop.remove_reader(reader)
            match how:
                case "soon":
                    loop.call_soon(finish)
                case "later":
                    loop.call_later(0.001, finish)
                case "safely":
                    loop.call_soon_threadsafe(finish)
                case "thread":
                    loop.run_in_executor(None, loop.call_soon_threadsafe, finish)
                case "signal":
                    os.kill(os.getpid(), signal.SIGUSR1)
                case "raises":
                    raise ValueError("ours")
                case _:
                    loop.add_writer(ours.fileno(), finish)

        loop.add_signal_handler(signal.SIGUSR1, finish)
        loop.add_reader(reader, take)
        write_and_close(writer, b"x")
        try:
            return await done
        finally:
            loop.remove_signal_handler(signal.SIGUSR1)
            loop.remove_writer(ours.fileno())
            os.close(reader)
            ours.close()
            theirs.close()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(play()) == how
    assert [str(problem) for problem in problems] == (["ours"] if how == "raises" else [])


def test_a_loop_that_is_stopped_by_a_reader_stops() -> None:
    loop = make_loop()
    reader, writer = os.pipe()
    loop.add_reader(reader, loop.stop)
    write_and_close(writer, b"x")
    loop.run_forever()
    loop.remove_reader(reader)
    os.close(reader)
    loop.close()
