"""A transport inside one process: two ends, each the peer of the other.

Lives here: what tests, demos and embedders use in place of pipes. Delivery goes through the event loop, one call for
each write, so that it behaves like a pipe: nothing arrives while the writer is still running.
"""

from __future__ import annotations

import asyncio

from dragoman.transports.base import Receiver

HIGH_WATER_BYTES = 256 * 1024


class MemoryTransport:
    """One end of a pair; make pairs with `connect_pair`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._peer: MemoryTransport | None = None
        self._receiver: Receiver | None = None
        self._inbox: list[bytes] = []
        self._inbox_bytes = 0
        self._ended = False
        self._reading = True
        self._scheduled = False
        self._closed = False

    def start(self, receiver: Receiver) -> None:
        """Begin to deliver what the peer writes, and what it has written already."""
        self._receiver = receiver
        self._schedule()

    def write(self, data: bytes) -> None:
        """Hand bytes to the peer."""
        if self._peer is None or self._closed:
            return
        if self._peer._closed:
            if self._receiver is not None:
                asyncio.get_running_loop().call_soon(self._receiver.broken, f"{self._peer.name} does not read any more")
            return
        self._peer._take(data)
        if self._peer._inbox_bytes > HIGH_WATER_BYTES and self._receiver is not None:
            self._receiver.pause_writing()

    def pause_reading(self) -> None:
        """Let bytes wait."""
        self._reading = False

    def resume_reading(self) -> None:
        """Deliver again."""
        self._reading = True
        self._schedule()

    def hurry(self) -> None:
        """Nothing here takes time."""

    def end(self) -> None:
        """Say that nothing more comes, and go on listening; what was written is still delivered."""
        if self._peer is not None:
            self._peer._ended = True
            self._peer._schedule()

    async def close(self) -> None:
        """Say that nothing more comes, and listen no more."""
        self._closed = True
        self.end()

    def _take(self, data: bytes) -> None:
        self._inbox.append(data)
        self._inbox_bytes += len(data)
        self._schedule()

    def _schedule(self) -> None:
        if self._receiver is not None and self._reading and not self._scheduled and (self._inbox or self._ended):
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        receiver, peer = self._receiver, self._peer
        if receiver is None or not self._reading:
            return
        if self._inbox:
            data = self._inbox.pop(0)
            was_full = self._inbox_bytes > HIGH_WATER_BYTES
            self._inbox_bytes -= len(data)
            if was_full and self._inbox_bytes <= HIGH_WATER_BYTES and peer is not None and peer._receiver is not None:
                peer._receiver.resume_writing()
            receiver.data_received(data)
            self._schedule()
        elif self._ended:
            self._reading = False
            receiver.ended(f"{peer.name if peer else 'the peer'} has closed")


def connect_pair(one: str = "client", other: str = "proxy") -> tuple[MemoryTransport, MemoryTransport]:
    """Make two ends that are each other's peer; the names appear in reasons."""
    left, right = MemoryTransport(one), MemoryTransport(other)
    left._peer, right._peer = right, left
    return left, right
