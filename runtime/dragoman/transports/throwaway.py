"""A connection to a fresh server for every request of one session.

Lives here: opening and closing them, and holding each back. Must not: look into frames; `core.sharing.throwaway` does.
Called by `pool`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from dragoman.core.envelope import Frame, Malformed
from dragoman.core.sharing.throwaway import Deliveries, Phase, Run, Throwaways
from dragoman.errors import TransportClosed
from dragoman.transports.base import Transport
from dragoman.transports.virtual import VirtualTransport

logger = logging.getLogger("dragoman.shared")


_BROKEN_GRACE_S = 1.0
"""How long a server that closed its input may still answer before it counts as gone."""


class _Edge:
    """What happens at one server's transport."""

    def __init__(self, servers: ThrowawayServers, run: Run, transport: Transport) -> None:
        self._servers = servers
        self._run = run
        self.transport = transport
        self._full = False
        self._unread_bytes = 0

    def received(self, frames: Sequence[Frame | Malformed]) -> None:
        self._servers.take_received(self._run, frames)

    def failed(self, frame: Frame) -> None:
        self.received((frame,))

    def ended(self, reason: str) -> None:
        self._servers.take_end(self._run, reason)

    def broken(self, reason: str) -> None:
        """Give it a moment: it may be on its way to answer, or to say why it ended."""
        asyncio.get_running_loop().call_later(_BROKEN_GRACE_S, self.ended, "the server closed its input")

    def pause_writing(self) -> None:
        """The server does not keep up: it is written one request, and answers to what it asks."""
        self._full = True

    def resume_writing(self) -> None:
        """The server has caught up."""
        self._full, self._unread_bytes = False, 0

    def send(self, frame: Frame, limit_bytes: int) -> None:
        """Send a frame.

        Raises:
            TransportClosed: The server reads nothing and asks without end.
        """
        self.transport.send((frame,))
        if self._full:
            self._unread_bytes += len(frame.raw)
            if self._unread_bytes > limit_bytes:
                raise TransportClosed("the server", "it asks without end and reads nothing")


class ThrowawayServers:
    """The servers of one session, and the transport that the session is given.

    Args:
        open_upstream: Opens a transport to a fresh server.
        runs: How many there may be at once.
        limit_bytes: How much is written to a server that reads nothing, before it is given up.
    """

    def __init__(self, open_upstream: Callable[[], Transport], runs: int, limit_bytes: int) -> None:
        self.virtual = VirtualTransport(self)
        self._open = open_upstream
        self._machine = Throwaways(runs)
        self._limit_bytes = limit_bytes
        self._edges: dict[Run, _Edge] = {}
        self._closing: dict[asyncio.Task[None], Transport] = {}

    # What the servers' transports tell

    def take_received(self, run: Run, frames: Sequence[Frame | Malformed]) -> None:
        """A server said something."""
        if run in self._edges:
            self._dispatch(self._machine.receive_server(run, frames))
            self.virtual.flush()

    def take_end(self, run: Run, reason: str) -> None:
        """A server is gone."""
        if run in self._edges:
            self._dispatch(self._machine.lose(run, reason))

    # What the virtual transport tells

    def start_virtual(self, virtual: VirtualTransport) -> None:
        """The session listens from here on."""

    def take_sent(self, virtual: VirtualTransport, frames: Sequence[Frame]) -> None:
        """The session sent."""
        self._dispatch(self._machine.receive(frames))

    def take_reading(self, virtual: VirtualTransport) -> None:
        """The session pauses or goes on: so do its servers."""
        for edge in self._edges.values():
            if virtual.is_paused:
                edge.transport.pause_reading()
            else:
                edge.transport.resume_reading()

    def take_taken(self, virtual: VirtualTransport) -> None:
        """The session took what waited."""

    def hurry_virtual(self, virtual: VirtualTransport) -> None:
        """Somebody told us to stop: all servers are quick, those that are going already too."""
        for edge in self._edges.values():
            edge.transport.hurry()
        for transport in self._closing.values():
            transport.hurry()

    async def end_virtual(self, virtual: VirtualTransport) -> None:
        """The session is over."""
        for run in list(self._edges):
            self._close(run)
        await asyncio.gather(*self._closing)

    def _dispatch(self, deliveries: Deliveries) -> None:
        """Send what goes out; a server that cannot be reached is one more thing to tell the machine."""
        while deliveries:
            run, frame = deliveries.pop(0)
            if run is None:
                assert frame is not None, "only a server is told that it is over"
                self.virtual.add(frame)
            elif run in self._edges or run.phase is not Phase.OVER:
                try:
                    edge = self._edges.get(run) or self._connect(run)
                    if frame is not None:
                        edge.send(frame, self._limit_bytes)
                except TransportClosed as error:
                    logger.error("%s", error)
                    deliveries += self._machine.lose(run, error.unnamed)
            if run is not None and run.phase is Phase.OVER and not any(run is other for other, _ in deliveries):
                self._close(run)
        self.virtual.schedule()

    def _connect(self, run: Run) -> _Edge:
        edge = _Edge(self, run, self._open())
        self._edges[run] = edge
        edge.transport.start(edge)
        return edge

    def _close(self, run: Run) -> None:
        edge = self._edges.pop(run, None)
        if edge is not None:
            self._machine.ending += 1
            task = asyncio.get_running_loop().create_task(edge.transport.close())
            self._closing[task] = edge.transport
            task.add_done_callback(self._note_closed)

    def _note_closed(self, task: asyncio.Task[None]) -> None:
        self._machine.ending -= 1
        self._closing.pop(task, None)
