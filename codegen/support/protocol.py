"""What a revision has beside its methods and models: the types of the table of facts. Imports no pydantic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Literal

from dragoman_spec.record import record

Era = Literal["handshake", "per_request"]
Transport = Literal["stdio", "http+sse", "streamable-http"]
Authorization = Literal["default-endpoints", "resource-indicator", "announced-pkce"]
Carries = Literal["session", "revision", "event", "method", "name", "argument"]
LifecyclePart = Literal["open", "opened", "discover"]


@record
class Header:
    """An HTTP header of Streamable HTTP.

    Args:
        name: As the specification writes it; peers compare header names without case. Of a header that carries an
            argument of a tool this is the beginning: what the tool's schema says at `annotation` follows.
        carries: The id of the session, the revision, the id of the last event, the method, what the request names
            (`tools/call`: the tool), or one argument of a tool.
        members: The member of `params` whose value the header repeats, by method; only for what a request names.
        annotation: The keyword of a tool's `inputSchema` that names the header; only for arguments.
        is_encoded: Whether a value that HTTP cannot carry is sent as `=?base64?...?=`.
    """

    name: str
    carries: Carries
    members: Mapping[str, str]
    annotation: str | None
    is_encoded: bool

    def __reduce__(self) -> tuple[Any, ...]:
        return _parts(self)


@record
class Part:
    """A part of a client capability that some requests of a server need.

    Args:
        capability: The part, `elicitation.url`.
        method: The request.
        member: The member of its params that decides.
        value: What that is in a request that needs the part; None where it only has to be there.
        is_default: Whether a request without the member needs the part as well, and whether a client that declares no
            part at all has this one.
    """

    capability: str
    method: str
    member: str
    value: str | None
    is_default: bool

    def is_needed(self, params: Mapping[str, Any]) -> bool:
        """Whether a request with these params needs the part."""
        if self.member not in params:
            return self.is_default
        return self.value is None or params[self.member] == self.value


@record
class Facts:
    """What one revision has. Where no schema shows it, an entry of `codegen/overlays/` says it, with its source.

    Args:
        revision: The revision.
        era: Whether a session opens with a handshake, or each request speaks for itself.
        transports: The transports that the revision describes.
        http_methods: The HTTP methods of the MCP endpoint of Streamable HTTP.
        authorization: What its page on authorization demands of a client and others do not.
        headers: The headers of Streamable HTTP, by what they carry.
        polls: Whether an event stream begins with an event id, and may be closed before it is finished: the client
            comes back for the rest.
        batches: Whether a frame may be an array of frames.
        log_levels: The log levels, the most verbose first.
        lifecycle: The methods that open a session or ask what the server speaks, by what they do.
        local: The methods that each peer answers on its own: a proxy never relays them.
        renamed: The methods that had another name in an older revision: their names here, by the first that they had.
        relayed: All methods but those of `lifecycle` and `local`.
        quiet: The requests of a client during which no server asks back.
        input_required: The requests of a client whose result can be that the server needs input first.
        cacheable: The requests of a client whose complete result says how long it may be kept.
        client_capabilities: Every capability of a client and every part of one, with dots between the levels.
        server_capabilities: The same of a server.
        server_flags: Those capabilities of a server that are `true` or `false`: what it promises to tell later.
        announced: The notifications of a server that it promises by a flag, and the flag.
        standing: The requests of a client that need a flag: what they set up outlives their answer.
        asked: The requests of a server, those inside of results too, and the capability of the client that each needs.
        interactive: Those of them that must reach the person whose call they belong to.
        parts: What requests of a server need beyond that capability.
        shared_capabilities: What can be declared in the name of several clients at once: the value of `capabilities`.
        request_meta: The keys that `_meta` of a request has a meaning for, by their last part: `progressToken`.
        required_meta: Those keys without which a request is not valid.
        result_meta: The same of results.
        notification_meta: The same of notifications.
        meta_refusal: The error code and the HTTP status for a request that lacks a required key of `_meta`.
        http_status: The HTTP status that an error code is sent with, where the revision says one.
        subscriptions: The members of the filter of `subscriptions/listen`, and the notification that each asks for.
    """

    revision: str
    era: Era
    transports: frozenset[Transport]
    http_methods: frozenset[str]
    authorization: frozenset[Authorization]
    headers: Mapping[Carries, Header]
    polls: bool
    batches: bool
    log_levels: tuple[str, ...]
    lifecycle: Mapping[LifecyclePart, str]
    local: frozenset[str]
    renamed: Mapping[str, str]
    relayed: frozenset[str]
    quiet: frozenset[str]
    input_required: frozenset[str]
    cacheable: frozenset[str]
    client_capabilities: frozenset[str]
    server_capabilities: frozenset[str]
    server_flags: frozenset[str]
    announced: Mapping[str, str]
    standing: frozenset[str]
    asked: Mapping[str, str]
    interactive: frozenset[str]
    parts: tuple[Part, ...]
    shared_capabilities: Mapping[str, Any]
    request_meta: Mapping[str, str]
    required_meta: frozenset[str]
    result_meta: Mapping[str, str]
    notification_meta: Mapping[str, str]
    meta_refusal: tuple[int, int] | None
    http_status: Mapping[int, int]
    subscriptions: Mapping[str, str]

    __eq__ = object.__eq__  # one a revision
    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return _parts(self)


def _parts(value: Header | Facts) -> tuple[Any, ...]:
    """How to make the value again in another process, which mappings that only read cannot go to."""
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    frozen = [name for name, part in found.items() if isinstance(part, MappingProxyType)]
    return _made, (type(value), found | {name: dict(found[name]) for name in frozen}, frozen)


def _made(kind: type[Any], parts: Mapping[str, Any], frozen: Sequence[str]) -> Any:
    return kind(**{**parts, **{name: MappingProxyType(parts[name]) for name in frozen}})
