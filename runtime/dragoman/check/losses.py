"""What clients of older revisions lose of what a server says.

Lives here: translating the results that came, and counting. Must not: translate by itself; the derived steps do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import dragoman_spec
from dragoman.check.findings import LostFor
from dragoman.core.exact_json import encode
from dragoman.errors import Error

_INDEX: Final = re.compile(r"/\d+(?=/|$)")


def find_lost(frames: Iterable[tuple[str, dict[str, Any]]], revision: str) -> tuple[LostFor, ...]:
    """Give what each older revision cannot carry of these results.

    Args:
        frames: Results, each with the method that it answers; one that came twice counts once.
        revision: In which they were said.
    """
    taken = [*{encode([method, frame["result"]]): (method, frame) for method, frame in frames}.values()]
    older = dragoman_spec.REVISIONS[: dragoman_spec.REVISIONS.index(revision)]
    return tuple(lost for target in reversed(older) for lost in _lost_for(taken, revision, target))


def _lost_for(frames: list[tuple[str, dict[str, Any]]], revision: str, target: str) -> list[LostFor]:
    counted: Counter[tuple[str, str, str, bool]] = Counter()
    known = dragoman_spec.load(target).METHODS
    for method, frame in frames:
        if method not in known:
            continue
        try:
            losses = dragoman_spec.translate(frame, source=revision, target=target, method=method).losses
        except Error as error:
            counted[method, "", f"refused: {error}"[:200], False] += 1
            continue
        for loss in losses:
            counted[method, _INDEX.sub("/*", loss.pointer), loss.kind, loss.cosmetic] += 1
    return [
        LostFor(target, method, pointer, kind, count, cosmetic)
        for (method, pointer, kind, cosmetic), count in counted.items()
    ]
