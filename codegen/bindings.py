"""Normalised schemas in, the text of `models.py` out: one pydantic module a revision, by datamodel-code-generator.

Lives here: what the generator is fed (our normal form in its dialect), the options it runs with, and the facts for
the docstrings. The layout of a class is in `templates/dragoman_spec/models`, what a model does in
`support/_base.py`. Must not live here: formatting and writing files (`regen`), or the shape of
a schema (`normalise`). Called by `regen`.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datamodel_code_generator import generate
from datamodel_code_generator.enums import DataModelType, InputFileType, StrictTypes
from datamodel_code_generator.format import PythonVersion
from datamodel_code_generator.parser import LiteralType

from codegen.errors import UnknownSchemaForm
from codegen.normalise import Normalised, Schema

TEMPLATES = Path(__file__).parent / "templates" / "dragoman_spec" / "models"
BASE = "dragoman_spec._base"
# Names that the generated modules take from `typing`, always with a subscript.
SUBSCRIPTED = frozenset({"Annotated", "Literal", "Optional", "Union"})
SPEC_URL = "https://modelcontextprotocol.io/specification"
FIRST_WITH_SCHEMA_PAGE = "2025-06-18"


@dataclass(frozen=True, slots=True)
class History:
    """When a definition came and when it changed, as revisions; both up to the revision that asks."""

    since: str
    changed: tuple[str, ...]


def module_name(revision: str) -> str:
    """`2025-06-18` as a module: `v2025_06_18`."""
    return "v" + revision.replace("-", "_")


def render_models(schemas: Sequence[Normalised], digests: Mapping[str, str]) -> dict[str, str]:
    """Render `models.py` of every revision.

    Args:
        schemas: Every revision, oldest first.
        digests: The sha256 of each revision's canonical schema.

    Returns:
        Unformatted Python by path below `generated/`.
    """
    return {
        f"dragoman_spec/{module_name(schema.revision)}/models.py": _render(schema, schemas, digests[schema.revision])
        for schema in schemas
    }


def definition_history(name: str, schemas: Sequence[Normalised], revision: str) -> History:
    """Follow a definition back through the revisions that have it under this name."""
    past = [schema for schema in schemas if schema.revision <= revision]
    since, changed = revision, list[str]()
    for older, newer in zip(reversed(past[:-1]), reversed(past), strict=False):
        if name not in older.definitions:
            break
        if older.definitions[name] != newer.definitions[name]:
            changed.insert(0, newer.revision)
        since = older.revision
    return History(since, tuple(changed))


def _render(schema: Normalised, schemas: Sequence[Normalised], digest: str) -> str:
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {name: _dialect(node) for name, node in schema.definitions.items()},
    }
    text = generate(
        json.dumps(document),
        input_file_type=InputFileType.JsonSchema,
        output_model_type=DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_311,
        custom_template_dir=TEMPLATES,
        custom_file_header=_header(schema.revision, digest),
        extra_template_data=_template_data(schema, schemas),
        base_class=f"{BASE}.Model",
        additional_imports=[
            f"{BASE}.{name}" for name in ("NullKeepingModel", "NumberConstant", "Opt", "OptNull", "constant")
        ],
        strict_types=[StrictTypes.bool],
        enum_field_as_literal=LiteralType.All,
        use_annotated=True,
        field_constraints=True,
        snake_case_field=True,
        aliases=_aliases(schema),
        use_type_alias=True,
        skip_root_model=True,
        use_standard_collections=True,
        use_union_operator=True,
        disable_timestamp=True,
        formatters=[],
    )
    if not isinstance(text, str):
        raise UnknownSchemaForm(schema.revision, "/$defs", "definitions that do not fit into one module")
    # Building is deferred to first use, when every name of the module is there: rebuilding in the end would undo that.
    text = re.sub(r"^\w+\.model_rebuild\(\)\n?", "", text, flags=re.MULTILINE)
    return _with_exact_names(text, schema)


def _with_exact_names(text: str, schema: Normalised) -> str:
    """Make sure that classes and aliases are called what the definitions are called.

    The generator renames a definition that has the name of something it imports. 2024-11-05 has one called
    `Annotated`: it gets its name back, and `typing.Annotated` its full one.
    """
    for name in sorted(SUBSCRIPTED & schema.definitions.keys()):
        text = re.sub(rf"^(from typing import .*?)\b{name}\b(?:, )?", r"import typing\n\1", text, flags=re.MULTILINE)
        text = re.sub(rf"\b{name}\[", f"typing.{name}[", text)
        text = re.sub(rf"\b{name}Model\b", name, text)
    found = {
        node.name if isinstance(node, ast.ClassDef) else ast.unparse(node.targets[0])
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef | ast.Assign)
    }
    for name in sorted(found ^ schema.definitions.keys()):
        raise UnknownSchemaForm(schema.revision, f"/$defs/{name}", "a definition that gets no model of that name")
    return text


def _dialect(node: Schema) -> Schema:
    """Say numbers and open objects the way the generator wants them."""
    if node.get("type") in ("integer", "number") and not node.keys() & {"const", "enum"}:
        return {**node, "customTypePath": f"{BASE}.{node['type'].capitalize()}"}
    result = dict(node)
    if node.get("type") == "object" and not node.keys() & {"properties", "additionalProperties"}:
        result["additionalProperties"] = {}
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            result[keyword] = _dialect(node[keyword])
    if "anyOf" in node:
        result["anyOf"] = [_dialect(arm) for arm in node["anyOf"]]
    if "properties" in node:
        result["properties"] = {name: _dialect(child) for name, child in node["properties"].items()}
    return result


def _aliases(schema: Normalised) -> dict[str, str]:
    """Python names for the members whose wire name gives none: `_meta` is `meta`, `$schema` is `schema_`."""
    names = {name for node in schema.definitions.values() for name in node.get("properties", {})}
    return {name: _attribute(name) for name in sorted(names) if not re.fullmatch(r"[A-Za-z][0-9A-Za-z]*", name)}


def _attribute(name: str) -> str:
    stem = re.sub(r"(?<=[0-9a-z])(?=[A-Z])", "_", name.rpartition("/")[2]).lower()
    stem = re.sub(r"\W+|_+", "_", stem).strip("_")
    return f"{stem}_" if name.startswith("$") else stem


def _template_data(schema: Normalised, schemas: Sequence[Normalised]) -> defaultdict[str, dict[str, Any]]:
    facts = defaultdict[str, dict[str, Any]](dict)
    for name, node in schema.definitions.items():
        facts[name]["docstring"] = _docstring(name, schema, definition_history(name, schemas, schema.revision))
        facts[name]["null_fields"] = [
            member
            for member, child in node.get("properties", {}).items()
            if member not in node["required"] and schema.admits_null(child)
        ]
    return facts


def _docstring(name: str, schema: Normalised, history: History) -> str:
    """The text between the quotes; names and pointers have nothing in them that needs escaping."""
    changed = f"; changed in {', '.join(history.changed)}" if history.changed else ""
    origin = schema.origins[name]
    # Before, the specification had no page on the schema: the best address is its front page.
    paged = schema.revision >= FIRST_WITH_SCHEMA_PAGE
    page = f"/schema#{origin.split('/')[2].lower()}" if paged else ""
    return (
        f"`{name}` of MCP {schema.revision}.\n\n"
        f"Since {history.since}{changed}.\n\n"
        f"Source: `schema/{schema.revision}/schema.json#{origin}`,\n"
        f"{SPEC_URL}/{schema.revision}{page}\n"
    )


def _header(revision: str, digest: str) -> str:
    return f'''# Generated by `nox -s regen` from schema/{revision}/schema.json; do not edit.
# sha256 of that file: {digest}
"""The models of MCP {revision}: one for each definition of its schema and for each object in one that has no name.

What every model does is said in `dragoman_spec._base.Model`.
"""'''
