"""What `methods.py` of a revision says: its methods, the capability each needs, its error codes.

Derived from the schema where the schema shows it, else taken from `data/protocol.toml`, where each entry has a reason.
Must not live here: layout (`templates`), or where a method's frames are defined (`load`). Called by `registry`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from codegen.errors import UnknownSchemaForm, UnusedDecision
from codegen.model import Spec
from codegen.normalise import Normalised, constants
from codegen.plain import PREFIX, Schema

DATA = Path(__file__).parent / "data" / "protocol.toml"
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


@dataclass(frozen=True, slots=True)
class Prose:
    """The entries of `data/protocol.toml`."""

    capabilities: tuple[Mapping[str, Any], ...]
    error_codes: tuple[Mapping[str, Any], ...]
    fills: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Roles:
    """What is found in schemas by its name, as `data/protocol.toml` says: two definitions, and a field."""

    client_capabilities: str
    server_capabilities: str
    revision: str

    @property
    def capabilities(self) -> Mapping[str, str]:
        """The definition of what each side can do."""
        return {"client": self.client_capabilities, "server": self.server_capabilities}


@cache
def read_roles() -> Roles:
    """Read the names by which things are found."""
    return Roles(**tomllib.loads(DATA.read_text(encoding="utf-8"))["roles"])


def read_prose(path: Path = DATA) -> Prose:
    """Read the table of what no schema shows."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return Prose(tuple(table["capability"]), tuple(table["error_code"]), tuple(table["fill"]))


@cache
def _revisions_named() -> frozenset[str]:
    texts = [file.read_text(encoding="utf-8") for file in sorted(DATA.parent.glob("*.toml"))]
    return frozenset(re.findall(r"20\d\d-\d\d-\d\d", "\n".join(texts)))


def is_whole(revisions: Collection[str]) -> bool:
    """Whether a tree has all revisions that the tables in `data/` name; in a part of it, some entries are for none."""
    return _revisions_named() <= set(revisions)


def check_prose(prose: Prose, specs: Sequence[Spec], schemas: Sequence[Normalised]) -> None:
    """Make sure that every entry is used.

    Raises:
        UnusedDecision: An entry's method, field or revisions do not exist.
    """
    for entry in prose.capabilities:
        if not any(_applies(entry, spec.revision) and entry["method"] in spec.methods for spec in specs):
            raise UnusedDecision(DATA.name, f"capability {entry['method']}", "no revision it is for has the method")
    for entry in prose.error_codes:
        if not any(_applies(entry, spec.revision) for spec in specs):
            raise UnusedDecision(DATA.name, f"error_code {entry['code']}", "there is no revision it is for")
    for entry in prose.fills:
        if not any(_applies(entry, schema.revision) and _filled_fields(entry, schema) for schema in schemas):
            raise UnusedDecision(DATA.name, f"fill {entry['at']}", "no revision it is for requires such a field")


def method_entries(spec: Spec, schema: Normalised, prose: Prose) -> list[MethodEntry]:
    """The methods of a revision, by name."""
    ruled = {
        entry["method"]: str(entry["capability"]) for entry in prose.capabilities if _applies(entry, spec.revision)
    }
    return [
        MethodEntry(
            name=method.name,
            kind=method.kind,
            senders=tuple(sorted(method.senders)),
            frame=method.request,
            params=_params(schema.definitions[method.request]),
            results=method.results,
            capability=ruled.get(method.name) or _derived_capability(method.name, method.kind, method.senders, schema),
        )
        for _, method in sorted(spec.methods.items())
    ]


def input_entries(schema: Normalised) -> list[MethodEntry]:
    """The requests of a server that travel in a result, by name; only the per-request era has them."""
    entries = []
    for arm in schema.resolve(schema.definitions.get(INPUT_REQUEST, {})).get("anyOf", []):
        frame = arm["$ref"].removeprefix(PREFIX)
        name = dict(constants(schema.resolve(arm)))["method"]
        result = frame.removesuffix("Request") + "Result"
        capability = _derived_capability(name, "request", {"server"}, schema)
        params = _params(schema.resolve(arm))
        entries.append(MethodEntry(name, "request", ("server",), frame, params, (result,), capability))
    return sorted(entries, key=lambda entry: entry.name)


def filled_in(schema: Normalised, prose: Prose) -> dict[str, dict[str, Any]]:
    """What constructors fill in beside constants: the value by definition and field. A definition's own entry wins."""
    found: dict[str, dict[str, Any]] = {}
    for entry in sorted(prose.fills, key=lambda entry: not entry["at"].startswith("*")):
        for name, field in _filled_fields(entry, schema) if _applies(entry, schema.revision) else ():
            found.setdefault(name, {})[field] = entry["value"]
    return found


def _filled_fields(entry: Mapping[str, Any], schema: Normalised) -> list[tuple[str, str]]:
    owner, _, field = entry["at"].partition(".")
    owners = schema.definitions if owner == "*" else {owner} & schema.definitions.keys()
    return [(name, field) for name in sorted(owners) if field in schema.definitions[name].get("required", ())]


def error_codes(schema: Normalised, prose: Prose) -> list[ErrorCode]:
    """The error codes of a revision, smallest first: the constants of its definitions, and those of the prose."""
    found = {entry["code"]: str(entry["name"]) for entry in prose.error_codes if _applies(entry, schema.revision)}
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


def _applies(entry: Mapping[str, Any], revision: str) -> bool:
    return bool(entry.get("since", revision) <= revision <= entry.get("until", revision))


def _params(frame: Schema) -> str | None:
    """The definition of the params; none for params that are any object."""
    return frame["properties"].get("params", {}).get("$ref", "").rpartition("/")[2] or None


def _derived_capability(name: str, kind: str, senders: Collection[str], schema: Normalised) -> str | None:
    """The capability whose name the method repeats: `tools/call` is `tools`, `tasks/list` is `tasks.list`."""
    feature, _, action = name.removeprefix("notifications/").partition("/")
    action = re.sub(r"_([a-z])", lambda match: match[1].upper(), action)
    for sender in sorted(senders):
        side = OTHER[sender] if kind == "request" else sender
        definition = read_roles().capabilities[side]
        if definition not in schema.definitions:
            raise UnknownSchemaForm(schema.revision, "/$defs", f"no {definition}; a [[name]] says what is called so")
        capabilities = schema.definitions[definition].get("properties", {})
        if feature in capabilities:
            members = schema.resolve(capabilities[feature]).get("properties", {})
            return f"{feature}.{action}" if action in members else feature
    return None


def _constant_name(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()
