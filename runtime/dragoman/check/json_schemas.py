"""JSON Schemas in tools: whether they are schemas at all, and whether a value fits one.

Lives here: the keywords of draft 2020-12 whose form or meaning a server can get wrong. Must not: fetch anything: a
reference to another document says nothing here, and is let pass. A keyword that is not known is let pass as well.

Source: https://json-schema.org/draft/2020-12, Core and Validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from dragoman.core.exact_json import escape
from dragoman.core.rules.forms import IS_OF

TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_DEEPEST: Final = 64
_MOST: Final = 20
"""How many defects are looked for."""

_STEPS: Final = 100_000
"""How many places of a schema a value is held against."""


class SchemaDefect(NamedTuple):
    """A place where a schema is not one, or a value does not fit."""

    pointer: str
    expected: str
    found: str


_ONE_SCHEMA: Final = frozenset(
    {"additionalProperties", "propertyNames", "contains", "not", "if", "then", "else", "unevaluatedProperties"}
)
_MANY_SCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED_SCHEMAS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_COUNTS: Final = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"})
_NUMBERS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_TEXTS: Final = frozenset(
    {"title", "description", "$id", "$schema", "$ref", "$anchor", "format", "pattern", "$comment"}
)


def find_defects(schema: Any) -> list[SchemaDefect]:
    """Return the first things that are wrong with a schema."""
    return [*islice(_look(schema, "", schema, 0), _MOST)]


def _look(schema: Any, at: str, root: Any, depth: int) -> Iterator[SchemaDefect]:
    if isinstance(schema, bool) or depth > _DEEPEST:
        return
    if not isinstance(schema, dict):
        yield SchemaDefect(at, "a schema: an object or a boolean", named(schema))
        return
    for keyword, value in schema.items():
        place = f"{at}/{escape(keyword)}"
        if keyword in _ONE_SCHEMA or (keyword == "items" and not isinstance(value, list)):
            yield from _look(value, place, root, depth + 1)
        elif keyword in _MANY_SCHEMAS:
            yield from _look_at_many(value, place, root, depth)
        elif keyword in _NAMED_SCHEMAS:
            yield from _look_at_named(value, place, root, depth)
        else:
            yield from _look_at_value(keyword, value, place, root)
    yield from _find_impossible(schema, at)


def _look_at_many(value: Any, at: str, root: Any, depth: int) -> Iterator[SchemaDefect]:
    if not isinstance(value, list) or not value:
        yield SchemaDefect(at, "an array of schemas", named(value))
        return
    for index, one in enumerate(value):
        yield from _look(one, f"{at}/{index}", root, depth + 1)


def _look_at_named(value: Any, at: str, root: Any, depth: int) -> Iterator[SchemaDefect]:
    if not isinstance(value, dict):
        yield SchemaDefect(at, "an object of schemas", named(value))
        return
    for name, one in value.items():
        yield from _look(one, f"{at}/{escape(name)}", root, depth + 1)


def _look_at_value(keyword: str, value: Any, at: str, root: Any) -> Iterator[SchemaDefect]:
    if keyword == "type":
        yield from _look_at_type(value, at)
    elif keyword == "required":
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            yield SchemaDefect(at, "an array of names", named(value))
        elif len(set(value)) < len(value):
            yield SchemaDefect(at, "each name once", "a name twice")
    elif keyword == "enum":
        if not isinstance(value, list):
            yield SchemaDefect(at, "an array", named(value))
    elif keyword in _COUNTS:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            yield SchemaDefect(at, "a number of things, 0 or more", named(value))
    elif keyword in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield SchemaDefect(at, "a number", named(value))
    elif keyword in _TEXTS:
        if not isinstance(value, str):
            yield SchemaDefect(at, "a string", named(value))
        elif keyword == "$ref" and value.startswith("#") and _find(value, root) is None:
            yield SchemaDefect(at, "a place in this schema", repr(value[:60]))


def _look_at_type(value: Any, at: str) -> Iterator[SchemaDefect]:
    several = value if isinstance(value, list) else [value]
    if not several or not all(isinstance(one, str) and one in TYPES for one in several):
        yield SchemaDefect(at, f"one of {', '.join(TYPES)}", named(value))
    elif len(set(several)) < len(several):
        yield SchemaDefect(at, "each type once", "a type twice")


def _find_impossible(schema: Mapping[str, Any], at: str) -> Iterator[SchemaDefect]:
    """Find a member that has to be there and must not be there."""
    required, known = schema.get("required"), schema.get("properties")
    if schema.get("additionalProperties") is not False or "patternProperties" in schema:
        return
    if not isinstance(required, list):
        return
    names = known if isinstance(known, dict) else {}
    for name in required:
        if isinstance(name, str) and name not in names:
            yield SchemaDefect(f"{at}/required", "names that the schema allows", f"{name[:60]!r}, which it forbids")


def _find(ref: str, root: Any) -> Any:
    if not ref.startswith("#/") and ref != "#":
        return True if ref.startswith("#") else None  # an anchor, which may be anywhere
    found = root
    for part in ref[2:].split("/") if len(ref) > 1 else ():
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            return None
    return found


# Values


def find_misfits(value: Any, schema: Any) -> list[SchemaDefect]:
    """Return the first places where a value does not fit a schema, as far as that can be told here."""
    return [*islice(_hold(value, schema, "", _Root(schema), 0), _MOST)]


class _Root:
    """A whole schema, and how much of it is still looked at: references may double the work at each step."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.left = _STEPS


