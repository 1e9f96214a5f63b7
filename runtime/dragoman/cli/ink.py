"""Colour: who gets it, and how each kind of word looks. It is never the only sign: the words say the same without it.

Lives here: the one table of styles, and painting what patterns find in a text that is laid out already, so that colour
disturbs no width. Must not: know what is shown.

Sources: no-color.org, force-color.org.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TextIO

from dragoman.cli.screen import shown, write_styled


class Style(StrEnum):
    """How a kind of word looks: what a terminal is told (ECMA-48, SGR)."""

    ERROR = "1;31"
    LOSS = "33"
    GOOD = "32"
    REVISION = "36"
    HEADING = "1"
    FAINT = "2"


REVISIONS: Final[Mapping[str, Style]] = {r"\b20\d\d-\d\d-\d\d\b": Style.REVISION}
"""Finds revisions, for `paint`."""


def takes_colour(stream: TextIO | None) -> bool:
    """Whether a stream gets colour: as `NO_COLOR` or `FORCE_COLOR` say, else if it is a terminal that has some.

    `NO_COLOR` counts more, as in Python itself. Each says nothing where it is empty, and `FORCE_COLOR=0`, too.
    """
    if os.environ.get("NO_COLOR") or stream is None:
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def dye(text: str, style: Style, stream: TextIO | None) -> str:
    """Return a text in a style, if a stream gets colour."""
    return f"\x1b[{style}m{text}\x1b[0m" if text and takes_colour(stream) else text


def paint(text: str, marks: Mapping[str, Style], stream: TextIO) -> str:
    """Return a text as `shown` leaves it, with what patterns find in a style if a stream gets colour.

    Args:
        text: In lines that fit already.
        marks: By regular expressions without groups, of which `^` and `$` are the ends of a line; the first counts.
        stream: Where it will be written to.
    """
    text, styles = shown(text), list(marks.values())
    if not styles or not takes_colour(stream):
        return text
    pattern = re.compile("|".join(f"({one})" for one in marks), re.MULTILINE)
    return pattern.sub(lambda found: dye(found[0], styles[(found.lastindex or 1) - 1], stream), text)


def write_painted(text: str, marks: Mapping[str, Style] = REVISIONS, stream: TextIO | None = None) -> None:
    """Write a text for people, as `paint` leaves it; to stdout if no stream is given."""
    out = stream or sys.stdout
    write_styled(paint(text, marks, out), out)


def complain(text: str) -> None:
    """Say an error on stderr; what comes before its first colon looks like one."""
    if sys.stderr is not None:
        write_painted(f"{text}\n", {r"\A[^:\n]+:": Style.ERROR}, sys.stderr)
        sys.stderr.flush()
