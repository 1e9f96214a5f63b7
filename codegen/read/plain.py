"""Canonical schema in, plain schema out: the one reader of JSON Schema keywords; `keywords` says which there are.

Plain means: `allOf` is merged; a list of types, or of constants of several types, is an `anyOf` of single ones; a
reference names a definition; what says nothing about values is gone; an object that says itself that it is open still
does. It accepts exactly what the canonical schema accepts. `load` makes types of it, for diffs and steps; `normalise`
makes the form that models are made from. Must not live here: names for what has none. Called by `normalise`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from itertools import combinations
from types import MappingProxyType
from typing import Any

from codegen.errors import UnknownSchemaForm
from codegen.names import escaped, unescaped
from codegen.read.keywords import ANNOTATIONS, COMPARED, LIMITS, SAYS_NOTHING, TOLD_OF, is_misused
from codegen.read.naming import PREFIX as PREFIX
from codegen.read.naming import definition_of
from codegen.read.patterns import read_pattern

KINDS = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})

Schema = dict[str, Any]


def read_plain(revision: str, schema: Schema) -> dict[str, Schema]:
    """Bring the definitions of a canonical schema, its fixes applied, into plain form.

    Raises:
        UnknownSchemaForm: A keyword or a combination of keywords that has no rule here.
    """
    reader = _Reader(revision, schema)
    plain: dict[str, Schema] = {}
    for name, node in sorted(schema["$defs"].items()):
        try:
            plain[name] = reader.read(node, f"/$defs/{name}")
        except (AttributeError, KeyError, TypeError) as error:
            raise UnknownSchemaForm(revision, f"/$defs/{name}", f"a malformed schema ({error!r})") from None
    _check_circles(revision, plain)
    for pointer, arms in reader.exclusive:
        _check_exclusive(revision, plain, pointer, arms)
    plain |= {name: {} for name in plain if _is_anything({"$ref": PREFIX + name}, plain, frozenset())}
    return plain


def plain_arms(revision: str, schema: Schema, node: Any) -> list[Schema]:
    """The arms of a canonical node in plain form, as they stand in a union that it is an arm of."""
    plain = _Reader(revision, schema).read(node, "")
    arms: list[Schema] = plain.get("anyOf", [plain])
    return arms


def merged_places(revision: str, schema: Schema, node: Schema, pointer: str) -> dict[str, str]:
    """Where the properties of an `allOf` stand, each as it is said most narrowly."""
    places: dict[str, str] = {}
    _Reader(revision, schema)._merge(node["allOf"], pointer, places)
    return places


def resolve(definitions: Mapping[str, Schema], node: Schema) -> Schema:
    """Follow references until something that is not one."""
    while "$ref" in node:
        node = definitions[node["$ref"].removeprefix(PREFIX)]
    return node


class _Reader:
    """Reads canonical nodes; knows the whole schema to merge `allOf` and to follow references into definitions."""

    def __init__(self, revision: str, schema: Schema) -> None:
        self.revision = revision
        self.schema = schema
        self.exclusive: list[tuple[str, list[Schema]]] = []
        """Each `oneOf`: where it stands, and its arms."""
        self._followed: list[str] = []

    def read(self, node: Any, pointer: str) -> Schema:
        if node is True:
            return {}
        if not isinstance(node, dict):
            raise UnknownSchemaForm(self.revision, pointer, f"{node!r} in place of a schema")
        node = _said(node)
        unknown = sorted(node.keys() - COMPARED - ANNOTATIONS)
        if unknown:
            raise UnknownSchemaForm(self.revision, pointer, f"the keyword {', '.join(map(repr, unknown))}")
        self._check_values(node, pointer)
        node = {key: value for key, value in node.items() if key in COMPARED}
        if "$ref" in node:
            return self._reference(self._only(node, pointer, "$ref")["$ref"], pointer)
        if "allOf" in node:
            return self._all(self._only(node, pointer, "allOf")["allOf"], pointer)
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                return self._alternatives(self._only(node, pointer, keyword)[keyword], keyword, pointer)
        if isinstance(node.get("type"), list):
            return _union([self.read({**node, "type": kind}, pointer) for kind in _kinds(node["type"])])
        if "const" in node or "enum" in node:
            return self._constants(node, pointer)
        return self._typed(node, pointer)

    def _check_values(self, node: Schema, pointer: str) -> None:
        for key, value in node.items():
            if is_misused(key, value):
                slow = ", which Python may read in another way, or take for ever over" if key == "pattern" else ""
                raise UnknownSchemaForm(self.revision, pointer, f"the keyword {key!r} with {value!r}{slow}")

    def _only(self, node: Schema, pointer: str, keyword: str) -> Schema:
        if node.keys() != {keyword}:
            raise UnknownSchemaForm(self.revision, pointer, f"{keyword} beside {sorted(node.keys() - {keyword})}")
        return node

    def _all(self, parts: list[Any], pointer: str) -> Schema:
        """What says all that each part says: objects have the fields of all, other values the narrowest limits."""
        if not any(self._is_object(part) for part in parts) or len(parts) == 1:
            read = [self.read(part, f"{pointer}/allOf/{index}") for index, part in enumerate(parts)]
            return reduce(lambda one, other: self._narrow(one, other, pointer), read)
        places: dict[str, str] = {}
        return self._object(self._merge(parts, pointer, places), pointer, places)

    def _is_object(self, node: Any) -> bool:
        """Whether a part of an `allOf` is an object: what an object is not may be merged with no other."""
        if isinstance(node, dict) and "$ref" in node:
            node = self.schema["$defs"].get(definition_of(str(node["$ref"]))[0])
        return isinstance(node, dict) and (node.get("type") == "object" or "allOf" in node or "properties" in node)

    def _alternatives(self, arms: list[Any], keyword: str, pointer: str) -> Schema:
        if not arms:
            raise UnknownSchemaForm(self.revision, pointer, f"an {keyword} of nothing")
        read = [self.read(arm, f"{pointer}/{keyword}/{index}") for index, arm in enumerate(arms)]
        if keyword == "oneOf":
            self.exclusive.append((pointer, read))
        return _union(read)

    def _reference(self, target: Any, pointer: str) -> Schema:
        """A reference to a definition stays; what one into a definition leads to is read in its place."""
        name, path = definition_of(str(target))
        if not str(target).startswith(PREFIX) or name not in self.schema["$defs"]:
            raise UnknownSchemaForm(self.revision, pointer, f"a reference to {target!r}, which is no definition")
        if not path:
            return {"$ref": PREFIX + name}
        if target in self._followed:
            raise UnknownSchemaForm(self.revision, pointer, f"a reference to {target!r}, which it is a part of itself")
        node: Any = self.schema["$defs"][name]
        try:
            for part in path.split("/"):
                part = unescaped(part)
                node = node[int(part) if isinstance(node, list) else part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise UnknownSchemaForm(self.revision, pointer, f"a reference to {target!r}, which leads nowhere") from None
        self._followed.append(target)
        found = self.read(node, f"/$defs/{escaped(name)}/{path}")
        self._followed.pop()
        return found

    def _constants(self, node: Schema, pointer: str) -> Schema:
        """One constant, or strings of which one: else a union, with an arm for each that models know how to hold."""
        said = [node["const"]] if "const" in node else node["enum"]
        kind = node.get("type")
        values = [value for value in said if kind is None or _is_of(value, kind)]
        odd = [value for value in values if isinstance(value, dict | list)]
        if odd or not values or {"const", "enum"} <= node.keys() or node.keys() & (LIMITS | {"pattern"}):
            raise UnknownSchemaForm(self.revision, pointer, f"constants like {json.dumps(node)}")
        strings = [value for value in values if isinstance(value, str)]
        if len(strings) == len(said):
            return node
        arms: list[Schema] = [{"enum": strings, "type": "string"}] if strings else []
        for value in values:
            if value is None:
                arms.append({"type": "null"})
            elif not isinstance(value, str):
                arms.append({"const": value, "type": _type_of(value)})
        return node if len(arms) == 1 and "const" in node and "const" in arms[0] else _union(arms)

    def _typed(self, node: Schema, pointer: str) -> Schema:
        kind = node.get("type", "object" if "properties" in node else None)
        if kind is not None and kind not in KINDS:
            raise UnknownSchemaForm(self.revision, pointer, f"type {kind!r}")
        if kind is None and node:
            raise UnknownSchemaForm(self.revision, pointer, f"{sorted(node)} without a type")
        told = TOLD_OF.get(str(kind), frozenset()) | {"type"}
        node = {key: value for key, value in node.items() if key in told}
        if "pattern" in node:
            node["pattern"] = read_pattern(node["pattern"])
        if kind == "object":
            return self._object(node, pointer)
        if kind == "array":
            return {**node, "items": self.read(node.get("items", {}), f"{pointer}/items")}
        return node

    def _object(self, node: Schema, pointer: str, places: Mapping[str, str] = MappingProxyType({})) -> Schema:
        """An object; *places* says where properties stand that do not stand in it."""
        properties = {
            name: self.read(child, places.get(name, f"{pointer}/properties/{escaped(name)}"))
            for name, child in sorted(node.get("properties", {}).items())
        }
        if "" in properties:
            raise UnknownSchemaForm(self.revision, pointer, "a property whose name is empty")
        required = sorted(set(node.get("required", [])))
        properties |= {name: {} for name in required if name not in properties}
        extra = node.get("additionalProperties", {})
        value = {} if extra is False else self.read(extra, f"{pointer}/additionalProperties")
        if value and properties:
            raise UnknownSchemaForm(self.revision, pointer, "an object with properties whose other keys are typed")
        result: Schema = {"type": "object"}
        if properties:
            result |= {"properties": dict(sorted(properties.items())), "required": required}
        if value or (properties and "additionalProperties" in node):
            result["additionalProperties"] = value
        return result if extra is not False else result | {"additionalProperties": False}

    def _merge(self, parts: list[Schema], pointer: str, places: dict[str, str]) -> Schema:
        """One object schema that says what all parts say; *places* gets where each property stands."""
        merged: Schema = {"type": "object", "properties": {}, "required": []}
        closed: list[Collection[str]] = []
        for index, part in enumerate(parts):
            node, here = part, f"{pointer}/allOf/{index}"
            if "$ref" in part:
                name = definition_of(part["$ref"])[0]
                node, here = self.schema["$defs"][name], f"/$defs/{escaped(name)}"
            self._check_values(node, here)
            inner: dict[str, str] = {}
            node = self._merge(node["allOf"], here, inner) if "allOf" in node else node
            ruled = ANNOTATIONS | {"type", "properties", "required", "additionalProperties"}
            node = _said(node)
            others = node.get("additionalProperties", {})
            if node.get("type") != "object" or others not in ({}, True, False) or node.keys() - ruled:
                raise UnknownSchemaForm(self.revision, here, "an allOf of something other than open objects")
            for name, child in node.get("properties", {}).items():
                known = merged["properties"].get(name, {})
                place = inner.get(name, f"{here}/properties/{escaped(name)}")
                merged["properties"][name] = self._narrow(known, child, place)
                if merged["properties"][name] == child or name not in places:
                    places[name] = place
            merged["required"] = sorted({*merged["required"], *node.get("required", [])})
            if others is False:
                closed.append(node.get("properties", {}).keys())
        return self._closed(merged, closed, pointer) if closed else merged

    def _closed(self, merged: Schema, closed: list[Collection[str]], pointer: str) -> Schema:
        """A merged object of which parts are closed: what one of those does not name cannot be there."""
        properties = {k: child for k, child in merged["properties"].items() if all(k in names for names in closed)}
        if impossible := sorted(set(merged["required"]) - properties.keys()):
            raise UnknownSchemaForm(
                self.revision, pointer, f"an allOf that both asks for {impossible[0]} and forbids it"
            )
        return {**merged, "properties": properties, "additionalProperties": False}

    def _extends(self, narrow: Schema, wide: Schema) -> bool:
        """Whether two references are to open objects of which the one has all that the other has, and perhaps more."""
        if not narrow.keys() == wide.keys() == {"$ref"}:
            return False
        own, base = (self.schema["$defs"][definition_of(node["$ref"])[0]] for node in (narrow, wide))
        known = {"type", "properties", "required", "additionalProperties"} | ANNOTATIONS
        if (own.keys() | base.keys()) - known or not own.get("type") == base.get("type") == "object":
            return False
        if not all(node.get("additionalProperties", {}) in ({}, True) for node in (own, base)):
            return False
        fields = base.get("properties", {})
        return all(own.get("properties", {}).get(name) == child for name, child in fields.items()) and set(
            base.get("required", [])
        ) <= set(own.get("required", []))

    def _narrow(self, one: Schema, other: Schema, pointer: str) -> Schema:
        """What satisfies both; only where one says all that the other says."""
        if one.items() <= other.items():
            return other
        if other.items() <= one.items():
            return one
        for wide, narrow in ((one, other), (other, one)):
            values = _constant_values(narrow)
            if wide.keys() == {"type"} and values is not None and all(_is_of(v, wide["type"]) for v in values):
                return narrow
            if self._extends(narrow, wide):
                return narrow
        kinds = {str(node.get("type")) for node in (one, other)}
        if (one.keys() | other.keys()) <= LIMITS | {"type"} and (len(kinds) == 1 or kinds == {"integer", "number"}):
            return {"type": min(kinds), **_tightest(one, other)}
        raise UnknownSchemaForm(self.revision, pointer, f"an allOf that asks for {one} and for {other}")


def _said(node: Schema) -> Schema:
    """A node without what says nothing about values, whatever it may mean to a tool (`x-…`)."""
    items = node.items()
    return {key: value for key, value in items if (key, value) not in SAYS_NOTHING and not key.startswith("x-")}


def _tightest(one: Schema, other: Schema) -> Schema:
    """The limits of two scalars at once."""
    found = {}
    for limit in sorted((one.keys() | other.keys()) & LIMITS):
        said = [node[limit] for node in (one, other) if limit in node]
        found[limit] = max(said) if "min" in limit.lower() else min(said)
    return found


def _kinds(kinds: list[str]) -> list[str]:
    """The types of a list without those that another one of it includes."""
    return [kind for kind in kinds if not (kind == "integer" and "number" in kinds)]


def _type_of(value: Any) -> str:
    """The JSON type of a scalar."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if float(value).is_integer() else "number"
    return "null" if value is None else "string"


