"""What a command does at this moment, on one line of the terminal, and what a server says beside it.

Lives here: the line, which is replaced in place and gone at the end, and the end of the server's stderr, which would
tear the line. Must not: write anywhere but to a terminal. Called by `cli.check`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dragoman.cli.screen import shown, write_styled

_CLEAR: Final = "\r\x1b[K"
_KEPT_BYTES: Final = 8192
_KEPT_LINES: Final = 20


def is_watched() -> bool:
    """Whether somebody sits before our stderr, at a terminal that can replace a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class ProgressLine:
    """One line on stderr; nothing where nobody is watching.

    Args:
        is_on: Whether somebody is.
    """

    def __init__(self, is_on: bool) -> None:
        self._is_on = is_on

    def show(self, text: str) -> None:
        """Replace what stands there."""
        if self._is_on:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"{_CLEAR}{shown(text).replace(chr(10), ' ')[:width]}")

    def close(self) -> None:
        """Leave nothing there."""
        if self._is_on:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        write_styled(text, sys.stderr)
        sys.stderr.flush()


class LastWords:
    """The end of what servers write on their stderr.

    Attributes:
        fd: What they are given for it.
    """

    def __init__(self) -> None:
        self._read_fd, self.fd = os.pipe()
        self._kept = b""

    @contextmanager
    def read(self) -> Iterator[None]:
        """Read it as long as this lasts, within an event loop."""
        from dragoman.transports.pipes import PipeReader

        reader = PipeReader(self._read_fd, self._take, lambda: None)
        reader.resume()
        try:
            yield
        finally:
            reader.close()
            os.close(self.fd)

    def _take(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-_KEPT_BYTES:]

    @property
    def lines(self) -> list[str]:
        """The last lines; what each process writes again, once."""
        lines = shown(self._kept.decode(errors="replace")).splitlines()
        return [*dict.fromkeys(lines)][-_KEPT_LINES:]
