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
from dataclasses import dataclass, field
from keyword import iskeyword
from pathlib import Path
from typing import Any

from datamodel_code_generator import generate
from datamodel_code_generator.enums import DataModelType, InputFileType, StrictTypes
from datamodel_code_generator.format import PythonVersion
from datamodel_code_generator.parser import LiteralType
from pydantic import BaseModel

from codegen.errors import NotAName, UnknownSchemaForm
from codegen.names import module_name
from codegen.read.normalise import Normalised, Schema
from codegen.read.pins import ancestors
from codegen.read.plain import PREFIX
from codegen.read.protocol import ENVELOPES
from codegen.read.words import NO_WORDS, Words, words_of_fields
from codegen.write.rewriting import TYPES, mark_constant, name_fully, write_constants

TEMPLATES = Path(__file__).parents[1] / "templates" / "dragoman_spec" / "models"
BASE = "dragoman_spec._base"
SPEC_URL = "https://modelcontextprotocol.io/specification"
FIRST_WITH_SCHEMA_PAGE = "2025-06-18"
# What the modules of models import, by name; a definition may be called the same.
IMPORTED = {
    **dict.fromkeys(("Model", "constant", "describe"), BASE),
    **dict.fromkeys(("Constant", "Integer", "Number", "Opt", "OptNull", "SchemaObject"), TYPES),
    **dict.fromkeys(("TYPE_CHECKING", "Annotated", "Any", "ClassVar", "Literal", "Optional", "Union"), "typing"),
    **dict.fromkeys(("ConfigDict", "Field", "StrictBool"), "pydantic"),
    "TypeAliasType": "typing_extensions",
    "WORDS": "dragoman_spec._words",
}
# What the templates use that the generator does not import by itself.
USED = tuple(sorted(IMPORTED.keys() - {"Optional", "StrictBool", "Union"}))
# What the package of a revision offers beside its models, and the modules that they name.
OWN_NAMES = frozenset({"DEFINITIONS", "ENVELOPES", "ERROR_CODES", "INPUT_METHODS", "METHODS", "REVISION"})
OWN_NAMES |= {"annotations", "dragoman_spec", "models", "pydantic", "typing", "typing_extensions"}
# Attributes that models have of pydantic and of us: no field may be called so.
RESERVED = frozenset({"meta", *dir(BaseModel)})
# What carries the params or the result of any method: their constructors take every model in that place.
CARRIERS = frozenset({"Request", "Notification"}.union(*ENVELOPES.values()))
CARRIED = frozenset({"params", "result"})
# Wire names from which the generator makes an attribute by itself.
META, META_NAME = "_meta", "meta"
PLAIN = re.compile(r"[A-Za-z][0-9A-Za-z]*")


@dataclass(frozen=True, slots=True)
class History:
    """When a definition came and when it changed, as revisions; both up to the revision that asks."""

    since: str
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """What the models of all revisions say beyond their schemas.

    `fills` has what constructors fill in where the schema leaves a choice, by revision, definition and field;
    `counterparts` what the definition is called in each other revision that has it, by revision and definition;
    `before` has from which revision each comes, as `pins.predecessors` gives it. Absent: from the one before.
    """

    words: Words = NO_WORDS
    fills: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    counterparts: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)


def render_models(
    schemas: Sequence[Normalised], digests: Mapping[str, str], beside: Beside | None = None
) -> dict[str, str]:
    """Render `models.py` of every revision, and `_words.py`.

    Args:
        schemas: Every revision, oldest first.
        digests: The sha256 of each revision's canonical schema.
        beside: What the models say that the schemas do not.

    Returns:
        Unformatted Python by path below `generated/`.
    """
    beside = beside or Beside()
    output = {}
    for schema in schemas:
        package = f"dragoman_spec/{module_name(schema.revision)}"
        line = {schema.revision, *ancestors(schema.revision, beside.before)} if beside.before else digests
        past = [one for one in schemas if one.revision in line]
        output[f"{package}/models.py"] = _render(schema, past, digests[schema.revision], beside)
    return output | {"dragoman_spec/_words.py": _render_words(beside.words, schemas)}


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


def is_json_schema(name: str, schema: Normalised) -> bool:
    """Whether a definition is a place for any JSON Schema: an object without a name, one of whose members says so.

    Such values are plain dicts in Python. A schema whose members are restricted further has models.
    """
    node = schema.definitions[name]
    members = node.get("properties", {})
    marked = "$schema" in members or members.get("type", {}).get("const") == "object"
    return marked and name in schema.helpers and "$ref" not in json.dumps(members)


