"""The JSON Schema that a model exports accepts and rejects what the official one does, and says it in keywords."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dragoman_spec import REVISIONS, adapter, v2025_06_18, v2025_11_25, v2026_07_28
from tests.support.instances import mutants, random_instance
from tests.support.judge import canonical, is_valid
from tests.support.profile import SEED, rounds

INSTANCES = rounds(default=2, thorough=40)
MUTANTS = rounds(default=3, thorough=8)


@cache
def _exported(revision: str, definition: str) -> dict[str, Any]:
    return adapter(revision, definition).json_schema()


@pytest.mark.parametrize("revision", REVISIONS)
def test_exported_schema_judges_as_the_official_one(revision: str) -> None:
    rng = random.Random(SEED)
    disputed = []
    for definition in canonical(revision)["$defs"]:
        exported = Draft202012Validator(_exported(revision, definition))
        for _ in range(INSTANCES):
            instance = random_instance(rng, revision, definition)
            for value in (instance, *mutants(rng, instance, MUTANTS)):
                if exported.is_valid(value) != is_valid(value, revision, definition):
                    disputed.append((definition, value))
    assert disputed == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_exported_schema_is_a_schema_and_has_no_defaults_of_null(revision: str) -> None:
    seen = set()
    for definition in canonical(revision)["$defs"]:
        exported = _exported(revision, definition)
        # What it refers to is in many of them, and is looked at once.
        for schema in (*exported.get("$defs", {}).values(), {**exported, "$defs": {}}):
            if (text := json.dumps(schema)) not in seen:
                seen.add(text)
                Draft202012Validator.check_schema(schema)
                assert [node for node in _nodes(schema) if node.get("default", ...) is None] == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_exported_schema_has_no_keyword_that_nobody_knows(revision: str) -> None:
    """pydantic writes the limits of a number that is a type of ours as `ge`, which no validator reads."""
    known = {*Draft202012Validator.VALIDATORS, "$defs", "default", "description", "discriminator", "title"}
    found = {key for name in canonical(revision)["$defs"] for key in _keywords(_exported(revision, name))}
    assert found - known == set()


def test_whole_numbers_and_limits_are_keywords() -> None:
    assert v2026_07_28.CacheableResult.model_json_schema()["properties"]["ttlMs"]["type"] == "integer"
    priority = v2025_11_25.Annotations.model_json_schema()["properties"]["priority"]
    assert (priority["type"], priority["minimum"], priority["maximum"]) == ("number", 0, 1)


def test_schema_says_what_things_mean() -> None:
    exported = v2025_06_18.Tool.model_json_schema()
    assert exported["description"] == "A function that a server lets models call."
    assert exported["properties"]["name"] == {
        "type": "string",
        "description": "The name of the tool, for `tools/call`.",
    }


def _keywords(node: Any) -> Iterator[str]:
    """The keywords of a schema and of the schemas in it; a boolean is one without any."""
    if isinstance(node, dict):
        yield from node
        inside = [*node.get("properties", {}).values(), *node.get("$defs", {}).values()]
        inside += [schema for keyword in ("anyOf", "oneOf", "allOf") for schema in node.get(keyword, ())]
        for schema in (*inside, node.get("items"), node.get("additionalProperties")):
            yield from _keywords(schema)


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo += node.values()
        elif isinstance(node, list):
            todo += node
