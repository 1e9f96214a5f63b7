"""What a JSON Schema takes, for a person: how it is shown, and how what they type is read.

Lives here: text to JSON value, and a signature of a schema. Must not: validate; the server does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.rules.forms import IS_OF

_NAMES: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}
_MOST_VALUES: Final = 4


def signature(name: str, schema: object) -> str:
    """Show a tool with its arguments: `echo(message: str, times?: int)`."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return f"{name}()"
    required = schema.get("required") if isinstance(schema, Mapping) else None
    asked = required if isinstance(required, list) else []
    ordered = sorted(properties, key=lambda key: key not in asked)
    shown = (f"{key}{'' if key in asked else '?'}: {name_type(properties[key])}" for key in ordered)
    return f"{name}({', '.join(shown)})"


def name_type(schema: object) -> str:
    """Name what a schema takes, as Python would."""
    if not isinstance(schema, Mapping):
        return "any"
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return " | ".join(dict.fromkeys(name_type(arm) for arm in schema[keyword]))
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and values:
        said = [json.dumps(value, ensure_ascii=False) for value in values[:_MOST_VALUES]]
        return " | ".join([*said, *(["…"] if len(values) > _MOST_VALUES else [])])
    if isinstance(schema.get("$ref"), str):
        return str(schema["$ref"]).rpartition("/")[2]
    found = schema.get("type")
    kinds = found if isinstance(found, list) else [found]
    return " | ".join(_name_kind(kind, schema) for kind in kinds)


def _name_kind(kind: object, schema: Mapping[str, Any]) -> str:
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return f"list[{name_type(schema['items'])}]"
    return _NAMES.get(kind, "any") if isinstance(kind, str) else "any"


def read_value(text: str, schema: object) -> Any:
    """Read one value: as JSON where the schema takes what that gives, and as the text that it is otherwise.

    Args:
        text: What was typed.
        schema: The schema of the value; anything else where there is none.
    """
    types = types_of(schema)
    if not types & (IS_OF.keys() - {"string"}):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if any(IS_OF[name](value) for name in types & IS_OF.keys()) else text


def types_of(schema: object) -> set[str]:
    """Return the types that a schema takes; all of them where it does not say, and none but text without a schema."""
    if not isinstance(schema, Mapping):
        return {"string"}
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return {name for arm in schema[keyword] for name in types_of(arm)}
    if isinstance(schema.get("enum"), list):
        return {name for value in schema["enum"] for name, is_of in IS_OF.items() if is_of(value)}
    found = schema.get("type", [*IS_OF])
    return {found} if isinstance(found, str) else set(found)
