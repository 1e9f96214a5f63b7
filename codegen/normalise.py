"""Canonical schema in, normalised schema out: the form that the model generator and the instance generators read.

Normalised means: every object with properties is a named definition; `allOf` is merged; a list of types is an `anyOf`
of single types; an `anyOf` whose arms carry a constant tag says so (`discriminator`); open objects say nothing about
being open. It accepts exactly what the canonical schema accepts. Must not live here: anything about Python or
pydantic, or comparing revisions. Called by `bindings`, `registry` and the tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codegen.errors import UnknownSchemaForm
from codegen.fixes import apply_fixes
from codegen.hoist import Site, helper_name, hoist_objects

PREFIX = "#/$defs/"
ANNOTATIONS = frozenset({"default", "description", "examples", "format", "title"})
CONSTRAINTS = frozenset(
    {"exclusiveMaximum", "exclusiveMinimum", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum"}
)
KEYWORDS = CONSTRAINTS | {
    *(
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "enum",
        "items",
        "oneOf",
        "properties",
        "required",
        "type",
    ),
}
SCALARS = frozenset({"boolean", "integer", "null", "number", "string"})

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Normalised:
    """A revision's schema in normal form.

    `definitions` has the schema's own definitions and the hoisted helpers, by name; `origins` gives the JSON pointer
    of each in the canonical file (`/$defs/Tool`, `/$defs/Tool/properties/inputSchema`).
    """

    revision: str
    definitions: Mapping[str, Schema]
    origins: Mapping[str, str]

    @property
    def helpers(self) -> frozenset[str]:
        """The definitions that upstream wrote in place, without a name."""
        return frozenset(name for name, origin in self.origins.items() if origin != f"/$defs/{name}")

    def resolve(self, node: Schema) -> Schema:
        """Follow references until something that is not one."""
        return resolve(self.definitions, node)

    def admits_null(self, node: Schema) -> bool:
        """Whether JSON `null` is valid for a node."""
        node = self.resolve(node)
        if "anyOf" in node:
            return any(self.admits_null(arm) for arm in node["anyOf"])
        return not node or node.get("type") == "null"


def read_normalised(root: Path, revision: str) -> Normalised:
    """Read a revision's canonical schema below *root*, apply its fixes, and normalise it.

    Raises:
        CodegenError: A fix does not fit, or the schema has a form without a rule.
    """
    schema = json.loads((root / "schema" / revision / "schema.json").read_text(encoding="utf-8"))
    return normalise(revision, apply_fixes(schema, root / "codegen" / "overlays" / f"{revision}.toml"))


def normalise(revision: str, schema: Schema) -> Normalised:
    """Bring a canonical schema, its fixes applied, into normal form.

    Raises:
        UnknownSchemaForm: A keyword or a combination of keywords that has no rule here.
    """
    reader = _Reader(revision, schema["$defs"])
    plain = {name: reader.read(node, f"/$defs/{name}") for name, node in sorted(schema["$defs"].items())}
    plain |= {name: {} for name in plain if _is_anything({"$ref": PREFIX + name}, plain, frozenset())}
    definitions, origins = hoist_objects(revision, plain)
    for site, union in _item_unions(definitions):
        name = helper_name(site)
        if definitions.setdefault(name, union) != union:
            raise UnknownSchemaForm(revision, site.pointer, f"another union whose name would be {name}")
        origins.setdefault(name, site.pointer)
    unions = _union_definitions(definitions)
    tagged = {name: _tag_unions(node, definitions, unions, name) for name, node in definitions.items()}
    return Normalised(revision, dict(sorted(tagged.items())), dict(sorted(origins.items())))


def resolve(definitions: Mapping[str, Schema], node: Schema) -> Schema:
    """Follow references until something that is not one."""
    while "$ref" in node:
        node = definitions[node["$ref"].removeprefix(PREFIX)]
    return node


class _Reader:
    """Reads canonical nodes; knows the raw definitions only to merge `allOf`."""

    def __init__(self, revision: str, raw: Mapping[str, Schema]) -> None:
        self.revision = revision
        self.raw = raw

    def read(self, node: Any, pointer: str) -> Schema:
        if node is True:
            return {}
        if not isinstance(node, dict) or not node.keys() <= KEYWORDS | ANNOTATIONS:
            found = sorted(node.keys() - KEYWORDS - ANNOTATIONS) if isinstance(node, dict) else node
            raise UnknownSchemaForm(self.revision, pointer, f"{found}")
        node = {key: value for key, value in node.items() if key in KEYWORDS}
        if "$ref" in node:
            return self._only(node, pointer, "$ref")
        if "allOf" in node:
            return self.read(self._merge(self._only(node, pointer, "allOf")["allOf"], pointer), pointer)
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                arms = self._only(node, pointer, keyword)[keyword]
                return _union([self.read(arm, f"{pointer}/{keyword}/{index}") for index, arm in enumerate(arms)])
        if isinstance(node.get("type"), list):
            return _union([self.read({**node, "type": kind}, pointer) for kind in node["type"]])
        return self._typed(node, pointer)

    def _only(self, node: Schema, pointer: str, keyword: str) -> Schema:
        if node.keys() != {keyword}:
            raise UnknownSchemaForm(self.revision, pointer, f"{keyword} beside {sorted(node.keys() - {keyword})}")
        return node

    def _typed(self, node: Schema, pointer: str) -> Schema:
        kind = node.get("type", "object" if "properties" in node else None)
        if kind == "object":
            return self._object(node, pointer)
        if kind == "array":
            return {**node, "items": self.read(node.get("items", {}), f"{pointer}/items")}
        if kind not in SCALARS and node and not node.keys() & {"const", "enum"}:
            raise UnknownSchemaForm(self.revision, pointer, f"type {kind!r}")
        return node

    def _object(self, node: Schema, pointer: str) -> Schema:
        unruled = node.keys() - {"type", "properties", "required", "additionalProperties"}
        properties = {
            name: self.read(child, f"{pointer}/properties/{name}")
            for name, child in sorted(node.get("properties", {}).items())
        }
        required = sorted(set(node.get("required", [])))
        extra = node.get("additionalProperties", {})
        value = {} if extra is True or extra == {} else self.read(extra, f"{pointer}/additionalProperties")
        if unruled or (value and properties) or not set(required) <= properties.keys():
            found = f"an object with {sorted(node)}, other keys typed or required keys not among its properties"
            raise UnknownSchemaForm(self.revision, pointer, found)
        result: Schema = {"type": "object"}
        if properties:
            result |= {"properties": properties, "required": required}
        if value:
            result["additionalProperties"] = value
        return result

    def _merge(self, parts: list[Schema], pointer: str) -> Schema:
        """One object schema that says what all parts say."""
        merged: Schema = {"type": "object", "properties": {}, "required": []}
        for part in parts:
            node = self.raw[part["$ref"].removeprefix(PREFIX)] if "$ref" in part else part
            node = self._merge(node["allOf"], pointer) if "allOf" in node else node
            if node.get("type") != "object" or node.get("additionalProperties", {}) not in ({}, True):
                raise UnknownSchemaForm(self.revision, pointer, "an allOf of something other than open objects")
            for name, child in node.get("properties", {}).items():
                merged["properties"][name] = self._narrow(
                    merged["properties"].get(name, {}), child, f"{pointer}/{name}"
                )
            merged["required"] = sorted({*merged["required"], *node.get("required", [])})
        return merged

    def _narrow(self, one: Schema, other: Schema, pointer: str) -> Schema:
        """What satisfies both; only where one says all that the other says."""
        if one.items() <= other.items():
            return other
        if other.items() <= one.items():
            return one
        raise UnknownSchemaForm(self.revision, pointer, f"an allOf that asks for {one} and for {other}")


def _is_anything(node: Schema, definitions: Mapping[str, Schema], assumed: frozenset[str]) -> bool:
    """Whether a node accepts every JSON value, if the *assumed* definitions do: `JSONValue` is a long way to say so."""
    if "$ref" in node:
        name = node["$ref"].removeprefix(PREFIX)
        return name in assumed or _is_anything(definitions[name], definitions, assumed | {name})
    arms = [resolve(definitions, arm) for arm in node.get("anyOf", [])]
    scalars = {arm["type"] for arm in arms if arm.keys() == {"type"}}
    return not node or (
        scalars >= {"boolean", "null", "number", "string"}
        and any(arm.get("type") == "array" and _open(arm, "items", definitions, assumed) for arm in arms)
        and any(
            arm.get("type") == "object" and _open(arm, "additionalProperties", definitions, assumed) for arm in arms
        )
    )


def _open(node: Schema, keyword: str, definitions: Mapping[str, Schema], assumed: frozenset[str]) -> bool:
    return node.keys() <= {"type", keyword} and _is_anything(node.get(keyword, {}), definitions, assumed)


def _union(arms: list[Schema]) -> Schema:
    flat = [inner for arm in arms for inner in arm.get("anyOf", [arm])]
    unique = {json.dumps(arm, sort_keys=True): arm for arm in flat}
    return {"anyOf": list(unique.values())} if len(unique) > 1 else flat[0]


def _union_definitions(definitions: Mapping[str, Schema]) -> dict[frozenset[str], str]:
    """The definitions that are unions of references, by the set of their arms."""
    found: dict[frozenset[str], str] = {}
    for name, node in sorted(definitions.items()):
        arms = node.get("anyOf", [])
        if len(arms) > 1 and all("$ref" in arm for arm in arms):
            found.setdefault(frozenset(arm["$ref"] for arm in arms), name)
    return found


def _item_unions(definitions: Mapping[str, Schema]) -> Iterator[tuple[Site, Schema]]:
    """Tagged unions of references that stand in place as the items of a member: older revisions repeat them."""
    for name, node in sorted(definitions.items()):
        for member, child in node.get("properties", {}).items():
            union = child.get("items", {})
            if all("$ref" in arm for arm in union.get("anyOf", [{}])) and _common_tag(union["anyOf"], definitions):
                yield Site(name, ("properties", member, "items")), union


def _tag_unions(
    node: Schema, definitions: Mapping[str, Schema], unions: Mapping[frozenset[str], str], own: str = ""
) -> Schema:
    """Give every union below *node* its discriminator; a tagged part of a mixed union becomes a union of its own."""
    if "anyOf" in node:
        arms = [_tag_unions(arm, definitions, unions) for arm in node["anyOf"]]
        objects = [arm for arm in arms if resolve(definitions, arm).get("type") == "object"]
        tag = _common_tag(objects, definitions) if len(objects) > 1 else None
        if tag is None:
            return {"anyOf": arms}
        name = unions.get(frozenset(arm["$ref"] for arm in objects), own)
        tagged: Schema = {"anyOf": objects, "discriminator": {"propertyName": tag}}
        union = tagged if name == own else {"$ref": PREFIX + name}
        others = [arm for arm in arms if arm not in objects]
        return {"anyOf": [union, *others]} if others else union
    result = dict(node)
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            result[keyword] = _tag_unions(node[keyword], definitions, unions)
    if "properties" in node:
        result["properties"] = {
            name: _tag_unions(child, definitions, unions) for name, child in node["properties"].items()
        }
    return result


def _common_tag(arms: list[Schema], definitions: Mapping[str, Schema]) -> str | None:
    """The property that is a required constant in every arm, another one in each."""
    tables = [dict(constants(resolve(definitions, arm))) for arm in arms]
    for name in sorted(set.intersection(*(set(table) for table in tables))):
        if len({json.dumps(table[name]) for table in tables}) == len(tables):
            return name
    return None


def constants(node: Schema) -> Iterator[tuple[str, Any]]:
    """The required properties of an object that can have one value only, with that value."""
    for name in node.get("required", []):
        if "const" in node["properties"][name]:
            yield name, node["properties"][name]["const"]
