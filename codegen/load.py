"""Canonical schema in, `Spec` out: the one reader of JSON Schema keywords for diffs and steps.

Here live: parsing (an unknown keyword is an error, never skipped), the merging of `allOf`, and two facts that the older
schema files leave to the base interfaces: every request and notification has an envelope (`jsonrpc`, `id`) and a
`_meta` in its params. Must not live here: comparing revisions, or any decision about translation. Called by `regen`,
`diff` and the tests.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from codegen.errors import UnknownSchemaForm
from codegen.fixes import apply_fixes
from codegen.model import Anything, Array, Field, Literal, Method, Object, Ref, Scalar, Spec, Type, Union
from codegen.normalise import normalise

KEYWORDS = frozenset(
    {"$ref", "additionalProperties", "allOf", "anyOf", "const", "enum", "format", "items", "maxItems", "maximum"}
)
KEYWORDS |= {
    "minimum",
    "oneOf",
    "properties",
    "required",
    "type",
    "default",
    "title",
    "minItems",
    "pattern",
    "examples",
}
SENDERS = {
    "ClientRequest": "client",
    "ServerRequest": "server",
    "ClientNotification": "client",
    "ServerNotification": "server",
}
EMPTY_RESULT = "EmptyResult"


def load_spec(root: Path, revision: str) -> Spec:
    """Read `schema/<revision>/schema.json` under *root*, with the fixes of that revision's overlay applied.

    Raises:
        UnknownSchemaForm: The file uses a JSON Schema form that this reader does not know, with the pointer.
    """
    path = root / "schema" / revision / "schema.json"
    schema = apply_fixes(
        json.loads(path.read_text(encoding="utf-8")), root / "codegen" / "overlays" / f"{revision}.toml"
    )
    spec = build_spec(revision, schema)
    origins = normalise(revision, schema).origins
    return replace(spec, parts={name: pointer for name, pointer in origins.items() if name not in spec.definitions})


def build_spec(revision: str, schema: dict[str, Any]) -> Spec:
    """Turn a canonical schema into a `Spec`."""
    raw = schema["$defs"]
    definitions: dict[str, Type] = {}
    for name in sorted(raw):
        definitions[name] = _Reader(revision, raw).read(raw[name], f"/$defs/{name}")
    definitions |= {name: Anything() for name in definitions if _takes_all(definitions, Ref(name), frozenset())}
    methods = _methods(revision, definitions)
    for method in methods.values():
        definitions[method.request] = _with_envelope(definitions, method)
    return Spec(revision, definitions, methods)


class _Reader:
    """Reads one schema node after another; knows the raw definitions only to merge `allOf`."""

    def __init__(self, revision: str, raw: dict[str, Any]) -> None:
        self.revision = revision
        self.raw = raw

    def read(self, node: Any, pointer: str) -> Type:
        if node is True or node == {}:
            return Anything()
        if not isinstance(node, dict) or not node.keys() <= KEYWORDS:
            unknown = sorted(node.keys() - KEYWORDS) if isinstance(node, dict) else node
            raise UnknownSchemaForm(self.revision, pointer, f"{unknown}")
        if "$ref" in node:
            return Ref(node["$ref"].removeprefix("#/$defs/"))
        if "allOf" in node:
            return self.read(self._merge(node["allOf"]), pointer)
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                return Union(tuple(self.read(arm, f"{pointer}/{keyword}/{i}") for i, arm in enumerate(node[keyword])))
        if "const" in node:
            return Literal((node["const"],))
        if "enum" in node:
            return Literal(tuple(node["enum"]))
        return self._typed(node, pointer)

    def _typed(self, node: dict[str, Any], pointer: str) -> Type:
        kind = node.get("type", "object" if "properties" in node else None)
        if kind is None:
            return Anything()
        if kind == "array":
            return Array(self.read(node.get("items", {}), f"{pointer}/items"), node.get("maxItems"))
        if kind == "object":
            return self._object(node, pointer)
        types = frozenset(kind if isinstance(kind, list) else [kind])
        return Scalar(types, node.get("minimum"), node.get("maximum"))

    def _object(self, node: dict[str, Any], pointer: str) -> Object:
        properties = node.get("properties", {})
        required = node.get("required", [])
        fields = {
            name: Field(self.read(child, f"{pointer}/properties/{name}"), name in required)
            for name, child in properties.items()
        }
        fields |= {name: Field(Anything(), True) for name in required if name not in properties}
        extra = self.read(node.get("additionalProperties", {}), f"{pointer}/additionalProperties")
        return Object(fields, extra, "additionalProperties" in node and bool(fields))

    def _merge(self, parts: list[Any]) -> dict[str, Any]:
        """One object schema that says what all parts say; a later part's property wins, being the narrower one."""
        merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        for part in parts:
            node = self.raw[part["$ref"].removeprefix("#/$defs/")] if "$ref" in part else part
            node = self._merge(node["allOf"]) if "allOf" in node else node
            merged["properties"] |= node.get("properties", {})
            merged["required"] += [name for name in node.get("required", []) if name not in merged["required"]]
        return merged


