"""What per-request clients hear of a server with a handshake: their listen requests, made of its subscriptions.

Lives here: the listen requests at one session of the server. Must not: know connections. Made by `notifications`.

Theory of operation. Each listen request has a filter; what the server does not promise is left out of it. A resource is
subscribed to at the server when the first listener wants it, and given up when the last has gone. The filter is
acknowledged when the server has answered for all of its resources: "`notifications/subscriptions/acknowledged` as the
first message" (2026-07-28/basic/patterns/subscriptions), so what happens before that waits. Every notification is
copied to each listener that asked for it, tagged with the id of the listener's own request, as the client wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from dragoman.core.codes import INTERNAL_ERROR, INVALID_PARAMS
from dragoman.core.edges.per_request_front import PerRequestCall
from dragoman.core.envelope import Frame
from dragoman.core.methods import ACKNOWLEDGED, CANCELLED
from dragoman.core.places import has_place
from dragoman.core.rules.names import FACTS, META_SUBSCRIPTION_ID
from dragoman.core.rules.notifications import (
    RESOURCE_FILTER,
    Backlog,
    Filter,
    find_fault,
    promises,
    read_filter,
    wants,
    write_filter,
)
from dragoman.core.switch.to_session.loans import holder_of
from dragoman.core.switch.to_session.promoting import FILTER, Promoting
from dragoman.core.switch.to_session.reading import Served
from dragoman.core.unchecked import find, with_meta

MOST: Final = 1024
MOST_URIS: Final = 4096
"""How many listen requests there may be, and how many resources all of them may name."""


@dataclass(slots=True)
class _Listen:
    request: PerRequestCall
    wanted: Filter
    unsettled: set[str]
    is_acknowledged: bool = False
    waiting: Backlog = field(default_factory=Backlog)

    @property
    def uris(self) -> list[str]:
        return sorted(uri for _, uri in self.wanted if uri)


class ListenRequests:
    """The listen requests at one session of a server.

    Args:
        served: The session.
        promoting: The tasks of the clients, which can be listened to as well.
    """

    def __init__(self, served: Served, promoting: Promoting) -> None:
        self._served = served
        self._promoting = promoting
        self._listens: dict[PerRequestCall, _Listen] = {}
        self._subscribed: dict[str, bool] = {}  # the resources that the server was asked for; whether it has agreed

    def __len__(self) -> int:
        return len(self._listens)

    def open(self, request: PerRequestCall) -> None:
        """Take a listen request."""
        asked = find(request.params, "notifications")
        if (fault := find_fault(asked)) is not None:
            pointer = {"pointer": "/params/notifications"}
            self._served.front.refuse(request, INVALID_PARAMS, f"expected {fault}", pointer)
            return
        wanted = frozenset(one for one in read_filter(asked) if self._promises(one[0]))
        listen = _Listen(request, wanted, {uri for _, uri in wanted if uri and not self._subscribed.get(uri)})
        if not self._has_place(listen):
            self._served.front.refuse(request, INTERNAL_ERROR, "too many subscriptions are open", {})
            return
        self._promoting.listen(request)
        new = [uri for uri in listen.uris if uri not in self._subscribed]
        self._listens[request] = listen
        self._subscribed.update(dict.fromkeys(new, False))
        for uri in new:
            self._served.loans.send_own("resources/subscribe", {"uri": uri}, partial(self._settle, uri))
        self._acknowledge(listen)

    def _has_place(self, listen: _Listen) -> bool:
        """Whether there may be another: of several principals, none has more than half of the places."""
        if not self._served.bridging.shares_server:
            return len(self._listens) < MOST and len(self._subscribed.keys() | set(listen.uris)) <= MOST_URIS
        holder = holder_of(listen.request)
        holders = [holder_of(request) for request in self._listens]
        own = [one for one in self._listens.values() if holder_of(one.request) == holder]
        wanted = {uri for one in (*own, listen) for uri in one.uris}
        left = MOST_URIS - len(self._subscribed.keys() | wanted)
        return has_place(holder, holders, len(holders), MOST) and (not listen.uris or len(wanted) <= left)

    def _promises(self, name: str) -> bool:
        """Whether the server tells of what has this name in a filter."""
        method = FACTS.subscriptions.get(name)
        flag = "resources.subscribe" if name == RESOURCE_FILTER else FACTS.announced.get(method or "")
        return flag is not None and promises(self._served.capabilities, flag)

    def cancel(self, request: PerRequestCall) -> bool:
        """Record that a request was cancelled; False where it is not a listen request."""
        if self._listens.pop(request, None) is None:
            return False
        self._promoting.listeners.pop(request, None)
        wanted = {uri for listen in self._listens.values() for uri in listen.uris}
        for uri in [uri for uri in self._subscribed if uri not in wanted]:
            del self._subscribed[uri]
            self._served.loans.send_own("resources/unsubscribe", {"uri": uri}, lambda answer: None)
        return True

    def hear(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Take a notification of the server, in the form of the clients."""
        for listen in list(self._listens.values()):
            if wants(listen.wanted, method, (params or {}).get("uri")):
                if listen.is_acknowledged:
                    self._tell(listen, method, params)
                else:
                    listen.waiting.put(method, params)

    def end_all(self, reason: str) -> None:
        """End every listen request: the server has gone for good, or the proxy stops."""
        ended, self._listens, self._subscribed = self._listens, {}, {}
        for request in ended:
            self._promoting.listeners.pop(request, None)
            if self._served.bridging.shares_channel:
                self._served.front.tell(request, CANCELLED, {"requestId": request.id, "reason": reason})
            self._served.put_result(request, {"resultType": "complete", "_meta": {META_SUBSCRIPTION_ID: request.id}})

    def _settle(self, uri: str, answer: Frame) -> None:
        """Take the server's answer to `resources/subscribe`."""
        if uri not in self._subscribed:
            return
        agreed = answer.kind == "result"
        if agreed:
            self._subscribed[uri] = True
        else:
            del self._subscribed[uri]
        for listen in list(self._listens.values()):
            if uri in listen.unsettled:
                listen.unsettled.discard(uri)
                if not agreed:
                    listen.wanted -= {(RESOURCE_FILTER, uri)}
                self._acknowledge(listen)

    def _acknowledge(self, listen: _Listen) -> None:
        if listen.is_acknowledged or listen.unsettled:
            return
        listen.is_acknowledged = True
        agreed = write_filter(listen.wanted)
        if tasks := self._promoting.listeners.get(listen.request):
            agreed[FILTER] = [task.task_id for task in tasks]
        self._tell(listen, ACKNOWLEDGED, {"notifications": agreed})
        for method, params in listen.waiting.take_all():
            if wants(listen.wanted, method, (params or {}).get("uri")):
                self._tell(listen, method, params)

    def _tell(self, listen: _Listen, method: str, params: Mapping[str, Any] | None) -> None:
        self._served.front.tell(
            listen.request, method, with_meta(params or {}, META_SUBSCRIPTION_ID, listen.request.id)
        )
