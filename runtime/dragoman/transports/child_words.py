"""What children write on stderr, as lines of the log: each with its server, and the session that it is for.

Lives here: a pipe for each child, and how much of one is written. Must not: know how a line of the log looks. Used
where one process has children for many sessions: on a stderr that all share, nobody could tell whose a line is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterator
from typing import Final

from dragoman import system
from dragoman.core.label import LABEL, log_as

logger = logging.getLogger("dragoman.child")
"""Has a level of its own: what a child says is shown, whatever is shown of ours."""

LINES: Final = 200
"""How many lines of one child are written within `WHILE_S`; more are counted."""

WHILE_S: Final = 1.0
_PIECE_BYTES: Final = 64 * 1024
_LINE_BYTES: Final = 1500
"""The longest line that is written in one."""


@contextlib.contextmanager
def log_words(server: str) -> Iterator[int]:
    """Have what a child writes logged as what this server says in the session that is opening."""
    reads, writes = os.pipe()
    try:
        system.never_block(reads)
        words = ChildWords(reads, server)
        asyncio.get_running_loop().add_reader(reads, words.read)
    except BaseException:
        os.close(reads)
        os.close(writes)
        raise
    try:
        yield writes
    finally:
        os.close(writes)  # the child has its own


class ChildWords:
    """The lines of one child.

    Args:
        fd: Where they come from; closed at the end.
        server: Whose child it is, as the user calls it; empty where there is one server.
    """

    def __init__(self, fd: int, server: str) -> None:
        self._fd = fd
        self._label = LABEL.get()
        self._start = f"{server}: " if server and not self._label.endswith(server) else ""  # a router says it, too
        self._loop = asyncio.get_running_loop()
        self._rest = b""
        self._since, self._count = 0.0, 0

    def read(self) -> None:
        """Log what has come; the child has room again for more."""
        try:
            data = os.read(self._fd, _PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data or len(self._rest) > _LINE_BYTES:
            lines, self._rest = [*lines, *filter(None, (self._rest,))], b""
        if lines:
            log_as(self._label, self._log, lines)
        if not data:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def _log(self, lines: list[bytes]) -> None:
        now = self._loop.time()
        if now - self._since >= WHILE_S:
            if self._count > LINES:
                logger.info("%s(%d lines left out)", self._start, self._count - LINES)
            self._since, self._count = now, 0
        for line in lines[: max(0, LINES - self._count)]:
            for start in range(0, max(1, len(line)), _LINE_BYTES):
                logger.info("%s%s", self._start, line[start : start + _LINE_BYTES].decode(errors="replace").rstrip())
        self._count += len(lines)
