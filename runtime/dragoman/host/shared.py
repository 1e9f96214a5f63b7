"""The host of a server that several clients share.

Lives here: its transport and theirs, backpressure among them, and idling. Must not: look into frames; the switch does.
Used by `pool`.

Backpressure. Frames that a client does not read wait here. When more than `high_water_bytes` wait for all clients
together, the host stops reading the server. If that lasts, it disconnects the client that holds most, so one slow
client delays the others by `stall_s` at most. If the server does not read, the host stops reading all clients.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial

from dragoman.core.commands import Alarm, Finish, Outcome, Sleeper
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.lifecycle import UpstreamState
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, Malformed, to_keep
from dragoman.core.label import LABEL, log_as
from dragoman.core.switch.shared.desk import SharingSettings
from dragoman.core.switch.shared.switch import Shared
from dragoman.errors import TransportClosed
from dragoman.host.host import Host, Opening
from dragoman.host.port import Port
from dragoman.host.settings import HostSettings
from dragoman.transports.base import Transport
from dragoman_spec.record import record

logger = logging.getLogger("dragoman.shared")


@record
class PoolConfig:
    """What can be decided about servers that clients do not have for themselves.

    Attributes:
        sharing: How a shared server is used.
        upstreams: How many servers may be there at once.
        idle_s: How long a shared server is kept once nobody uses it.
        high_water_bytes: How much may wait for the readers of one shared server.
        stall_s: How long a reader may hold up the others.
        tick_s: How often the clock is looked at, while something depends on it.
    """

    sharing: SharingSettings = field(default_factory=SharingSettings)
    upstreams: int = 256
    idle_s: float = 60.0
    high_water_bytes: int = 16 * 1024 * 1024
    stall_s: float = 30.0
    tick_s: float = 1.0


class SharedHost(Host):
    """A server and the clients that share it.

    Args:
        switch: Joins them.
        connect: Opens the transport to the server; called once, and once more if it has to be started again.
        settings: What every host needs.
        config: What was decided.
        forget: Called when no new client should come here any more, and when it is closed.
        closing: Where the task that closes the server is kept, and for which host.
    """

    switch: Shared

    def __init__(
        self,
        switch: Shared,
        connect: Callable[[], Transport],
        settings: HostSettings,
        config: PoolConfig,
        forget: Callable[[SharedHost], None],
        closing: dict[asyncio.Task[None], SharedHost],
    ) -> None:
        super().__init__(switch, connect, settings)
        self.closing: asyncio.Task[None] | None = None
        self._config = config
        self._forget = forget
        self._tasks = closing
        self._clients = 0
        self._is_held_back = False
        self._written: list[Frame] = []  # for the server, in this turn of the loop
        self._clock: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None

    def start(self, opening: Opening | None = None) -> None:
        """Open the server, or take it over when its first client begins, if it is being opened here already.

        Raises:
            TransportClosed: It cannot be reached.
        """
        self.put_up()
        if opening is not None:
            self.switch.inherits = partial(opening, self)
            return
        upstream = self.switch.upstream
        try:
            port = self._ports[upstream] = Port(self, upstream, self._connect(), LABEL.get())
            port.transport.start(port)
        except TransportClosed:
            super().take_down()
            raise

    def take_down(self) -> None:
        """The server is seen until it is closed, whoever leaves."""
        if self.closing is not None:
            super().take_down()

    def join(self) -> FrontEdge:
        """Take in a client; follow up with `serve`."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._clients += 1
        return self.switch.join(LABEL.get())

    async def close_front(self, front: FrontEdge, port: Port, at_once: bool) -> None:
        """Close a client's transport; the server is the others' as well."""
        self._clients -= 1
        self.set_clock()
        self.perform(self.switch.leave, front)
        if self.closing is None and not self._clients:
            self._idle_away()
        backlog = self._take_backlog(port)
        if backlog and not at_once:
            port.transport.send(backlog)
        self._balance()
        await port.transport.close()

    def hurry(self, front: FrontEdge) -> None:
        """One client is quick about leaving: the server is the others' as well."""

    def close(self) -> None:
        """Close the server."""
        if self.closing is not None:
            return
        self._write()
        for handle in (self._clock, self._idle):
            if handle is not None:
                handle.cancel()
        self._close(self.switch.upstream)
        self.closing = asyncio.ensure_future(self._see_off())
        self._forget(self)
        self.take_down()
        self._tasks[self.closing] = self
        self.closing.add_done_callback(self._tasks.pop)
        logger.info("a shared server is closed: %s", self.switch.counters.describe())

    def hurry_server(self) -> None:
        """Let the server be quick about going, which it is told to."""
        for transport in self._closing.values():
            transport.hurry()

    async def _see_off(self) -> None:
        """Wait until the server is gone, and those whose place it took."""
        await asyncio.gather(*self._closing)

    def set_clock(self) -> None:
        """Tell the switch what time it is."""
        self.switch.set_clock(asyncio.get_running_loop().time())

    # What ports tell

    def receive(self, port: Port, frames: Sequence[Frame | Malformed]) -> None:
        """Let an edge take frames, and carry out what follows."""
        self.set_clock()
        super().receive(port, frames)
        upstream = self.switch.upstream
        if (
            self._is_held_back
            and port.alive
            and port.edge is upstream
            and upstream.state is not UpstreamState.RECOVERING
        ):
            port.transport.pause_reading()  # it was started again, and read until it was open

    def flush(self) -> None:
        """Carry out everything that has come out of the switch, which may have begun to wait for something."""
        super().flush()
        self._wind_clock()

    def perform(self, step: Callable[..., object], *args: object) -> None:
        """Let an edge or the switch take a step, and carry out what follows."""
        self.set_clock()
        super().perform(step, *args)

    def expire(self, sleeper: Sleeper, after_s: float | None) -> None:
        """Tell somebody that the time has passed; what is logged meanwhile is about the session that it is for."""
        label = self.caller_of(sleeper.front)[0] if isinstance(sleeper, Alarm) else LABEL.get()
        log_as(label, super().expire, sleeper, after_s)
        if self.switch.upstream.state is UpstreamState.LOST:  # silent for too long, say: the next client gets another
            self.close()

    def take_lost_session(self, port: Port, frame: Frame | None, error: Frame | None, renewed: bool) -> None:
        """The server has forgotten the session, and is there."""
        self.set_clock()
        super().take_lost_session(port, frame, error, renewed)

    def take_end(self, port: Port, reason: str) -> None:
        """A peer has closed its side; if that is the server, the next client gets a new one."""
        self.set_clock()
        if isinstance(port.edge, FrontEdge):
            super().take_end(port, reason)
            return
        clients = self._clients
        super().take_end(port, reason)
        if port.alive and self._ports.get(port.edge) is port:
            if clients and self.closing is None:
                logger.warning("the shared server is gone, and with it %d session(s): %s", clients, reason)
            self.close()

    def take_deaf_client(self, port: Port, front: FrontEdge, reason: str) -> None:
        """A client does not read any more: what waits for it is nobody's."""
        self._take_backlog(port)
        super().take_deaf_client(port, front, reason)

    def take_deaf_server(self, port: Port) -> None:
        """The server has stopped reading: no new client joins it, unless it is started again."""
        if not self.switch.upstream.recovery.starts_again:
            self._forget(self)

    def take_defect(self, error: Exception) -> None:
        """End what cannot go on because of a defect of ours: all sessions, and the server with them."""
        super().take_defect(error)
        self.close()

    def open_server(self, upstream: UpstreamEdge) -> None:
        """Open the server again; where it cannot be, the next client may have more luck."""
        self._write()  # what was said so far is the old one's
        super().open_server(upstream)
        if upstream.state is UpstreamState.LOST:
            self.close()

    def note_started(self, port: Port) -> None:
        """A client listens from here on."""
        server = self._ports.get(self.switch.upstream)
        if server is not None and server.full and port is not server:
            port.transport.pause_reading()

    def hold_back(self, full: Port) -> None:
        """Stop reading what would only pile up; what a client is sent from here on waits here."""
        if isinstance(full.edge, FrontEdge):
            full.transport.pause_reading()
            return
        for port in self._ports.values():
            if port is not full:
                port.transport.pause_reading()

    def let_go(self, full: Port) -> None:
        """Read again, where nobody else is in the way."""
        if isinstance(full.edge, FrontEdge):
            if full.backlog is not None:
                full.transport.send(self._take_backlog(full))
                self._balance()
            server = self._ports.get(self.switch.upstream)
            if not full.full and (server is None or not server.full):
                full.transport.resume_reading()
            return
        for port in list(self._ports.values()):
            if port is not full and port.alive and not port.full:
                port.transport.resume_reading()

    def send(self, port: Port, frames: Sequence[Frame]) -> None:
        """Write to a peer; to the server all that is said in one turn of the loop at once: each write would wake it."""
        if port.edge is self.switch.upstream:
            if not self._written:
                asyncio.get_running_loop().call_soon(self.perform, self._write)
            self._written += frames
        elif port.full:
            self._keep(port, frames)
        else:
            log_as(port.label, port.transport.send, frames)

    def _write(self) -> None:
        frames, self._written = self._written, []
        port = self._ports.get(self.switch.upstream)
        if frames and port is not None:
            super().send(port, frames)

    def _keep(self, port: Port, frames: Sequence[Frame]) -> None:
        if port.backlog is None:
            port.backlog = []
            port.stalled_at = asyncio.get_running_loop().time()
        for frame in frames:
            port.backlog.append(frame._replace(raw=to_keep(frame.raw), body=None))
            port.backlog_bytes += len(frame.raw)
        self._balance()

    def _take_backlog(self, port: Port) -> list[Frame]:
        backlog, port.backlog, port.backlog_bytes, port.stalled_at = port.backlog, None, 0, None
        return backlog or []

    def _balance(self) -> None:
        """Read from the server only while its clients take what comes."""
        waiting, high = sum(port.backlog_bytes for port in self._ports.values()), self._config.high_water_bytes
        if self._is_held_back == (waiting > (high // 2 if self._is_held_back else high)):
            return
        self._is_held_back = not self._is_held_back
        server = self._ports.get(self.switch.upstream)
        if server is None:  # it is being started again
            return
        if self._is_held_back:
            server.transport.pause_reading()
        else:
            server.transport.resume_reading()

    def _idle_away(self) -> None:
        if not self.switch.is_open:
            self.close()
        else:
            self._idle = asyncio.get_running_loop().call_later(self._config.idle_s, self.close)

    def _wind_clock(self) -> None:
        if self._clock is None and self.closing is None and (self.switch.needs_clock or self._is_held_back):
            self._clock = asyncio.get_running_loop().call_later(self._config.tick_s, self._tick)

    def _tick(self) -> None:
        self._clock = None
        if self._is_held_back:
            self._cut_slowest()
        self.perform(self.switch.expire, asyncio.get_running_loop().time())

    def _cut_slowest(self) -> None:
        since = asyncio.get_running_loop().time() - self._config.stall_s
        stalled = [port for port in self._ports.values() if port.stalled_at is not None and port.stalled_at <= since]
        if stalled:
            slowest = max(stalled, key=lambda port: port.backlog_bytes)
            reason = f"the client took nothing for {self._config.stall_s:g} s while others waited for the same server"
            logger.warning("a session is cut off: %s", reason)
            self._take_backlog(slowest)
            assert isinstance(slowest.edge, FrontEdge)
            self.perform(slowest.edge.lost, reason, Outcome.SERVER_CLOSED)
            self._balance()


class Guest:
    """One client of a shared server: what runs its session.

    Args:
        host: Of the server.
        transport: To the client.
    """

    def __init__(self, host: SharedHost, transport: Transport) -> None:
        self._host = host
        self._transport = transport
        self.front = host.join()

    async def run(self) -> Finish:
        """Serve the client until its session ends."""
        try:
            return await self._host.serve(self.front, self._transport, self.front.open)
        finally:
            self.front.release()

    def drain(self, reason: str) -> None:
        """End the session once what is under way is answered."""
        self._host.drain(self.front, reason)

    def stop(self, reason: str) -> None:
        """End the session now; requests that wait are answered with this reason."""
        self._host.stop(self.front, reason)
