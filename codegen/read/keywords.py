"""The keywords of JSON Schema, in one table: what the generator does with each.

`COMPARED` keywords are part of a type: models check them, steps compare them. `ANNOTATIONS` say nothing about which
values are valid and are left out. Any other keyword is refused by name, with its pointer. To teach one: give it a place
in `model`, read it in `load`, compare it in `compare/type_facts`, spell it in `write/checks`, and enter it here.
Keywords that begin with `x-` are for tools, and are left out. Called by `normalise`, the one reader.
"""

from __future__ import annotations

import re

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
`pattern` as `read_pattern` says.
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


_PARTS = re.compile(
    r"""(?P<escape> \\[dw] ) | (?P<plain> \\[nrt./\\^$*+?()\[\]{}|\-] | [^\\\[\](){}*+?|^$.] )
    | (?P<class> \[ \^? (?: \\[dwnrt./\\^$*+?()\[\]{}|\-] | [^\\\[\]&~|] )+ \] )
    | (?P<dot> \. ) | (?P<end> \$ )
    | (?P<other> \^ | \( (?: \?: | (?!\?) ) | [)|] | [*+?] \?? | \{ [0-9]{1,4} (?:,[0-9]{0,4})? \} \?? )""",
    re.VERBOSE,
)
_SETS = {r"\d": "0-9", r"\w": "A-Za-z0-9_"}


def read_pattern(pattern: str) -> str | None:
    """A regular expression of ECMA-262 as one of Python that finds the same; `None` where that is not sure.

    Python's `\\d` and `\\w` take digits and letters of all scripts, its `$` stands before a last line break, too, and
    its `.` takes more line ends. What looks around, refers back or names properties of characters is not read.
    """
    found, place = "", 0
    while place < len(pattern):
        part = _PARTS.match(pattern, place)
        if part is None:
            return None
        text, place = part[0], part.end()
        match part.lastgroup:
            case "escape":
                text = f"[{_SETS[text]}]"
            case "class":
                text = re.sub(r"\\.", lambda one: _SETS.get(one[0], one[0]), text)
            case "dot":
                text = r"[^\n\r\u2028\u2029]"
            case "end":
                text = r"\Z"
        found += text
    try:
        re.compile(found)
    except re.error:
        return None
    return found
