"""The keywords of JSON Schema, in one table: what the generator does with each.

`COMPARED` keywords are part of a type: models check them, steps compare them. `ANNOTATIONS` say nothing about which
values are valid and are left out. Any other keyword is refused by name, with its pointer. To teach one: give it a place
in `model`, read it in `load`, compare it in `compare/type_facts`, spell it in `write/checks`, and enter it here.
Keywords that begin with `x-` are for tools, and are left out. Called by `normalise`, the one reader.
"""

from __future__ import annotations

from codegen.read.patterns import read_pattern

LIMITS = frozenset(
    {
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
    }
)
"""Compared: how large, how long, how many."""

SHAPES = frozenset(
    {
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "enum",
        "items",
        "oneOf",
        "pattern",
        "properties",
        "required",
        "type",
    }
)
"""Compared: what a value is made of. `oneOf` is read as `anyOf`, and refused where two of its arms share values, and
`pattern` as `patterns` says.
"""

COMPARED = LIMITS | SHAPES

ANNOTATIONS = frozenset(
    {
        "$comment",
        "$schema",
        "contentEncoding",
        "contentMediaType",
        "default",
        "deprecated",
        "description",
        "examples",
        "format",
        "readOnly",
        "title",
        "writeOnly",
    }
)
"""Left out: no value is more or less valid for them. `format` is one of them in both dialects that MCP uses."""

SAYS_NOTHING: tuple[tuple[str, object], ...] = (
    ("propertyNames", {"type": "string"}),
    ("propertyNames", {}),
    ("uniqueItems", False),
)
"""Left out: keywords with a value that every JSON value satisfies."""

_NUMBERS = frozenset({"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"})

_COUNTS = LIMITS - _NUMBERS


def is_misused(keyword: str, value: object) -> bool:
    """Whether a limit or a list of names is something else: read as it stands, it would mean anything."""
    if keyword in LIMITS:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return not is_number or (keyword in _COUNTS and (not isinstance(value, int) or value < 0))
    if keyword == "pattern":
        return not isinstance(value, str) or read_pattern(value) is None
    if keyword == "required":
        return not isinstance(value, list) or not all(isinstance(name, str) for name in value)
    return False


TOLD_OF = {
    "array": frozenset({"items", "maxItems", "minItems"}),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "object": frozenset({"additionalProperties", "properties", "required"}),
    "string": frozenset({"maxLength", "minLength", "pattern"}),
}
"""Which keywords say something about values of which JSON type; about others they say nothing."""
