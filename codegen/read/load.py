"""Schema in, `Spec` out: types instead of keywords, for diffs and steps.

Here lives what makes types of the plain form of a schema (`plain`, the one reader of keywords), and two facts
that the older schema files leave to the base interfaces: every request and notification has an envelope (`jsonrpc`,
`id`) and a `_meta` in its params. Must not live here: keywords, comparing revisions, or any decision about translation.
Called by `regen`, `diff` and the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from codegen.errors import UnknownSchemaForm
from codegen.read.model import NEVER, Anything, Array, Field, Literal, Method, Object, Ref, Scalar, Spec, Type, Union
from codegen.read.normalise import Normalised, read_normalised
from codegen.read.overlay import overlay_path, read_lineage
from codegen.read.places import Places
from codegen.read.plain import PREFIX, Schema, read_plain

SENDERS = {
    "ClientRequest": "client",
    "ServerRequest": "server",
    "ClientNotification": "client",
    "ServerNotification": "server",
}
EMPTY_RESULT = "EmptyResult"


def load_spec(root: Path, revision: str) -> Spec:
    """Read `schema/<revision>/schema.json` under *root*, with the fixes that hold for that revision applied.

    Raises:
        UnknownSchemaForm: The file uses a JSON Schema form that there is no rule for, with the pointer.
    """
    return spec_of(read_normalised(root, revision), union_names(root, revision))


def build_spec(revision: str, schema: dict[str, Any], unions: Mapping[str, str] | None = None) -> Spec:
    """Turn a canonical schema into a `Spec` that knows no names for what has none."""
    spec = _spec(revision, read_plain(revision, schema), {}, unions or {})
    return replace(spec, written=Places(revision, schema).written)


def spec_of(schema: Normalised, unions: Mapping[str, str]) -> Spec:
    """The types of a schema, with the names that models give to what has none.

    Args:
        schema: The schema in normal form.
        unions: As `union_names` gives them.
    """
    spec = _spec(schema.revision, schema.plain, schema.origins, unions)
    return replace(spec, written=schema.places.written)


def union_names(root: Path, revision: str) -> dict[str, str]:
    """What the unions that say which methods there are, are called in a revision, by what they were called first.

    A `[[rename]]` of one of them, in the overlay of the revision or of one that it comes from, gives it another name.
    """
    names = {role: role for role in SENDERS}
    for _, tables in read_lineage(root / overlay_path(revision)):
        renames = tables.get("rename", ())
        new = {str(row.get("old")): str(row.get("new")) for row in renames if row.get("what") == "definition"}
        names = {role: new.get(name, name) for role, name in names.items()}
    return names


def _spec(revision: str, plain: Mapping[str, Schema], origins: Mapping[str, str], names: Mapping[str, str]) -> Spec:
    definitions = {name: _type(node) for name, node in plain.items()}
    unions = {role: names.get(role, role) for role in SENDERS if names.get(role, role) in definitions}
    methods = _methods(revision, definitions, unions)
    for method in methods.values():
        definitions[method.request] = _with_envelope(definitions, method)
    parts = {name: pointer for name, pointer in origins.items() if name not in definitions}
    return Spec(revision, definitions, methods, unions, parts)


def _type(node: Schema) -> Type:
    """The type that a plain node says."""
    if "$ref" in node:
        return Ref(node["$ref"].removeprefix(PREFIX))
    if "anyOf" in node:
        return Union(tuple(map(_type, node["anyOf"])))
    if "const" in node:
        return Literal((node["const"],))
    if "enum" in node:
        return Literal(tuple(node["enum"]))
    match node.get("type"):
        case None:
            return Anything()
        case "array":
            return Array(_type(node["items"]), node.get("maxItems"), node.get("minItems", 0))
        case "object":
            return _object(node)
    return Scalar(
        frozenset({node["type"]}),
        node.get("minimum"),
        node.get("maximum"),
        node.get("exclusiveMinimum"),
        node.get("exclusiveMaximum"),
        node.get("minLength", 0),
        node.get("maxLength"),
        node.get("pattern"),
    )


def _object(node: Schema) -> Object:
    required = node.get("required", [])
    fields = {name: Field(_type(child), name in required) for name, child in node.get("properties", {}).items()}
    closed = node.get("additionalProperties") is False
    extra = NEVER if closed else _type(node.get("additionalProperties", {}))
    return Object(
        fields, extra, not closed and "additionalProperties" in node and bool(fields), not closed and not fields
    )


def _methods(revision: str, definitions: dict[str, Type], unions: Mapping[str, str]) -> dict[str, Method]:
    """The methods that the four unions of requests and notifications name, by wire name."""
    spec = Spec(revision, definitions, {})
    found: dict[str, Method] = {}
    for role, union in unions.items():
        for arm in spec.arms(definitions[union]):
            name = arm.name if isinstance(arm, Ref) else _sole_notification(spec, arm)
            method = _method(spec, name, SENDERS[role], role)
            known = found.get(method.name)
            if known is not None and known.kind != method.kind:
                raise UnknownSchemaForm(revision, f"/$defs/{union}", f"{method.name}, a request and a notification")
            if known is not None:
                both = known.senders | method.senders, known.roles | method.roles
                method = replace(method, senders=both[0], roles=both[1])
            found[method.name] = method
    return dict(sorted(found.items()))


def _sole_notification(spec: Spec, arm: Type) -> str:
    """A union of one is written out in place upstream: find the definition it repeats."""
    for name, type_ in spec.definitions.items():
        if type_ == arm and not name.startswith(("Client", "Server")):
            return name
    raise UnknownSchemaForm(spec.revision, "/$defs", f"a method written out in place ({spec.tag(arm)})")


def _method(spec: Spec, definition: str, sender: str, role: str) -> Method:
    shape = spec.definitions[definition]
    constant = shape.fields["method"].type if isinstance(shape, Object) and "method" in shape.fields else None
    if not isinstance(constant, Literal) or len(constant.values) != 1:
        raise UnknownSchemaForm(spec.revision, f"/$defs/{definition}", "a request without a constant method")
    name = str(constant.values[0])
    if role.endswith("Notification"):
        return Method(name, "notification", frozenset({sender}), definition, roles=frozenset({role}))
    results = _results(spec, definition.removesuffix("Request"), definition)
    return Method(name, "request", frozenset({sender}), definition, results, frozenset({role}))


def _results(spec: Spec, stem: str, definition: str) -> tuple[str, ...]:
    """The definitions that a request's result can be, by the response's definition, by name, or by `task`."""
    response = spec.definitions.get(f"{stem}ResultResponse")
    if isinstance(response, Object) and "result" in response.fields:
        names = [arm.name for arm in spec.arms(response.fields["result"].type) if isinstance(arm, Ref)]
        if not names:
            said = "a result that is not a definition"
            raise UnknownSchemaForm(spec.revision, f"/$defs/{stem}ResultResponse/properties/result", said)
        return tuple(sorted(names, key=lambda name: name != f"{stem}Result"))
    usual = f"{stem}Result" if f"{stem}Result" in spec.definitions else EMPTY_RESULT
    return (usual, "CreateTaskResult") if _takes_task(spec, definition) else (usual,)


def _takes_task(spec: Spec, definition: str) -> bool:
    request = spec.definitions[definition]
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
    """The `_meta` of the base params: `RequestParams` where there is one, else inside `Request`.

    What does not name it does not ask for it, whatever the base does.
    """
    base = definitions.get("RequestParams" if kind == "request" else "NotificationParams")
    if base is None:
        whole = definitions["Request" if kind == "request" else "Notification"]
        assert isinstance(whole, Object)
        base = whole.fields["params"].type
    assert isinstance(base, Object)
    return replace(base.fields["_meta"], required=False)
