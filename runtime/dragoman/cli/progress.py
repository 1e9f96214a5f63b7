"""What a command, or the server that it calls, does at this moment, on one line of the terminal.

Lives here: the line, which is replaced in place and gone at the end. Must not: write anywhere but to a terminal.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, Final

from dragoman.cli.screen import shown, write_styled

_CLEAR: Final = "\r\x1b[K"


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

    def tell(self, progress: Any) -> None:
        """Show the params of a progress notification, of whatever revision."""
        said = progress.model_dump()
        total, message = said.get("total"), said.get("message")
        done = _show(said["progress"]) + ("" if total is None else f" of {_show(total)}")
        self.show(f"{done}  {message}" if message else done)

    def close(self) -> None:
        """Leave nothing there."""
        if self._is_on:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        write_styled(text, sys.stderr)
        sys.stderr.flush()


def _show(number: float) -> str:
    try:
        return f"{number:g}"
    except OverflowError:  # a whole number beyond those of floats
        from decimal import Decimal

        return f"{Decimal(number):.0e}"
