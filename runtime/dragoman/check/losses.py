"""What clients of older revisions lose of what a server says.

Lives here: translating the results that came, and counting. Must not: translate by itself; the derived steps do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import dragoman_spec
from dragoman.check.findings import LostFor
from dragoman.check.heard import HeardResult
from dragoman.check.slicing import PIECE
from dragoman.core.exact_json import escape
from dragoman.errors import Error

_INDEX: Final = re.compile(r"/\d+(?=/|$)")


def find_lost(heard: Iterable[HeardResult], revision: str, targets: Iterable[str]) -> tuple[LostFor, ...]:
    """Return what other revisions cannot carry of these results.

    Args:
        heard: The results.
        revision: In which they were said.
        targets: Those revisions.
    """
    counts = {target: Counter[tuple[str, str, str, bool]]() for target in targets}
    for one in heard:
        frame = one.read()
        for target, counted in counts.items():
            if one.method in dragoman_spec.load(target).METHODS:
                _count(frame, one.method, revision, target, counted)
    return tuple(
        LostFor(target, method, pointer, kind, count, cosmetic)
        for target, counted in counts.items()
        for (method, pointer, kind, cosmetic), count in counted.items()
    )


def _count(frame: Any, method: str, revision: str, target: str, counted: Counter[tuple[str, str, str, bool]]) -> None:
    for part, only in _take_apart(frame):
        try:
            losses = dragoman_spec.translate(part, source=revision, target=target, method=method).losses
        except Error as error:
            counted[method, "", f"refused: {error}"[:200], False] += 1
            return
        for loss in losses:
            if loss.pointer.startswith(only):
                counted[method, _INDEX.sub("/*", loss.pointer), loss.kind, loss.cosmetic] += 1


def _take_apart(frame: Any) -> Iterator[tuple[Any, str]]:
    """Return a long list in parts, each with the pointer to what counts in it: all of it, then only its list."""
    result = frame["result"]
    member = max(result, key=lambda one: len(result[one]) if isinstance(result[one], list) else 0, default="")
    items = result.get(member)
    if not isinstance(items, list) or len(items) <= PIECE:
        yield frame, ""
        return
    for start in range(0, len(items), PIECE):
        part = {**result, member: items[start : start + PIECE]}
        yield {**frame, "result": part}, f"/result/{escape(member)}/" if start else ""
