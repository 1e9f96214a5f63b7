"""Marks of the ways of clients beside Streamable HTTP: WebSocket and HTTP+SSE."""

from __future__ import annotations

from collections.abc import Iterator

from tests.world.plan import Plan
from tests.world.record import Event
from tests.world.rules import Talk
from tests.world.situations import sometimes


def _of(plan: Plan, talk: Talk, way: str) -> Iterator[Event]:
    names = {client.name for client in plan.clients if client.way == way}
    return (event for event in talk.record.events if event.peer in names)


def _asked(plan: Plan, talk: Talk, way: str) -> bool:
    """Whether a client that comes this way is asked something, and answers."""
    events = [event for event in _of(plan, talk, way) if isinstance(event.frame, dict)]
    asked = {event.peer for event in events if event.is_heard and {"id", "method"} <= event.frame.keys()}
    return any(event.peer in asked and event.is_said and "result" in event.frame for event in events)


@sometimes("a client over WebSocket is asked, and answers")
def _asked_by_websocket(plan: Plan, talk: Talk) -> bool:
    return _asked(plan, talk, "websocket")


@sometimes("a client over HTTP+SSE is asked, and answers")
def _asked_by_sse(plan: Plan, talk: Talk) -> bool:
    return _asked(plan, talk, "sse")


@sometimes("a server is called by TLS, and answers")
def _by_tls(plan: Plan, talk: Talk) -> bool:
    names = {server.name for server in plan.servers if server.tls}
    return any(one.answers for run in talk.servers() if run.partition(".")[0] in names for one in talk.got[run])


@sometimes("a WebSocket breaks while a call is open")
def _breaks(plan: Plan, talk: Talk) -> bool:
    cut = {event.peer for event in _of(plan, talk, "websocket") if event.what == "is cut"}
    return any(not one.answers for peer in cut for one in talk.asked[peer])


@sometimes("the stream of HTTP+SSE ends while its client is there")
def _ends(plan: Plan, talk: Talk) -> bool:
    return any(event.what == "ends" and event.frame == "its stream has ended" for event in _of(plan, talk, "sse"))
