"""What a proxy tells its viewer: each frame that comes or goes, each translation, and now and then how its servers are.

Lives here: a watcher that writes to a socket what has crossed, a batch at a time. Must not: decode anything, wait
for the viewer, or end a session because the viewer is gone. Made by `dragoman.cli.inspecting`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from dragoman.core.commands import Side
from dragoman.core.label import LABEL
from dragoman.core.translate import Crossing
from dragoman.inspect.records import Fact, pack
from dragoman.trace.lines import Entry, Translated
from dragoman.trace.trace import OfServer, Watched, Watcher

if TYPE_CHECKING:
    from dragoman.status import StatusBoard
    from dragoman.transports.base import Transport

logger = logging.getLogger("dragoman.inspect")

QUEUE_BYTES: Final = 16 * 1024 * 1024
"""How much may wait for a viewer that does not keep up."""

SOON_S: Final = 0.02
"""How long what crosses may wait to be told together with what comes next."""

STATUS_S: Final = 1.0
"""How often it is told, with what crosses, how the servers are."""

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
        self._entries: list[Entry | Fact] = []
        self._unsent: deque[bytes] = deque()
        self._bytes = self._dropped = 0  # how many wait in these; how many entries had no place there
        self._is_due = self._is_full = self._tells_status = False
        self._told: object = None
        self._told_at = 0.0

    def watch(self, transport: Transport, side: Side) -> Transport:
        """Return a transport that does what this one does, each frame of which is told.

        Args:
            transport: To a peer.
            side: Which one.
        """
        return Watched(transport, next(self._numbers), side, self.put)

    def translated(self, crossing: Crossing) -> None:
        """Tell of a translation."""
        self.put(Translated(time.time(), LABEL.get(), crossing))

    def put(self, entry: Entry) -> None:
        """Let an entry be told soon. Never waits, never fails; every call waits for it, so it does next to nothing."""
        self._entries.append(entry)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(SOON_S, self.tell)
        if self._beside is not None:
            self._beside.put(entry)

    def behind(self, server: str) -> Watcher:
        """Return what tells what one of several servers says and hears, by its name."""
        return OfServer(self._numbers, self.put, server)

    def reopen(self) -> None:
        """Nothing to do: a viewer has no name that a file could lose."""

    def close(self) -> None:
        """Tell what waits, if it is taken at once, and stop."""
        self._tells_status = True  # there is no later
        self.tell()
        self._end()

    def tell(self) -> None:
        """Put what has crossed since the last time into one batch; or count it, where too much waits already."""
        self._is_due = False
        entries, self._entries = self._entries, []
        if self._outlet is None:
            return
        if self._bytes > QUEUE_BYTES:
            self._dropped += len(entries)
        elif told := self._facts() + entries:
            self._unsent.append(pack(told))
            self._bytes += len(self._unsent[-1])
        if not self._is_full:
            self._write(self._outlet)

    def _write(self, outlet: socket.socket) -> None:
        """Write what waits; what is not taken waits until the viewer reads."""
        try:
            while self._unsent:
                sent = outlet.send(self._unsent[0])
                self._bytes -= sent
                rest = self._unsent.popleft()[sent:]
                if rest:
                    self._unsent.appendleft(rest)
        except (BlockingIOError, InterruptedError):
            self._is_full = True
            self._await_room(outlet)
        except OSError as error:
            logger.warning("the page of --inspect is gone; the proxy goes on without it: %s", error.strerror)
            self._end()

    def _await_room(self, outlet: socket.socket) -> None:
        loop, fd = asyncio.get_running_loop(), outlet.fileno()

        def go_on() -> None:
            if sys.platform != "win32":
                loop.remove_writer(fd)
            self._is_full = False
            if self._outlet is not None:
                self._write(self._outlet)

        if sys.platform == "win32":
            loop.call_later(SOON_S, go_on)
        else:
            loop.add_writer(fd, go_on)

    def _facts(self) -> list[Entry | Fact]:
        """Say what else is to be told: what is missing, and how the servers are."""
        now, facts = time.time(), list[Entry | Fact]()
        if self._dropped:
            facts.append(("dropped", now, self._dropped))
            self._dropped = 0
        if self.board is not None and now - self._told_at >= STATUS_S:
            self._told_at = now
            self._tells_status = False
            said = self.board.read().to_json() | {"memory": _measure_memory()}
            if said != self._told:
                self._told = said
                facts.append(("status", now, said))
        elif self.board is not None and not self._tells_status:
            self._tells_status = True  # how they are once it is quiet again
            asyncio.get_running_loop().call_later(STATUS_S, self.tell)
        return facts

    def _end(self) -> None:
        outlet, self._outlet = self._outlet, None
        self._entries, self._bytes = [], 0
        self._unsent.clear()
        if outlet is not None:
            outlet.close()


def _measure_memory() -> int | None:
    """Return how many bytes of memory this process has; None where the system does not say it in this way."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        return None
