"""Predicates are tried on values, as generated steps try them."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.read.model import Ref
from codegen.write.checks import Checks
from tests.support.small_specs import INTEGER, NUMBER, STRING, Schema, any_of, array_of, const, object_of, ref, spec

TREE = {"Tree": object_of("name", name=STRING, below=array_of(ref("Tree")))}

VALUES = [
    ({}, None, True),
    (STRING, "x", True),
    (STRING, 1, False),
    (INTEGER, 1, True),
    (INTEGER, 1.0, True),
    (INTEGER, 1.5, False),
    (INTEGER, True, False),
    (NUMBER, 1.5, True),
    (NUMBER, 1, True),
    ({"type": ["integer", "number"]}, 1.5, True),
    ({"type": ["string", "null"]}, None, True),
    ({"type": ["string", "null"]}, 1, False),
    ({"type": "integer", "minimum": 0, "maximum": 9}, 9, True),
    ({"type": "integer", "minimum": 0, "maximum": 9}, 10, False),
    ({"type": "integer", "minimum": 0, "maximum": 9}, -1, False),
    (const("a"), "a", True),
    (const(1), True, False),
    ({"enum": ["a", "b"]}, "c", False),
    (any_of(STRING, INTEGER), 1, True),
    (any_of(STRING, INTEGER), [], False),
    (array_of({}), [None], True),
    (array_of({}), {}, False),
    (array_of(STRING), ["a", 1], False),
    (array_of(STRING, maxItems=1), ["a"], True),
    (array_of(STRING, maxItems=1), ["a", "b"], False),
    (array_of(array_of(STRING)), [["a"], [1]], False),
    (object_of(), {"x": 1}, True),
    (object_of("a", a={}), {}, False),
    (object_of("a", a=STRING), {"a": 1}, False),
    (object_of(a=STRING), {}, True),
    (object_of(a=STRING), {"a": 1}, False),
    (object_of(a={}), {"a": 1}, True),
    ({"type": "object", "additionalProperties": STRING}, {"x": 1}, False),
    ({**object_of(a=STRING), "additionalProperties": False}, {}, True),
    ({**object_of(a=STRING), "additionalProperties": False}, {"a": "x", "b": 1}, False),
    (array_of(STRING, minItems=1), [], False),
    (array_of(STRING, minItems=1), ["a"], True),
    ({"type": "string", "minLength": 1, "maxLength": 2}, "", False),
    ({"type": "string", "minLength": 1, "maxLength": 2}, "ab", True),
    ({"type": "string", "minLength": 1, "maxLength": 2}, "abc", False),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0, False),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5, True),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 1, False),
    (const(1), 1.0, True),
    (const(True), True, True),
    (const(True), 1, False),
    ({"enum": ["a", 1, None]}, None, True),
    ({"enum": ["a", 1, None]}, 1, True),
    ({"enum": ["a", 1, None]}, True, False),
]


def is_accepted(schema: Schema, value: Any) -> bool:
    told = spec({"It": schema})
    return bool(eval(Checks(told, "up").expression(told.definitions["It"], "v"), {"v": value}))


@pytest.mark.parametrize(("schema", "value", "accepted"), VALUES)
def test_expression_accepts_what_the_type_accepts(schema: Schema, value: Any, accepted: bool) -> None:
    assert is_accepted(schema, value) is accepted


@pytest.mark.parametrize(("value", "accepted"), [([{"name": "a"}], True), ([{"name": 1}], False)])
def test_function_of_a_definition_follows_it_in_circles(value: Any, accepted: bool) -> None:
    told = spec(TREE)
    checks = Checks(told, "up")
    name = checks.function(told.at("/$defs/Tree/properties/below/items"), "unused")
    functions: dict[str, Any] = {}
    for function, expression in checks.functions.items():
        functions[function] = eval(f"lambda v: {expression}", functions)
    assert functions[name]({"name": "root", "below": value}) is accepted


def test_function_of_a_definition_is_named_after_it() -> None:
    assert Checks(spec(TREE), "up").function(spec(TREE).definitions["Tree"], "Tree.below[]") == "up_is_tree_below_item"


def test_function_of_a_definition_is_spelled_once() -> None:
    told = spec({**TREE, "Pair": object_of("a", "b", a=ref("Tree"), b=ref("Tree"))})
    checks = Checks(told, "up")
    checks.function(told.definitions["Pair"], "Pair")
    assert sorted(checks.functions) == ["up_is_pair", "up_is_tree"]


def test_definitions_whose_names_differ_in_spelling_only_have_a_function_each() -> None:
    checks = Checks(spec({"ToolInfo": STRING, "Tool_Info": INTEGER}), "up")
    asked = [checks.expression(Ref(name), "v") for name in ("ToolInfo", "Tool_Info")]
    assert asked == ["up_is_tool_info(v)", "up_is_tool_info_(v)"]
    assert checks.functions["up_is_tool_info"] != checks.functions["up_is_tool_info_"]
