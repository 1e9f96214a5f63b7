"""Books of what carries frames: hosts with their ports, pools, routers, and the two sides of HTTP. See `books`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from dragoman.core.commands import Side
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.lifecycle import FrontState, UpstreamState
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.switch.router.member import MemberState
from dragoman.host.host import Host
from dragoman.host.port import Port
from dragoman.host.shared import SharedHost
from dragoman.pool import UpstreamPool
from dragoman.router.router import Router
from dragoman.router.transport import RouterTransport
from dragoman.trace.trace import Watched
from dragoman.transports.http.sessions import Sessions
from dragoman.transports.http.streamable_session import StreamableSession
from dragoman.transports.http.streams import StreamConnection
from dragoman.transports.pipes import PipeReader, PipeWriter
from dragoman.transports.upstream.streamable import Streamable
from tests.world.books import book
from tests.world.transports import LineTransport

_SWEEP_S: Final = 35.0
"""How much later than its time a session may end that lies idle: they are looked at now and then."""


def _is_paused(port: Port) -> bool | None:
    """Whether a peer is not read; None where that cannot be seen."""
    transport = _transport_of(port)
    gate = getattr(transport, "readable", None)
    reader = getattr(getattr(transport, "_pipes", None), "reader", None)
    if isinstance(reader, PipeReader):
        return None if reader._hung_up or reader._fd < 0 else reader.is_paused
    return getattr(transport, "is_paused", None) if gate is None else not gate.is_set()


def _is_full(port: Port) -> bool | None:
    """Whether a peer does not keep up; None where that cannot be seen."""
    transport = _transport_of(port)
    writer = getattr(getattr(transport, "_pipes", None), "writer", None)
    if isinstance(transport, LineTransport):
        return transport.is_full
    return writer._full if isinstance(writer, PipeWriter) and writer._fd >= 0 else None


def _transport_of(port: Port) -> Any:
    """Give what carries frames, behind whoever writes them down."""
    return port.transport._transport if isinstance(port.transport, Watched) else port.transport


def _is_server(port: Port) -> bool:
    return isinstance(port.edge, UpstreamEdge)


def _posted(host: Host) -> Iterator[str]:
    """What a client over HTTP waits for is what its edge does, or lies before a client that does not keep up."""
    for port in _living(host):
        edge, transport = port.edge, _transport_of(port)
        if isinstance(edge, FrontEdge) and isinstance(transport, StreamableSession) and edge.state is FrontState.READY:
            calls, answered = edge.exchange.calls[Side.CLIENT], {frame.key for frame in port.backlog or ()}
            known = calls.waiting.keys() | calls.renamed.keys() | answered
            for key in transport._calls.keys() - known:
                if not transport._calls[key].keys.isdisjoint(known):
                    continue  # what was posted with it is not answered yet
                yield f"a POST waits for the answer to {key!r}, which is not asked any more"


def _living(host: Host) -> list[Port]:
    return [port for port in host._ports.values() if port.alive]


def _ports(host: Host) -> Iterator[str]:
    for port in _living(host):
        is_full = _is_full(port)
        if is_full not in (None, port.full):
            yield f"the {port.name} {'takes nothing' if is_full else 'reads'}, its port says otherwise"


@book(Host)
def _held_back(host: Host, now: float) -> Iterator[str]:
    """A client that is full stops everybody, and a server that is stops its clients: their answers would pile up."""
    if any(ending.done() for ending in host._endings.values()):
        return
    yield from _ports(host)
    yield from _posted(host)
    living = _living(host)
    for port in living:
        stops = any(one.full and not (_is_server(one) and _is_server(port)) for one in living)
        if port.closing is None and _is_paused(port) not in (None, stops):
            yield f"the {port.name} {'is not read, and nobody' if not stops else 'is read, and somebody'} is full"


@book(SharedHost)
def _held_back_shared(host: SharedHost, now: float) -> Iterator[str]:
    """A server that is full stops all clients, a client that is stops itself, and the server when much waits."""
    if host.closing is not None or any(ending.done() for ending in host._endings.values()):
        return
    yield from _ports(host)
    yield from _posted(host)
    server = host._ports.get(host.switch.upstream)
    for port in _living(host):
        if port is server and host.switch.upstream.state is UpstreamState.RECOVERING:
            continue  # it is read until it is open
        stops = host._is_held_back if port is server else port.full or (server is not None and server.full)
        if isinstance(port.edge, FrontEdge | UpstreamEdge) and _is_paused(port) not in (None, stops):
            yield f"the {port.name} of several {'is not' if not stops else 'is'} read, and should be otherwise"


@book(UpstreamPool)
def _pool(pool: UpstreamPool, now: float) -> Iterator[str]:
    for host in pool.upstreams:
        if host.closing is not None or host.switch.upstream.state is UpstreamState.LOST:
            yield "a server is given to clients that is closed"
    if any(host.switch.asks for host in pool._closing.values() if host not in pool.upstreams) and not pool._asks:
        yield "that a server asks is forgotten"


# A router


@book(RouterTransport)
def _router_session(session: RouterTransport, now: float) -> Iterator[str]:
    if session.is_over:
        if any(not timer.cancelled() and timer.when() > now for timer in session._timers):
            yield "a timer runs for a session that is over"
        return
    for member, running in session._running.items():
        if running.task.done():
            yield f"{member.name} counts as running, and has ended"
    for member in session.catalogue.members.values():
        if member.state is not MemberState.OPEN:
            continue
        if member not in session._running:
            yield f"{member.name} is open, and does not run"
            continue
        for front, port in session._running[member].proxy._host._ports.items():
            if isinstance(front, FrontEdge) and port.alive and port.full != session.is_paused:
                yield f"{member.name} {'speaks' if session.is_paused else 'waits'}, and the client reads otherwise"


@book(Router)
def _router(router: Router, now: float) -> Iterator[str]:
    for session in router._sessions:
        if session.is_over and not session._running:
            yield "a session is kept that is over"


# HTTP


@book(Sessions)
def _sessions(sessions: Sessions, now: float) -> Iterator[str]:
    if len(sessions) > sessions._limit:
        yield f"{len(sessions)} sessions are open, and {sessions._limit} may be"
    for key, session in sessions._sessions.items():
        if session.id != key or (session.task is not None and session.task.done()):
            yield "a session is kept that is over, or under another id"
        if session.visits < 0:
            yield f"{session.visits} requests of a session are served"
        since, limit_s = session.idle_since, sessions._idle_s * 1.125 + _SWEEP_S
        if since is not None and not session.transport.over and now - since > limit_s:
            yield f"a session has lain idle for {now - since:.0f} s, and {sessions._idle_s:.0f} s may be"


@book(StreamableSession)
def _requests(session: StreamableSession, now: float) -> Iterator[str]:
    most = session._config.limits.streams
    if len(session._calls) > most:
        yield f"{len(session._calls)} requests of a session wait, and {most} may"
    for stream in session._streams.values():
        if (
            stream.finished
            and not stream.attached
            and now - stream.finished_at > 10 * session._config.patience.resume_s
        ):
            yield f"stream {stream.name} is over, and kept for long"


@book(StreamConnection)
def _carried(connection: StreamConnection, now: float) -> Iterator[str]:
    stream = getattr(connection, "stream", None)
    if stream is not None and not connection.gone and stream._connection is not connection:
        yield f"stream {stream.name} has another connection than the one that carries it"


@book(Streamable)
def _listening(server: Streamable, now: float) -> Iterator[str]:
    reading = sum(_reads(task, server) for task in asyncio.all_tasks())
    if reading > 1:
        yield f"{reading} streams are read of one server"


def _reads(task: asyncio.Task[Any], server: Streamable) -> bool:
    """Whether a task reads what a server says unasked."""
    work: Any = task.get_coro()
    if task.done() or task.cancelling() or getattr(work, "__name__", "") != "_listen" or work.cr_frame is None:
        return False
    return work.cr_frame.f_locals.get("self") is server
