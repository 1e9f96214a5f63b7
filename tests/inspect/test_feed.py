"""What a proxy tells its viewer: soon, whatever the event loop does, and no more than the viewer takes."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.core.commands import Side
from dragoman.core.envelope import Frame
from dragoman.inspect import feed as feeding
from dragoman.inspect.feed import Feed
from dragoman.inspect.records import unpack
from dragoman.status import StatusBoard
from dragoman.trace.lines import Noted
from dragoman.transports.base import Transport
from dragoman.transports.memory import connect_pair
from tests.support.waiting import wait_until

PATIENCE_S = 30


class Viewer:
    """The other end of a feed."""

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(PATIENCE_S)
        self._end, self._data = end, bytearray()
        self.told: list[Any] = []

    def leave(self) -> None:
        self._end.close()

    def hear(self, is_enough: Callable[[list[Any]], bool]) -> list[Any]:
        """Read until that is so, or until the end."""
        while not is_enough(self.told) and (data := self._end.recv(1 << 20)):
            self._data += data
            self.told += unpack(self._data)
        return self.told


def frame(number: int, size: int = 0) -> Frame:
    return Frame(b'{"id":%d,"result":"%b"}' % (number, b"x" * size), "result", b"%d" % number, None)


@contextmanager
def fed() -> Iterator[tuple[Feed, Viewer]]:
    ours, theirs = socket.socketpair()
    feed = Feed(ours)
    with theirs:
        yield feed, Viewer(theirs)


async def watch(feed: Feed) -> Transport:
    return feed.watch(connect_pair()[0], Side.CLIENT)


def test_what_crosses_is_told_by_a_thread_though_the_loop_does_not_turn() -> None:
    """A timer of the loop costs each call that comes while it runs."""

    async def main() -> None:
        transport = await watch(feed)
        transport.send([frame(1)])
        (told,) = viewer.hear(bool)
        assert isinstance(told, Noted)
        assert told.what == frame(1)

    with fed() as (feed, viewer):
        asyncio.run(main())
        feed.close()


def test_what_was_said_last_is_told_at_the_end() -> None:
    async def main() -> None:
        (await watch(feed)).send([frame(number) for number in range(1000)])

    with fed() as (feed, viewer):
        asyncio.run(main())
        closing = threading.Thread(target=feed.close)
        closing.start()
        told = viewer.hear(lambda _: False)
        closing.join()
    assert [one.what for one in told] == [frame(number) for number in range(1000)]


def test_a_viewer_that_reads_nothing_misses_what_comes_then_and_hears_how_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeding, "QUEUE_BYTES", 1 << 20)

    def send(transport: Transport, frames: list[Frame]) -> None:
        transport.send(frames)
        wait_until(lambda: not feed._entries)

    async def main() -> None:
        transport = await watch(feed)
        send(transport, [frame(number, 100_000) for number in range(40)])
        send(transport, [frame(number) for number in range(40, 47)])
        viewer.hear(lambda told: len(told) == 40)
        send(transport, [frame(47)])
        viewer.hear(lambda told: len(told) == 42)

    with fed() as (feed, viewer):
        asyncio.run(main())
        feed.close()
    *before, (kind, _, missing), last = viewer.told
    assert [one.what for one in before] == [frame(number, 100_000) for number in range(40)]
    assert (kind, missing, last.what) == ("dropped", 7, frame(47))


def test_a_viewer_that_is_gone_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        transport = await watch(feed)
        for number in (1, 2):
            transport.send([frame(number)])
            wait_until(lambda: not feed._entries)

    with fed() as (feed, viewer):
        viewer.leave()
        asyncio.run(main())
        feed.close()
    assert [record.message.partition(";")[0] for record in caplog.records] == ["the page of --inspect is gone"]


def test_how_the_servers_are_is_told_while_something_crosses_and_at_the_end() -> None:
    async def main() -> None:
        (await watch(feed)).send([frame(1)])
        while not any(one[0] == "status" for one in viewer.told):
            await asyncio.to_thread(viewer.hear, lambda told: len(told) > len(before))
            before[:] = viewer.told
        board.stop()

    before: list[Any] = []
    with fed() as (feed, viewer):
        board = feed.board = StatusBoard()
        board.put_up(feed, "", SimpleNamespace(servers=(), parked=2), ())
        asyncio.run(main())
        feed.close()
        told = [one[2] for one in viewer.hear(lambda _: False) if one[0] == "status"]
    assert [one["ready"] for one in told] == [True, False]
    assert [one["parked"] for one in told] == [2, 2]
