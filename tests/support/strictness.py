"""What the strict profile promises, as JSON Schemas: a revision's schema that also refuses what only another revision
names.

In the place of each definition that both revisions have stands one in which the fields that only the *other* one names
are `false`. Keys that neither names stay allowed, as in every open object. Judged by the same independent validator as
validity. Used by the laws.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import jsonschema
from jsonschema.validators import validator_for

from tests.support.judge import canonical
from tests.support.renames import definition_in

KEPT_ON_PURPOSE = {
    (schema, key) for schema in ("inputSchema", "outputSchema") for key in ("$schema", "properties", "required", "type")
}
"""Fields that stay though the target does not name them (decisions keep-schema-dialects and keep-schemas-whole)."""

KEPT_ON_THE_WAY_DOWN = frozenset({"_meta", "extensions"})
"""Fields that stay wherever they stand (decisions keep-metadata and keep-extensions)."""

ENVELOPE = {("", "jsonrpc"), ("", "id"), ("params", "_meta")}
"""Fields of every frame, which the older files name in the base interfaces only."""


@cache
def strict_validator(source: str, target: str, definition: str) -> jsonschema.protocols.Validator:
    """A validator of *target* that refuses the fields that only *source* names."""
    theirs, schema = canonical(source)["$defs"], copy.deepcopy(canonical(target))
    for name, node in schema["$defs"].items():
        kept = KEPT_ON_THE_WAY_DOWN if target < source else frozenset()
        schema["$defs"][name] = _Pair(theirs, canonical(target)["$defs"], kept).strict(
            theirs.get(definition_in(target, source, name)) or theirs.get(name, {}), node, ""
        )
    return validator_for(schema)({"$defs": schema["$defs"], "allOf": [{"$ref": f"#/$defs/{definition}"}]})


class _Pair:
    """The definitions of two revisions, and the fields that stay wherever they stand."""

    def __init__(self, theirs: dict[str, Any], ours: dict[str, Any], kept: frozenset[str]) -> None:
        self.theirs, self.ours, self.kept = theirs, ours, kept

    def strict(self, theirs: Any, ours: Any, name: str) -> Any:
        """*ours*, refusing the properties of the same object in *theirs* that *ours* does not have."""
        if not isinstance(theirs, dict) or not isinstance(ours, dict) or ("$ref" in theirs and "$ref" in ours):
            return ours
        theirs = _resolved(theirs, self.theirs)
        ours = copy.deepcopy(self.ours[ours["$ref"].removeprefix("#/$defs/")] if "$ref" in ours else ours)
        for keyword in ("items", "additionalProperties"):
            if keyword in ours:
                ours[keyword] = self.strict(theirs.get(keyword), ours[keyword], "")
        if ours.get("type") != "object" or ours.get("additionalProperties", {}) not in ({}, True):
            return ours
        properties = ours.setdefault("properties", {})
        for key, node in theirs.get("properties", {}).items():
            if key in properties:
                properties[key] = self.strict(node, properties[key], key)
            elif key not in self.kept and (name, key) not in KEPT_ON_PURPOSE | ENVELOPE:
                properties[key] = False
        return ours


def _resolved(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """What a reference leads to; a union of objects counts as one object with the fields of all."""
    while "$ref" in node:
        node = definitions[node["$ref"].removeprefix("#/$defs/")]
    arms = [_resolved(arm, definitions) for arm in node.get("anyOf", [])]
    if arms and all("properties" in arm for arm in arms) and "properties" not in node:
        merged = {key: child for arm in arms for key, child in arm["properties"].items()}
        node = {**node, "properties": merged}
    resolved: dict[str, Any] = copy.deepcopy(node)
    return resolved
