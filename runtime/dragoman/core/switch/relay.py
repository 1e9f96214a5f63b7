"""Clients and a server that both belong to the per-request era: frames are passed on, and nothing is bridged.

Lives here: the two ways of passing on, and wrapping a server's state, where the client must not bring it to another
server, or for somebody else; where one server owns all names and each caller shows it a credential of its own, it goes
as it is. Must not: change what a request says about its client; the steps do that, where
the server speaks another revision (`core.edges.way`). Made by `switch.to_session` when its server turns out to
have no handshake.

Theory of operation. Between two pipes, frames pass unchanged: one client, one server, the same ids. Only an id that
looks like ours, as another proxy's does, is replaced: the server may have a request of our own under it. If there are
several callers, or the server speaks another revision, or over HTTP with its headers, requests get ids of ours
(`PerRequestEdge`), and everything that comes back gets the client's own ids again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from dragoman.core.calls import OURS, cancellation
from dragoman.core.codes import CONNECTION_CLOSED, METHOD_NOT_FOUND
from dragoman.core.commands import Outcome, Side
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.per_request import PerRequestEdge, PerRequestLoan
from dragoman.core.edges.per_request_front import PerRequestCall, PerRequestFront
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.edges.way import Way
from dragoman.core.edges.wiring import Bridging, Wiring
from dragoman.core.envelope import Frame, Malformed, error_frame, key_of, notification_frame, outline_of
from dragoman.core.methods import CANCELLED, LIST_TOOLS, LISTEN, first_name
from dragoman.core.negotiation import SAME
from dragoman.core.paging import Remind, TakePage
from dragoman.core.peek import SPLICED_BYTES, splice_id
from dragoman.core.rules.capabilities import Path
from dragoman.core.rules.discovery import offer_served
from dragoman.core.rules.errors import Refresh, Say, answer_error
from dragoman.core.rules.names import DISCOVER, FACTS, META_SUBSCRIPTION_ID, NEWER, TASK_METHODS
from dragoman.core.rules.state import Binding, Keeper, Reason, State, refuse
from dragoman.core.switch.listed_tools import ListedTools, ask_for_page
from dragoman.core.switch.relay_tasks import read_filter, read_task, show_notice, show_task
from dragoman.core.switch.to_session.reading import bind
from dragoman.core.translate import Counters
from dragoman.core.unchecked import find_object, with_meta

logger = logging.getLogger("dragoman.bridge")

_READ: Final = frozenset({DISCOVER, LISTEN})
"""The methods whose results are changed here, whatever they say."""

KIND: Final = "relay"
"""The kind of state that holds one of a server."""


def make_relay(
    front: FrontEdge,
    requests: PerRequestFront,
    upstream: UpstreamEdge,
    wiring: Wiring,
    bridging: Bridging,
    remind: Remind,
    waiting: Iterable[PerRequestCall],
) -> ByBytes | ByIds:
    """Return what hands on between these clients, of whom these requests wait, and this server."""
    is_alike = all(request.metadata.revision == upstream.revision for request in waiting)
    if bridging.shares_channel and not upstream.takes_headers and is_alike:
        return ByBytes(front, requests, upstream)
    return ByIds(requests, PerRequestEdge(upstream), wiring, bridging, remind, front.exchange.counters)


class ByBytes:
    """Hands on between two pipes.

    Args:
        front: The client's edge.
        requests: Its requests.
        upstream: The server's edge.
    """

    __slots__ = ("_front", "_requests", "_upstream")

    def __init__(self, front: FrontEdge, requests: PerRequestFront, upstream: UpstreamEdge) -> None:
        self._front = front
        self._requests = requests
        self._upstream = upstream
        upstream.serve(self)

    def carry(self, request: PerRequestCall) -> None:
        """Hand on a request."""
        self._front.exchange.counters.passed += 1
        frame = request.frame
        if request.key.startswith(OURS):
            calls = self._front.exchange.calls[Side.CLIENT]
            calls.remove(request)
            frame = calls.rename(request, frame)
            calls.add(request)
        self._upstream.send(frame)

    def cancel(self, request: PerRequestCall, reason: str) -> None:
        """Hand on that nobody waits any more."""
        self._upstream.send(cancellation(request.key, reason))

    def leave(self, reason: str, sender: str = "") -> None:
        """End the streams that would never end; those of one principal have ended with it."""
        for request in [one for one in self._requests.requests.values() if one.method == LISTEN and not sender]:
            self._requests.abandon(request.key, reason)

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        """Hand on what the server says."""
        if isinstance(frame, Malformed):
            self._front.exchange.reject(Side.SERVER, frame)
        elif frame.kind == "notification":
            self._requests.tell_frame(frame)
        elif frame.kind in ("result", "error"):
            self._take_response(frame)
        elif frame.kind == "request":
            logger.warning("%s request of the server refused: in its revision, servers send none", frame.method)
            self._upstream.send(error_frame(frame.key, METHOD_NOT_FOUND, f"a server has no requests in {NEWER}"))
        else:
            logger.warning("an array of the server dropped: its revision has no arrays")

    def _take_response(self, frame: Frame) -> None:
        request = self._requests.requests.get(frame.key or b"")
        if request is None:
            self._front.exchange.counters.unmatched += 1
        else:
            self._front.exchange.counters.passed += 1
            self._requests.put_frame(request, frame)

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        """Fail what the server was asked; the next request opens it again."""
        level = logging.WARNING if self._requests.requests else logging.INFO  # it may go because its client has
        logger.log(level, "the server is gone, and is opened again when it is needed: %s", reason)
        self._front.exchange.fail_all(Side.CLIENT, CONNECTION_CLOSED, reason)
        self._front.answered()


class ByIds:
    """Hands on under ids of ours.

    Args:
        requests: Their requests.
        edge: The server's.
        wiring: Gives what translates where the server speaks another revision than a request.
        bridging: Who the clients are, and what binds a state to them.
        remind: Reads the clock.
        counters: What the session has seen.

    Attributes:
        tools: Which arguments of the server's tools go in headers.
    """

    __slots__ = ("_bridging", "_counters", "_edge", "_is_before_router", "_requests", "_ways", "_wiring", "tools")

    def __init__(
        self,
        requests: PerRequestFront,
        edge: PerRequestEdge,
        wiring: Wiring,
        bridging: Bridging,
        remind: Remind,
        counters: Counters,
    ) -> None:
        sends, hears = edge.upstream.takes_headers, not bridging.shares_channel
        self.tools = ListedTools(sends=sends, hears=hears, remind=remind)
        self._bridging = bridging
        self._is_before_router = wiring.settings.server_revision == SAME  # which knows principals
        self._wiring = wiring
        self._counters = counters
        self._ways: dict[str, Way] = {}
        self._requests = requests
        self._edge = edge

    def carry(self, request: PerRequestCall) -> None:
        """Hand on a request, once it is known which headers it has to have."""
        if self.tools.needs_list(request.method, request.params):
            self._list(request, lambda: self._requests.attempt(request, self._send))
        else:
            self._requests.attempt(request, self._send)

    def send_again(self, request: PerRequestCall) -> None:
        """Hand on a request once more: its headers were made of a list of tools that is outdated."""
        send = partial(self._send, has_refreshed=True)
        self._list(request, lambda: self._requests.attempt(request, send))

    def _list(self, request: PerRequestCall, then: Callable[[], None]) -> None:
        meta = {name: value for name, value in request.params["_meta"].items() if name != "progressToken"}

        def ask(params: dict[str, Any], take: TakePage) -> None:
            lent = ask_for_page(take)
            lent.way = self._way(request)
            self._edge.lend(lent, {**params, "_meta": meta}, sender=request.frame.sender)

        self.tools.list(ask, then)

    def _way(self, request: PerRequestCall) -> Way | None:
        """Return the way to the server's revision; None where the request is of that, or the server speaks any."""
        ours, theirs = request.metadata.revision, self._edge.upstream.revision
        if theirs is None or theirs == ours:
            return None
        if ours not in self._ways:
            self._ways[ours] = Way(self._wiring, ours, theirs, self._counters)
        return self._ways[ours]

    def _send(self, request: PerRequestCall, has_refreshed: bool = False) -> None:
        if self.tools.hears and not has_refreshed:
            self.tools.check(request)
        params, frame, bridging = request.params, request.frame, self._bridging
        principal = request.frame.sender or bridging.principal
        if principal and "requestState" in params and request.method in FACTS.input_required:
            params = dict(unwrap(params, bridging.keeper(), bind(bridging, request), bridging.now()))
        tasks = None
        if principal and request.method in TASK_METHODS:
            params = read_task(params, bridging, principal)
        elif principal and request.method == LISTEN:
            told, tasks = read_filter(params, bridging, principal)
            params = params if told is params else dict(told)
        answer = partial(self._take_answer, request, has_refreshed)
        notify, hears_logs = partial(self._take_notice, request, tasks), request.metadata.log_level is not None
        lent = PerRequestLoan(request.body["method"], principal, answer, notify, hears_logs)
        if request.metadata.revision != self._edge.upstream.revision:
            lent.way = self._way(request)
        mirrored = self.tools.mirrored(request.method, params)
        written = frame if params is request.params else None
        if lent.way is None and request.method not in _READ and not (principal and request.method in TASK_METHODS):
            lent.passes_as = request.id
        request.at_server = self._edge.lend(lent, params, mirrored, written, frame.sender, frame.source, frame.origin)

    def bind_state(self, request: PerRequestCall, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result whose state or task is good for this client alone: a server may know all by one name."""
        bridging = self._bridging
        principal = request.frame.sender or bridging.principal
        if principal and result.get("resultType") == "input_required":
            return dict(wrap(result, bridging.keeper(), bind(bridging, request), bridging.now(), bridging.nonce()))
        if principal and "taskId" in result:
            return show_task(result, request.params, request.method, bridging, principal)
        return result

    def cancel(self, request: PerRequestCall, reason: str) -> None:
        """Hand on that nobody waits any more."""
        if request.at_server is not None:
            self._edge.withdraw(request.at_server, reason or None)

    def leave(self, reason: str, sender: str = "") -> None:
        """End the streams that would never end; those of one principal have ended with it, and a router is told so."""
        if sender and self._is_before_router:
            self._edge.upstream.send(notification_frame(CANCELLED, {"reason": reason})._replace(sender=sender))
        for request in [one for one in self._requests.requests.values() if one.method == LISTEN and not sender]:
            self._requests.abandon(request.key, reason)

    def _take_answer(self, request: PerRequestCall, has_refreshed: bool, frame: Frame) -> None:
        """Give the answer to the client; what is about our own hop is answered anew."""
        request.at_server, body = None, frame.body  # the two know each other, and would stay until somebody looks
        if body is None:
            if request.method == LIST_TOOLS:
                self.tools.put_off(frame.raw)
            self._requests.put_frame(request, frame._replace(key=request.key))
            return
        if frame.kind == "error":
            path, declared = Path(request.metadata.revision, NEWER), request.metadata.capabilities
            said = answer_error(body["error"], request.method, path, declared=declared, has_refreshed=has_refreshed)
            if isinstance(said, Refresh):
                self.send_again(request)
                return
            if isinstance(said, Say):
                self._requests.refuse(request, said.code, said.message, said.data)
                return
        elif request.method == LIST_TOOLS:
            body = {**body, "result": self.tools.note(body["result"], frame.raw)}
        elif request.method == DISCOVER:
            body = {**body, "result": offer_served(body["result"])}
        elif request.method == LISTEN:
            body = {**body, "result": _name_again(body["result"], request)}
        if frame.kind == "result":
            body = {**body, "result": self.bind_state(request, body["result"])}
            if len(frame.raw) > SPLICED_BYTES and body["result"] is frame.body["result"]:
                line = splice_id(frame.raw, key_of(request.id) or b"null", outline_of(frame))
                if line is not None:
                    self._requests.put_frame(request, Frame(line, "result", request.key, None))
                    return
        self._requests.put_answer(request, {**body, "id": request.id})

    def _take_notice(self, request: PerRequestCall, tasks: Mapping[str, str] | None, frame: Frame) -> None:
        """Give a notification to the client, under the ids that it knows; those of its tasks, if that is asked."""
        method = first_name(request.metadata.revision, frame.method or "")
        self.tools.hear(method)
        params = frame.body.get("params")
        params = _name_again(params, request) if isinstance(params, dict) else None
        if tasks is not None and params is not None:
            params = show_notice(method, params, tasks)
            if params is None:
                return
        if method == CANCELLED:
            params = {**(params or {}), "requestId": request.id}
        self._requests.tell(request, frame.method or "", params)


def _name_again(holder: dict[str, Any], request: PerRequestCall) -> dict[str, Any]:
    """Return what names a subscription with the client's own id for it."""
    if META_SUBSCRIPTION_ID not in find_object(holder, "_meta"):
        return holder
    return with_meta(holder, META_SUBSCRIPTION_ID, request.id)


def wrap(result: Mapping[str, Any], keeper: Keeper, binding: Binding, now_s: float, nonce: bytes) -> Mapping[str, Any]:
    """Bind the state in a result to its request; the same object where there is none.

    Args:
        result: Of the server, which needs input.
        keeper: Writes the state.
        binding: The client's request, with the server that answered it.
        now_s: The time.
        nonce: Random bytes for the state.
    """
    inner = result.get("requestState")
    if not isinstance(inner, str):
        return result
    return {**result, "requestState": keeper.write(State(KIND, extra=inner), binding, now_s, nonce)}


def unwrap(params: Mapping[str, Any], keeper: Keeper, binding: Binding, now_s: float) -> Mapping[str, Any]:
    """Return the params of a retry with the server's own state; the same object where they bring none.

    Args:
        params: Of the client's request.
        keeper: Reads the state.
        binding: That request, with the server that it goes to.
        now_s: The time.

    Raises:
        RemoteProtocolError: It may not go on from there (-32602); the data says why.
    """
    if "requestState" not in params:
        return params
    state = keeper.read(params["requestState"], binding, now_s)
    if state.kind != KIND:
        raise refuse(Reason.OTHER_REQUEST)
    return {**params, "requestState": state.extra}