def is_model(name: str, schema: Normalised) -> bool:
    """Whether a definition is a class; others are aliases."""
    return "properties" in schema.definitions[name] and not is_json_schema(name, schema)


def _render(schema: Normalised, schemas: Sequence[Normalised], digest: str, beside: Beside) -> str:
    text = generate(
        json.dumps(_document(schema, schemas, beside.words)),
        input_file_type=InputFileType.JsonSchema,
        output_model_type=DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_311,
        custom_template_dir=TEMPLATES,
        custom_file_header=_header(schema.revision, digest),
        extra_template_data=_template_data(schema, schemas, beside),
        base_class=f"{BASE}.Model",
        additional_imports=_imports(),
        strict_types=[StrictTypes.bool],
        enum_field_as_literal=LiteralType.All,
        use_annotated=True,
        field_constraints=True,
        snake_case_field=True,
        aliases=_aliases(schema),
        use_type_alias=True,
        use_schema_description=True,
        use_field_description=True,
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
    text = _with_neighbours(_with_exact_names(write_constants(text), schema), schema, beside)
    return f'{text}\n\n\ndescribe(__name__, "{schema.revision}", WORDS)\n'


def _document(schema: Normalised, schemas: Sequence[Normalised], words: Words) -> Schema:
    """A revision's schema as the generator takes it.

    Raises:
        NotAName: A definition cannot be called in Python what it is called.
    """
    document: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {name: _described(name, node, schema, schemas, words) for name, node in schema.definitions.items()},
    }
    for name in _unfit(schema):
        raise NotAName(schema.revision, schema.pointer(name), name)
    for name in _hidden(schema):
        document = json.loads(json.dumps(document).replace(f'"{PREFIX}{name}"', f'"{PREFIX}{_hide(name)}"'))
        document["$defs"][_hide(name)] = document["$defs"].pop(name)
    return document


def _described(name: str, node: Schema, schema: Normalised, schemas: Sequence[Normalised], words: Words) -> Schema:
    """A definition as the generator takes it: what it and its fields mean, and these in the order of a reader."""
    history = definition_history(name, schemas, schema.revision)
    described = _dialect(_arranged(name, node, words))
    described["description"] = _docstring(name, schema, history, words.definition(name, schema))
    for member, child in described.get("properties", {}).items():
        if said := words.field(name, member, schema.revision):
            described["properties"][member] = {**child, "description": said}
    return described


def _arranged(name: str, node: Schema, words: Words) -> Schema:
    """A definition with its fields in the order of a reader."""
    properties = node.get("properties")
    if not properties:
        return node
    order = words.arrange(name, list(properties), node["required"])
    return {**node, "properties": {field: properties[field] for field in order}}


def _with_neighbours(text: str, schema: Normalised, beside: Beside) -> str:
    """Import the other revisions for type checkers: models say what they are called there."""
    others = {
        module_name(revision)
        for names in beside.counterparts.get(schema.revision, {}).values()
        for revision in names
        if revision != schema.revision
    }
    if not others:
        return text
    imports = f"if TYPE_CHECKING:\n    from dragoman_spec import {', '.join(sorted(others))}\n\n\n"
    return re.sub(r"^(?=class |\w+ = TypeAliasType)", imports, text, count=1, flags=re.MULTILINE)


def _imports() -> list[str]:
    """What the templates use beyond what the generator imports by itself; ruff takes out what is not needed."""
    return [f"{IMPORTED[name]}.{name}" for name in USED]


def _render_words(words: Words, schemas: Sequence[Normalised]) -> str:
    """`_words.py`: what fields mean."""
    return f'''# Generated by `nox -s regen` from codegen/overlays/; do not edit.
"""What the fields of models mean, by definition and wire name: as `dragoman_spec._base.describe` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORDS: Mapping[str, Mapping[str, Any]] = {words_of_fields(words, schemas)!r}
'''


def _with_exact_names(text: str, schema: Normalised) -> str:
    """Make sure that classes and aliases are called what the definitions are called.

    Raises:
        NotAName: A definition's name is not a name in Python, or one that the package needs for itself.
    """
    for name in sorted(_hidden(schema)):
        text = name_fully(text, name, IMPORTED[name]).replace(_hide(name), name)
    found = {
        node.name if isinstance(node, ast.ClassDef) else ast.unparse(node.targets[0])
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef | ast.Assign)
    }
    for name in sorted(schema.definitions.keys() - found):
        raise NotAName(schema.revision, schema.pointer(name), name)
    return text


def _unfit(schema: Normalised) -> list[str]:
    """The definitions whose names cannot be a class of a module that has names of its own, beside pydantic's."""
    odd = [name for name in schema.definitions if not name.isidentifier() or iskeyword(name)]
    return sorted({*odd, *(OWN_NAMES & schema.definitions.keys())})