def _is_of(value: Any, kind: str) -> bool:
    """Whether a scalar is of a JSON type."""
    return _type_of(value) == kind or (kind == "number" and _type_of(value) == "integer")


def _is_anything(node: Schema, definitions: Mapping[str, Schema], assumed: frozenset[str]) -> bool:
    """Whether a node accepts every JSON value, if the *assumed* definitions do: `JSONValue` is a long way to say so."""
    if "$ref" in node:
        name = node["$ref"].removeprefix(PREFIX)
        return name in assumed or _is_anything(definitions[name], definitions, assumed | {name})
    arms = list(_flat_arms(definitions, node))
    scalars = {arm["type"] for arm in arms if arm.keys() == {"type"}}
    return not node or (
        scalars >= {"boolean", "null", "number", "string"}
        and any(arm.get("type") == "array" and _open(arm, "items", definitions, assumed) for arm in arms)
        and any(
            arm.get("type") == "object" and _open(arm, "additionalProperties", definitions, assumed) for arm in arms
        )
    )


def _flat_arms(definitions: Mapping[str, Schema], node: Schema) -> Iterator[Schema]:
    for arm in node.get("anyOf", []):
        found = resolve(definitions, arm)
        yield from _flat_arms(definitions, found) if "anyOf" in found else [found]


