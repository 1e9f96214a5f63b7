"""A fresh server for every request of clients that open no session: what scope `request` means for them.

Lives here: the life of each server, and which one a retry belongs to. Must not: talk to a server, which a switch of its
own does for each (`to_handshake`). Made by `per_call` when the first request of such a client comes.

Theory of operation. A request opens a server, with a handshake in its client's name; its answer ends it. Where the
server asks in the middle of a call, the call is parked as ever: its server stays until the client comes back. The state
that the client carries names the call, and the call the switch that has it. What would have to outlive its request is
neither offered nor served: subscriptions, and tasks.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from typing import Any, Final

from dragoman.core.bridge.names import FACTS, TASK_METHODS, TASKS_EXTENSION
from dragoman.core.bridge.parked import KIND
from dragoman.core.bridge.state import Reason, refuse
from dragoman.core.bridge.strategy import Strategy, promotes
from dragoman.core.codes import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.core.commands import Close, Outbox
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.per_request_front import BehindRequests, PerRequestFront, Request
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.switch.lasting import drop_lasting, explain_crowd, explain_lasting
from dragoman.core.switch.to_handshake.switch import ToHandshake
from dragoman.core.switch.to_handshake.works import bind
from dragoman.core.translate import Refusal
from dragoman.core.wiring import Bridging, Wiring
from dragoman.errors import RemoteProtocolError

logger = logging.getLogger("dragoman.bridge")

_NOT_SERVED: Final = frozenset({"subscriptions/listen", *TASK_METHODS})


class Apart:
    """Serves the requests of one connection, each at a server of its own.

    Args:
        wiring: What the edges need.
        bridging: What the bridge needs.
        outbox: Where commands go.
        front: The edge that has the connection.
        new_upstream: Makes the edge of a server.
        limit: How many servers there may be at once; four times as many may still be on their way out.

    Attributes:
        requests: The client's edge, as far as requests go.
        has_handshake: Whether a server was seen to have one, so that the next ones need not be asked what they are.
    """

    def __init__(
        self,
        wiring: Wiring,
        bridging: Bridging,
        outbox: Outbox,
        front: FrontEdge,
        new_upstream: Callable[[], UpstreamEdge],
        limit: int,
    ) -> None:
        self.requests = PerRequestFront(front, wiring.settings, front.exchange.counters, self)
        self._wiring = wiring
        self._bridging = bridging
        if promotes(bridging.questions):
            self._bridging = dataclasses.replace(bridging, questions=Strategy.PARK.value)
        self._outbox = outbox
        self._front = front
        self._new_upstream = new_upstream
        self._limit = limit
        self._runs: dict[str, ToHandshake] = {}  # by the label that their calls have
        self._serving: dict[Request, ToHandshake] = {}
        self._open: set[UpstreamEdge] = set()
        self._ending: set[UpstreamEdge] = set()
        self._lasting: UpstreamEdge | None = None
        self.has_handshake = False

    def close(self) -> None:
        """Close every server: the client opens a session after all."""
        for run in list(self._runs.values()):
            self._end(run)
            self._forget(run)

    def release(self) -> None:
        """Let go of everything, once the session is over."""
        for run in list(self._runs.values()):
            self._forget(run)
        if self._lasting is not None:
            self._lasting.release()
        self.requests.release()
        del self._front, self._new_upstream

    def note_gone(self, upstream: UpstreamEdge) -> bool:
        """Take note that a server is gone which was closed; False where it was none of these."""
        known = upstream in self._ending or upstream is self._lasting
        self._ending.discard(upstream)
        return known

    # What the client's edge says

    def carry(self, request: Request) -> None:
        """Open a server for a request, or give it to the one that waits for it."""
        if request.method in _NOT_SERVED:
            reason = explain_lasting(request.method)
            self.requests.refuse(request, METHOD_NOT_FOUND, reason, {"method": request.method})
            return
        try:
            run = self._find_parked(request) or self._start()
        except RemoteProtocolError as error:
            self.requests.refuse(request, error.code, error.message, error.data)
        except ValueError as error:
            self.requests.refuse(request, INVALID_PARAMS, str(error))
        else:
            self._serving[request] = run
            _take_off_tasks(request)
            run.carry(request)

    def cancel(self, request: Request, reason: str) -> None:
        """The client does not wait for this any more."""
        for run in list(self._runs.values()):
            run.cancel(request, reason)

    def finished(self, request: Request) -> None:
        """A request is not under way any more."""
        run = self._serving.pop(request, None)
        if run is not None:
            run.finished(request)

    def leave(self, reason: str) -> None:
        """The client has gone, and what waits for its return is over."""
        for run in list(self._runs.values()):
            run.leave(reason)

    # What the switches say

    def settle(self, run: ToHandshake) -> None:
        """Take note that something has happened to a request: its server may be done."""
        if run.is_idle:
            self._end(run)
            if not run.is_parking:
                self._forget(run)

    def note_opened(self, capabilities: Any) -> None:
        """Take note of what a server declares in its handshake, and take off it what nobody can use."""
        self.has_handshake = True
        drop_lasting(capabilities)

    def lost(self, run: ToHandshake, reason: str) -> None:
        """Fail the request that a server was for, alone."""
        for request in [request for request, other in self._serving.items() if other is run]:
            self.requests.refuse(request, CONNECTION_CLOSED, reason, {"method": request.method})
        run.interrupted(run.upstream, Refusal(CONNECTION_CLOSED, reason, {}))
        self.settle(run)

    def relayed(self, run: ToHandshake, relay: BehindRequests) -> None:
        """Hand all requests on from here on: the server has no handshake, so nothing lasts there anyway."""
        self._lasting = run.upstream
        self._runs.pop(run.label, None)
        self.requests.hand_to(relay)

    def _start(self) -> ToHandshake:
        crowded = explain_crowd(len(self._runs), len(self._ending), self._limit)
        if crowded:
            raise RemoteProtocolError(CONNECTION_CLOSED, crowded)
        upstream = self._new_upstream()
        run = ToHandshake(self._wiring, self._bridging, self._outbox, self._front, upstream, self)
        self._runs[run.label] = run
        self._open.add(upstream)
        upstream.open()
        return run

    def _find_parked(self, request: Request) -> ToHandshake | None:
        """Give the switch that has the call which a request goes on with; None where that waits nowhere.

        Raises:
            RemoteProtocolError: It cannot go on.
            ValueError: Its params are nested deeper than can be written.
        """
        text, bridging = request.params.get("requestState"), self._bridging
        if text is None or request.method not in FACTS.input_required:
            return None
        state = bridging.keeper().read(text, bind(bridging, request), bridging.now(), _Calls(self._runs))
        if state.kind != KIND:
            return None
        run = self._runs.get(_label_of(state.call))
        if run is None:
            raise refuse(Reason.UNKNOWN)
        return run

    def _end(self, run: ToHandshake) -> None:
        if run.upstream in self._open:
            self._open.discard(run.upstream)
            self._ending.add(run.upstream)
            self._outbox.add(Close(run.upstream))

    def _forget(self, run: ToHandshake) -> None:
        if self._runs.pop(run.label, None) is not None:
            run.release()
            run.upstream.release()


class _Calls:
    """The calls that are parked here; how long is decided where they are."""

    def __init__(self, runs: dict[str, ToHandshake]) -> None:
        self._runs = runs

    def __contains__(self, call: object) -> bool:
        return isinstance(call, str) and _label_of(call) in self._runs


def _label_of(call: str) -> str:
    return call.rpartition("-")[0]


def _take_off_tasks(request: Request) -> None:
    """Take the promise to look after tasks off what a request says of its client: they would end with it."""
    capabilities = request.metadata.capabilities
    extensions = capabilities.get("extensions")
    if isinstance(extensions, dict) and TASKS_EXTENSION in extensions:
        left: dict[str, Any] = {name: value for name, value in extensions.items() if name != TASKS_EXTENSION}
        told = {**capabilities, "extensions": left}
        request.metadata = request.metadata._replace(capabilities=told)
