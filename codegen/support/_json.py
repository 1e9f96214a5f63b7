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
            if kind in _LEAVES or (kind is float and isfinite(found)):
                continue
            if kind is not dict and kind is not list:
                if "__pydantic_serializer__" in kind.__dict__:
                    continue
                if not isinstance(found, dict | list | tuple):
                    if (wrong := _wrong(found)) is not None:
                        return (*path, key)[1:], wrong
                    continue
            if not found:
                continue
            path.append(key)
            if id(found) in held:
                return tuple(path[1:]), "recursion_loop"
            held[id(found)] = found
            if kind is list or not isinstance(found, dict):
                ways.append(iter(enumerate(found)))
                break
            for name in found:
                if name.__class__ is not str and not isinstance(name, str):
                    return tuple(path[1:]), "not_json"
            ways.append(iter(found.items()))
            break
        else:
            ways.pop()
            if held:
                path.pop()
                held.popitem()
    return None


def _wrong(value: Any) -> Wrong | None:
    """What is wrong with a value that holds no others, if something is."""
    if isinstance(value, float):
        return None if isfinite(value) else "finite_number"
    return None if isinstance(value, str | int) else "not_json"


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
