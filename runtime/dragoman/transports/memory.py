"""A transport inside one process: two ends, each the peer of the other.

Lives here: what tests, demos and embedders use in place of pipes. Delivery goes through the event loop, one call for
each write, so that it behaves like a pipe: nothing arrives while the writer is still running.

Between the ends are bytes, as in a pipe. The proxy's end sends and receives frames; a program at the other end may do
the same, or use bytes: `write` and `start_raw`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from dragoman.core.envelope import Frame
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.transports.base import Receiver
from dragoman.transports.lines import FramedReceiver, join_lines

HIGH_WATER_BYTES = 256 * 1024


class RawReceiver(Protocol):
    """Who reads bytes at its end; the other calls are those of `transports.base`."""

    def data_received(self, data: bytes) -> None:
        """Bytes came, in pieces of any size."""

    def ended(self, reason: str) -> None:
        """The peer says no more."""

    def broken(self, reason: str) -> None:
        """The peer does not read any more."""

    def pause_writing(self) -> None:
        """More is waiting than should be."""

    def resume_writing(self) -> None:
        """There is room again."""


class MemoryTransport:
    """One end of a pair; make pairs with `connect_pair`."""

    def __init__(self, name: str, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.name = name
        self._limit_bytes = limit_bytes
        self._peer: MemoryTransport | None = None
        self._receiver: RawReceiver | None = None
        self._inbox: list[bytes] = []
        self._inbox_bytes = 0
        self._ended = False
        self._reading = True
        self._scheduled = False
        self._closed = False

    def start(self, receiver: Receiver) -> None:
        """Begin to deliver what the peer says, and what it has said already."""
        self.start_raw(FramedReceiver(receiver, self._limit_bytes))

    def start_raw(self, receiver: RawReceiver) -> None:
        """The same for somebody who reads bytes."""
        self._receiver = receiver
        self._schedule()

    def send(self, frames: Sequence[Frame]) -> None:
        """Hand frames to the peer."""
        self.write(frames[0].raw if len(frames) == 1 else join_lines(frames))

    def write(self, data: bytes) -> None:
        """Hand bytes to the peer."""
        peer = self._peer
        if peer is None or self._closed:
            return
        if peer._closed:
            if self._receiver is not None:
                asyncio.get_running_loop().call_soon(self._receiver.broken, f"{peer.name} does not read any more")
            return
        peer._inbox.append(data)
        peer._inbox_bytes += len(data)
        if not peer._scheduled:
            peer._schedule()
        if peer._inbox_bytes > HIGH_WATER_BYTES and self._receiver is not None:
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
            if self._inbox or self._ended:
                self._schedule()
        elif self._ended:
            self._reading = False
            receiver.ended(f"{peer.name if peer else 'the peer'} has closed")


def connect_pair(
    one: str = "client", other: str = "proxy", limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> tuple[MemoryTransport, MemoryTransport]:
    """Make two ends that are each other's peer.

    Args:
        one: A name for one end; it appears in reasons.
        other: The same for the other.
        limit_bytes: The longest line that an end with a receiver of frames accepts.
    """
    left, right = MemoryTransport(one, limit_bytes), MemoryTransport(other, limit_bytes)
    left._peer, right._peer = right, left
    return left, right
