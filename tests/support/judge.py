"""An independent JSON Schema validator on the canonical schemas, and exact comparison of JSON values.

Used by the exactness tests and the laws; knows nothing of our normal form or our models.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.validators import validator_for

from codegen.maintain.proofs import PROOFS
from codegen.read.fixes import apply_fixes
from codegen.read.naming import name_definitions

ROOT = Path(__file__).resolve().parents[2]
PLACES = (PROOFS, ROOT.parent / "shared" / "spec")
UPSTREAM = next((place for place in PLACES if place.is_dir()), PROOFS)
"""Where upstream's own files are: `nox -s pull -- --proofs` fetches them."""


@cache
def canonical(revision: str, *, fixed: bool = True) -> dict[str, Any]:
    """The canonical schema of a revision: known defects patched, definitions called as models are; or as it is."""
    schema: dict[str, Any] = json.loads((ROOT / "schema" / revision / "schema.json").read_text(encoding="utf-8"))
    overlay = ROOT / "codegen" / "overlays" / f"{revision}.toml"
    return name_definitions(apply_fixes(schema, overlay), overlay).schema if fixed else schema


@cache
def validator(revision: str, definition: str, *, fixed: bool = True) -> jsonschema.protocols.Validator:
    """A validator for one definition of a revision."""
    return _validator(canonical(revision, fixed=fixed), f"#/$defs/{definition}")


@cache
def upstream_validator(revision: str, definition: str) -> jsonschema.protocols.Validator:
    """The same on the bytes as upstream published them; only where `UPSTREAM` has them."""
    schema = json.loads((UPSTREAM / revision / "schema.json").read_text(encoding="utf-8"))
    keyword = "$defs" if "$defs" in schema else "definitions"
    return _validator(schema, f"#/{keyword}/{definition}")


def is_valid(value: Any, revision: str, definition: str) -> bool:
    """Whether a value is valid for a definition, known defects of the schema patched."""
    return bool(validator(revision, definition).is_valid(value))


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal in value and kind: 1 is not 1.0 and not true; key order does not count."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(repr(one) == repr(other))


def _validator(schema: dict[str, Any], pointer: str) -> jsonschema.protocols.Validator:
    # In allOf, for draft 7 ignores what stands beside a $ref.
    return validator_for(schema)({**schema, "allOf": [{"$ref": pointer}]})
