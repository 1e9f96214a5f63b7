"""What a switch needs from outside to make its edges: values and functions, made once for all sessions of a proxy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dragoman.core.consent import Method
from dragoman.core.settings import Settings
from dragoman.core.translate import Translator


@dataclass(frozen=True, slots=True)
class Wiring:
    """What all edges of a switch have in common.

    Attributes:
        settings: What the user decided.
        translate: Gives the composed steps from one revision to another.
        methods_of: Gives the methods of a revision.
        now_s: Reads a clock that never goes back, in seconds.
    """

    settings: Settings
    translate: Callable[[str, str], Translator]
    methods_of: Callable[[str], Mapping[str, Method]]
    now_s: Callable[[], float] = lambda: 0.0
