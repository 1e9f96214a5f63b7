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
    Item,
    find_fault,
    promises,
    read_filter,
    wants,
    write_filter,
)
from dragoman.core.serving.subscriptions import Subscriptions
from dragoman.core.switch.to_session.loans import holder_of
from dragoman.core.switch.to_session.promoting import FILTER, Promoting
from dragoman.core.switch.to_session.reading import Served
from dragoman.core.unchecked import find, with_meta

MOST: Final = 1024
MOST_URIS: Final = 4096
"""How many listen requests there may be, and how many resources all of them may name."""


class ListenRequests:
    """The listen requests at one session of a server.

    Args:
        served: The session.
        promoting: The tasks of the clients, which can be listened to as well.
    """

    def __init__(self, served: Served, promoting: Promoting) -> None:
        self._served = served
        self._promoting = promoting
        self._backlogs: dict[PerRequestCall, Backlog | None] = {}  # None once the request is acknowledged
        self._subscriptions: Subscriptions[PerRequestCall] = Subscriptions()

    def __len__(self) -> int:
        return len(self._backlogs)

    def open(self, request: PerRequestCall) -> None:
        """Take a listen request."""
        asked = find(request.params, "notifications")
        if (fault := find_fault(asked)) is not None:
            pointer = {"pointer": "/params/notifications"}
            self._served.front.refuse(request, INVALID_PARAMS, f"expected {fault}", pointer)
            return
        wanted = sorted(one for one in read_filter(asked) if self._promises(one[0]))
        if not self._has_place(request, {uri for _, uri in wanted if uri}):
            self._served.front.refuse(request, INTERNAL_ERROR, "too many subscriptions are open", {})
            return
        self._promoting.listen(request)
        self._backlogs[request] = Backlog()
        new = [item for item in wanted if item not in self._subscriptions]
        for item in wanted:
            self._subscriptions.add(request, item)
        for name, uri in new:
            if uri:
                self._served.loans.send_own("resources/subscribe", {"uri": uri}, partial(self._settle, (name, uri)))
            else:
                self._subscriptions.settle(request, (name, uri), True)
        self._acknowledge(request)

    def _has_place(self, request: PerRequestCall, uris: set[str]) -> bool:
        """Whether there may be another: of several principals, none has more than half of the places."""
        subscribed = self._subscriptions.uris_of(self._backlogs)
        if not self._served.bridging.shares_server:
            return len(self._backlogs) < MOST and len(subscribed | uris) <= MOST_URIS
        holder = holder_of(request)
        holders = [holder_of(one) for one in self._backlogs]
        wanted = uris | self._subscriptions.uris_of(one for one in self._backlogs if holder_of(one) == holder)
        left = MOST_URIS - len(subscribed | wanted)
        return has_place(holder, holders, len(holders), MOST) and (not uris or len(wanted) <= left)

    def _promises(self, name: str) -> bool:
        """Whether the server tells of what has this name in a filter."""
        method = FACTS.subscriptions.get(name)
        flag = "resources.subscribe" if name == RESOURCE_FILTER else FACTS.announced.get(method or "")
        return flag is not None and promises(self._served.capabilities, flag)

    def cancel(self, request: PerRequestCall) -> bool:
        """Record that a request was cancelled; False where it is not a listen request."""
        if request not in self._backlogs:
            return False
        del self._backlogs[request]
        self._promoting.listeners.pop(request, None)
        for _, uri in self._subscriptions.remove_all(request):
            if uri:
                self._served.loans.send_own("resources/unsubscribe", {"uri": uri}, lambda answer: None)
        return True

    def hear(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Take a notification of the server, in the form of the clients."""
        for request in list(self._subscriptions.listeners(method, (params or {}).get("uri"))):
            backlog = self._backlogs[request]
            if backlog is None:
                self._tell(request, method, params)
            else:
                backlog.put(method, params)

    def end_all(self, reason: str) -> None:
        """End every listen request: the server has gone for good, or the proxy stops."""
        ended, self._backlogs, self._subscriptions = self._backlogs, {}, Subscriptions()
        for request in ended:
            self._promoting.listeners.pop(request, None)
            if self._served.bridging.shares_channel:
                self._served.front.tell(request, CANCELLED, {"requestId": request.id, "reason": reason})
            self._served.put_result(request, {"resultType": "complete", "_meta": {META_SUBSCRIPTION_ID: request.id}})

    def _settle(self, item: Item, answer: Frame) -> None:
        """Take the server's answer to `resources/subscribe`."""
        for request in self._subscriptions.holders(item):
            self._subscriptions.settle(request, item, answer.kind == "result")
            self._acknowledge(request)

    def _acknowledge(self, request: PerRequestCall) -> None:
        backlog = self._backlogs.get(request)
        if backlog is None or not self._subscriptions.is_settled(request):
            return
        self._backlogs[request] = None
        wanted = self._subscriptions.filter_of(request)
        agreed = write_filter(wanted)
        if tasks := self._promoting.listeners.get(request):
            agreed[FILTER] = [task.task_id for task in tasks]
        self._tell(request, ACKNOWLEDGED, {"notifications": agreed})
        for method, params in backlog.take_all():
            if wants(wanted, method, (params or {}).get("uri")):
                self._tell(request, method, params)

    def _tell(self, request: PerRequestCall, method: str, params: Mapping[str, Any] | None) -> None:
        self._served.front.tell(request, method, with_meta(params or {}, META_SUBSCRIPTION_ID, request.id))
