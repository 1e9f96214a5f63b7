"""Joins the edges of a switch to transports, and carries out what the switch says.

Lives here: ports, timers, tasks, and the order of closing. Must not: look into frames (`core`), or at descriptors
(`transports`). Used by `dragoman.proxy` for one client; `host.shared` is the host of several.

Theory of operation. Everything runs in one thread by callbacks: frames that one transport has read go to their edge,
and what comes out is sent by the others before the callback returns: no task and no queue for a frame. When a transport
has more to write than it should, reading from where that comes from is paused, so memory is bounded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from dragoman.core.commands import (
    Abandon,
    Alarm,
    Close,
    Command,
    Defer,
    Finish,
    Open,
    Outbox,
    Outcome,
    Reached,
    Remind,
    Send,
    Settle,
    Sleeper,
    Wake,
)
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, Malformed
from dragoman.core.label import LABEL
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.errors import TransportClosed
from dragoman.host.port import Port
from dragoman.transports.base import Transport

if TYPE_CHECKING:
    from dragoman.host.chains import Chains
    from dragoman.middleware import Middleware, NoticeMiddleware

logger = logging.getLogger("dragoman.proxy")

_FAILURES: Final = frozenset(
    {
        Outcome.SERVER_CLOSED,
        Outcome.SERVER_NOT_STARTED,
        Outcome.INITIALIZATION_FAILED,
        Outcome.INITIALIZATION_TIMED_OUT,
    }
)
"""Ends that somebody has to look into; said once, with the reason. An internal error was said when it happened."""

_WHAT_NEXT: Final = {Outcome.INITIALIZATION_TIMED_OUT: "; --init-timeout says how long it is waited for"}


class Switch(Protocol):
    """What a host needs of a switch."""

    @property
    def outbox(self) -> Outbox:
        """Where its commands are."""

    def gone(self, upstream: UpstreamEdge) -> None:
        """Take note that a server which the switch has closed is gone."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What can be decided about a host.

    Attributes:
        limit_bytes: How much a server that reads nothing may have us write in answer to what it asks.
        names_server: Whether a client is told which command it is, or which address, that cannot be used.
        one_server: Whether all that a client says goes to one server: then it is not read while that does not keep up.
        middleware: Around requests.
        notice_middleware: Around notifications.
        middleware_timeout_s: How long it may take for each.
    """

    limit_bytes: int = DEFAULT_LIMIT_BYTES
    names_server: bool = False
    one_server: bool = True
    middleware: Sequence[Middleware] = ()
    notice_middleware: Sequence[NoticeMiddleware] = ()
    middleware_timeout_s: float = 60.0


class Host:
    """The host of one switch.

    Args:
        switch: What to carry out.
        connect: Opens a transport to a server; called for each `Open`.
        settings: What was decided.
    """

    def __init__(self, switch: Switch, connect: Callable[[], Transport], settings: HostSettings) -> None:
        self.switch = switch
        self._connect = connect
        self._settings = settings
        self._ports: dict[Reached, Port] = {}
        self._timers: dict[Sleeper, asyncio.TimerHandle] = {}
        self._chains: Chains | None = None
        if settings.middleware or settings.notice_middleware:
            from dragoman.host.chains import Chains

            around = settings.middleware, settings.notice_middleware
            self._chains = Chains(self, *around, settings.middleware_timeout_s)
        self._reminders: dict[FrontEdge, asyncio.TimerHandle] = {}
        self._endings: dict[FrontEdge, asyncio.Future[Finish]] = {}
        self._closing: dict[asyncio.Task[None], Transport] = {}
        self._stopped: Finish | None = None  # of a client that nobody serves yet
        self._not_started = ""  # why, for the log, where the client is told less

    # One client, from its beginning to its end

    async def serve(self, front: FrontEdge, transport: Transport, begin: Callable[[], None]) -> Finish:
        """Serve one client until its session ends.

        Args:
            front: Its edge.
            transport: To it.
            begin: The first step.

        Returns:
            How it ended and why; the transport is closed by then.
        """
        ending: asyncio.Future[Finish] = asyncio.get_running_loop().create_future()
        self._endings[front] = ending
        if self._stopped is not None:  # before we began
            ending.set_result(self._stopped)
        port = self._ports[front] = Port(self, front, transport, LABEL.get())
        self.perform(begin)
        transport.start(port)
        self.note_started(port)
        is_stopped = False
        try:
            finish = await ending
            if finish.outcome in _FAILURES:
                named = self._not_started if finish.outcome is Outcome.SERVER_NOT_STARTED else ""
                reason = named or finish.reason
                logger.error("the session failed: %s%s", reason, _WHAT_NEXT.get(finish.outcome, ""))
            is_stopped = finish.outcome is Outcome.STOPPED
            if finish.outcome is Outcome.SERVER_CLOSED:
                self.hurry(front)  # it is going already
            return finish
        finally:
            self._stop_timers(front)
            await self.close_front(front, port, at_once=is_stopped)
            self._stop_reminder(front)
            if self._chains is not None:
                self._chains.drop(front)
            port.cut()
            self._ports.pop(front, None)
            self._endings.pop(front, None)
            counters = front.exchange.counters
            if counters.lossy_as_before:
                logger.warning("%d more frames lost what is named above", counters.lossy_as_before)
            logger.info("%s", counters.describe())

    async def close_front(self, front: FrontEdge, port: Port, at_once: bool) -> None:
        """Close a client's transport, and the servers that only it had.

        The client comes last, for it is given what the server says at its end; not where somebody told us to stop: then
        everything that was asked is answered already, and neither side waits for the other.
        """
        servers = [other for other in self._ports.values() if isinstance(other.edge, UpstreamEdge)]
        closing = [*self._closing, *(asyncio.ensure_future(server.transport.close()) for server in servers)]
        if at_once:
            closing.append(asyncio.ensure_future(port.transport.close()))
        await asyncio.gather(*closing)
        if not at_once:
            await port.transport.close()
        for server in servers:
            self._ports.pop(server.edge, None)
            server.cut()

    def stop(self, front: FrontEdge, reason: str) -> None:
        """End a client's session now; requests that wait are answered with this reason."""
        self.hurry(front)
        self.perform(front.stop, reason)

    def hurry(self, front: FrontEdge) -> None:
        """Let the servers that only this client has be quick about going."""
        for port in self._ports.values():
            if isinstance(port.edge, UpstreamEdge):
                port.transport.hurry()
        for transport in self._closing.values():
            transport.hurry()

    # What ports tell

    def receive(self, port: Port, frames: Sequence[Frame | Malformed]) -> None:
        """Let an edge take frames, and carry out what follows."""
        take = port.edge.take
        try:
            for frame in frames:
                take(frame)
        except Exception as error:  # a defect of ours: say so on one line, end in order
            self.take_defect(port.edge, error)
        self.flush()

    def take_failed(self, port: Port, frame: Frame) -> None:
        """The transport gives up a request: for the edge, that is an answer."""
        self.receive(port, (frame,))

    def take_end(self, port: Port, reason: str) -> None:
        """A peer says no more."""
        self.perform(port.edge.close, reason)

    def take_deaf_client(self, port: Port, front: FrontEdge, reason: str) -> None:
        """A client does not read any more."""
        self.hurry(front)
        self.perform(front.stop, f"the client does not read: {reason}", Outcome.CLIENT_CLOSED)

    def take_deaf_server(self, port: Port) -> None:
        """A server does not read any more: it has a moment, and then counts as gone."""

    def note_started(self, port: Port) -> None:
        """A port is new: pause it if others are in the way already."""
        if any(self._holds(other, port) for other in self._ports.values()):
            port.transport.pause_reading()

    def hold_back(self, full: Port) -> None:
        """Stop reading what would only pile up for a peer that does not take it."""
        for port in self._ports.values():
            if self._holds(full, port):
                port.transport.pause_reading()

    def let_go(self, full: Port) -> None:
        """Read again, where nobody else is in the way."""
        for port in list(self._ports.values()):
            if port.alive and not any(self._holds(other, port) for other in self._ports.values()):
                port.transport.resume_reading()

    def _holds(self, full: Port, port: Port) -> bool:
        """Whether a port is not read because another one, or itself, is full.

        What a client does not take may be our own answers to it, so it is held back itself; a server is not: it may be
        unable to read until we have read.
        """
        if not full.full:
            return False
        if isinstance(full.edge, FrontEdge):
            return True
        return self._settings.one_server and isinstance(port.edge, FrontEdge)

    # Carrying out

    def perform(self, step: Callable[..., object], *args: object) -> None:
        """Let an edge or the switch take a step, and carry out what follows."""
        try:
            step(*args)
        except Exception as error:  # a defect of ours: say so on one line, end in order
            self.take_defect(None, error)
        self.flush()

    def take_defect(self, edge: FrontEdge | UpstreamEdge | None, error: Exception) -> None:
        """End what cannot go on because of a defect of ours."""
        reason = f"internal error: {type(error).__name__}: {error}"
        logger.error("%s", reason)
        logger.debug("where it happened", exc_info=True)
        for front in list(self._endings):
            front.stop(reason, Outcome.INTERNAL_ERROR)

    def flush(self) -> None:
        """Carry out everything that has come out of the switch."""
        outbox = self.switch.outbox
        while outbox.commands:
            for command in outbox.take_all():
                self._carry_out(command)
        if outbox.waiting:
            waiting, outbox.waiting = outbox.waiting, []
            for edge in waiting:
                frames = edge.outgoing[:]
                edge.outgoing.clear()
                port = self._ports.get(edge)
                if port is not None:
                    self.send(port, frames)

    def send(self, port: Port, frames: Sequence[Frame]) -> None:
        """Write to a peer."""
        port.transport.send(frames)
        if port.full and isinstance(port.edge, UpstreamEdge):
            self._count_unread(port, sum(len(frame.raw) for frame in frames))

    def _carry_out(self, command: Command) -> None:
        match command:
            case Send(edge, frames):
                port = self._ports.get(edge)
                if port is not None:
                    self.send(port, frames)
            case Wake(sleeper, after_s):
                self._stop_timer(sleeper)
                if after_s is not None:
                    loop = asyncio.get_running_loop()
                    self._timers[sleeper] = loop.call_later(after_s, self._expire, sleeper)
            case Remind(front, after_s):
                later = asyncio.get_running_loop().call_later
                self._reminders[front] = later(after_s, self.tick, front)
            case Defer() | Settle() | Abandon():
                self._take_deferred(command)
            case Open(upstream):
                self._open(upstream)
            case Close(upstream):
                self._close(upstream, lambda: self.switch.gone(upstream))
            case Finish():
                ending = None if command.edge is None else self._endings.get(command.edge)
                if ending is None:
                    self._stopped = command
                elif not ending.done():
                    ending.set_result(command)

    def _expire(self, sleeper: Sleeper) -> None:
        self._timers.pop(sleeper, None)
        self.perform(sleeper.expire)

    def tick(self, front: FrontEdge) -> None:
        """Tell an edge that time has passed."""
        self._reminders.pop(front, None)
        self.perform(front.tick)

    def _take_deferred(self, command: Defer | Settle | Abandon) -> None:
        assert self._chains is not None, "only where there is middleware"
        match command:
            case Defer(deferral):
                self._chains.take(deferral)
            case Settle(deferral, frame):
                self._chains.settle(deferral, frame)
            case Abandon(deferral):
                self._chains.abandon(deferral)

    def label_of(self, front: FrontEdge) -> str:
        """Give what the log calls a client's session."""
        port = self._ports.get(front)
        return "" if port is None else port.label

    def _open(self, upstream: UpstreamEdge) -> None:
        self._close(upstream)
        try:
            port = self._ports[upstream] = Port(self, upstream, self._connect())
            upstream.takes_headers = getattr(port.transport, "takes_headers", False)
            port.transport.start(port)
            self.note_started(port)
        except TransportClosed as error:
            self._ports.pop(upstream, None)
            self._not_started = str(error)
            if not self._settings.one_server:  # otherwise the session fails, and says so
                logger.error("%s", error)
            reason = self._not_started if self._settings.names_server else error.unnamed
            self.perform(upstream.close, reason, Outcome.SERVER_NOT_STARTED)

    def _close(self, upstream: UpstreamEdge, then: Callable[[], None] = lambda: None) -> None:
        port = self._ports.pop(upstream, None)
        if port is None:
            then()
            return
        transport = port.transport
        task = asyncio.get_running_loop().create_task(transport.close())
        self._closing[task] = transport

        def note(task: asyncio.Task[None]) -> None:
            self._closing.pop(task, None)
            then()

        task.add_done_callback(note)
        port.cut()

    def _count_unread(self, port: Port, size: int) -> None:
        """Give up a server that reads nothing and has us answer all the same: clients are held back already."""
        limit = self._settings.limit_bytes
        before, port.unread_bytes = port.unread_bytes, port.unread_bytes + size
        if before <= limit < port.unread_bytes:
            reason = "the server asks without end and reads nothing"
            logger.error("%s", reason)
            port.transport.hurry()
            self.take_end(port, reason)

    def _stop_timers(self, front: FrontEdge) -> None:
        self._stop_timer(front)
        for sleeper in list(self._timers):
            if isinstance(sleeper, Alarm) and sleeper.front is front:
                self._stop_timer(sleeper)

    def _stop_timer(self, sleeper: Sleeper) -> None:
        timer = self._timers.pop(sleeper, None)
        if timer is not None:
            timer.cancel()

    def _stop_reminder(self, front: FrontEdge) -> None:
        if (reminder := self._reminders.pop(front, None)) is not None:
            reminder.cancel()
