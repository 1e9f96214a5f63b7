"""Mistakes that people make, by hand, from `mistakes.toml`: `nox -s mutants -- worlds` makes them one at a time."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PLACE: Final = Path(__file__).with_name("mistakes.toml")


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


ROWS: Final = tuple(Row(**row) for row in tomllib.loads(PLACE.read_text("utf-8"))["mistake"])
