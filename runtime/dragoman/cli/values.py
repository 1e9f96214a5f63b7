"""Values that a person types, read as a JSON Schema wants them.

Lives here: text to JSON value. Must not: validate; the server does. Called by `call` and `terminal`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

_TYPES: Final = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def read_value(text: str, schema: object) -> Any:
    """Read one value: as JSON where the schema takes what that gives, and as the text that it is otherwise.

    Args:
        text: What was typed.
        schema: The schema of the value; anything else where there is none.
    """
    types = _types_of(schema)
    if "string" in types and not types & _TYPES.keys():
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if any(_is(value, name) for name in types) else text


def _types_of(schema: object) -> set[str]:
    """Give the types that a schema takes; all of them where it does not say, and none but text without a schema."""
    if not isinstance(schema, Mapping):
        return {"string"}
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return {name for arm in schema[keyword] for name in _types_of(arm)}
    if isinstance(schema.get("enum"), list):
        return {name for value in schema["enum"] for name in ("string", *_TYPES) if _is(value, name)}
    found = schema.get("type", [*_TYPES, "string"])
    return {found} if isinstance(found, str) else set(found)


def _is(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, str) if name == "string" else isinstance(value, _TYPES.get(name, ()))
