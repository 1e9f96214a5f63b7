"""Whether what somebody has filled in is what a form asks for: its members, their types, choices and bounds.

Only for the flat forms of elicitation, whose values are texts, numbers, booleans and arrays of texts
(2025-11-25/client/elicitation); anything else in such a schema says nothing here. What a `format` means is left out:
servers differ in that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

IS_OF: Final[Mapping[str, Callable[[Any], bool]]] = MappingProxyType(
    {
        "array": lambda value: isinstance(value, list),
        "boolean": lambda value: isinstance(value, bool),
        "integer": lambda value: (
            not isinstance(value, bool)
            and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
        ),
        "null": lambda value: value is None,
        "number": lambda value: not isinstance(value, bool) and isinstance(value, int | float),
        "object": lambda value: isinstance(value, dict),
        "string": lambda value: isinstance(value, str),
    }
)
"""The types of JSON Schema."""

_BOUNDS: Final[Mapping[str, Callable[[Any, float], bool]]] = MappingProxyType(
    {
        "minimum": lambda value, bound: value >= bound,
        "maximum": lambda value, bound: value <= bound,
        "minLength": lambda value, bound: len(value) >= bound,
        "maxLength": lambda value, bound: len(value) <= bound,
        "minItems": lambda value, bound: len(value) >= bound,
        "maxItems": lambda value, bound: len(value) <= bound,
    }
)
_BOUNDED: Final = MappingProxyType({"imum": "number", "Length": "string", "Items": "array"})


def find_misfit(content: Mapping[str, Any], form: Any) -> str | None:
    """Return the name of a member that is missing, or not what the form asks for; None if all are."""
    properties, required = (form.get(name) for name in ("properties", "required")) if isinstance(form, dict) else (0, 0)
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in content:
            return name
    for name, value in content.items():
        wanted = properties.get(name) if isinstance(properties, dict) else None
        if isinstance(wanted, dict) and not _fits(value, wanted):
            return name
    return None


def _fits(value: Any, wanted: Mapping[str, Any]) -> bool:
    kind = wanted.get("type")
    if isinstance(kind, str) and kind in IS_OF and not IS_OF[kind](value):
        return False
    for name, holds in _BOUNDS.items():
        bound, of = wanted.get(name), _BOUNDED[name[3:]]
        if isinstance(bound, int | float) and IS_OF[of](value) and not holds(value, bound):
            return False
    several = isinstance(value, list)
    choices = _list_choices(wanted.get("items") if several else wanted)
    return choices is None or all(_spell(one) in choices for one in (value if several else [value]))


def _list_choices(wanted: Any) -> frozenset[str] | None:
    """Return what can be chosen; None where that is not limited."""
    if not isinstance(wanted, dict):
        return None
    listed, titled = wanted.get("enum"), wanted.get("oneOf", wanted.get("anyOf"))
    if not isinstance(listed, list):
        if not isinstance(titled, list) or not all(isinstance(one, dict) and "const" in one for one in titled):
            return None
        listed = [one["const"] for one in titled]
    choices = frozenset(map(_spell, listed))
    return None if "" in choices else choices


def _spell(value: Any) -> str:
    """Return the same text for equal values; nothing for what is none of a form's.

    Texts, because a peer cannot choose numbers that are slow to find in a set, as it can with long integers.
    """
    match value:
        case str():
            return f'"{value}'
        case float() if not value.is_integer():
            return repr(value)
        case bool() | None:
            return str(value)
        case int() | float():
            return hex(int(value))
    return ""