def _hidden(schema: Normalised) -> set[str]:
    """The definitions called as something that the module imports: 2024-11-05 has one called `Annotated`.

    They go through the generator under a name that nothing has, so that it renames neither.
    """
    return IMPORTED.keys() & schema.definitions.keys()


def _hide(name: str) -> str:
    return f"Hidden{name}Definition"


def _dialect(node: Schema) -> Schema:
    """Say numbers and open objects the way the generator wants them."""
    if node.get("type") in ("integer", "number") and not node.keys() & {"const", "enum"}:
        return {**node, "customTypePath": f"{TYPES}.{node['type'].capitalize()}"}
    result = dict(node)
    if node.get("type") == "object" and not node.keys() & {"properties", "additionalProperties"}:
        result["additionalProperties"] = {}
    for keyword in ("items", "additionalProperties"):
        if isinstance(node.get(keyword), dict):
            result[keyword] = _dialect(node[keyword])
    if "anyOf" in node:
        result["anyOf"] = [_dialect(mark_constant(arm)) for arm in node["anyOf"]]
    if "properties" in node:
        result["properties"] = {name: _dialect(child) for name, child in node["properties"].items()}
    return result


def _aliases(schema: Normalised) -> dict[str, str]:
    """Python names for the members whose wire name gives none: `_meta` is `meta`, `$schema` is `schema_`.

    None is what a neighbour is called, or what pydantic or our own models call something else.
    """
    objects = [set(node.get("properties", {})) for node in schema.definitions.values()]
    found: dict[str, str] = {}
    for name in sorted(set().union(*objects)):
        attribute = _attribute(name)
        if PLAIN.fullmatch(name) and not _is_reserved(attribute):
            continue
        neighbours = set().union(*(members for members in objects if name in members)) - {name}
        taken = {found.get(other, _attribute(other)) for other in neighbours}
        while attribute in taken - {META_NAME} or (name != META and _is_reserved(attribute)):
            attribute += "_"
        found[name] = attribute
    return found


def _is_reserved(attribute: str) -> bool:
    return attribute in RESERVED


def _attribute(name: str) -> str:
    stem = re.sub(r"(?<=[0-9a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.rpartition("/")[2]).lower()
    stem = re.sub(r"\W+|_+", "_", stem).strip("_") or "field"
    return f"{stem}_" if name.startswith("$") else stem


def _template_data(
    schema: Normalised, schemas: Sequence[Normalised], beside: Beside
) -> defaultdict[str, dict[str, Any]]:
    facts = defaultdict[str, dict[str, Any]](dict)
    hidden = _hidden(schema)
    for name, node in schema.definitions.items():
        members, own = node.get("properties", {}), _hide(name) if name in hidden else name
        facts[own]["null_fields"] = [
            member for member, child in members.items() if member not in node["required"] and schema.admits_null(child)
        ]
        facts[own]["closed"] = node.get("additionalProperties") is False
        facts[own]["is_json_schema"] = is_json_schema(name, schema)
        facts[own]["fills"] = beside.fills.get(schema.revision, {}).get(name, {})
        facts[own]["carried"] = sorted(CARRIED & members.keys()) if name in CARRIERS else []
        facts[own]["counterparts"] = {
            f"_in_{module_name(revision)}": own if revision == schema.revision else f"{module_name(revision)}.{other}"
            for revision, other in beside.counterparts.get(schema.revision, {}).get(name, {}).items()
        }
    return facts


def _docstring(name: str, schema: Normalised, history: History, said: str | None) -> str:
    """The text between the quotes; names and pointers have nothing in them that needs escaping."""
    changed = f"; changed in {', '.join(history.changed)}" if history.changed else ""
    origin = schema.pointer(name)
    # Before, the specification had no page on the schema: the best address is its front page.
    paged = schema.revision >= FIRST_WITH_SCHEMA_PAGE
    page = f"/schema#{origin.split('/')[2].lower()}" if paged else ""
    first = f"{said}\n\n" if said else ""
    return (
        f"{first}`{name}` of MCP {schema.revision}. Since {history.since}{changed}.\n\n"
        f"Source: `schema/{schema.revision}/schema.json#{origin}`,\n"
        f"{SPEC_URL}/{schema.revision}{page}\n"
    )


def _header(revision: str, digest: str) -> str:
    return f'''# Generated by `nox -s regen` from schema/{revision}/schema.json; do not edit.
# sha256 of that file: {digest}
"""The models of MCP {revision}: one for each definition of its schema and for each object in one that has no name.

What every model does is said in `dragoman_spec._base.Model`.
"""'''
