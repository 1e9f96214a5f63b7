"""What a terminal shows and a pipe does not: colour, and lines that end where the window does.

Lives here: how each tone looks, breaking coloured text into lines. Must not: know what the
text is about. Called by `demo.narrate` and `dragoman.cli.demo`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TextIO

from dragoman.demo.shorten import Span, Tone

WIDEST: Final = 100
NARROWEST: Final = 60

LABEL_COLUMNS: Final = 19
"""How many columns of a line say who sent what follows."""

_RESET: Final = "\x1b[0m"
_STYLES: Final = {
    Tone.SAME: "",
    Tone.GONE: "\x1b[31m",
    Tone.NEW: "\x1b[32m",
    "heading": "\x1b[1m",
    "label": "\x1b[2m",
    "loss": "\x1b[33m",
}
_BREAK: Final = re.compile(r"(?<=,)(?=[\"{\[…])|(?<=\"content\":)|(?<=, )|(?<= )(?=/)")
"""Where a line may end: between members, before content, between losses and between pointers."""

_PLAIN_SIGNS: Final = str.maketrans({"…": "...", "→": "->", "←": "<-"})


@dataclass(frozen=True, slots=True)
class Ink:
    """How to write on one stream.

    Attributes:
        colour: Whether it takes colour.
        width: How many columns there are.
    """

    colour: bool = False
    width: int = WIDEST

    def paint(self, text: str, style: str | Tone) -> str:
        """Return text in a style; as it is where there is no colour."""
        code = _STYLES[style]
        return f"{code}{text}{_RESET}" if self.colour and code and text else text

    def lines(self, spans: Sequence[Span], room: int) -> Iterator[str]:
        """Break pieces of text into lines that fit."""
        text = "".join(span.text for span in spans)
        tones = [span.tone for span in spans for _ in span.text]
        for start, end in _cut(text, room):
            stop = end - text[start:end].endswith(" ")
            line = zip(text[start:stop], tones[start:stop], strict=True)
            pieces = groupby(line, lambda pair: pair[1])
            yield "".join(self.paint("".join(sign for sign, _ in piece), tone) for tone, piece in pieces)


def _cut(text: str, room: int) -> Iterator[tuple[int, int]]:
    """Return where lines begin and end, so that each fits and ends where it may, if it can."""
    start = 0
    while len(text) - start > room:
        ends = [match.start() for match in _BREAK.finditer(text, start + 1, start + room + 1)]
        # Before an object or content, if that leaves no short line: its members then stay together.
        better = [end for end in ends if text[end] in "{[" and end - start > room / 2]
        end = (better or ends or [text.rfind(" ", start + 1, start + room) + 1 or start + room])[-1]
        yield start, end
        start = end
    yield start, len(text)


def choose_ink(stream: TextIO, colour: bool) -> Ink:
    """Return how to write on a stream, which gets colour or not: as wide as its terminal, within bounds."""
    if not stream.isatty():
        return Ink(colour)
    return Ink(colour, max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns)))


def fit_encoding(text: str, stream: TextIO) -> str:
    """Replace the signs that a stream cannot write."""
    try:
        text.encode(stream.encoding)
    except UnicodeEncodeError:
        plain = text.translate(_PLAIN_SIGNS)
        return plain.encode(stream.encoding, "backslashreplace").decode(stream.encoding)
    return text
