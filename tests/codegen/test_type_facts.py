"""Small questions about types."""

from __future__ import annotations

import pytest

from codegen.type_facts import fits, json_type, words, words_all
from tests.support.small_specs import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Schema,
    any_of,
    array_of,
    const,
    object_of,
    ref,
    spec,
)

FITS = [
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, True),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, False),
    ({"enum": ["a"]}, STRING, True),
    (const(1), STRING, False),
    (const(1), INTEGER, True),
    (INTEGER, NUMBER, True),
    (NUMBER, INTEGER, False),
    (STRING, {"type": ["string", "null"]}, True),
    (INTEGER, {"type": "integer", "minimum": 0}, False),
    ({"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 0}, True),
    (INTEGER, {"type": "integer", "maximum": 9}, False),
    ({"type": "integer", "maximum": 8}, {"type": "integer", "maximum": 9}, True),
    (STRING, const("a"), False),
    (array_of(STRING), array_of(STRING), True),
    (array_of(STRING), object_of(), False),
]

WORDS = [
    (ref("Tool"), "Tool"),
    ({"type": ["string", "null"]}, "null or string"),
    (const("a"), "'a'"),
    ({"enum": ["a", "b"]}, "one of a, b"),
    (array_of(ref("Tool")), "list of Tool"),
    (any_of(STRING, ref("Tool")), "string | Tool"),
    (object_of(a=STRING), "object"),
    ({}, "any value"),
]

JSON_TYPES = [
    (object_of(), "dict"),
    (array_of({}), "list"),
    (const("a"), "str"),
    (const(1), "int"),
    (BOOLEAN, "bool"),
    ({"type": ["string", "null"]}, "NoneType|str"),
    ({}, "object"),
]


@pytest.mark.parametrize(("source", "target", "expected"), FITS)
def test_fits_tells_whether_every_value_may_stay(source: Schema, target: Schema, expected: bool) -> None:
    told = spec({"One": source, "Two": target}).definitions
    assert fits(told["One"], told["Two"]) is expected


@pytest.mark.parametrize(("schema", "expected"), WORDS)
def test_words_say_a_type_to_a_person(schema: Schema, expected: str) -> None:
    assert words(spec({"It": schema, "Tool": object_of()}).definitions["It"]) == expected


@pytest.mark.parametrize(("schema", "expected"), JSON_TYPES)
def test_json_type_names_what_carries_the_values(schema: Schema, expected: str) -> None:
    assert json_type(spec({"It": schema}).definitions["It"]) == expected


def test_words_of_several_types_stand_beside_each_other() -> None:
    assert words_all(spec({"A": STRING, "B": INTEGER}).definitions.values()) == "string | integer"
