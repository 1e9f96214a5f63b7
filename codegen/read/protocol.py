"""What `methods.py` of a revision says: its methods, the capability each needs, its error codes.

Derived from the schema where the schema shows it, else taken from an entry of an overlay. Where a method's frames are
defined is in `load`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from codegen.errors import UnknownSchemaForm
from codegen.read.fact_entries import CAPABILITIES, Said, capability_now, first_name
from codegen.read.model import Spec
from codegen.read.normalise import Normalised, constants
from codegen.read.plain import PREFIX, Schema

REVISION = "protocolVersion"
"""The field, or the end of its key after the prefix, that names a frame's revision."""
INPUT_REQUEST = "InputRequest"
ENVELOPES = {
    "request": ("JSONRPCRequest",),
    "notification": ("JSONRPCNotification",),
    "result": ("JSONRPCResultResponse", "JSONRPCResponse"),
    "error": ("JSONRPCErrorResponse", "JSONRPCError"),
}
OTHER = {"client": "server", "server": "client"}


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """One entry of a revision's `METHODS`."""

    name: str
    kind: str
    senders: tuple[str, ...]
    frame: str
    params: str | None
    results: tuple[str, ...]
    capability: str | None

    @property
    def result(self) -> str | None:
        """The usual result."""
        return self.results[0] if self.results else None


@dataclass(frozen=True, slots=True, order=True)
class ErrorCode:
    """A JSON-RPC error code that a revision names."""

    code: int
    name: str


def method_entries(spec: Spec, schema: Normalised, said: Said) -> list[MethodEntry]:
    """The methods of a revision, by name."""
    ruled = {method: says["capability"] for method, says in said["capability"].items()}
    return [
        MethodEntry(
            name=method.name,
            kind=method.kind,
            senders=tuple(sorted(method.senders)),
            frame=method.request,
            params=_params(schema.definitions[method.request]),
            results=method.results,
            capability=ruled.get(method.name)
            or _derived_capability(method.name, method.kind, method.senders, schema, said),
        )
        for _, method in sorted(spec.methods.items())
    ]


def input_entries(schema: Normalised, said: Said) -> list[MethodEntry]:
    """The requests of a server that travel in a result, by name; only the per-request era has them."""
    entries = []
    for arm in schema.resolve(schema.definitions.get(INPUT_REQUEST, {})).get("anyOf", []):
        frame = arm["$ref"].removeprefix(PREFIX)
        name = dict(constants(schema.resolve(arm)))["method"]
        result = frame.removesuffix("Request") + "Result"
        capability = _derived_capability(name, "request", {"server"}, schema, said)
        params = _params(schema.resolve(arm))
        entries.append(MethodEntry(name, "request", ("server",), frame, params, (result,), capability))
    return sorted(entries, key=lambda entry: entry.name)


def filled_in(schema: Normalised, said: Said) -> dict[str, dict[str, Any]]:
    """What constructors fill in beside constants: the value by definition and field. A definition's own entry wins."""
    found: dict[str, dict[str, Any]] = {}
    for at, says in sorted(said["fill"].items(), key=lambda entry: not entry[0].startswith("*")):
        for name, field in filled_fields(at, schema):
            found.setdefault(name, {})[field] = says["value"]
    return found


def filled_fields(at: str, schema: Normalised) -> list[tuple[str, str]]:
    """The required fields that an entry fills in, each with its definition."""
    owner, _, field = at.partition(".")
    owners = schema.definitions if owner == "*" else {owner} & schema.definitions.keys()
    return [(name, field) for name in sorted(owners) if field in schema.definitions[name].get("required", ())]


def error_codes(schema: Normalised, said: Said) -> list[ErrorCode]:
    """The error codes of a revision, smallest first: the constants of its definitions, and those of entries."""
    found = {code: str(says["name"]) for code, says in said["error_code"].items()}
    for name, node in schema.definitions.items():
        error = schema.resolve(node.get("properties", {}).get("error", node))
        code = dict(constants(error)).get("code") if name not in schema.helpers else None
        if isinstance(code, int):
            found.setdefault(code, _constant_name(name.removesuffix("Error")))
    return sorted(ErrorCode(code, name) for code, name in found.items())


def envelopes(schema: Normalised) -> dict[str, str]:
    """The definition of each kind of bare JSON-RPC object; two were renamed in 2025-11-25.

    Raises:
        UnknownSchemaForm: The schema has none of the names known for a kind.
    """
    found = {}
    for kind, names in ENVELOPES.items():
        found[kind] = next((name for name in names if name in schema.definitions), "")
        if not found[kind]:
            said = f"no {' or '.join(names)}; a [[name]] says what is called so"
            raise UnknownSchemaForm(schema.revision, "/$defs", said)
    return found


def _params(frame: Schema) -> str | None:
    """The definition of the params; none for params that are any object."""
    return frame["properties"].get("params", {}).get("$ref", "").rpartition("/")[2] or None


def _derived_capability(name: str, kind: str, senders: Collection[str], schema: Normalised, said: Said) -> str | None:
    """The capability whose name the method repeats: `tools/call` is `tools`, `tasks/list` is `tasks.list`.

    A method that was renamed repeats it by its first name, else by its own.
    """
    for sender in sorted(senders):
        side = OTHER[sender] if kind == "request" else sender
        definition = CAPABILITIES[side]
        if definition not in schema.definitions:
            raise UnknownSchemaForm(schema.revision, "/$defs", f"no {definition}; a [[name]] says what is called so")
        capabilities = schema.definitions[definition].get("properties", {})
        for spelled in (first_name(said, name), name):
            feature, _, action = spelled.removeprefix("notifications/").partition("/")
            feature = capability_now(said, feature)
            action = re.sub(r"_([a-z])", lambda match: match[1].upper(), action)
            if feature in capabilities:
                members = schema.resolve(capabilities[feature]).get("properties", {})
                return f"{feature}.{action}" if action in members else feature
    return None


def _constant_name(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()
