"""Mistakes that people make, by hand, from `mistakes.toml`, and those that were made here once, from `defects.toml`.

`nox -s mutants -- worlds` makes them one at a time.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Row:
    """One mistake.

    Attributes:
        what: What goes wrong, in words.
        file: Below the runtime.
        old: What stands there.
        new: What is put in its place.
    """

    what: str
    file: str
    old: str
    new: str


def _read(name: str) -> tuple[Row, ...]:
    text = Path(__file__).with_name(name).read_text("utf-8")
    return tuple(Row(**row) for row in tomllib.loads(text)["mistake"])


MISTAKES: Final = _read("mistakes.toml")
DEFECTS: Final = _read("defects.toml")
"""Mends taken out: each is a defect of the past that was an order of events."""

ROWS: Final = (*MISTAKES, *DEFECTS)
