"""What the table of facts says of each revision: derived where a schema shows it, else from `data/protocol.toml`.

Lives here: the derivations, and the check that each entry is of use. Must not live here: what an entry may say
(`fact_entries`), or layout (`templates`). Called by `registry` and `regen`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codegen.fact_entries import Entry, chosen
from codegen.model import Spec
from codegen.normalise import Normalised
from codegen.plain import Schema
from codegen.protocol import (
    MethodEntry,
    Prose,
    error_codes,
    input_entries,
    method_entries,
    read_roles,
)

BATCH = "JSONRPCBatchRequest"
CACHE_HINTS = frozenset({"ttlMs", "cacheScope"})
FILTER = "SubscriptionFilter"
INPUT_REQUIRED = "InputRequiredResult"
LEVELS = "LoggingLevel"
# What frames have in common; the oldest schemas show `_meta` only there.
BASES = {"request": "Request", "result": "Result", "notification": "Notification"}


@dataclass(frozen=True, slots=True)
class Made:
    """A value that the generated code makes by a call: `Header(name="Mcp-Name", ...)`."""

    type: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Json:
    """A value that goes into frames as it is, and is spelled as plain dicts."""

    value: Any


@dataclass(frozen=True, slots=True)
class Source:
    """What the facts of one revision are derived from."""

    spec: Spec
    schema: Normalised
    era: str
    methods: tuple[MethodEntry, ...]
    inputs: tuple[MethodEntry, ...]
    codes: frozenset[int]

    @property
    def revision(self) -> str:
        """The revision."""
        return self.spec.revision

    def choose(self, entries: Sequence[Entry], table: str) -> list[Entry]:
        """The entries of a table that are for the revision."""
        return chosen(entries, table, self.revision, self.era)

    def capabilities(self, side: str) -> dict[str, Schema]:
        """The capabilities of a side and their parts: the schema of each, by its path."""
        return dict(self._walk("", self.schema.definitions[read_roles().capabilities[side]]))

    def _walk(self, prefix: str, node: Schema) -> Iterator[tuple[str, Schema]]:
        for name, member in self.schema.resolve(node).get("properties", {}).items():
            found = self.schema.resolve(member)
            yield prefix + name, found
            yield from self._walk(f"{prefix}{name}.", found)

    @property
    def flags(self) -> list[str]:
        """The capabilities of a server that are true or false."""
        return [path for path, node in self.capabilities("server").items() if node.get("type") == "boolean"]

    @property
    def announced(self) -> dict[str, str]:
        """The notifications that a server promises by a flag."""
        return {
            method.name: str(method.capability)
            for method in self.methods
            if method.kind == "notification" and "server" in method.senders and method.capability in self.flags
        }

    @property
    def asked(self) -> dict[str, str]:
        """The requests of a server that need something of the client."""
        asking = [method for method in self.methods if method.kind == "request" and "server" in method.senders]
        return {method.name: method.capability for method in (*asking, *self.inputs) if method.capability}

    @property
    def level_names(self) -> list[str]:
        """The log levels, in no order."""
        return list(self.schema.definitions.get(LEVELS, {}).get("enum", ()))

    @property
    def filter_members(self) -> list[str]:
        """The members of the filter of a subscription."""
        return list(self.schema.definitions.get(FILTER, {}).get("properties", {}))


def source_of(spec: Spec, schema: Normalised, era: str, prose: Prose) -> Source:
    """Collect what the facts of a revision are derived from."""
    methods, inputs = tuple(method_entries(spec, schema, prose)), tuple(input_entries(schema))
    return Source(spec, schema, era, methods, inputs, frozenset(code.code for code in error_codes(schema, prose)))


def derive_facts(source: Source, entries: Sequence[Entry]) -> dict[str, Any]:
    """The facts of one revision, by the names of the fields of `Facts`."""
    local = _listed(source, entries, "local")
    lifecycle = {entry.says["part"]: entry.says["method"] for entry in source.choose(entries, "lifecycle")}
    names = {method.name for method in source.methods}
    requests = [method for method in source.methods if method.kind == "request" and "client" in method.senders]
    client, server = source.capabilities("client"), source.capabilities("server")
    metas = {kind: _meta_keys(source, entries, kind) for kind in BASES}
    return {
        "revision": source.revision,
        "era": source.era,
        "transports": _names(source, entries, "transport"),
        "http_methods": _names(source, entries, "http_method"),
        "authorization": _names(source, entries, "authorization"),
        "headers": {entry.says["carries"]: _header(entry) for entry in source.choose(entries, "header")},
        "polls": "polls" in _names(source, entries, "trait"),
        "batches": BATCH in source.schema.definitions,
        "log_levels": _levels(source, entries),
        "lifecycle": lifecycle,
        "local": local,
        "relayed": frozenset(names - local - set(lifecycle.values())),
        "quiet": _quiet(source, entries, requests),
        "input_required": _input_required(requests),
        "cacheable": frozenset(method.name for method in requests if _is_cacheable(source, method)),
        "client_capabilities": frozenset(client),
        "server_capabilities": frozenset(server),
        "server_flags": frozenset(source.flags),
        "announced": source.announced,
        "standing": frozenset(method.name for method in requests if method.capability in source.flags),
        "asked": source.asked,
        "interactive": _interactive(source, entries),
        "parts": tuple(_part(entry) for entry in source.choose(entries, "part") if _has_part(source, entry)),
        "shared_capabilities": Json(_shared_capabilities(source, entries)),
        "request_meta": metas["request"],
        "required_meta": _required_meta(source),
        "result_meta": metas["result"],
        "notification_meta": metas["notification"],
        "meta_refusal": next(
            ((entry.says["code"], entry.says["status"]) for entry in source.choose(entries, "meta_refusal")), None
        ),
        "http_status": {entry.says["code"]: entry.says["status"] for entry in source.choose(entries, "http_status")},
        "subscriptions": _subscriptions(source, entries),
    }


def missing_facts(sources: Sequence[Source], entries: Sequence[Entry]) -> list[str]:
    """What a schema has and no entry places, as the table that lacks it and the name; nothing waits for it."""
    missing = []
    for source in sources:
        placed = _levels(source, entries)
        missing += [
            f"[[log_levels]] order: {name!r} of {source.revision}" for name in source.level_names if name not in placed
        ]
        known = _subscriptions(source, entries)
        missing += [
            f"[[subscription]]: {name!r} of {source.revision}" for name in source.filter_members if name not in known
        ]
    return missing


def check_entries(sources: Sequence[Source], entries: Sequence[Entry]) -> None:
    """Make sure that every entry is of use.

    Raises:
        UnusedDecision: What an entry names is in no revision that it is for, or two entries contradict each other.
    """
    for source in sources:
        for table in sorted({entry.table for entry in entries}):
            source.choose(entries, table)
    for entry in entries:
        meant = [source for source in sources if entry.applies(source.revision, source.era)]
        if not meant:
            raise entry.refused("there is no revision it is for")
        for what, exists in _named(entry):
            if not any(exists(source) for source in meant):
                raise entry.refused(f"no revision it is for has {what}")


def _named(entry: Entry) -> Iterator[tuple[str, Any]]:
    """Each thing that an entry names, and how to tell whether a revision has it."""
    says = entry.says
    if entry.table in ("quiet", "local", "impersonal"):
        for name in says["methods"]:
            yield f"the method {name}", lambda source, name=name: name in _method_names(source)
    if "method" in says:
        yield f"the method {says['method']}", lambda source: says["method"] in _method_names(source)
    if "code" in says:
        yield f"the error code {says['code']}", lambda source: says["code"] in source.codes
    if "capability" in says:
        path = says["capability"]
        yield f"the client capability {path}", lambda source: path in source.capabilities("client")
    for level in says.get("order", ()):
        yield f"the level {level}", lambda source, level=level: level in source.level_names
    if entry.table == "subscription":
        yield f"the filter member {says['member']}", lambda source: says["member"] in source.filter_members
    members = {says["method"]: says["member"]} if entry.table == "part" else says.get("members", {})
    for method, member in members.items():
        yield (
            f"{method} with params.{member}",
            lambda source, method=method, member=member: member in _param_names(source, method),
        )


def _names(source: Source, entries: Sequence[Entry], table: str) -> frozenset[str]:
    return frozenset(entry.says["name"] for entry in source.choose(entries, table))


def _method_names(source: Source) -> set[str]:
    return {method.name for method in (*source.methods, *source.inputs)}


def _listed(source: Source, entries: Sequence[Entry], table: str) -> frozenset[str]:
    """The methods of a revision that a table lists."""
    named = {name for entry in source.choose(entries, table) for name in entry.says["methods"]}
    return frozenset(named & _method_names(source))


def _quiet(source: Source, entries: Sequence[Entry], requests: Sequence[MethodEntry]) -> frozenset[str]:
    """Where the schema shows which results ask, all other requests; else those that are listed."""
    if INPUT_REQUIRED in source.schema.definitions:
        return frozenset(method.name for method in requests) - _input_required(requests)
    return _listed(source, entries, "quiet")


def _input_required(requests: Sequence[MethodEntry]) -> frozenset[str]:
    return frozenset(method.name for method in requests if INPUT_REQUIRED in method.results)


def _header(entry: Entry) -> Made:
    says = entry.says
    fields = {"name": says["name"], "carries": says["carries"], "members": says.get("members", {})}
    return Made("Header", {**fields, "annotation": says.get("annotation"), "is_encoded": says.get("is_encoded", False)})


def _levels(source: Source, entries: Sequence[Entry]) -> tuple[str, ...]:
    order = [level for entry in source.choose(entries, "log_levels") for level in entry.says["order"]]
    return tuple(level for level in order if level in source.level_names)


def _interactive(source: Source, entries: Sequence[Entry]) -> frozenset[str]:
    unshared, impersonal = _unshared(source, entries), _listed(source, entries, "impersonal")
    asked = {name for name, capability in source.asked.items() if capability.partition(".")[0] not in unshared}
    return frozenset(asked - impersonal)


def _unshared(source: Source, entries: Sequence[Entry]) -> set[str]:
    return {entry.says["capability"] for entry in source.choose(entries, "unshared")}


def _shared_capabilities(source: Source, entries: Sequence[Entry]) -> dict[str, Any]:
    """What requests of a server need, with every part of it."""
    needed = {capability.partition(".")[0] for capability in source.asked.values()} - _unshared(source, entries)
    members = source.schema.definitions[read_roles().client_capabilities].get("properties", {})
    return {name: _full(source, member) for name, member in members.items() if name in needed}


def _full(source: Source, node: Schema) -> Any:
    node = source.schema.resolve(node)
    if node.get("type") == "boolean":
        return True
    return {name: _full(source, member) for name, member in node.get("properties", {}).items()}


def _part(entry: Entry) -> Made:
    says = entry.says
    named = {key: says[key] for key in ("capability", "method", "member")}
    return Made("Part", {**named, "value": says.get("value"), "is_default": says.get("is_default", False)})


def _has_part(source: Source, entry: Entry) -> bool:
    return entry.says["capability"] in source.capabilities("client") and entry.says["method"] in source.asked


def _definition(source: Source, name: str | None) -> Schema:
    return source.schema.resolve(source.schema.definitions.get(name or "", {}))


def _param_names(source: Source, method: str) -> set[str]:
    found = [entry for entry in (*source.methods, *source.inputs) if entry.name == method]
    arms = [arm for entry in found for arm in _arms(source, _definition(source, entry.params))]
    return {name for arm in arms for name in arm.get("properties", {})}


def _arms(source: Source, node: Schema) -> list[Schema]:
    node = source.schema.resolve(node)
    return [arm for one in node.get("anyOf", ()) for arm in _arms(source, one)] or [node]


def _is_cacheable(source: Source, method: MethodEntry) -> bool:
    return any(_definition(source, name).get("properties", {}).keys() >= CACHE_HINTS for name in method.results)


def _metas(source: Source, kind: str) -> list[Schema]:
    """The `_meta` of every frame of a kind that a schema shows."""
    base = _definition(source, BASES[kind])
    holders = [base if kind == "result" else base.get("properties", {}).get("params", {})]
    if kind == "result":
        holders += [_definition(source, name) for method in source.methods for name in method.results]
    else:
        holders += [_definition(source, method.params) for method in source.methods if method.kind == kind]
    shown = [arm.get("properties", {}).get("_meta") for holder in holders for arm in _arms(source, holder)]
    return [source.schema.resolve(meta) for meta in shown if meta is not None]


def _meta_keys(source: Source, entries: Sequence[Entry], kind: str) -> dict[str, str]:
    keys = {key for meta in _metas(source, kind) for key in meta.get("properties", {})}
    keys |= {entry.says["key"] for entry in source.choose(entries, "meta") if kind in entry.says["on"]}
    return {key.rpartition("/")[2]: key for key in sorted(keys)}


def _required_meta(source: Source) -> frozenset[str]:
    asking = [method for method in source.methods if method.kind == "request"]
    held = [arm for method in asking for arm in _arms(source, _definition(source, method.params))]
    required = [
        set(source.schema.resolve(arm["properties"]["_meta"]).get("required", ()))
        for arm in held
        if "_meta" in arm.get("required", ())
    ]
    return frozenset(set.intersection(*required)) if required else frozenset()


def _subscriptions(source: Source, entries: Sequence[Entry]) -> dict[str, str]:
    """What each member of the filter asks for: it repeats the name of a flag, or an entry says it."""
    flags = {_joined(flag): method for method, flag in source.announced.items()}
    said = {entry.says["member"]: entry.says["method"] for entry in source.choose(entries, "subscription")}
    known = {**flags, **said}
    return {name: known[name] for name in source.filter_members if name in known}


def _joined(path: str) -> str:
    feature, _, flag = path.partition(".")
    return feature + flag[:1].upper() + flag[1:]
