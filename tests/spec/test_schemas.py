"""Actions on JSON Schemas inside messages: where references and keywords are, and what they mean there."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec import Loss, schemas
from dragoman_spec.losses import Losses, spell

HERE = {"$ref": "#/$defs/a"}
MOVED = {"$ref": "#/properties/result/$defs/a"}
ONE = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
MANY = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
NAMED = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
"""The keywords of both dialects that hold schemas: one, a list of them, or several by name."""


def wrapped(schema: dict[str, Any]) -> Any:
    return schemas.wrap_schema({"type": "array", **schema}, None, Losses(), key="result")


@pytest.mark.parametrize(
    ("keyword", "given", "moved"),
    [
        *((keyword, HERE, MOVED) for keyword in ONE),
        *((keyword, [{}, HERE], [{}, MOVED]) for keyword in MANY),
        *((keyword, {"x": HERE, "not": {"items": HERE}}, {"x": MOVED, "not": {"items": MOVED}}) for keyword in NAMED),
        ("dependencies", {"x": ["y"]}, {"x": ["y"]}),
    ],
)
def test_a_reference_moves_with_the_schema_wherever_a_schema_can_stand(keyword: str, given: Any, moved: Any) -> None:
    assert wrapped({keyword: given})["properties"]["result"][keyword] == moved


@pytest.mark.parametrize("keyword", ["const", "default", "x-vendor"])
def test_what_looks_like_a_reference_in_a_value_is_none(keyword: str) -> None:
    assert wrapped({keyword: HERE})["properties"]["result"][keyword] == HERE


@pytest.mark.parametrize("target", ["#anchor", "other.json", "other.json#/$defs/a", "https://example.com/s#/$defs/a"])
def test_a_reference_to_a_name_or_another_file_stays(target: str) -> None:
    assert wrapped({"items": {"$ref": target}})["properties"]["result"]["items"] == {"$ref": target}


def test_a_reference_to_the_whole_schema_leads_to_what_it_was() -> None:
    assert wrapped({"items": {"$ref": "#"}})["properties"]["result"]["items"] == {"$ref": "#/properties/result"}


def test_a_wrapped_schema_keeps_its_dialect_and_asks_for_the_value() -> None:
    found = wrapped({"$schema": "http://json-schema.org/draft-07/schema#"})
    assert found == {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"result": {"type": "array"}},
        "required": ["result"],
    }


@pytest.mark.parametrize("keyword", ["$recursiveRef", "$recursiveAnchor"])
def test_a_schema_that_recurs_through_its_root_is_left_out(keyword: str) -> None:
    losses = Losses()
    given = {"type": "array", "items": {keyword: "#"}}
    schemas.wrap_schema(given, None, losses, key="result")
    assert spell(losses.notes) == (Loss("", "dropped", given),)


def test_schemas_that_are_booleans_become_objects_that_say_the_same() -> None:
    found = schemas.objects_for_booleans({"properties": {"a": True, "b": False, "c": {"type": "null"}}}, None, Losses())
    assert found["properties"] == {"a": {}, "b": {"not": {}}, "c": {"type": "null"}}


@pytest.mark.parametrize(
    ("schema", "means_the_same"),
    [
        ({"properties": {"a": {"type": "string"}}}, True),
        ({"definitions": {"a": {}}, "items": {"$ref": "#/definitions/a"}}, True),
        ({"definitions": {"a": {}}, "$ref": "#/definitions/a"}, True),
        ({"items": {"$ref": "#/definitions/a", "maxLength": 3}}, False),
        ({"items": {"items": [{}, {}]}}, False),
        ({"not": {"dependencies": {"a": ["b"]}}}, False),
        ({"anyOf": [{"additionalItems": False}]}, False),
    ],
)
def test_an_old_dialect_goes_only_where_it_means_the_same_in_the_new_one(schema: Any, means_the_same: bool) -> None:
    tool = {"inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", **schema}}
    frame = {"result": {"tools": [tool]}}
    found = schemas.drop_old_dialect(frame, None, Losses(), list_field="tools", fields=["inputSchema"])
    assert ("$schema" not in found["result"]["tools"][0]["inputSchema"]) is means_the_same
