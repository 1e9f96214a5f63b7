"""Whether a Python value is JSON, as `json.loads` would give it, where it is not, and how long it is.

Nothing here imports pydantic. Must not live here: what a revision asks of a value. Used by the models, by `validate`,
by losses, and by the translator when a step has failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Literal, TypeAlias

Wrong: TypeAlias = Literal["finite_number", "recursion_loop", "not_json"]

NOT_JSON: Mapping[Wrong, tuple[str, str]] = {
    "finite_number": ("a finite number", "a number that JSON does not have"),
    "recursion_loop": ("JSON, which has an end", "a value that holds itself"),
    "not_json": ("JSON", "a Python value that is not JSON"),
}
"""What is expected and what is found, in words, by what is wrong."""

_LEAVES = frozenset({str, int, bool, type(None)})
_NAMES = {str}


def not_json(value: Any) -> tuple[tuple[str | int, ...], Wrong] | None:
    """Where in a value there is something that JSON does not have, and what.

    That is a number such as NaN, an object or list that holds itself, a key that is not a string, or a value of a kind
    like bytes or sets. A tuple is a list; models have been looked at before.

    JSON may be deep: no recursion, and the way to a place is spelled only where something is wrong.
    """
    ways: list[Iterator[tuple[Any, Any]]] = [iter(((None, value),))]
    path: list[Any] = []
    held: dict[int, Any] = {}
    while ways:
        for key, found in ways[-1]:
            kind = found.__class__
            if kind in _LEAVES:
                continue
            if isinstance(found, dict | list | tuple):
                if not found:
                    continue
                if id(found) in held:
                    return (*path, key)[1:], "recursion_loop"
                if isinstance(found, dict) and {*map(type, found)} != _NAMES and _odd_keys(found):
                    return (*path, key)[1:], "not_json"
                path.append(key)
                held[id(found)] = found
                ways.append(iter(found.items() if isinstance(found, dict) else enumerate(found)))
                break
            if isinstance(found, float):
                if not isfinite(found):
                    return (*path, key)[1:], "finite_number"
            elif not isinstance(found, str | int) and not hasattr(kind, "__pydantic_serializer__"):
                return (*path, key)[1:], "not_json"
        else:
            ways.pop()
            if held:
                path.pop()
                held.popitem()
    return None


def _odd_keys(value: Mapping[Any, Any]) -> bool:
    return not all(isinstance(key, str) for key in value)


def pointer_to(path: tuple[str | int, ...]) -> str:
    """A way through a value as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


# Kept: `json.dumps` with options makes an encoder each time.
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def size(value: Any) -> int:
    """Size of a value's compact JSON, in bytes of UTF-8; 0 if it is not JSON."""
    try:
        return len(_compact(value).encode("utf-8", "surrogatepass"))
    except (RecursionError, TypeError, ValueError):
        return 0 if not_json(value) else _deep_size(value)


def _deep_size(value: Any) -> int:
    """As `size`, for values nested more deeply than the encoder goes."""
    total, left = 0, [value]
    while left:
        item = left.pop()
        if isinstance(item, (dict, list)):
            total += 2 + max(len(item) - 1, 0)
            left += item.values() if isinstance(item, dict) else item
            total += sum(size(key) + 1 for key in item) if isinstance(item, dict) else 0
        else:
            total += size(item)
    return total
