"""The selector of a proxy over pipes says what that of the standard library says, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import closing

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
