"""What a JSON Schema takes, for a person: how it is shown, and how what they type is read.

Lives here: text to JSON value, and a signature of a schema. Must not: validate; the server does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
_MOST_ARMS: Final = 8
_MOST_ARGUMENTS: Final = 64
_MOST_LEVELS: Final = 8
_LONGEST: Final = 200
"""How many characters the type of an argument may take. A schema can be whatever its server likes."""


def signature(name: str, schema: object) -> str:
    """Show a tool with its arguments: `echo(message: str, times?: int)`."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return f"{name}()"
    required = schema.get("required") if isinstance(schema, Mapping) else None
    asked = set(texts_of(required))
    ordered = sorted(properties, key=lambda key: key not in asked)
    shown = [f"{key}{'' if key in asked else '?'}: {name_type(properties[key])}" for key in ordered[:_MOST_ARGUMENTS]]
    return f"{name}({', '.join([*shown, *(['…'] if len(ordered) > _MOST_ARGUMENTS else [])])})"


def name_type(schema: object, levels: int = _MOST_LEVELS) -> str:
    """Name what a schema takes, as Python would; what is deeper than so many levels, or too long, is left out."""
    if not isinstance(schema, Mapping) or not levels:
        return "any"
    arms = _arms_of(schema)
    if arms is not None:
        return _join([name_type(arm, levels - 1) for arm in arms], _MOST_ARMS)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and values:
        return _join([_show(value) for value in values], _MOST_VALUES)
    if isinstance(schema.get("$ref"), str):
        return _cut(str(schema["$ref"]).rpartition("/")[2])
    return _join([_name_kind(kind, schema, levels) for kind in _kinds_of(schema)], _MOST_ARMS)


def _name_kind(kind: str, schema: Mapping[str, Any], levels: int) -> str:
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return f"list[{name_type(schema['items'], levels - 1)}]"
    return _NAMES.get(kind, "any")


def _show(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"


def _join(names: Sequence[str], most: int) -> str:
    once = list(dict.fromkeys(names))
    return _cut(" | ".join([*once[:most], *(["…"] if len(once) > most else [])])) or "any"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _arms_of(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return the schemas one of which a value is to fit; None where there is no such choice."""
    return next((schema[name] for name in ("anyOf", "oneOf") if isinstance(schema.get(name), list)), None)


def _kinds_of(schema: Mapping[str, Any]) -> list[str]:
    """Return what a schema names in `type`, each once."""
    found = schema.get("type")
    return list(dict.fromkeys(texts_of(found if isinstance(found, list) else [found])))


def texts_of(value: object) -> list[str]:
    """Return what of a list is text, as all of it should be."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


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
    except (ValueError, RecursionError):
        return text
    return value if any(IS_OF[name](value) for name in types) else text


def types_of(schema: object, levels: int = _MOST_LEVELS) -> set[str]:
    """Return the types that a schema takes; all of them where it does not say, and none but text without a schema."""
    if not isinstance(schema, Mapping):
        return {"string"}
    if not levels:
        return {*IS_OF}
    arms = _arms_of(schema)
    if arms is not None:
        return {name for arm in arms for name in types_of(arm, levels - 1)}
    if isinstance(schema.get("enum"), list):
        return {name for value in schema["enum"] for name, is_of in IS_OF.items() if is_of(value)}
    return IS_OF.keys() & _kinds_of(schema) or {*IS_OF}
