"""Small questions about types."""

from __future__ import annotations

import pytest

from codegen.compare.type_facts import accepts, fits, json_type, same_kind, words, words_all
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
    (const(1.0), INTEGER, True),
    (const(True), INTEGER, False),
    (const(True), const(1), False),
    (const(1.0), const(1), True),
    (INTEGER, {"type": "number", "exclusiveMinimum": 0}, False),
    ({"type": "integer", "minimum": 0}, {"type": "number", "exclusiveMinimum": 0}, False),
    ({"type": "integer", "minimum": 1}, {"type": "number", "exclusiveMinimum": 0}, True),
    ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "minimum": 0}, True),
    ({"type": "integer", "maximum": 9}, {"type": "number", "exclusiveMaximum": 9}, False),
    ({"type": "integer", "maximum": 8}, {"type": "number", "exclusiveMaximum": 9}, True),
    ({"type": "number", "exclusiveMaximum": 9}, {"type": "number", "maximum": 9}, True),
    (STRING, {"type": "string", "minLength": 1}, False),
    ({"type": "string", "minLength": 2}, {"type": "string", "minLength": 1}, True),
    (STRING, {"type": "string", "maxLength": 9}, False),
    ({"type": "string", "maxLength": 8}, {"type": "string", "maxLength": 9}, True),
    ({"type": "string", "maxLength": 10}, {"type": "string", "maxLength": 9}, False),
    (const("abc"), {"type": "string", "maxLength": 2}, False),
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
    ({"type": ["string", "null"]}, "string | null"),
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
    (const("a"), "scalar"),
    (BOOLEAN, "scalar"),
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


ACCEPTED = [
    ({}, None, True),
    (STRING, "a", True),
    (STRING, None, False),
    ({"type": "null"}, None, True),
    ({"type": "null"}, False, False),
    (BOOLEAN, False, True),
    (any_of(STRING, INTEGER), 5, True),
    (any_of(STRING, INTEGER), 5.5, False),
    (array_of(STRING, minItems=1, maxItems=2), [], False),
    (array_of(STRING, minItems=1, maxItems=2), ["a"], True),
    (array_of(STRING, minItems=1, maxItems=2), ["a", "b", "c"], False),
    (array_of(STRING), [1], False),
    (array_of(STRING), "a", False),
    (object_of("a", a=STRING), {"a": "x", "b": 1}, True),
    (object_of("a", a=STRING), {"b": 1}, False),
    (object_of("a", a=STRING), {"a": 1}, False),
    (object_of("a", a=STRING), [], False),
    ({"type": "object", "additionalProperties": STRING}, {"a": 1}, False),
    (ref("Tool"), {}, True),
    (ref("Tool"), "tool", False),
    ({"type": "integer", "minimum": 1, "exclusiveMaximum": 3}, 3, False),
    ({"type": "integer", "minimum": 1, "exclusiveMaximum": 3}, 2, True),
    ({"type": "string", "minLength": 2, "maxLength": 3}, "a", False),
    ({"type": "string", "minLength": 2, "maxLength": 3}, "abc", True),
    ({"type": "string", "minLength": 2, "maxLength": 3}, "abcd", False),
]


@pytest.mark.parametrize(("schema", "value", "accepted"), ACCEPTED)
def test_accepts_tells_whether_a_value_is_valid(schema: Schema, value: object, accepted: bool) -> None:
    told = spec({"It": schema, "Tool": object_of()})
    assert accepts(told.definitions["It"], value, told.resolve) is accepted


def test_a_reference_that_nobody_follows_accepts_nothing() -> None:
    assert not accepts(spec({"It": ref("Tool"), "Tool": STRING}).definitions["It"], "a")


SAME_KINDS = [
    (STRING, const("a"), True),
    (INTEGER, NUMBER, True),
    (const(1), STRING, False),
    (array_of(STRING), object_of(), False),
    (array_of(STRING), array_of(INTEGER), True),
]


@pytest.mark.parametrize(("one", "two", "expected"), SAME_KINDS)
def test_same_kind_tells_whether_types_share_a_json_type(one: Schema, two: Schema, expected: bool) -> None:
    told = spec({"One": one, "Two": two}).definitions
    assert same_kind(told["One"], told["Two"]) is expected


def test_words_of_several_types_stand_beside_each_other() -> None:
    assert words_all(spec({"A": STRING, "B": INTEGER}).definitions.values()) == "string | integer"
