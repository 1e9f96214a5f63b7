"""What the table of facts says of each revision: derived where a schema shows it, else from an entry of an overlay.

Here are the derivations, and the check that each entry is of use; what an entry may say is in `fact_entries`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codegen.errors import CodegenError
from codegen.read.fact_entries import CAPABILITIES, GONE, RENAME, Entry, Said, ended_by, said_of
from codegen.read.model import Spec
from codegen.read.normalise import Normalised
from codegen.read.plain import Schema
from codegen.read.protocol import (
    ErrorCode,
    MethodEntry,
    error_codes,
    filled_fields,
    input_entries,
    method_entries,
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
    """What the facts of one revision are derived from; `said` has what entries say of it."""

    spec: Spec
    schema: Normalised
    era: str
    said: Said
    methods: tuple[MethodEntry, ...]
    inputs: tuple[MethodEntry, ...]
    codes: tuple[ErrorCode, ...]

    @property
    def revision(self) -> str:
        """The revision."""
        return self.spec.revision

    def capabilities(self, side: str) -> dict[str, Schema]:
        """The capabilities of a side and their parts: the schema of each, by its path."""
        return dict(self._walk("", self.schema.definitions[CAPABILITIES[side]]))

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


def source_of(spec: Spec, schema: Normalised, era: str, said: Said) -> Source:
    """Collect what the facts of a revision are derived from."""
    methods, inputs = tuple(method_entries(spec, schema, said)), tuple(input_entries(schema, said))
    return Source(spec, schema, era, said, methods, inputs, tuple(error_codes(schema, said)))


def derive_facts(source: Source) -> dict[str, Any]:
    """The facts of one revision, by the names of the fields of `Facts`."""
    said = source.said
    local = _listed(source, "local")
    lifecycle = {part: says["method"] for part, says in said["lifecycle"].items()}
    names = {method.name for method in source.methods}
    requests = [method for method in source.methods if method.kind == "request" and "client" in method.senders]
    client, server = source.capabilities("client"), source.capabilities("server")
    metas = {kind: _meta_keys(source, kind) for kind in BASES}
    return {
        "revision": source.revision,
        "era": source.era,
        "transports": frozenset(said["transport"]),
        "http_methods": frozenset(said["http_method"]),
        "authorization": frozenset(said["authorization"]),
        "headers": {carries: _header(says) for carries, says in said["header"].items()},
        "polls": "polls" in said["trait"],
        "batches": BATCH in source.schema.definitions,
        "log_levels": _levels(source),
        "lifecycle": lifecycle,
        "local": local,
        "renamed": {says["old"]: new for (what, new), says in said[RENAME].items() if what == "method"},
        "relayed": frozenset(names - local - set(lifecycle.values())),
        "quiet": _quiet(source, requests),
        "input_required": _input_required(requests),
        "cacheable": frozenset(method.name for method in requests if _is_cacheable(source, method)),
        "client_capabilities": frozenset(client),
        "server_capabilities": frozenset(server),
        "server_flags": frozenset(source.flags),
        "announced": source.announced,
        "standing": frozenset(method.name for method in requests if method.capability in source.flags),
        "asked": source.asked,
        "interactive": _interactive(source),
        "parts": tuple(_part(says) for says in said["part"].values() if _has_part(source, says)),
        "shared_capabilities": Json(_shared_capabilities(source)),
        "request_meta": metas["request"],
        "required_meta": _required_meta(source),
        "result_meta": metas["result"],
        "notification_meta": metas["notification"],
        "meta_refusal": next(((says["code"], says["status"]) for says in said["meta_refusal"].values()), None),
        "http_status": {code: says["status"] for code, says in said["http_status"].items()},
        "subscriptions": _subscriptions(source),
    }


def missing_facts(source: Source) -> list[str]:
    """What a schema has and no entry places, as the table that lacks it and the name; nothing waits for it."""
    placed, known = _levels(source), _subscriptions(source)
    levels = [f"[[log_levels]] order: {name!r}" for name in source.level_names if name not in placed]
    return levels + [f"[[subscription]]: {name!r}" for name in source.filter_members if name not in known]


def check_era(source: Source) -> None:
    """Make sure that a revision asks in the way of its era, which is what the bridge between the eras joins.

    Raises:
        CodegenError: It opens with a handshake, and its servers ask inside of results.
    """
    if source.era == "handshake" and source.inputs:
        names = ", ".join(sorted(method.name for method in source.inputs))
        raise CodegenError(
            f"{source.revision} opens with a handshake, and its servers ask inside of results ({names}). There is no "
            "session of both kinds: proxy and client could ask nobody. Pull it with `--era per_request`, which makes "
            "`initialize` a request like others."
        )


def check_entries(source: Source, entries: Sequence[Entry]) -> None:
    """Make sure that the entries of a revision's own overlay are of use there.

    Raises:
        UnusedDecision: What an entry names is not in the revision, or the entry is for another era.
    """
    earlier = [entry for entry in entries if entry.revision < source.revision]
    before = said_of(earlier, source.revision, source.era)
    for entry in entries:
        if entry.revision == source.revision and entry.table != RENAME:
            if entry.says.get("era", source.era) != source.era:
                raise entry.refused(f"the revision is of the era {source.era}")
            for what, is_there in _named(entry, source, before):
                if not is_there:
                    raise entry.refused(f"the revision has no {what}")


def _named(entry: Entry, source: Source, before: Said) -> Iterator[tuple[str, bool]]:
    """Each thing that an entry names, and whether the revision has it, or for `[[gone]]`, would have it."""
    table, says = entry.table, entry.says
    if table == GONE:
        yield from ((f"[[{ended}]] on {about!r} to end", about in before[ended]) for ended, about in ended_by(entry))
        return
    known = _method_names(source)
    methods = says.get("methods", [says["method"]] if "method" in says else [])
    yield from ((f"method {name}", name in known) for name in methods)
    if "code" in says:
        yield f"error code {says['code']}", says["code"] in {one.code for one in source.codes}
    if "capability" in says:
        sides = ("client", "server") if table == "capability" else ("client",)
        found = any(says["capability"] in source.capabilities(side) for side in sides)
        yield f"{' or '.join(sides)} capability {says['capability']}", found
    yield from ((f"level {level}", level in source.level_names) for level in says.get("order", ()))
    if table == "subscription":
        yield f"filter member {says['member']}", says["member"] in source.filter_members
    if table == "fill":
        yield f"required field {says['at']}", bool(filled_fields(says["at"], source.schema))
    members = {says["method"]: says["member"]} if table == "part" else says.get("members", {})
    for method, member in members.items():
        yield f"{method} with params.{member}", member in _param_names(source, method)


def _method_names(source: Source) -> set[str]:
    return {method.name for method in (*source.methods, *source.inputs)}


def _listed(source: Source, table: str) -> frozenset[str]:
    """The methods of a revision that a table lists."""
    return frozenset(source.said[table].keys() & _method_names(source))


def _quiet(source: Source, requests: Sequence[MethodEntry]) -> frozenset[str]:
    """Where the schema shows which results ask, all other requests; else those that are listed."""
    if INPUT_REQUIRED in source.schema.definitions:
        return frozenset(method.name for method in requests) - _input_required(requests)
    return _listed(source, "quiet")


def _input_required(requests: Sequence[MethodEntry]) -> frozenset[str]:
    return frozenset(method.name for method in requests if INPUT_REQUIRED in method.results)


def _header(says: Mapping[str, Any]) -> Made:
    fields = {"name": says["name"], "carries": says["carries"], "members": says.get("members", {})}
    return Made("Header", {**fields, "annotation": says.get("annotation"), "is_encoded": says.get("is_encoded", False)})


def _levels(source: Source) -> tuple[str, ...]:
    order = [level for says in source.said["log_levels"].values() for level in says["order"]]
    return tuple(level for level in order if level in source.level_names)


def _interactive(source: Source) -> frozenset[str]:
    unshared, impersonal = source.said["unshared"], _listed(source, "impersonal")
    asked = {name for name, capability in source.asked.items() if capability.partition(".")[0] not in unshared}
    return frozenset(asked - impersonal)


def _shared_capabilities(source: Source) -> dict[str, Any]:
    """What requests of a server need, with every part of it."""
    needed = {capability.partition(".")[0] for capability in source.asked.values()} - source.said["unshared"].keys()
    members = source.schema.definitions[CAPABILITIES["client"]].get("properties", {})
    return {name: _full(source, member) for name, member in members.items() if name in needed}


def _full(source: Source, node: Schema) -> Any:
    node = source.schema.resolve(node)
    if node.get("type") == "boolean":
        return True
    return {name: _full(source, member) for name, member in node.get("properties", {}).items()}


def _part(says: Mapping[str, Any]) -> Made:
    named = {key: says[key] for key in ("capability", "method", "member")}
    return Made("Part", {**named, "value": says.get("value"), "is_default": says.get("is_default", False)})


def _has_part(source: Source, says: Mapping[str, Any]) -> bool:
    return says["capability"] in source.capabilities("client") and says["method"] in source.asked


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


def _meta_keys(source: Source, kind: str) -> dict[str, str]:
    keys = {key for meta in _metas(source, kind) for key in meta.get("properties", {})}
    keys |= {key for key, says in source.said["meta"].items() if kind in says["on"]}
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


def _subscriptions(source: Source) -> dict[str, str]:
    """What each member of the filter asks for: it repeats the name of a flag, or an entry says it."""
    flags = {_joined(flag): method for method, flag in source.announced.items()}
    known = {**flags, **{member: says["method"] for member, says in source.said["subscription"].items()}}
    return {name: known[name] for name in source.filter_members if name in known}


def _joined(path: str) -> str:
    feature, _, flag = path.partition(".")
    return feature + flag[:1].upper() + flag[1:]
