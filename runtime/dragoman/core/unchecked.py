"""Reading decoded JSON whose shape nobody has checked: a peer may have put anything anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MOST_LEVELS: Final = 500
"""How deep may be nested what a peer says of itself: it stands in other frames later, which have to be written."""


def find(value: Any, *names: str) -> Any:
    """Return what stands at the end of a path of members; None where there is nothing, or no object on the way."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def find_object(value: Any, *names: str) -> dict[str, Any]:
    """Return the object at the end of a path; an empty one where there is none."""
    found = find(value, *names)
    return found if isinstance(found, dict) else {}


def find_list(value: Any, *names: str) -> list[Any]:
    """Return the array at the end of a path; an empty one where there is none."""
    found = find(value, *names)
    return found if isinstance(found, list) else []


def is_deeper(value: Any, levels: int = MOST_LEVELS) -> bool:
    """Whether arrays and objects are nested deeper than this; without recursion, for it is not we who say how deep."""
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        layer = [
            child
            for item in layer
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not layer:
            return False
    return bool(layer)


def with_meta(holder: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return params or a result with this in its `_meta`, beside what is there."""
    return {**holder, "_meta": {**find_object(holder.get("_meta")), key: value}}


def without_meta(holder: Mapping[str, Any], key: str) -> Any:
    """Give params or a result without this in its `_meta`, which goes if it is empty then; the same if it has none."""
    meta = holder.get("_meta")
    if not isinstance(meta, dict) or key not in meta:
        return holder
    rest, left = dict(holder), meta.copy()
    del rest["_meta"], left[key]
    return {**rest, "_meta": left} if left else rest