def _hold(value: Any, schema: Any, at: str, root: _Root, depth: int) -> Iterator[SchemaDefect]:
    root.left -= 1
    if schema is False:
        yield SchemaDefect(at, "nothing", named(value))
    if not isinstance(schema, dict) or depth > _DEEPEST or root.left < 0:
        return
    ref = schema.get("$ref")
    if isinstance(ref, str) and ref.startswith("#"):
        yield from _hold(value, _find(ref, root.schema), at, root, depth + 1)
    kinds = schema.get("type")
    wanted = kinds if isinstance(kinds, list) else [kinds] if isinstance(kinds, str) else []
    if wanted and not any(IS_OF.get(kind, _anything)(value) for kind in wanted):
        yield SchemaDefect(at, " or ".join(map(str, wanted)), named(value))
        return
    if "const" in schema and schema["const"] != value:
        yield SchemaDefect(at, repr(schema["const"])[:60], named(value))
    if isinstance(schema.get("enum"), list) and value not in schema["enum"]:
        yield SchemaDefect(at, "one of the values listed", named(value))
    for one in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        yield from _hold(value, one, at, root, depth + 1)
    for several in (schema.get("anyOf"), schema.get("oneOf")):
        if isinstance(several, list) and not any(
            next(_hold(value, one, at, root, depth + 1), None) is None for one in several
        ):
            yield SchemaDefect(at, "what one of several schemas asks for", named(value))
    if isinstance(value, dict):
        yield from _hold_members(value, schema, at, root, depth)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict | bool):
        for index, one in enumerate(value):
            yield from _hold(one, schema["items"], f"{at}/{index}", root, depth + 1)


def _hold_members(
    value: Mapping[str, Any], schema: Mapping[str, Any], at: str, root: _Root, depth: int
) -> Iterator[SchemaDefect]:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    for name in schema["required"] if isinstance(schema.get("required"), list) else ():
        if isinstance(name, str) and name not in value:
            yield SchemaDefect(f"{at}/{escape(name)}", "a value", "nothing")
    for name, one in value.items():
        if name in properties:
            yield from _hold(one, properties[name], f"{at}/{escape(name)}", root, depth + 1)
        elif "patternProperties" not in schema and "additionalProperties" in schema:
            yield from _hold(one, schema["additionalProperties"], f"{at}/{escape(name)}", root, depth + 1)


def _anything(value: Any) -> bool:
    return True


def named(value: Any) -> str:
    """Return a value in a few words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float() | str():
            return repr(value)[:60]
        case list():
            return "an array"
        case _:
            return "an object"


def is_template(text: str) -> bool:
    """Whether a text is a URI template of RFC 6570."""
    return _TEMPLATE.fullmatch(text) is not None


_VARIABLE: Final = r"[A-Za-z0-9_%](?:\.?[A-Za-z0-9_%])*(?:\*|:[1-9]\d{0,3})?"
_TEMPLATE: Final = re.compile(rf"(?:[^{{}}\s<>\"^`|\\]|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})*")
