"""What per-request clients hear of a server with a handshake: their listen streams, made of its subscriptions.

Lives here: the listen requests at one upstream session. Must not: send, or know connections beyond a name for each.
Whoever drives it carries out the commands in order. Called by `core.switch`.

Theory of operation. Each listen request has a filter; what the server does not promise is left out of it. A resource is
subscribed to at the server when the first listener wants it, and given up when the last has gone. The filter is
acknowledged when the server has answered for all of its resources: "`notifications/subscriptions/acknowledged` as the
first message" (2026-07-28/basic/patterns/subscriptions), so what happens before that waits. Every notice is copied to
each listener that asked for it, tagged with the id of the listener's own request, as the client wrote it. Two clients
may use the same id: so a listener is known by whatever its driver calls it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from dragoman.core.bridge.names import FACTS, META_SUBSCRIPTION_ID
from dragoman.core.bridge.notices import RESOURCE_FILTER, UPDATED, Backlog, covers, promises
from dragoman.core.codes import INTERNAL_ERROR, INVALID_PARAMS
from dragoman.core.envelope import Refusal
from dragoman.core.methods import ACKNOWLEDGED
from dragoman.core.unchecked import with_meta

R = TypeVar("R", bound=Hashable)
"""A listen request."""


@dataclass(frozen=True, slots=True)
class TellListener(Generic[R]):
    """Send a notification on the stream of a listen request."""

    to: R
    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refuse(Generic[R]):
    """Answer a listen request with an error."""

    to: R
    error: Refusal


@dataclass(frozen=True, slots=True)
class End(Generic[R]):
    """Answer a listen request with this result, after `cancel` where all share one channel; then close its stream."""

    to: R
    result: dict[str, Any]
    cancel: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Send the server `resources/subscribe`, and say what came of it by `Listens.settle`."""

    uri: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Send the server `resources/unsubscribe`; whatever it answers."""

    uri: str


Command = TellListener[R] | Refuse[R] | End[R] | Subscribe | Unsubscribe


@dataclass(slots=True)
class _Listen:
    request_id: Any
    lists: tuple[str, ...]
    uris: dict[str, None]
    unsettled: set[str] = field(default_factory=set)
    is_acknowledged: bool = False
    waiting: Backlog = field(default_factory=Backlog)

    def wants(self, method: str, uri: object) -> bool:
        if method == UPDATED:
            return isinstance(uri, str) and covers(self.uris, uri)
        return any(FACTS.subscriptions[name] == method for name in self.lists)


@dataclass(slots=True)
class Listens(Generic[R]):
    """The listen requests at one session of a server with a handshake.

    Attributes:
        capabilities: Of the server, as it told them in the handshake.
        most: How many listen requests there may be.
        most_uris: How many resources all of them may name.
    """

    capabilities: Mapping[str, Any]
    most: int = 1024
    most_uris: int = 4096
    _listens: dict[R, _Listen] = field(default_factory=dict)
    _subscribed: dict[str, bool] = field(default_factory=dict)
    """The resources that the server was asked for; whether it has agreed."""

    def __len__(self) -> int:
        return len(self._listens)

    def __contains__(self, to: object) -> bool:
        return to in self._listens

    def open(self, to: R, request_id: Any, params: object) -> list[Command[R]]:
        """Take a listen request.

        Args:
            to: The request.
            request_id: Its id, as the client wrote it.
            params: Of it.
        """
        asked = params.get("notifications") if isinstance(params, dict) else None
        if (fault := _find_fault(asked)) is not None or not isinstance(asked, dict):
            refusal = Refusal(INVALID_PARAMS, f"expected {fault}", {"pointer": "/params/notifications"})
            return [Refuse(to, refusal)]
        uris = dict.fromkeys(
            asked.get(RESOURCE_FILTER, ()) if promises(self.capabilities, "resources.subscribe") else ()
        )
        if len(self._listens) >= self.most or len(self._subscribed.keys() | uris.keys()) > self.most_uris:
            return [Refuse(to, Refusal(INTERNAL_ERROR, "too many subscriptions are open", {}))]
        lists = tuple(
            name
            for name, method in FACTS.subscriptions.items()
            if name != RESOURCE_FILTER
            and asked.get(name) is True
            and promises(self.capabilities, FACTS.announced[method])
        )
        new = [uri for uri in uris if uri not in self._subscribed]
        unsettled = {uri for uri in uris if not self._subscribed.get(uri)}
        self._listens[to] = _Listen(request_id, lists, uris, unsettled)
        self._subscribed.update(dict.fromkeys(new, False))
        return [*(Subscribe(uri) for uri in new), *self._acknowledge(to)]

    def settle(self, uri: str, agreed: bool) -> list[Command[R]]:
        """Take the server's answer to `resources/subscribe`."""
        if uri not in self._subscribed:
            return []
        if agreed:
            self._subscribed[uri] = True
        else:
            del self._subscribed[uri]
        commands: list[Command[R]] = []
        for to, listen in self._listens.items():
            if uri in listen.unsettled:
                listen.unsettled.discard(uri)
                if not agreed:
                    listen.uris.pop(uri, None)
                commands += self._acknowledge(to)
        return commands

    def hear(self, method: str, params: Mapping[str, Any] | None) -> list[Command[R]]:
        """Take a notification of the server, in the form of the clients."""
        if method not in FACTS.subscriptions.values():
            return []
        uri = (params or {}).get("uri")
        commands: list[Command[R]] = []
        for to, listen in self._listens.items():
            if listen.wants(method, uri):
                if listen.is_acknowledged:
                    commands.append(TellListener(to, method, _tag(params, listen.request_id)))
                else:
                    listen.waiting.put(method, params)
        return commands

    def close(self, to: R) -> list[Command[R]]:
        """Take note that a client has cancelled a listen request."""
        self._listens.pop(to, None)
        return self._give_up_unwanted()

    def end_all(self, reason: str) -> list[Command[R]]:
        """End every listen request: the server has gone for good, or the proxy stops."""
        ended, self._listens, self._subscribed = self._listens, {}, {}
        return [
            End(
                to,
                {"resultType": "complete", "_meta": {META_SUBSCRIPTION_ID: listen.request_id}},
                {"requestId": listen.request_id, "reason": reason},
            )
            for to, listen in ended.items()
        ]

    def _acknowledge(self, to: R) -> list[Command[R]]:
        listen = self._listens[to]
        if listen.is_acknowledged or listen.unsettled:
            return []
        listen.is_acknowledged = True
        agreed: dict[str, Any] = dict.fromkeys(listen.lists, True)
        if listen.uris:
            agreed[RESOURCE_FILTER] = list(listen.uris)
        acknowledged = TellListener(to, ACKNOWLEDGED, _tag({"notifications": agreed}, listen.request_id))
        held = [(method, params) for method, params in listen.waiting.take_all() if listen.wants(method, _uri(params))]
        return [acknowledged, *(TellListener(to, method, _tag(params, listen.request_id)) for method, params in held)]

    def _give_up_unwanted(self) -> list[Command[R]]:
        wanted = {uri for listen in self._listens.values() for uri in listen.uris}
        unwanted = [uri for uri in self._subscribed if uri not in wanted]
        for uri in unwanted:
            del self._subscribed[uri]
        return [Unsubscribe(uri) for uri in unwanted]


def _find_fault(asked: object) -> str | None:
    if not isinstance(asked, dict):
        return "an object with the notifications to hear"
    for name in FACTS.subscriptions:
        value = asked.get(name)
        if name == RESOURCE_FILTER:
            if name in asked and not (isinstance(value, list) and all(isinstance(uri, str) for uri in value)):
                return f"{name} to be a list of URIs"
        elif not isinstance(value, bool | None):
            return f"{name} to be true or false"
    return None


def _uri(params: Mapping[str, Any] | None) -> object:
    return (params or {}).get("uri")


def _tag(params: Mapping[str, Any] | None, request_id: Any) -> dict[str, Any]:
    return with_meta(params or {}, META_SUBSCRIPTION_ID, request_id)
