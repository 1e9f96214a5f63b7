"""A client that takes everything over one connection: the transport that HTTP+SSE and WebSocket share.

Lives here: what is written and waits for its one reader. Must not: know how it is sent (`legacy`, `websocket`).
What runs it sees the protocol of `transports.base`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from dragoman.core.envelope import Frame
from dragoman.transports.http.config import Limits
from dragoman.transports.http.flow import FlowingTransport


class LineTransport(FlowingTransport):
    """A client with one connection for all that it is sent.

    Args:
        limits: When to hold the server back.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits.high_water_bytes)
        self.wake = asyncio.Event()  # set when there is something to take, and at the end
        self.closed = False
        self._lines: deque[bytes] = deque()

    # What the proxy calls.

    def send(self, frames: Sequence[Frame]) -> None:
        """Let the reader have each frame."""
        lines = [frame.raw.removesuffix(b"\n") for frame in frames]
        if self.over:
            return
        self._lines.extend(lines)
        self.weigh(sum(map(len, lines)))
        self.wake.set()

    async def close(self) -> None:
        """End the connection, once its reader has taken what it is owed."""
        self.closed = True
        self.readable.set()
        self.wake.set()
        await self.drain()
        self.over = True
        self._lines.clear()
        self.wake.set()

    # What the front calls.

    def end(self, reason: str) -> None:
        """Tell the proxy that the client says no more, and reads no more."""
        if not self.over:
            self.over = True  # before it has room again
            self._lines.clear()
            self.weigh(-self._waiting_bytes)
            self.tell_end(reason)
        self.wake.set()

    def take(self) -> bytes | None:
        """Return the next line, without line feed; None when there is none."""
        return self._lines.popleft() if self._lines else None

    def settle(self, size: int) -> None:
        """Record that so much of what was taken has gone out."""
        if not self.over:
            self.weigh(-size)
