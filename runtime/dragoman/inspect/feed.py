"""What a proxy tells its viewer: each frame that comes or goes, each translation, and now and then how its servers are.

Lives here: a watcher that writes to a socket what has crossed, a batch at a time. Must not: decode anything, wait
for the viewer, or end a session because the viewer is gone. Made by `dragoman.cli.inspecting`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
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

SOON_S: Final = 0.05
LATE_S: Final = 0.2
"""How long what crosses may wait to be told together with what comes next, and what comes after a silence."""

LAST_WORDS_S: Final = 0.4
"""How long what waits may hold up the end of the process."""

STATUS_S: Final = 1.0
"""How often it is told, with what crosses, how the servers are."""

_AT_ONCE: Final = 64
"""How many entries a batch has, at most."""

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Feed:
    """Tells a viewer what crosses the proxies that are given it, in `ProxyConfig(trace=…)`.

    Every call waits for what notes its frames: an entry is appended to a list, and that is all. A thread makes batches
    of them. A timer of the event loop would not do: while one runs, each call costs the system's timer twice.

    Args:
        outlet: A connected socket, which a viewer reads; closed by `close`.
        beside: Told of the same, such as a trace.

    Attributes:
        board: How the servers are; None: nothing is told of them.
        put: Takes an entry, which is told soon. Never waits, never fails.
    """

    board: StatusBoard | None = None

    def __init__(self, outlet: socket.socket, beside: Watcher | None = None) -> None:
        outlet.settimeout(SOON_S)
        self._outlet: socket.socket | None = outlet
        self._beside = beside
        self._numbers = itertools.count(1)
        self._entries: list[Entry] = []
        self.put: Callable[[Entry], None] = self._entries.append if beside is None else self._put_twice
        self._unsent: deque[memoryview] = deque()
        self._bytes = self._dropped = 0  # how many wait in these; how many entries had no place there
        self._status: list[Fact] = []
        self._told: object = None
        self._told_at = 0.0
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    def watch(self, transport: Transport, side: Side) -> Transport:
        """Return a transport that does what this one does, each frame of which is told.

        Args:
            transport: To a peer.
            side: Which one.
        """
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._run, args=(loop,), name="dragoman-inspect", daemon=True)
            self._thread.start()
        return Watched(transport, next(self._numbers), side, self.put)

    def translated(self, crossing: Crossing) -> None:
        """Tell of a translation."""
        self.put(Translated(time.time(), LABEL.get(), crossing))

    def _put_twice(self, entry: Entry) -> None:
        assert self._beside is not None
        self._entries.append(entry)
        self._beside.put(entry)

    def behind(self, server: str) -> Watcher:
        """Return what tells what one of several servers says and hears, by its name."""
        return OfServer(self._numbers, self.put, server)

    def reopen(self) -> None:
        """Nothing to do: a viewer has no name that a file could lose."""

    def close(self) -> None:
        """Tell what waits, if it is taken soon, and stop. The event loop has ended."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._look()
            until = time.monotonic() + LAST_WORDS_S
            self._tell()
            while self._unsent and time.monotonic() < until:
                self._tell()
        self._end()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell now and then what has crossed, and how the servers are: also once after it went quiet."""
        pause_s, is_news = SOON_S, False
        while not self._ending.wait(pause_s):
            has_crossed = bool(self._entries)
            pause_s = SOON_S if has_crossed or self._unsent else min(2 * pause_s, LATE_S)
            is_news |= has_crossed
            if is_news and time.monotonic() - self._told_at >= STATUS_S:
                self._told_at, is_news = time.monotonic(), False
                with contextlib.suppress(RuntimeError):  # the loop has ended, and we have not been told yet
                    loop.call_soon_threadsafe(self._look)
            self._tell()

    def _look(self) -> None:
        """Look how the servers are; only the event loop may."""
        if self.board is None:
            return
        more = {"parked": self.board.count_parked(), "memory": _measure_memory()}
        said = self.board.read().to_json() | more
        if said != self._told:
            self._told = said
            self._status.append(("status", time.time(), said))

    def _tell(self) -> None:
        """Send what has crossed since the last time, as much of it as is taken; count what has no place."""
        entries = self._entries[:]
        del self._entries[: len(entries)]
        if self._outlet is None:
            return
        try:
            if self._bytes > QUEUE_BYTES:
                self._dropped += len(entries)
            else:
                self._pack(entries)
            self._send(self._outlet)
        except OSError as error:
            logger.warning("the page of --inspect is gone; the proxy goes on without it: %s", error.strerror)
            self._end()
        except Exception as error:  # a defect of ours must not take the session down
            logger.error("the page of --inspect has ended: %s: %s", type(error).__name__, error)
            self._end()

    def _pack(self, entries: list[Entry]) -> None:
        """Make batches, small ones: who holds the interpreter's lock for long holds up a call."""
        facts, self._status = self._status, []
        if self._dropped:
            facts.append(("dropped", time.time(), self._dropped))
            self._dropped = 0
        told = [*facts, *entries]
        for at in range(0, len(told), _AT_ONCE):
            batch = pack(told[at : at + _AT_ONCE])
            self._unsent.append(memoryview(batch))
            self._bytes += len(batch)

    def _send(self, outlet: socket.socket) -> None:
        """Send what waits, for as long as the next may wait; what is not taken waits until the viewer reads."""
        until = time.monotonic() + SOON_S
        with contextlib.suppress(TimeoutError):
            while self._unsent and time.monotonic() < until:
                sent = outlet.send(self._unsent[0])
                self._bytes -= sent
                rest = self._unsent.popleft()[sent:]
                if rest:
                    self._unsent.appendleft(rest)

    def _end(self) -> None:
        outlet, self._outlet = self._outlet, None
        self._bytes = 0
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
