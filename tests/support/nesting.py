"""Values that are nested in themselves. Needs nothing of the generator: the bindings are tried alone, too."""

from __future__ import annotations

from typing import Any


def deep(levels: int, kind: str) -> Any:
    """A value nested in itself: `list`, `object`, or a JSON Schema by its `properties` or `anyOf`."""
    value: Any = {"type": "object"}
    for _ in range(levels):
        match kind:
            case "list":
                value = [value]
            case "properties":
                value = {"properties": {"a": value}}
            case _:
                value = {kind: [value] if kind == "anyOf" else value}
    return value