def _open(node: Schema, keyword: str, definitions: Mapping[str, Schema], assumed: frozenset[str]) -> bool:
    opened = node.get(keyword) is not False and node.keys() <= {"type", keyword}
    return opened and _is_anything(node.get(keyword, {}), definitions, assumed)


def _union(arms: list[Schema]) -> Schema:
    flat = [inner for arm in arms for inner in arm.get("anyOf", [arm])]
    unique = {json.dumps(arm, sort_keys=True): arm for arm in flat}
    return {"anyOf": list(unique.values())} if len(unique) > 1 else flat[0]


# --- circles and exclusive alternatives ------------------------------------------------------------------------------


def _check_circles(revision: str, plain: Mapping[str, Schema]) -> None:
    """Refuse a definition that is itself again with no object or list in between: no value decides what it accepts."""
    for name in plain:
        open_, seen = list(_same_value(plain[name])), set[str]()
        while open_:
            other = open_.pop()
            if other == name:
                raise UnknownSchemaForm(revision, f"/$defs/{name}", "a definition that refers to itself")
            if other not in seen:
                seen.add(other)
                open_ += _same_value(plain[other])


def _same_value(node: Schema) -> Iterator[str]:
    """The definitions that the value of a node is held against itself."""
    if "$ref" in node:
        yield node["$ref"].removeprefix(PREFIX)
    for arm in node.get("anyOf", []):
        yield from _same_value(arm)


