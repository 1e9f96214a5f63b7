"""Actions on JSON Schemas that travel inside messages (`inputSchema`, `outputSchema`).

A schema is a dict whose keywords have positions: a key `properties` of a schema holds schemas, one of `const` holds
data. Whoever rewrites references must know the difference, and does so here. Nothing here imports pydantic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .actions import GONE, action
from .losses import At, Losses

ONE = frozenset(
    {
        "additionalProperties",
        "propertyNames",
        "items",
        "contains",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedItems",
        "unevaluatedProperties",
        "additionalItems",
        "contentSchema",
    }
)
MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependencies", "dependentSchemas"})
REFERENCES = frozenset({"$ref", "$dynamicRef"})
UNMOVABLE = frozenset({"$recursiveRef", "$recursiveAnchor"})
DRAFT_7 = ("http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-07/schema")
CHANGED_SINCE_DRAFT_7 = frozenset({"dependencies", "additionalItems", "$recursiveRef", "$recursiveAnchor"})


def walk(schema: Any, visit: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of a schema in which *visit* has been applied to it and to every schema below it."""
    if not isinstance(schema, dict):
        return schema
    copy: dict[str, Any] = {}
    for key, value in schema.items():
        if key in NAMED and isinstance(value, dict):
            copy[key] = {name: walk(inner, visit) for name, inner in value.items()}
        elif key in MANY and isinstance(value, list):
            copy[key] = [walk(inner, visit) for inner in value]
        elif key in ONE:
            copy[key] = walk(value, visit)
        else:
            copy[key] = value
    return visit(copy)


@action("value", losses=["dropped", "rewritten"], gone=True)
def wrap_schema(value: Any, at: At, out: Losses, *, key: str) -> Any:
    """A schema of anything as the schema of an object with one member *key*, where its root does not say `object`.

    A root without a `type`, or with several, does not tell whether values will be wrapped; such a schema is left out,
    as is one whose references cannot be moved.
    """
    if not isinstance(value, dict) or value.get("type") == "object":
        return objects_for_booleans(value, at, out)
    kinds = value.get("type")
    if kinds is None or (isinstance(kinds, list) and "object" in kinds) or _unmovable(value):
        out.add(at, "dropped", value)
        return GONE
    out.add(at, "rewritten", value)
    inner = {name: item for name, item in value.items() if name != "$schema"}
    moved = inner if "$id" in inner else walk(inner, lambda node: _moved(node, f"#/properties/{key}"))
    dialect = {"$schema": value["$schema"]} if isinstance(value.get("$schema"), str) else {}
    return {**dialect, "type": "object", "properties": {key: moved}, "required": [key]}


@action("value", losses=["rewritten"], fresh=True, mends="properties")
def objects_for_booleans(value: Any, at: At, out: Losses) -> Any:
    """Spell `true` and `false` among a schema's `properties` as objects, for revisions that ask for objects there."""
    properties = value.get("properties") if type(value) is dict else None
    if type(properties) is not dict:
        return value
    for item in properties.values():
        if type(item) is bool:
            out.add((at, "properties"), "rewritten", properties)
            return {**value, "properties": {name: _as_object(inner) for name, inner in properties.items()}}
    return value


def _as_object(schema: Any) -> Any:
    if type(schema) is not bool:
        return schema
    return {} if schema else {"not": {}}


@action("frame", losses=["dropped"])
def drop_old_dialect(
    frame: dict[str, Any], at: At, out: Losses, *, list_field: str, fields: list[str]
) -> dict[str, Any]:
    """Take a draft-07 `$schema` off the schemas of listed items, where the schema means the same in 2020-12."""

    def newer(schema: dict[str, Any], place: At) -> dict[str, Any]:
        dialect = schema.get("$schema")
        if dialect not in DRAFT_7 or not _means_the_same(schema):
            return schema
        out.add((place, "$schema"), "dropped", dialect)
        return {key: value for key, value in schema.items() if key != "$schema"}

    for field in fields:
        frame = _mend(frame, at, list_field, field, newer)
    return frame


@action("frame", losses=["added"])
def supply_type(
    frame: dict[str, Any], at: At, out: Losses, *, list_field: str, field: str, value: str
) -> dict[str, Any]:
    """Say in a schema of listed items that values are of a type, where it says nothing: there is no other type."""

    def typed(schema: dict[str, Any], place: At) -> dict[str, Any]:
        out.add((place, "type"), "added", value, cosmetic=True)
        return {"type": value, **schema}

    return _mend(frame, at, list_field, field, typed, without="type")


def _mend(
    frame: dict[str, Any],
    at: At,
    list_field: str,
    field: str,
    change: Callable[[dict[str, Any], At], dict[str, Any]],
    without: str | None = None,
) -> dict[str, Any]:
    """The result with a schema of each of its listed items changed, where that lacks a keyword; the same frame where
    none is.
    """
    result = frame.get("result")
    items = result.get(list_field) if isinstance(result, dict) else None
    if not isinstance(items, list):
        return frame
    new = items
    for i, item in enumerate(items):
        schema = item.get(field) if type(item) is dict else None
        if type(schema) is not dict or without in schema:
            continue
        changed = change(schema, ((((at, "result"), list_field), i), field))
        if changed is not schema:
            new = items.copy() if new is items else new
            new[i] = {**item, field: changed}
    return frame if new is items else {**frame, "result": {**frame["result"], list_field: new}}


def _means_the_same(schema: dict[str, Any]) -> bool:
    """Whether no keyword in a draft-07 schema means something else in 2020-12."""
    same = True

    def visit(node: dict[str, Any]) -> dict[str, Any]:
        nonlocal same
        beside_reference = "$ref" in node and len(node) > 1 + ("$schema" in node) + ("definitions" in node)
        same = (
            same
            and not beside_reference
            and CHANGED_SINCE_DRAFT_7.isdisjoint(node)
            and not isinstance(node.get("items"), list)
        )
        return node

    walk(schema, visit)
    return same


def _unmovable(schema: dict[str, Any]) -> bool:
    found = False

    def visit(node: dict[str, Any]) -> dict[str, Any]:
        nonlocal found
        found = found or not UNMOVABLE.isdisjoint(node)
        return node

    walk(schema, visit)
    return found


def _moved(node: dict[str, Any], root: str) -> dict[str, Any]:
    moved = {
        key: root + value[1:]
        if key in REFERENCES and isinstance(value, str) and (value == "#" or value.startswith("#/"))
        else value
        for key, value in node.items()
    }
    return moved if moved != node else node