def _takes_all(definitions: dict[str, Type], type_: Type, seen: frozenset[str]) -> bool:
    """Whether a type accepts every JSON value, however it spells that (a union of all kinds, of itself below)."""
    match type_:
        case Anything():
            return True
        case Ref(name):
            return name in seen or _takes_all(definitions, definitions[name], seen | {name})
        case Union(arms):
            kinds: set[str] = set()
            for arm in arms:
                kinds |= _taken_kinds(definitions, arm, seen)
            return kinds >= {"object", "array", "string", "number", "boolean", "null"}
    return False


def _taken_kinds(definitions: dict[str, Type], type_: Type, seen: frozenset[str]) -> set[str]:
    """The JSON types of which a type accepts every value."""
    match type_:
        case Scalar(types, None, None):
            return set(types)
        case Array(item, None):
            return {"array"} if _takes_all(definitions, item, seen) else set()
        case Object(fields, extra):
            return {"object"} if not fields and _takes_all(definitions, extra, seen) else set()
        case Ref(name) if name not in seen:
            return _taken_kinds(definitions, definitions[name], seen)
    return set()


def _methods(revision: str, definitions: dict[str, Type]) -> dict[str, Method]:
    """The methods that the four unions of requests and notifications name, by wire name."""
    spec = Spec(revision, definitions, {})
    found: dict[str, Method] = {}
    for union, sender in SENDERS.items():
        for arm in spec.arms(definitions[union]) if union in definitions else ():
            name = arm.name if isinstance(arm, Ref) else _sole_notification(spec, arm)
            method = _method(spec, name, sender)
            known = found.get(method.name)
            if known is not None:
                method = Method(
                    method.name, method.kind, method.senders | known.senders, method.request, method.results
                )
            found[method.name] = method
    return dict(sorted(found.items()))


def _sole_notification(spec: Spec, arm: Type) -> str:
    """A union of one is written out in place upstream: find the definition it repeats."""
    return next(
        name for name, type_ in spec.definitions.items() if type_ == arm and not name.startswith(("Client", "Server"))
    )


def _method(spec: Spec, definition: str, sender: str) -> Method:
    shape = spec.definitions[definition]
    assert isinstance(shape, Object)
    constant = shape.fields["method"].type
    assert isinstance(constant, Literal)
    name = str(constant.values[0])
    if definition.endswith("Notification"):
        return Method(name, "notification", frozenset({sender}), definition)
    stem = definition.removesuffix("Request")
    return Method(name, "request", frozenset({sender}), definition, _results(spec, stem))


def _results(spec: Spec, stem: str) -> tuple[str, ...]:
    """The definitions that a request's result can be, by the response's definition, by name, or by `task`."""
    response = spec.definitions.get(f"{stem}ResultResponse")
    if isinstance(response, Object):
        names = [arm.name for arm in spec.arms(response.fields["result"].type) if isinstance(arm, Ref)]
        return tuple(sorted(names, key=lambda name: name != f"{stem}Result"))
    usual = f"{stem}Result" if f"{stem}Result" in spec.definitions else EMPTY_RESULT
    return (usual, "CreateTaskResult") if _takes_task(spec, stem) else (usual,)


def _takes_task(spec: Spec, stem: str) -> bool:
    request = spec.definitions[f"{stem}Request"]
    params = request.fields.get("params") if isinstance(request, Object) else None
    arms = spec.arms(params.type) if params else ()
    return any(isinstance(shape := spec.resolve(arm), Object) and "task" in shape.fields for arm in arms)


def _with_envelope(definitions: dict[str, Type], method: Method) -> Type:
    """Give a request or notification what older files leave to the base: `jsonrpc`, `id`, `params._meta`."""
    shape = definitions[method.request]
    assert isinstance(shape, Object)
    fields = dict(shape.fields)
    fields.setdefault("jsonrpc", Field(Literal(("2.0",)), True))
    if method.kind == "request":
        fields.setdefault("id", Field(Ref("RequestId"), True))
    params = fields.get("params", Field(Object()))
    if isinstance(params.type, Object) and "_meta" not in params.type.fields:
        members = {**params.type.fields, "_meta": _base_meta(definitions, method.kind)}
        fields["params"] = Field(Object(members, params.type.extra), params.required)
    return Object(fields, shape.extra)


def _base_meta(definitions: dict[str, Type], kind: str) -> Field:
    """The `_meta` of the base params: `RequestParams` where there is one, else inside `Request`."""
    base = definitions.get("RequestParams" if kind == "request" else "NotificationParams")
    if base is None:
        whole = definitions["Request" if kind == "request" else "Notification"]
        assert isinstance(whole, Object)
        base = whole.fields["params"].type
    assert isinstance(base, Object)
    return base.fields["_meta"]
