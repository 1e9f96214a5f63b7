"""The log of a command that must never wait for whoever reads it.

Lives here: the handler that `dragoman proxy` logs through. A client may never read the stderr of the server that it
started; were a log line to block then, the session would stand still with it. So a line goes out only if there is room
for it right now; lines that are left out are counted, and the next one that goes out says how many there were.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import stat

LINE_BYTES = 2048
"""The longest line written: a pipe that has room at all has room for this much."""


class OneLine(logging.Formatter):
    """Writes a record on one line, whatever peers put into paths, names and messages: none can forge a line of ours, or
    steer a terminal. A trace, which has no words of theirs but an error's, keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- the name is theirs
        """Write level, place and text."""
        line = super().formatMessage(record).rstrip("\n")
        if line.isprintable():
            return line
        return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)


class PatientHandler(logging.Handler):
    """Writes to a descriptor, but only what it takes at once.

    Args:
        fd: Usually stderr.
    """

    def __init__(self, fd: int) -> None:
        super().__init__()
        self.setFormatter(OneLine("%(levelname)s %(name)s: %(message)s"))
        self._fd = fd
        self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, or count it."""
        text = self.format(record).encode(errors="backslashreplace")
        if self._left_out:
            text = b"(%d lines left out) %s" % (self._left_out, text)
        if len(text) >= LINE_BYTES:
            text = text[: LINE_BYTES - 4] + b"..."
        if not self._has_room():
            self._left_out += 1
            return
        with contextlib.suppress(OSError):  # nobody is there: nobody minds
            os.write(self._fd, text + b"\n")
            self._left_out = 0

    def _has_room(self) -> bool:
        try:
            if not stat.S_ISFIFO(os.fstat(self._fd).st_mode):
                return True
            poll = select.poll()
            poll.register(self._fd, select.POLLOUT)
            return bool(poll.poll(0))
        except OSError:
            return False


def set_up_logging(level: str) -> None:
    """Send what Dragoman logs, from this level up, to stderr."""
    root = logging.getLogger("dragoman")
    root.addHandler(PatientHandler(2))
    root.setLevel(level.upper())
    root.propagate = False
