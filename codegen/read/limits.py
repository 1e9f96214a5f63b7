"""How deep a schema or an overlay may be, in one place: what is deeper is refused before anything goes down into it.

Reading, comparing and rendering go down by calls, of which Python has a thousand. Nothing here does.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from codegen.names import escaped

DEPTH = 48
"""Levels of JSON, and definitions of which each refers to the next: four times what any revision has."""


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Each value that stands in a JSON value, with its pointer, and itself; below `DEPTH` it stops, with what is there.

    Values of one level come in their order, each before what stands in it.
    """
    open_: list[tuple[str, Any, int]] = [("", value, 0)]
    while open_:
        pointer, one, depth = open_.pop()
        yield pointer, one
        if depth > DEPTH:
            continue
        inner = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        open_ += reversed([(f"{pointer}/{escaped(str(key))}", child, depth + 1) for key, child in inner])


def fault_of(value: Any) -> tuple[str, str] | None:
    """Where a value is too deep or is no JSON, and what is there; None where all is well."""
    for pointer, one in walk(value):
        if pointer.count("/") > DEPTH and isinstance(one, dict | list):
            return pointer[:200], f"more than {DEPTH} levels of objects and lists"
        if isinstance(one, datetime.date | datetime.time):
            return pointer, f"a date or a time, {one}, which JSON has no value for: a text goes between quotation marks"
        if isinstance(one, float) and not math.isfinite(one):
            return pointer, f"{one}, which is no number of JSON"
    return None


def long_chain(definitions: Mapping[str, Any], name_of: Callable[[str], str]) -> str:
    """A definition that is more than `DEPTH` references away from where one started; empty where none is.

    Args:
        definitions: What each is.
        name_of: The name of the definition that a reference leads to.
    """
    refers = {
        name: [
            name_of(one["$ref"]) for _, one in walk(node) if isinstance(one, dict) and isinstance(one.get("$ref"), str)
        ]
        for name, node in definitions.items()
    }
    seen: set[str] = set()
    for start in sorted(definitions):
        path = [iter([start])]
        while path:
            name = next(path[-1], None)
            if name is None:
                path.pop()
            elif name in refers and name not in seen:
                seen.add(name)
                path.append(iter(refers[name]))
                if len(path) > DEPTH + 1:
                    return name
    return ""
