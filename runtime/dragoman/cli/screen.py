"""What people see on a terminal: nothing that would steer it, and lines that end where it does.

Lives here: what of a server's words is shown, the streams that see to it for every command, JSON for a person, and
breaking lines. Must not: know what is shown. Imports nothing that takes time.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterable
from typing import Any, Final, TextIO

FORMATS: Final = ("text", "json", "github")
"""How changes and findings are printed: for people, for programs, and as the notes of a workflow."""

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters but for the ends of lines and tabs, marks that turn the direction of text, and what is invisible
by design."""

_WIDEST_HEAD: Final = 40
_MOST_LINES: Final = 2


def shown(text: str) -> str:
    """Return a text without what could steer a terminal or hide what is said; colours go without a trace."""
    return _STEERING.sub("�", _COLOUR.sub("", text.replace("\r\n", "\n")))


class SafeTerminal(io.TextIOWrapper):
    """A terminal that gets only what `shown` leaves."""

    def write(self, text: str, /) -> int:
        """Write it without what would steer the terminal."""
        super().write(shown(text))
        return len(text)

    def write_styled(self, text: str) -> None:
        """Write words of ours, with their colours."""
        super().write(text)


def protect_terminals() -> None:
    """See to it that no word of a server steers the terminal that our stdout or stderr is."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if sys.platform == "win32" and isinstance(stream, io.TextIOWrapper):
            _free_of_windows(stream)
        if isinstance(stream, io.TextIOWrapper) and stream.isatty():
            stream.flush()
            safe = SafeTerminal(stream.buffer, stream.encoding, stream.errors, line_buffering=True)
            setattr(sys, name, safe)


def _free_of_windows(stream: io.TextIOWrapper) -> None:
    """Write colours to a console, and elsewhere every character, which not all of its code pages have."""
    from dragoman import windows

    if stream.isatty():
        windows.show_colours(stream.fileno())
    else:
        stream.reconfigure(encoding="utf-8")


def write_styled(text: str, stream: TextIO) -> None:
    """Write a text of ours that has colours, or replaces a line."""
    if isinstance(stream, SafeTerminal):
        stream.write_styled(text)
    else:
        stream.write(text)


def tell(text: str, end: str = "\n") -> None:
    """Say something to the person at the terminal, beside what a command gives."""
    print(shown(text), end=end, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print a value as JSON; on a terminal, what would steer it is escaped, which is the same value."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if sys.stdout.isatty():
        text = _STEERING.sub(lambda found: json.dumps(found[0])[1:-1], text)
    print(text)


def columns(stream: TextIO | None = None) -> int | None:
    """Return how wide the terminal is that a stream (stdout if none is given) writes to; None where it is none."""
    import shutil

    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else None


def fit(line: str, hang: int, width: int | None, most_lines: int | None = None) -> str:
    """Break a line that is too long, and indent what goes on by so many columns."""
    import textwrap

    if width is None or len(line) <= width:
        return line
    return "\n".join(
        textwrap.wrap(
            line,
            max(width, hang + 20),
            subsequent_indent=" " * hang,
            drop_whitespace=True,
            break_on_hyphens=False,
            break_long_words=False,
            max_lines=most_lines,
            placeholder=" …",
        )
    )


def lay_out(rows: Iterable[tuple[str, str]], width: int | None) -> list[str]:
    """Lay out names and what they are about, in two columns; on a terminal, in lines that fit.

    Args:
        rows: Each a name and a text.
        width: Of the terminal; None for lines of any length.
    """
    pairs = list(rows)
    column = min(_WIDEST_HEAD, max((len(head) for head, _ in pairs), default=0))
    lines = []
    for head, about in pairs:
        line = f"  {head:<{column}}  {about}".rstrip()
        if width is None or len(line) <= width:
            lines.append(line)
        elif len(head) <= column and width - column >= _WIDEST_HEAD:
            lines.append(fit(line, column + 4, width, _MOST_LINES))
        else:
            lines += [fit(f"  {head}", 6, width), *([fit(f"      {about}", 6, width, _MOST_LINES)] if about else [])]
    return lines