def _check_exclusive(revision: str, plain: Mapping[str, Schema], pointer: str, arms: list[Schema]) -> None:
    """Make sure that no value is valid for two arms of a `oneOf`, so that it says what `anyOf` does."""
    for (i, one), (j, two) in combinations(enumerate(arms), 2):
        if not _apart(plain, one, two):
            raise UnknownSchemaForm(revision, pointer, f"a oneOf whose arms {i} and {j} may share values")


def _apart(plain: Mapping[str, Schema], one: Schema, two: Schema) -> bool:
    """Whether no value is valid for both nodes, as far as types and constants tell."""
    one, two = resolve(plain, one), resolve(plain, two)
    if "anyOf" in one:
        return all(_apart(plain, arm, two) for arm in one["anyOf"])
    if "anyOf" in two:
        return all(_apart(plain, one, arm) for arm in two["anyOf"])
    kinds = [_value_kinds(node) for node in (one, two)]
    if kinds[0].isdisjoint(kinds[1]):
        return True
    values, others = _constant_values(one), _constant_values(two)
    if values is not None and others is not None:
        return all(value not in others for value in values)
    tables = [dict(_constants(plain, node)) for node in (one, two)]
    return any(tables[0][name] != tables[1][name] for name in tables[0].keys() & tables[1].keys())


def _constant_values(node: Schema) -> list[Any] | None:
    """The values that a node allows, where it lists them."""
    values: list[Any] | None = node.get("enum", [node["const"]] if "const" in node else None)
    return values


def _value_kinds(node: Schema) -> frozenset[str]:
    kind = node.get("type")
    if kind is None:
        values = _constant_values(node)
        return KINDS if values is None else frozenset(_type_of(value) for value in values)
    return frozenset({kind, "integer"}) if kind == "number" else frozenset({kind})


def _constants(definitions: Mapping[str, Schema], node: Schema) -> Iterator[tuple[str, Any]]:
    """The required properties of an object that can have one value only, with that value."""
    for name in node.get("required", []):
        child = resolve(definitions, node["properties"][name])
        if "const" in child:
            yield name, child["const"]
