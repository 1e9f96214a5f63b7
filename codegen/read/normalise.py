"""Canonical schema in, normalised schema out: the form that the model generator and the instance generators read.

Normalised means: plain (`plain`, the one reader of keywords), and besides: every object with properties is a
named definition; an `anyOf` whose arms carry a constant tag says so (`discriminator`); open objects say nothing about
being open. It accepts exactly what the canonical schema accepts. Must not live here: keywords, anything about Python or
pydantic, or comparing revisions. Called by `load`, `bindings`, `registry` and the tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codegen.errors import UnknownSchemaForm
from codegen.names import escaped, path_of
from codegen.read.fixes import apply_fixes
from codegen.read.hoist import Site, helper_name, hoist_objects
from codegen.read.limits import DEPTH, fault_of, long_chain
from codegen.read.naming import Named, check_places, definition_of, name_definitions
from codegen.read.overlay import overlay_path
from codegen.read.places import Places
from codegen.read.plain import PREFIX, read_plain, resolve
from codegen.read.plain import Schema as Schema


@dataclass(frozen=True, slots=True)
class Normalised:
    """A revision's schema in normal form.

    `definitions` has the schema's own definitions and the hoisted helpers, by name; `origins` gives the JSON pointer
    of each in the canonical file (`/$defs/Tool`, `/$defs/Tool/properties/inputSchema`).
    """

    revision: str
    definitions: Mapping[str, Schema]
    origins: Mapping[str, str]
    plain: Mapping[str, Schema] = field(default_factory=dict)
    """The schema's own definitions in plain form: nothing is hoisted, and open objects that say so say it."""
    places: Places = field(kw_only=True)
    """Where in the file everything stands."""

    @property
    def helpers(self) -> frozenset[str]:
        """The definitions that upstream wrote in place, without a name."""
        return frozenset(self.origins.keys() - self.plain.keys())

    def pointer(self, name: str) -> str:
        """Where a definition or a helper stands in the canonical file."""
        return self.places.written(self.origins[name])

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
    schema = _read_file(root, revision)
    overlay = root / overlay_path(revision)
    fixed = apply_fixes(schema, overlay)
    _check_depth(revision, fixed)
    return normalise(revision, name_definitions(fixed, overlay), schema)


def _read_file(root: Path, revision: str) -> Schema:
    """A revision's canonical schema.

    Raises:
        UnknownSchemaForm: It is not JSON, is no schema with definitions, or is too deep.
    """
    try:
        schema = json.loads((root / "schema" / revision / "schema.json").read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UnknownSchemaForm(revision, "/", f"what is not JSON ({error})") from None
    _check_depth(revision, schema)
    return dict(schema)


def _check_depth(revision: str, schema: Any) -> None:
    """Refuse what is no schema, or deeper than reading can go.

    Raises:
        UnknownSchemaForm: It is.
    """
    if not isinstance(schema, dict) or not isinstance(schema.get("$defs"), dict):
        raise UnknownSchemaForm(revision, "/$defs", "a file without an object of definitions")
    if fault := fault_of(schema):
        raise UnknownSchemaForm(revision, *fault)
    if name := long_chain(schema["$defs"], lambda reference: definition_of(reference)[0]):
        said = f"a chain of more than {DEPTH} definitions, of which each refers to the next"
        raise UnknownSchemaForm(revision, f"/$defs/{escaped(name)}", said)


def normalise(revision: str, schema: Schema | Named, file: Schema | None = None) -> Normalised:
    """Bring a canonical schema, its fixes applied and its definitions named, into normal form.

    Args:
        revision: The revision.
        schema: The schema.
        file: The schema as it is in the file, if fixes changed it.

    Raises:
        UnknownSchemaForm: A keyword or a combination of keywords that has no rule here.
        UnusedDecision: A name is for an object that is not there.
    """
    named = schema if isinstance(schema, Named) else Named(schema)
    places = Places(revision, named.schema, named.upstream, file)
    names = {path: naming.called for path, naming in named.places.items()}
    try:
        plain = read_plain(revision, named.schema)
    except UnknownSchemaForm as error:
        raise UnknownSchemaForm(revision, places.named(error.pointer), error.found) from None
    definitions, origins = _named_objects(revision, plain, names, places)
    check_places(named, {name: path_of(pointer) for name, pointer in origins.items()})
    unions = _union_definitions(definitions)
    tagged = {name: _tag_unions(node, definitions, unions, name) for name, node in definitions.items()}
    return Normalised(revision, dict(sorted(tagged.items())), dict(sorted(origins.items())), plain, places=places)


def _named_objects(
    revision: str, plain: Mapping[str, Schema], names: Mapping[str, str], places: Places
) -> tuple[dict[str, Schema], dict[str, str]]:
    """The definitions and what stands in them without a name, by name, and where each comes from."""
    try:
        definitions, origins = hoist_objects(revision, {name: _silent(node) for name, node in plain.items()}, names)
        for site, union in _item_unions(definitions):
            name = helper_name(site, names)
            if definitions.setdefault(name, union) != union:
                raise UnknownSchemaForm(revision, site.pointer, f"another union whose name would be {name}")
            origins.setdefault(name, site.pointer)
    except UnknownSchemaForm as error:
        raise UnknownSchemaForm(revision, places.written(error.pointer), error.found) from None
    return definitions, origins


def _silent(node: Schema) -> Schema:
    """A plain node without the words that an object is open: that is so anyway."""
    result = {key: value for key, value in node.items() if not (key == "additionalProperties" and value == {})}
    for keyword in ("items", "additionalProperties"):
        if isinstance(result.get(keyword), dict):
            result[keyword] = _silent(result[keyword])
    if "anyOf" in result:
        result["anyOf"] = [_silent(arm) for arm in result["anyOf"]]
    if "properties" in result:
        result["properties"] = {name: _silent(child) for name, child in result["properties"].items()}
    return result


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
        if isinstance(node.get(keyword), dict):
            result[keyword] = _tag_unions(node[keyword], definitions, unions)
    if "properties" in node:
        result["properties"] = {
            name: _tag_unions(child, definitions, unions) for name, child in node["properties"].items()
        }
    return result


def _common_tag(arms: list[Schema], definitions: Mapping[str, Schema]) -> str | None:
    """The property that is a required string in every arm, always another one in each; pydantic takes no other tag."""
    tables = [dict(constants(resolve(definitions, arm))) for arm in arms]
    for name in sorted(set.intersection(*(set(table) for table in tables))):
        if len({table[name] for table in tables if isinstance(table[name], str)}) == len(tables):
            return name
    return None


def constants(node: Schema) -> Iterator[tuple[str, Any]]:
    """The required properties of an object that can have one value only, with that value."""
    for name in node.get("required", []):
        if "const" in node["properties"][name]:
            yield name, node["properties"][name]["const"]
