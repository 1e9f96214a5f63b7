"""Schemas small enough to stand in a test, as specs and as steps. Used by the tests of the generator's modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codegen.plan.derive import Derivation
from codegen.plan.plan import StepPlan, plan_step
from codegen.read.load import build_spec
from codegen.read.model import Spec
from codegen.read.overlay import parse_overlay

Schema = Mapping[str, Any]

OLDER, NEWER = "2001-01-01", "2002-02-02"
STRING, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))
META: Mapping[str, Schema] = {
    "RequestParams": {"type": "object", "properties": {"_meta": {"type": "object"}}},
    "RequestId": STRING,
    "EmptyResult": {"type": "object"},
}
"""What requests need beside themselves."""


def ref(name: str) -> Schema:
    """A reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def any_of(*arms: Schema) -> Schema:
    """A union."""
    return {"anyOf": list(arms)}


def const(value: Any) -> Schema:
    """One value."""
    return {"const": value}


def object_of(*required: str, **properties: Schema) -> Schema:
    """An object with the properties given, of which those named first are required."""
    return {"type": "object", "properties": properties, "required": list(required)}


def array_of(item: Schema, **more: Any) -> Schema:
    """A list."""
    return {"type": "array", "items": item, **more}


def request(method: str, **params: Schema) -> Schema:
    """The definition of a request; its params require nothing."""
    return object_of("method", method=const(method), params=object_of(**params))


def spec(definitions: Mapping[str, Schema], revision: str = OLDER) -> Spec:
    """A revision that has these definitions and no others."""
    return build_spec(revision, {"$defs": dict(definitions)})


def derivation(older: Mapping[str, Schema], newer: Mapping[str, Schema], overlay: str = "", **more: Any) -> Derivation:
    """The way up from the one to the other, with the entries of an overlay's text; `direction="down"` for back."""
    source, target = spec(older), spec(newer, NEWER)
    if more.get("direction") == "down":
        source, target = target, source
    return Derivation(source, target, parse_overlay(NEWER, overlay), **{"direction": "up", **more})


def plan(older: Mapping[str, Schema], newer: Mapping[str, Schema], overlay: str = "") -> StepPlan:
    """The whole step from the one to the other, with the entries of an overlay's text."""
    return plan_step(spec(older), spec(newer, NEWER), parse_overlay(NEWER, overlay))


def decision(direction: str, change: str, at: str, do: str, **more: str) -> str:
    """An entry of an overlay; *more* are further lines, as TOML spells their values."""
    lines = {"name": '"it"', "reason": '"Because."', **more}
    lines |= {"direction": f'"{direction}"', "change": f'"{change}"', "at": f'"{at}"', "do": f'"{do}"'}
    lines = {("with" if key == "with_" else key): value for key, value in lines.items()}
    return "[[decision]]\n" + "\n".join(f"{key} = {value}" for key, value in lines.items()) + "\n"
