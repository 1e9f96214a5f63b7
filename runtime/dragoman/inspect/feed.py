"""What a proxy tells its viewer: each frame that comes or goes, each translation, and now and then how its servers are.

Lives here: a watcher that writes records to a socket, once a turn of the event loop. Must not: decode anything, wait
for the viewer, or end a session because the viewer is gone. Made by `dragoman.cli.inspecting`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from dragoman.core.commands import Side
from dragoman.core.label import LABEL
from dragoman.core.translate import Crossing
from dragoman.inspect.records import pack, pack_fact
from dragoman.trace.lines import Entry, Translated
from dragoman.trace.trace import Watched, Watcher
from dragoman.transports.countdown import Countdown

if TYPE_CHECKING:
    from dragoman.status import StatusBoard
    from dragoman.transports.base import Transport

logger = logging.getLogger("dragoman.inspect")

QUEUE_BYTES: Final = 16 * 1024 * 1024
"""How much may wait for a viewer that does not keep up."""

STATUS_S: Final = 1.0
"""How soon after something has crossed it is told how the servers are."""

_PIECE_BYTES: Final = 1024 * 1024
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Feed:
    """Tells a viewer what crosses the proxies that are given it, in `ProxyConfig(trace=…)`.

    Args:
        outlet: A connected socket, which a viewer reads; closed by `close`.
        beside: Told of the same, such as a trace.

    Attributes:
        board: How the servers are; None: nothing is told of them.
    """

    board: StatusBoard | None = None

    def __init__(self, outlet: socket.socket, beside: Watcher | None = None) -> None:
        outlet.setblocking(False)
        self._outlet: socket.socket | None = outlet
        self._beside = beside
        self._numbers = itertools.count(1)
        self._queue: deque[bytes] = deque()
        self._bytes = self._dropped = 0
        self._is_due = False
        self._told: object = None
        self._status = Countdown()

    def watch(self, transport: Transport, side: Side) -> Transport:
        """Return a transport that does what this one does, each frame of which is told.

        Args:
            transport: To a peer.
            side: Which one.
        """
        inner = transport if self._beside is None else self._beside.watch(transport, side)
        return Watched(inner, next(self._numbers), side, self.put)

    def translated(self, crossing: Crossing) -> None:
        """Tell of a translation."""
        if self._beside is not None:
            self._beside.translated(crossing)
        self.put(Translated(time.time(), LABEL.get(), crossing))

    def put(self, entry: Entry) -> None:
        """Let an entry be told; or count it, where too much waits already. Never waits, never fails."""
        if self._outlet is None:
            return
        if self._bytes > QUEUE_BYTES:
            self._dropped += 1
            return
        if self._dropped:
            self._add(pack_fact("dropped", time.time(), self._dropped))
            self._dropped = 0
        self._add(pack(entry))
        if self.board is not None and not self._status.is_set:
            self._status.set(STATUS_S, self._tell_status)

    def close(self) -> None:
        """Tell what waits, if it is taken at once, and stop."""
        self._status.stop()
        if self._outlet is not None:
            self._write()
        self._end()

    def _add(self, record: bytes) -> None:
        self._queue.append(record)
        self._bytes += len(record)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        """Write what waits; what is not taken waits until the viewer reads."""
        self._is_due = False
        while self._queue and self._outlet is not None:
            piece = self._take()
            try:
                sent = self._outlet.send(piece)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                logger.warning("the page of --inspect is gone; the proxy goes on without it: %s", error.strerror)
                self._end()
                return
            self._bytes -= sent
            if sent < len(piece):
                self._queue.appendleft(piece[sent:])
                self._is_due = True
                self._await_room(self._outlet)
                return

    def _take(self) -> bytes:
        """Take records from the queue, as many as go in one write."""
        if len(self._queue) == 1:
            return self._queue.popleft()
        taken, size = [], 0
        while self._queue and size < _PIECE_BYTES:
            taken.append(self._queue.popleft())
            size += len(taken[-1])
        return b"".join(taken)

    def _await_room(self, outlet: socket.socket) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # at the end, when nobody waits any more
            return
        fd = outlet.fileno()

        def go_on() -> None:
            loop.remove_writer(fd)
            self._write()

        loop.add_writer(fd, go_on)

    def _tell_status(self) -> None:
        assert self.board is not None
        said = self.board.read().to_json() | {"memory": _measure_memory()}
        if said != self._told and self._outlet is not None:
            self._told = said
            self._add(pack_fact("status", time.time(), said))

    def _end(self) -> None:
        outlet, self._outlet = self._outlet, None
        self._queue.clear()
        self._bytes = 0
        if outlet is not None:
            outlet.close()


def _measure_memory() -> int | None:
    """Return how many bytes of memory this process has; None where the system does not say it in this way."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        return None
