"""What the strict profile promises, as JSON Schemas: a revision's schema that also refuses what only another revision
names.

In the place of each definition that both revisions have stands one in which the fields that only the *other* one names
are `false`. Keys that neither names stay allowed, as in every open object. Judged by the same independent validator as
validity. Used by the laws.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.validators import validator_for

from tests.support.judge import canonical
from tests.support.renames import definition_in

KEPT_ON_PURPOSE = {
    (schema, key) for schema in ("inputSchema", "outputSchema") for key in ("$schema", "properties", "required", "type")
}
"""Fields that have to stay though the target does not name them; what else a `[[decision]]` keeps may stay."""

KEPT_ON_THE_WAY_DOWN = frozenset({"_meta", "extensions"})
"""Fields that stay wherever they stand (decisions keep-metadata and keep-extensions)."""

OVERLAYS = Path(__file__).resolve().parents[2] / "codegen" / "overlays"

ENVELOPE = {("", "jsonrpc"), ("", "id"), ("params", "_meta")}
"""Fields of every frame, which the older files name in the base interfaces only."""


@cache
def strict_validator(source: str, target: str, definition: str) -> jsonschema.protocols.Validator:
    """A validator of *target* that refuses the fields that only *source* names."""
    definitions = _strict_definitions(source, target)
    kind = validator_for(canonical(target))
    return kind({"$defs": definitions, "allOf": [{"$ref": f"#/$defs/{definition}"}]})


@cache
def _strict_definitions(source: str, target: str) -> dict[str, Any]:
    theirs, ours = canonical(source)["$defs"], canonical(target)["$defs"]
    strict = {}
    for name, node in ours.items():
        there = definition_in(target, source, name)
        pair = _Pair(source, target, {name, there})
        strict[name] = pair.strict(theirs.get(there) or theirs.get(name, {}), node, ())
    return strict


@cache
def decided_to_keep(source: str, target: str) -> tuple[re.Pattern[str], ...]:
    """The places of fields that overlays keep on the way from one revision to another, as they write them."""
    direction = "up" if source < target else "down"
    found = []
    for file in sorted(OVERLAYS.glob("*.toml")):
        if min(source, target) < file.stem <= max(source, target):
            for row in tomllib.loads(file.read_text("utf-8")).get("decision", []):
                if (row["direction"], row["change"], row["do"]) == (direction, "field-removed", "keep"):
                    found += [row["at"]] if isinstance(row["at"], str) else row["at"]
    return tuple(re.compile(".*".join(map(re.escape, place.split("*")))) for place in found)


class _Pair:
    """One definition of two revisions, by its name in each, and the fields that stay wherever they stand."""

    def __init__(self, source: str, target: str, names: set[str]) -> None:
        self.theirs, self.ours = canonical(source)["$defs"], canonical(target)["$defs"]
        self.kept = KEPT_ON_THE_WAY_DOWN if target < source else frozenset()
        self.decided, self.names = decided_to_keep(source, target), names

    def strict(self, theirs: Any, ours: Any, path: tuple[str, ...]) -> Any:
        """*ours*, refusing the properties of the same object in *theirs* that *ours* does not have."""
        if not isinstance(theirs, dict) or not isinstance(ours, dict) or ("$ref" in theirs and "$ref" in ours):
            return ours
        theirs = _resolved(theirs, self.theirs)
        ours = dict(self.ours[ours["$ref"].removeprefix("#/$defs/")] if "$ref" in ours else ours)
        for keyword, mark in (("items", "[]"), ("additionalProperties", "{}")):
            if keyword in ours:
                ours[keyword] = self.strict(theirs.get(keyword), ours[keyword], (*path, mark))
        if ours.get("type") != "object" or ours.get("additionalProperties", {}) not in ({}, True):
            return ours
        properties = ours["properties"] = dict(ours.get("properties", {}))
        for key, node in theirs.get("properties", {}).items():
            if key in properties:
                properties[key] = self.strict(node, properties[key], (*path, f".{key}"))
            elif not self._may_stay(path, key):
                properties[key] = False
        return ours

    def _may_stay(self, path: tuple[str, ...], key: str) -> bool:
        name = path[-1].removeprefix(".") if path and path[-1] not in ("[]", "{}") else ""
        if key in self.kept or (name, key) in KEPT_ON_PURPOSE | ENVELOPE:
            return True
        places = ["".join((definition, *path, f".{key}")) for definition in self.names]
        return any(decided.fullmatch(place) for decided in self.decided for place in places)


def _resolved(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """What a reference leads to; a union of objects counts as one object with the fields of all."""
    while "$ref" in node:
        node = definitions[node["$ref"].removeprefix("#/$defs/")]
    arms = [_resolved(arm, definitions) for arm in node.get("anyOf", [])]
    if arms and all("properties" in arm for arm in arms) and "properties" not in node:
        merged = {key: child for arm in arms for key, child in arm["properties"].items()}
        node = {**node, "properties": merged}
    return node
