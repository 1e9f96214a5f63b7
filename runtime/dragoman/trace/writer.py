"""Writing a trace, or another log, without making anybody wait for it.

Lives here: the file or pipe, the thread that writes, and what becomes of lines that nobody takes. Must not: know what a
line says (`lines`). Used by `trace`.

Theory of operation. The event loop puts what happened in a queue; the thread makes lines of it and writes them, and is
the only one that may wait. The queue holds so many bytes. What does not fit is dropped and counted, and the next line
that is written says how many are missing.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from dragoman import system
from dragoman.trace.lines import Entry, Scribe, size_of

logger = logging.getLogger("dragoman.trace")

QUEUE_BYTES: Final = 16 * 1024 * 1024
"""How much may wait for the thread."""

LOOK_S: Final = 1.0
"""How often it is looked whether the file still has its name."""

LAST_WORDS_S: Final = 2.0
STALL_S: Final = 0.4
"""How long what waits may hold up the end of the process, and how long a reader that takes nothing may."""


def open_target(path: str) -> int:
    """Open a file to append to, made with mode 0600 if there is none, or a pipe that somebody reads.

    Raises:
        OSError: It cannot be written to; the text says why.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | system.AT_ONCE
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(os.stat(path).st_mode):
            raise OSError(error.errno, "nobody reads this pipe yet; start its reader first", path) from None
        raise
    if sys.platform != "win32":
        os.set_blocking(fd, True)  # from here on only the thread writes
    return fd


class LineWriter:
    """Writes lines in a thread of its own, which begins with the first of them.

    Args:
        fd: Where to; closed at the end.
        path: Its name; a file that has another by now is opened anew.
        queue_bytes: How much may wait.
        what: Is written, for messages.
        drop: Writes the line that says how many are missing; else it is one of a trace.
    """

    def __init__(
        self,
        fd: int,
        path: str,
        queue_bytes: int = QUEUE_BYTES,
        what: str = "the trace",
        drop: Callable[[float, int], bytes] | None = None,
    ) -> None:
        self._fd = fd
        self._name = path
        self._looked_at = time.monotonic()
        self._limit = queue_bytes
        self._scribe = Scribe()
        self._what = what
        self._write_dropped = drop or self._scribe.write_dropped
        self._queue: deque[tuple[Entry, int]] = deque()
        self._changed = threading.Condition()
        self._bytes = 0
        self._dropped = 0
        self._written = 0
        self._closing = False
        self._thread: threading.Thread | None = None

    def put(self, entry: Entry) -> None:
        """Let an entry be written; or count it, where too much waits already. Never blocks for long, never fails."""
        size = size_of(entry)
        with self._changed:
            if self._closing:
                return
            if self._queue and self._bytes + size > self._limit:
                self._dropped += entry.count(b"\n") if isinstance(entry, bytes) else 1
                return
            self._queue.append((entry, size))
            self._bytes += size
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dragoman-trace", daemon=True)
                self._thread.start()

    def reopen(self) -> None:
        """Look at once whether the file still has its name."""
        with self._changed:
            self._looked_at = -math.inf
            self._changed.notify()

    def close(self) -> None:
        """Write what waits, if it is taken soon, and stop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is None:
            os.close(self._fd)
            return
        deadline, before = time.monotonic() + LAST_WORDS_S, -1
        while self._thread.is_alive() and self._written != before and time.monotonic() < deadline:
            before = self._written
            self._thread.join(STALL_S)
        left = len(self._queue) + self._dropped
        if self._thread.is_alive() or left:
            logger.warning("%d lines of %s to %s are missing: they were not taken", left, self._what, self._name)

    def _run(self) -> None:
        try:
            while (taken := self._take()) is not None:
                entry, dropped = taken
                self._follow_name()
                if dropped:
                    self._write(self._write_dropped(time.time(), dropped))
                if entry is not None:
                    self._write(self._scribe.write(entry))
        except OSError as error:
            logger.warning("%s to %s has ended: %s", self._what, self._name, error.strerror)
        except Exception as error:  # a defect of ours must not take the session down
            logger.error("%s to %s has ended: %s: %s", self._what, self._name, type(error).__name__, error)
        finally:
            with self._changed:
                self._closing = True
                self._queue.clear()
            with contextlib.suppress(OSError):
                os.close(self._fd)

    def _take(self) -> tuple[Entry | None, int] | None:
        """Wait for an entry, for a while; give it with how many are missing before it, or None at the end."""
        with self._changed:
            if not self._queue and not self._closing:
                self._changed.wait(LOOK_S)
            if not self._queue:
                return None if self._closing else (None, 0)
            entry, size = self._queue.popleft()
            self._bytes -= size
            dropped, self._dropped = self._dropped, 0
            return entry, dropped

    def _follow_name(self) -> None:
        """Go on in a new file where the one that is open was renamed or removed; not where it is a pipe."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        ours = os.fstat(self._fd)
        try:
            is_there = os.path.samestat(os.stat(self._name), ours)
        except OSError:
            is_there = False
        if not is_there and stat.S_ISREG(ours.st_mode):
            try:
                fd = open_target(self._name)
            except OSError as error:
                logger.warning("%s goes on under its old name: %s cannot be opened: %s", self._what, self._name, error)
                return
            os.close(self._fd)
            self._fd = fd

    def _write(self, line: bytes) -> None:
        while line:
            written = os.write(self._fd, line)
            self._written += written
            line = line[written:]
