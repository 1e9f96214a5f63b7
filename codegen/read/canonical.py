"""The canonical form of an upstream schema: what is committed under `schema/`.

One spelling whatever the revision: `$defs` (older revisions say `definitions`), sorted keys, two-space indent,
no prose. Everything that types or constrains is kept. Pure functions over JSON values; `pull` calls them.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import TypeAlias, Union

from codegen.errors import NotASchema
from codegen.read.limits import fault_of
from codegen.read.naming import definition_of

Json: TypeAlias = Union[dict[str, "Json"], list["Json"], str, int, float, bool, None]  # noqa: UP007 - it is recursive

# Keywords whose value maps free names to schemas: a key "description" below them is a name, not prose.
NAME_MAPS = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
# Keywords whose value is data, not schema: nothing inside is ours to rewrite.
DATA = frozenset({"const", "default", "enum", "examples"})

# How a description says what a field's absence means: "Default: true", "(default when absent)", "Default is ...".
DEFAULT = re.compile(r"\bdefaults?( is|s? to|:|\))|\bdefault when|\bassumed? to be|\bshould assume", re.IGNORECASE)

HALF = re.compile("[\ud800-\udfff]")
"""A surrogate on its own: JSON can say it, and a file cannot."""

OLD_POINTER = "#/definitions/"
POINTER = "#/$defs/"


def canonical_text(schema: dict[str, Json]) -> str:
    """Return the canonical JSON text of a schema, with a trailing newline; the same schema gives the same bytes."""
    return json.dumps(_schema(schema), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def parse_schema(data: bytes, source: str) -> dict[str, Json]:
    """Parse upstream bytes and check that they are the JSON Schema of an MCP revision.

    Args:
        data: the bytes of an upstream `schema.json`.
        source: where they came from, for the error text.

    Raises:
        NotASchema: not JSON, no definitions, no method among them, or a reference to a definition that is not there.
    """
    twice: list[str] = []
    try:
        text = data.decode("utf-8-sig")
        schema = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=partial(_object, twice))
    except (ValueError, RecursionError) as error:
        raise NotASchema(source, f"it is not JSON ({error}); it may be a web page or cut short") from error
    if twice:
        raise NotASchema(source, f"the key {twice[0]!r} is there twice in one object")
    if not isinstance(schema, dict):
        raise NotASchema(source, f"expected a JSON object, found {type(schema).__name__}")
    if fault := fault_of(schema):
        raise NotASchema(source, f"at {fault[0]} it has {fault[1]}")
    definitions = schema.get("$defs", schema.get("definitions"))
    if not isinstance(definitions, dict) or not definitions:
        raise NotASchema(source, "expected an object `$defs` or `definitions`, found none")
    if not any(_method(definition) for definition in definitions.values()):
        raise NotASchema(source, "no definition has `properties.method.const`, so it defines no MCP method")
    for name in _references(schema):
        if name not in definitions:
            raise NotASchema(source, f"it refers to the definition {name!r}, which it does not have")
    if half := HALF.search(canonical_text(schema)):
        raise NotASchema(source, f"it has half a character, {half[0]!r}, in what is not prose")
    return schema


def definition_names(schema: dict[str, Json]) -> frozenset[str]:
    """Return the names that a checked schema defines, under either spelling."""
    definitions = schema.get("$defs", schema.get("definitions"))
    return frozenset(definitions) if isinstance(definitions, dict) else frozenset()


def documented_defaults(schema: dict[str, Json]) -> list[tuple[str, str, str]]:
    """The fields whose description says what their absence means: definition, name, and the line that says it."""
    definitions = schema.get("$defs", schema.get("definitions"))
    assert isinstance(definitions, dict)
    found = []
    for name, definition in definitions.items():
        fields = definition.get("properties") if isinstance(definition, dict) else None
        for field, said in fields.items() if isinstance(fields, dict) else ():
            prose = str(said.get("description", "")) if isinstance(said, dict) else ""
            found += [(name, field, line.strip()) for line in prose.splitlines() if DEFAULT.search(line)]
    return found


def _schema(node: Json) -> Json:
    """Canonical form of a value in schema position."""
    if isinstance(node, list):
        return [_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        _keyword(keyword): _value(_keyword(keyword), value)
        for keyword, value in node.items()
        if keyword != "description"
    }


def _keyword(keyword: str) -> str:
    return "$defs" if keyword == "definitions" else keyword


def _value(keyword: str, value: Json) -> Json:
    if keyword in DATA:
        return value
    if keyword in NAME_MAPS and isinstance(value, dict):
        return {name: _schema(schema) for name, schema in value.items()}
    if keyword == "$ref" and isinstance(value, str) and value.startswith(OLD_POINTER):
        return POINTER + value.removeprefix(OLD_POINTER)
    return _schema(value)


def _references(node: Json) -> Iterator[str]:
    """Yield the name of every definition that a schema refers to."""
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith((POINTER, OLD_POINTER)):
            yield definition_of(POINTER + reference.split("/", 2)[2])[0]
        for value in node.values():
            yield from _references(value)


def _method(definition: Json) -> bool:
    match definition:
        case {"properties": {"method": {"const": str()}}}:
            return True
    return False


def _object(twice: list[str], pairs: list[tuple[str, Json]]) -> Json:
    """An object; *twice* gets its keys that are there once more, of which the last would rule in silence."""
    found: dict[str, Json] = {}
    for key, value in pairs:
        twice += [key] if key in found else []
        found[key] = value
    return found


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")
