"""One connection to a server for several client sessions.

Lives here: the real transport, the virtual ones, backpressure and idling. Must not: look into frames; `core.sharing`
does. Called by `pool`.

Backpressure. A client that does not read keeps its own lines waiting. When all sessions together have more waiting than
`high_water_bytes`, the server is not read any more; if that lasts, the session that holds most is cut off, so that one
slow client delays the others by `stall_s` at most. A server that does not read holds back all clients.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dragoman.core.envelope import Frame, Malformed
from dragoman.core.sharing.calls import Member
from dragoman.core.sharing.desk import Deliveries, SharingSettings
from dragoman.core.sharing.hub import Hub
from dragoman.transports.base import Transport
from dragoman.transports.virtual import VirtualTransport

logger = logging.getLogger("dragoman.shared")


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """What can be decided about servers that sessions do not have for themselves.

    Attributes:
        sharing: How a shared server is used.
        upstreams: How many servers may be there at once.
        runs: How many requests of one session may each have a throwaway server.
        idle_s: How long a shared server is kept once nobody uses it.
        high_water_bytes: How much may wait for the readers of one shared server.
        stall_s: How long a reader may hold up the others.
        tick_s: How often the clock is looked at, while something depends on it.
    """

    sharing: SharingSettings = field(default_factory=SharingSettings)
    upstreams: int = 256
    runs: int = 64
    idle_s: float = 60.0
    high_water_bytes: int = 16 * 1024 * 1024
    stall_s: float = 30.0
    tick_s: float = 1.0


class SharedUpstream:
    """A server and the sessions that share it; the receiver of the real transport.

    Args:
        transport: To the server.
        config: What was decided.
        settings: How the server is used, what was learned about an earlier one included.
        forget: Called when no new session should come here any more.
        tasks: Where the task that closes it is kept, and for which server.
    """

    def __init__(
        self,
        transport: Transport,
        config: PoolConfig,
        settings: SharingSettings,
        forget: Callable[[SharedUpstream], None],
        tasks: dict[asyncio.Task[None], SharedUpstream],
    ) -> None:
        self.hub = Hub(settings)
        self.closing: asyncio.Task[None] | None = None
        self._transport = transport
        self._config = config
        self._forget = forget
        self._tasks = tasks
        self._virtuals: dict[Member, VirtualTransport] = {}
        self._members: dict[VirtualTransport, Member] = {}
        self._written: list[Frame] = []
        self._held_back = False
        self._full = False
        self._unread_bytes = 0  # what was written since it is full
        self._timer: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None

    @property
    def sessions(self) -> int:
        """How many sessions share it."""
        return len(self._virtuals)

    def join(self) -> VirtualTransport:
        """Give a session its transport."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        virtual, member = VirtualTransport(self), self.hub.join()
        self._virtuals[member], self._members[virtual] = virtual, member
        return virtual

    def close(self) -> None:
        """Close the server."""
        if self.closing is None:
            self._forget(self)
            self._write()
            for handle in (self._timer, self._idle):
                if handle is not None:
                    handle.cancel()
            self.closing = asyncio.get_running_loop().create_task(self._transport.close())
            self._tasks[self.closing] = self
            self.closing.add_done_callback(self._tasks.pop)
            logger.info("a shared server is closed: %s", self.hub.counters.describe())

    def hurry(self) -> None:
        """Let the server be quick about its going."""
        self._transport.hurry()

    # What the real transport tells

    def received(self, frames: Sequence[Frame | Malformed]) -> None:
        """Frames came."""
        self._take(lambda: self.hub.receive_server(frames, _now()))

    def failed(self, frame: Frame) -> None:
        """The transport gave up a request: whose it was is told, and the server may still speak about it."""
        self._take(lambda: self.hub.fail(frame, _now()))

    def ended(self, reason: str) -> None:
        """The server says no more: neither do the transports of its sessions. The next session gets a fresh one."""
        if self._virtuals:
            logger.warning("the shared server is gone, and with it %d session(s): %s", len(self._virtuals), reason)
        for virtual in list(self._virtuals.values()):
            virtual.end(reason)
        self.close()

    def broken(self, reason: str) -> None:
        """The server does not read any more."""
        self._forget(self)
        for virtual in list(self._virtuals.values()):
            if virtual.receiver is not None:
                virtual.receiver.broken(reason)

    def pause_writing(self) -> None:
        """The server does not keep up: hold everybody back."""
        self._full = True
        for virtual in self._virtuals.values():
            if virtual.receiver is not None:
                virtual.receiver.pause_writing()

    def resume_writing(self) -> None:
        """The server has caught up."""
        self._full, self._unread_bytes = False, 0
        for virtual in self._virtuals.values():
            if virtual.receiver is not None:
                virtual.receiver.resume_writing()

    # What the virtual transports tell

    def start_virtual(self, virtual: VirtualTransport) -> None:
        """A session listens from here on."""
        if self._full and virtual.receiver is not None:
            virtual.receiver.pause_writing()

    def take_sent(self, virtual: VirtualTransport, frames: Sequence[Frame]) -> None:
        """A session sent."""
        self._dispatch(self.hub.receive(self._members[virtual], frames, _now()))

    def take_reading(self, virtual: VirtualTransport) -> None:
        """A session pauses or goes on: the others do not."""

    def take_taken(self, virtual: VirtualTransport) -> None:
        """A session took what waited."""
        if self._held_back:
            self._balance()

    def hurry_virtual(self, virtual: VirtualTransport) -> None:
        """A session is quick about leaving: the server is the others' as well."""

    async def end_virtual(self, virtual: VirtualTransport) -> None:
        """A session is over."""
        member = self._members.pop(virtual, None)
        if member is None:
            return
        del self._virtuals[member]
        self._dispatch(self.hub.leave(member, _now()))
        if self.closing is None and not self._virtuals:
            self._idle_away()

    def _take(self, step: Callable[[], Deliveries]) -> None:
        try:
            deliveries = step()
        except Exception as error:  # a defect of ours: say so on one line, end in order
            reason = f"internal error: {type(error).__name__}: {error}"
            logger.error("%s", reason)
            logger.debug("where it happened", exc_info=True)
            self.ended(reason)
        else:
            self._dispatch(deliveries, at_once=True)

    def _idle_away(self) -> None:
        if not self.hub.is_open:
            self.close()
        else:
            self._idle = asyncio.get_running_loop().call_later(self._config.idle_s, self.close)

    def _dispatch(self, deliveries: Deliveries, at_once: bool = False) -> None:
        touched: dict[VirtualTransport, None] = {}
        for member, frame in deliveries:
            virtual = None if member is None else self._virtuals.get(member)
            if member is None:
                self._write_soon(frame)
            elif virtual is not None:
                virtual.add(frame)
                touched[virtual] = None
        for virtual in touched:
            if at_once:
                virtual.flush()
            else:
                virtual.schedule()
            if virtual.waiting_bytes and virtual.is_paused:  # others take it in this turn of the loop
                self._balance()
        self._wind_clock()

    def _write_soon(self, frame: Frame) -> None:
        """Write what all sessions say in one turn of the loop at once: each write would wake the server."""
        if not self._written:
            asyncio.get_running_loop().call_soon(self._write)
        self._written.append(frame)

    def _write(self) -> None:
        frames, self._written = self._written, []
        if frames and self.closing is None:
            self._transport.send(frames)
            if self._full:  # the sessions are held back: what is written are answers to the server
                self._unread_bytes += sum(len(frame.raw) for frame in frames)
                if self._unread_bytes > self._config.sharing.limit_bytes:
                    self.ended("the server asks without end and reads nothing")

    def _balance(self) -> None:
        """Read from the server only while its sessions take what comes."""
        waiting, high = sum(virtual.waiting_bytes for virtual in self._members), self._config.high_water_bytes
        if not self._held_back and waiting > high:
            self._held_back = True
            self._transport.pause_reading()
        elif self._held_back and waiting <= high // 2:
            self._held_back = False
            self._transport.resume_reading()

    def _wind_clock(self) -> None:
        if self._timer is None and self.closing is None and (self.hub.needs_clock or self._held_back):
            self._timer = asyncio.get_running_loop().call_later(self._config.tick_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._held_back:
            self._cut_slowest()
        self._dispatch(self.hub.expire(_now()))

    def _cut_slowest(self) -> None:
        since = _now() - self._config.stall_s
        stalled = [one for one in self._members if one.stalled_at is not None and one.stalled_at <= since]
        if stalled:
            slowest = max(stalled, key=lambda one: one.waiting_bytes)
            reason = f"the client took nothing for {self._config.stall_s:g} s while others waited for the same server"
            logger.warning("a session is cut off: %s", reason)
            slowest.cut(reason)
            self._balance()


def _now() -> float:
    return asyncio.get_running_loop().time()
