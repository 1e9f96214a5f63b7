"""What each era has that no handler does: how a session opens, who wants which notifications, what a result carries.

Lives here: one class for revisions with a handshake, one for those without. Must not: run handlers (`session`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from dragoman.core.codes import INVALID_PARAMS, INVALID_REQUEST
from dragoman.core.methods import LISTEN, LOG, PING, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE, UPDATED, first_name
from dragoman.core.rules.capabilities import spell_required
from dragoman.core.rules.metadata import Metadata, put_identity, read
from dragoman.core.rules.names import MISSING_CLIENT_CAPABILITY
from dragoman.core.rules.notifications import Filter, covers, find_fault, read_filter, wants, write_filter
from dragoman.core.unchecked import find
from dragoman.errors import CapabilityNotSupported, McpError, ProtocolError, RemoteProtocolError
from dragoman.server.context import Context
from dragoman.server.definition import ServerDefinition

Say = Callable[[str, dict[str, Any]], None]
Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


class Lasting(Exception):
    """A request that is not answered as long as it lasts."""


def _token(params: Mapping[str, Any]) -> str | int | None:
    token = find(params, "_meta", "progressToken")
    return token if isinstance(token, str | int) else None


class HandshakeOpening:
    """A session that opens with `initialize`."""

    allows_null_id = True

    def __init__(self, definition: ServerDefinition, say: Say) -> None:
        self._definition = definition
        self._say = say
        self._client: Mapping[str, Any] | None = None
        self._is_open = False
        self._level = definition.facts.log_levels[0]
        self._subscribed: set[str] = set()

    def answer(self, request_id: str | int, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Answer `initialize`, `ping`, and what stands for a promise of the server."""
        definition = self._definition
        if method == definition.facts.lifecycle["open"]:
            self._client = params
            result = {"protocolVersion": definition.revision, "capabilities": definition.capabilities}
            result["serverInfo"] = definition.info
            return result if definition.instructions is None else {**result, "instructions": definition.instructions}
        if method == PING:
            return {}
        if method not in definition.methods:
            return None  # a client of the other era asks first: it is told that there is no such method
        if self._client is None:
            raise McpError(INVALID_REQUEST, f"expected initialize, found {method[:80]}")
        if method in definition.handlers:
            return None
        if method == SET_LEVEL and LOG in definition.notifies:
            self._set_level(params.get("level"))
            return {}
        if method in (SUBSCRIBE, UNSUBSCRIBE) and UPDATED in definition.notifies:
            self._subscribe(method, params.get("uri"))
            return {}
        return None

    def _set_level(self, level: Any) -> None:
        levels = self._definition.facts.log_levels
        if level not in levels:
            raise McpError(INVALID_PARAMS, f"expected one of {', '.join(levels)} at /params/level")
        self._level = level

    def _subscribe(self, method: str, uri: Any) -> None:
        if not isinstance(uri, str):
            raise McpError(INVALID_PARAMS, "expected a string at /params/uri")
        if method == SUBSCRIBE:
            self._subscribed.add(uri)
        else:
            self._subscribed.discard(uri)

    def take_notice(self, method: str) -> None:
        """Note that the session is open."""
        if method == self._definition.facts.lifecycle["opened"]:
            self._is_open = True

    def cancel(self, request_id: Any) -> None:
        """Nothing lasts here."""

    def refuse(self, error: CapabilityNotSupported) -> ProtocolError:
        """Say it as it is: the revision has no code for that."""
        return error

    def make_context(self, method: str, request_id: str | int, params: Mapping[str, Any], ask: Ask) -> Context:
        """Make what a handler is given."""
        client = self._client or {}
        capabilities, info = client.get("capabilities") or {}, client.get("clientInfo")
        given = (method, request_id, capabilities, info, self._definition, self._say, ask)
        return Context(*given, _token(params), self._level)

    def renew(self, context: Context, request_id: str | int, params: Mapping[str, Any]) -> None:
        """Nothing goes on in another request here."""

    def complete(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result as it is."""
        return result

    def select(self, method: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Return the params, once the session is open; of a resource, if the client has subscribed to it."""
        if self._is_open and (method != UPDATED or covers(self._subscribed, params["uri"])):
            yield params


class PerRequestOpening:
    """A connection on which each request speaks for itself."""

    allows_null_id = False

    def __init__(self, definition: ServerDefinition, say: Say) -> None:
        self._definition = definition
        self._say = say
        self._listening: dict[str | int, Filter] = {}

    def answer(self, request_id: str | int, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Answer `server/discover` and `subscriptions/listen`; hold the metadata of every request against the rules."""
        definition = self._definition
        if method not in definition.methods:
            return None  # a client of the other era opens a session: it is told that there is no such method
        self._read(params)
        if method == definition.facts.lifecycle["discover"]:
            result: dict[str, Any] = {"supportedVersions": [definition.revision]}
            result["capabilities"] = definition.capabilities
            if definition.instructions is not None:
                result["instructions"] = definition.instructions
            return self.complete(method, result)
        if first_name(definition.revision, method) == LISTEN and method not in definition.handlers:
            self._listen(request_id, params.get("notifications"))
            raise Lasting
        return None

    def _read(self, params: Mapping[str, Any]) -> Metadata:
        return read(params, (self._definition.revision,))

    def _listen(self, request_id: str | int, filters: Any) -> None:
        if (fault := find_fault(filters)) is not None:
            raise McpError(INVALID_PARAMS, f"expected {fault} at /params/notifications")
        methods, notifies = self._definition.facts.subscriptions, self._definition.notifies
        honoured = frozenset(one for one in read_filter(filters) if methods.get(one[0]) in notifies)
        self._listening[request_id] = honoured
        told = self._stamp(request_id, {"notifications": write_filter(honoured)})
        self._say("notifications/subscriptions/acknowledged", told)

    def _stamp(self, request_id: str | int, params: dict[str, Any]) -> dict[str, Any]:
        key = self._definition.facts.notification_meta["subscriptionId"]
        return {**params, "_meta": {**params.get("_meta", {}), key: request_id}}

    def take_notice(self, method: str) -> None:
        """Nothing opens."""

    def cancel(self, request_id: Any) -> None:
        """Tell this listener no more."""
        if isinstance(request_id, str | int):
            self._listening.pop(request_id, None)

    def refuse(self, error: CapabilityNotSupported) -> ProtocolError:
        """Say what the next try has to declare."""
        data = {"requiredCapabilities": spell_required(error.capability)}
        return RemoteProtocolError(MISSING_CLIENT_CAPABILITY, f"the client did not declare {error.capability}", data)

    def make_context(self, method: str, request_id: str | int, params: Mapping[str, Any], ask: Ask) -> Context:
        """Make what a handler is given."""
        said = self._read(params)
        given = (method, request_id, said.capabilities, said.client_info, self._definition, self._say, ask)
        return Context(*given, _token(params), said.log_level)

    def renew(self, context: Context, request_id: str | int, params: Mapping[str, Any]) -> None:
        """Let a handler go on in another request."""
        context.renew(request_id, _token(params), self._read(params).log_level)

    def complete(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """Say that the result is complete, how long it may be kept, and whose it is, unless the handler has."""
        facts = self._definition.facts
        whole = {"resultType": "complete", **result}
        if method in facts.cacheable and whole["resultType"] == "complete":
            whole = {**whole, "ttlMs": whole.get("ttlMs", 0), "cacheScope": whole.get("cacheScope", "private")}
        return put_identity(whole, self._definition.info)

    def select(self, method: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Return the params for each request that listens for them."""
        for request_id, wanted in self._listening.items():
            if wants(wanted, first_name(self._definition.revision, method), params.get("uri")):
                yield self._stamp(request_id, params)
