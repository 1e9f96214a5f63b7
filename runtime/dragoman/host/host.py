"""Joins the edges of a switch to transports, and carries out the commands of the switch.

Lives here: ports, timers, tasks, and the order of closing. Must not: look into frames (`core`), or at descriptors
(`transports`). Used by `dragoman.proxy` for one client; `host.shared` is the host of several.

Theory of operation. Everything runs in one thread by callbacks. Frames that one transport has read go to their edge,
and the resulting frames are sent by the others before the callback returns: no task and no queue for a frame. When a
transport has too much to write, the host stops reading the source of the data, so memory is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from dragoman.core.commands import (
    Abandon,
    Close,
    Command,
    Defer,
    Finish,
    Open,
    Outcome,
    Reached,
    Rest,
    Send,
    Settle,
    Sleeper,
    Wake,
)
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.lifecycle import FrontState, UpstreamState
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, Malformed
from dragoman.core.label import LABEL, PRINCIPAL
from dragoman.errors import TransportClosed
from dragoman.host.port import Port
from dragoman.host.settings import FAILURES, WHAT_NEXT, HostSettings, Switch
from dragoman.host.timers import Timers
from dragoman.transports.base import Transport
from dragoman_spec import HANDSHAKE_REVISIONS

if TYPE_CHECKING:
    from dragoman.core.edges.greeting import Greeting
    from dragoman.host.chains import Chains

logger = logging.getLogger("dragoman.proxy")

_HANDSHAKE: Final[frozenset[str | None]] = frozenset(HANDSHAKE_REVISIONS)
_OPENING: Final = frozenset({FrontState.CONNECTING, FrontState.INITIALIZING, FrontState.SENDING_INITIALIZED})

Opening: TypeAlias = "Callable[[Host, Greeting], UpstreamEdge | None]"
"""Lets a host take over a server that another one is opening, for a client that begins with `initialize`, if it may."""


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
        self._news = settings.news
        self.server_name = settings.server_name
        self.whose = ""  # for whose requests its servers are, where others may listen to them elsewhere
        self._ports: dict[Reached, Port] = {}
        self._timers = Timers()
        self._chains: Chains | None = None
        if settings.middleware or settings.notice_middleware:
            from dragoman.host.chains import Chains

            self._chains = Chains(self, settings.middleware, settings.notice_middleware, settings.middleware_timeout_s)
        self._endings: dict[FrontEdge, asyncio.Future[Finish]] = {}
        self._closing: dict[asyncio.Task[None], Transport] = {}
        self._commands: deque[Command] = deque()  # that came out, and are not carried out yet
        self._stopped: dict[FrontEdge, Finish] = {}  # clients that nobody serves yet
        self.not_started = ""  # why, for the log, where the client is told less
        self.was_asked = False  # whether what failed last did because a person was asked to sign in, in vain
        self._is_defective = self._is_hearing = False

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
        if front in self._stopped:  # before we began
            ending.set_result(self._stopped.pop(front))
        port = self._ports[front] = Port(self, front, transport, LABEL.get(), PRINCIPAL.get())
        if getattr(transport, "has_streams", False):
            front.use_streams()
        self.put_up()
        is_stopped = False
        try:
            self.perform(begin)
            transport.start(port)
            self.note_started(port)
            finish = await ending
            if finish.outcome in FAILURES:
                self.doubt()
                reason = (finish.outcome is Outcome.SERVER_NOT_STARTED and self.not_started) or finish.reason
                level = logging.ERROR if self._settings.says_why else logging.DEBUG
                what_next = WHAT_NEXT.get(finish.outcome, "")
                logger.log(level, "the session failed: %s%s", reason, what_next, extra={"same": reason})
            is_stopped = finish.outcome is Outcome.STOPPED
            if is_stopped or finish.outcome is Outcome.SERVER_CLOSED:
                self.hurry(front)  # it is going already, or nobody waits for it
            return finish
        finally:
            self._timers.stop_client(front)
            try:
                await self.close_front(front, port, at_once=is_stopped)
            finally:
                self._forget_front(front, port)
            counters = front.exchange.counters
            if counters.lossy_as_before:
                logger.warning("%d more frames lost what is named above", counters.lossy_as_before)
            logger.info("%s", counters.describe())

    def _forget_front(self, front: FrontEdge, port: Port) -> None:
        port.cut()
        self._ports.pop(front, None)
        self._endings.pop(front, None)
        self._timers.stop_client(front)  # if our task was cancelled, its session may have gone on meanwhile
        if not self._endings:
            self.take_down()
        if self._chains is not None:
            self._chains.drop(front)

    def put_up(self) -> None:
        """Let be seen what servers there are."""
        if self._settings.board is not None:
            self._settings.board.put_up(self, self._settings.server_name, self.switch, self._endings)
        if self._news is not None:
            self._news.join(self)

    def take_down(self) -> None:
        """Let it not be seen any more."""
        if self._settings.board is not None:
            self._settings.board.take_down(self)
        if self._news is not None:
            self._news.leave(self)

    async def close_front(self, front: FrontEdge, port: Port, at_once: bool) -> None:
        """Close a client's transport, and the servers that only it had.

        The client comes last, for it is given what the server says at its end; not where somebody told us to stop: then
        everything that was asked is answered already, and neither side waits for the other.
        """
        self._timers.stop_servers()
        servers = [other for other in self._ports.values() if isinstance(other.edge, UpstreamEdge)]
        for server in servers:  # which may say its last words meanwhile
            server.edge.recovery.is_dismissed = True  # type: ignore[union-attr]
            server.closing = asyncio.ensure_future(server.transport.close())
        closing = [*self._closing, *(server.closing for server in servers if server.closing is not None)]
        if at_once:
            closing.append(asyncio.ensure_future(port.transport.close()))
        await asyncio.gather(*closing)
        if not at_once:
            await port.transport.close()
        for server in servers:
            if server.alive:
                self._ports.pop(server.edge, None)
                server.cut()

    def stop(self, front: FrontEdge, reason: str) -> None:
        """End a client's session now; requests that wait are answered with this reason."""
        self.hurry(front)
        self.perform(front.stop, reason)

    def drain(self, front: FrontEdge, reason: str) -> None:
        """End a client's session once what is under way is answered; further requests are answered with this reason."""
        self.perform(front.drain, reason)

    def hurry(self, front: FrontEdge) -> None:
        """Let the servers that only this client has be quick about going."""
        for port in self._ports.values():
            if isinstance(port.edge, UpstreamEdge):
                port.transport.hurry()
        for transport in self._closing.values():
            transport.hurry()

    def hear(self, frame: Frame | None) -> None:
        """Take what a server has told at another instance of this proxy, as if it had told it here.

        Args:
            frame: A notification; None: nobody knows what it has told.
        """
        for port in [port for port in self._ports.values() if self._has_news(port)]:
            if frame is None:
                self.perform(port.edge.recovery.tell_all_changed)  # type: ignore[union-attr]
                continue
            self._is_hearing = True
            try:
                port.received((frame,))
            finally:
                self._is_hearing = False

    def _has_news(self, port: Port) -> bool:
        """Whether what comes by a port may concern somebody at another instance."""
        edge = port.edge
        if not isinstance(edge, UpstreamEdge) or not self.switch.shares_news:
            return False
        return edge.state is UpstreamState.READY and edge.revision in _HANDSHAKE

    # What ports tell

    def receive(self, port: Port, frames: Sequence[Frame | Malformed]) -> None:
        """Let an edge take frames, and carry out what follows."""
        if self._news is not None and not self._is_hearing and self._has_news(port):
            self._news.tell(self, frames)
        take, left = port.edge.take, iter(frames)
        try:
            for frame in left:
                take(frame)
        except Exception as error:  # a defect of ours: say so on one line, end in order
            self.take_defect(error)
            with contextlib.suppress(Exception):
                for frame in left:  # who asked is told
                    take(frame)
        self.flush()

    def doubt(self) -> None:
        """Let be known that the server may not be there for the next client."""
        if self._settings.board is not None:
            self._settings.board.doubt()

    def take_failed(self, port: Port, frame: Frame) -> None:
        """The transport gives up a request: for the edge, that is an answer."""
        self._note_asked(port)
        self.receive(port, (frame,))

    def _note_asked(self, port: Port) -> None:
        if isinstance(port.edge, UpstreamEdge):
            self.was_asked = getattr(port.transport, "was_asked", False)

    def take_lost_session(self, port: Port, frame: Frame | None, error: Frame | None, renewed: bool) -> None:
        """A server has forgotten the session, and is there."""
        assert isinstance(port.edge, UpstreamEdge)
        if port.edge.state is not UpstreamState.LOST:
            self.perform(port.edge.recovery.lose_session, frame, error, renewed)

    def take_unsent(self, port: Port, frames: Sequence[Frame]) -> None:
        """A server gets another session; these frames were still to be sent in the old one."""
        assert isinstance(port.edge, UpstreamEdge)
        if port.edge.state is not UpstreamState.LOST:
            self.perform(port.edge.recovery.take_back, frames)

    def take_end(self, port: Port, reason: str) -> None:
        """A peer says no more; nobody is asked to sign in for a client that has left."""
        self._note_asked(port)
        self.perform((edge := port.edge).close, reason)  # which may cut the port from its edge
        if isinstance(edge, FrontEdge) and self.is_signing_in:
            if edge.client_ended or len(self._endings) > 1:  # what waits may be the others'
                self.stop(edge, "the client has left")
            else:
                self.stop_signing_in()

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
        return isinstance(full.edge, FrontEdge) or isinstance(port.edge, FrontEdge)

    # Carrying out

    def perform(self, step: Callable[..., object], *args: object) -> None:
        """Let an edge or the switch take a step, and carry out what follows."""
        try:
            step(*args)
        except Exception as error:  # a defect of ours: say so on one line, end in order
            self.take_defect(error)
        self.flush()

    def take_defect(self, error: Exception) -> None:
        """End what cannot go on because of a defect of ours; what follows from it is not worth another line."""
        reason = f"internal error: {type(error).__name__}: {error}"
        logger.log(logging.DEBUG if self._is_defective else logging.ERROR, "%s", reason)
        logger.debug("where it happened", exc_info=True)
        self._is_defective = True
        for front, ending in list(self._endings.items()):
            try:
                front.stop(reason, Outcome.INTERNAL_ERROR)
            except Exception:  # the same defect, as like as not
                logger.debug("where it happened again", exc_info=True)
            if not ending.done():  # nothing ends a session that was about to end when this happened
                ending.set_result(Finish(Outcome.INTERNAL_ERROR, reason, front))

    def flush(self) -> None:
        """Carry out everything that has come out of the switch."""
        # A step may lead to another one, and that back to here: what is done leaves its list first, so that all is
        # done once, and in order.
        outbox, commands = self.switch.outbox, self._commands
        waiting = outbox.waiting
        while waiting or outbox.commands or commands:
            try:
                if outbox.commands or commands:
                    if outbox.commands:
                        commands.extend(outbox.take_all())
                    self._carry_out(commands.popleft())
                    continue
                edge = waiting.pop(0)
                frames, edge.outgoing = edge.outgoing, []
                port = self._ports.get(edge)
                if port is not None:
                    self.send(port, frames)
            except Exception as error:  # of a transport, as like as not
                self.take_defect(error)

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
            case Rest(UpstreamEdge() as upstream):
                _stop_signing_in(self._ports.get(upstream))
            case Wake(sleeper, after_s):
                self._wake(sleeper, after_s)
            case Defer() | Settle() | Abandon():
                self._take_held(command)
            case Open(UpstreamEdge() as upstream):
                self.open_server(upstream)
            case Close(UpstreamEdge() as upstream):
                self._close(upstream)
            case Finish(edge=FrontEdge() as front):
                ending = self._endings.get(front)
                if ending is None:
                    self._stopped[front] = command
                elif not ending.done():
                    ending.set_result(command)

    @property
    def is_signing_in(self) -> bool:
        """Whether a person is signing in to a server: that takes as long as it takes."""
        return any(getattr(port.transport, "is_signing_in", False) for port in self._ports.values())

    def stop_signing_in(self) -> None:
        """Fail what waits for that: nobody waits for it."""
        for port in list(self._ports.values()):
            _stop_signing_in(port)

    def _wake(self, sleeper: Sleeper, after_s: float | None) -> None:
        self._timers.wake(sleeper, after_s, lambda one: self.expire(one, after_s))

    def expire(self, sleeper: Sleeper, after_s: float | None) -> None:
        """Tell somebody that the time has passed; nobody's does while a person signs in, but that of who leaves."""
        is_leaving = isinstance(sleeper, FrontEdge) and (sleeper.client_ended or sleeper.state not in _OPENING)
        if self.is_signing_in and not is_leaving:
            self._wake(sleeper, after_s)
        else:
            self.perform(sleeper.expire)

    def _take_held(self, command: Defer | Settle | Abandon) -> None:
        assert self._chains is not None, "only where there is middleware"
        match command:
            case Defer(held_frame):
                self._chains.run(held_frame)
            case Settle(held_frame, frame):
                self._chains.settle(held_frame, frame)
            case Abandon(held_frame):
                self._chains.abandon(held_frame)

    def caller_of(self, front: Reached) -> tuple[str, str]:
        """Return what the log calls a client's session, and the name of who the client is; empty where it has none."""
        port = self._ports.get(front)
        return ("", "") if port is None else (port.label, port.principal)

    def open_server(self, upstream: UpstreamEdge) -> None:
        """Open a connection to a server, in place of the one that is there."""
        self._close(upstream)
        try:
            port = self._ports[upstream] = Port(self, upstream, self._connect())
            port.transport.start(port)
            self.note_started(port)
        except TransportClosed as error:
            self._close(upstream)
            self.not_started = str(error)
            reason = self.not_started if self._settings.names_server else error.unnamed
            if self._settings.board is not None:
                self._settings.board.note_problem(self._settings.server_name, reason)
            self.perform(upstream.close, reason, Outcome.SERVER_NOT_STARTED)

    def take_over(self, upstream: UpstreamEdge, other: Host) -> None:
        """Have a server that another host has opened, as it is."""
        port = self._ports[upstream] = other._ports.pop(upstream)
        port.host, port.label = self, LABEL.get()
        port.transport.resume_reading()
        self.note_started(port)
        self._carry_out(Wake(upstream, other._timers.stop(upstream)))
        logger.info("the client asked first what the server is; the one that was started for that is waited for")

    def _close(self, upstream: UpstreamEdge) -> None:
        self._timers.stop(upstream)
        port = self._ports.pop(upstream, None)
        if port is None:
            return
        transport = port.transport
        task = port.closing or asyncio.ensure_future(transport.close())
        self._closing[task] = transport
        port.full, was_full = False, port.full
        if was_full:  # nobody else would
            self.let_go(port)
        task.add_done_callback(lambda task: self._closing.pop(task, None))
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


def _stop_signing_in(port: Port | None) -> None:
    """Fail what waits for a person to sign in: nobody waits for it."""
    getattr(getattr(port, "transport", None), "stop_signing_in", lambda: None)()
