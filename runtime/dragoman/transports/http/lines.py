"""A client that takes everything over one connection: the transport that HTTP+SSE and WebSocket share.

Lives here: what is written, waiting for the one reader there is, and how much may wait. Must not: know how it is sent
(`legacy`, `websocket`). What runs it sees the protocol of `transports.base`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from dragoman.transports.base import Receiver
from dragoman.transports.http.config import Limits

_LAST_WORDS_S = 2.0
"""How long the reader gets at the end to take what it is owed."""


class LineTransport:
    """A client with one connection for all that it is sent.

    Args:
        limits: When to hold the server back.
    """

    def __init__(self, limits: Limits) -> None:
        self.over = False
        self.readable = asyncio.Event()
        self.readable.set()
        self.changed = asyncio.Event()  # set when there is something to take, and at the end
        self.closed = False
        self._limits = limits
        self._receiver: Receiver | None = None
        self._early: list[bytes] = []
        self._lines: deque[bytes] = deque()
        self._waiting = 0  # bytes not taken, and bytes taken that have not gone out
        self._full = False
        self._drained = asyncio.Event()

    # What the proxy calls.

    def start(self, receiver: Receiver) -> None:
        """Begin to deliver what comes, and what has come already."""
        self._receiver = receiver
        early, self._early = self._early, []
        for line in early:
            receiver.data_received(line)
        if self.over:
            receiver.ended("the client has left already")

    def write(self, data: bytes) -> None:
        """Let the reader have each line."""
        lines = [line for line in data.split(b"\n") if line]
        if self.over:
            return
        self._lines.extend(lines)
        self._weigh(sum(map(len, lines)))
        self.changed.set()

    def pause_reading(self) -> None:
        """Let what the client sends wait."""
        self.readable.clear()

    def resume_reading(self) -> None:
        """Take what the client sends again."""
        self.readable.set()

    def hurry(self) -> None:
        """Nothing to do: `close` takes no longer than the reader needs."""

    async def close(self) -> None:
        """End the connection, once its reader has taken what it is owed."""
        self.closed = True
        self.readable.set()
        self.changed.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                while self._waiting > 0 and not self.over:
                    self._drained.clear()
                    await self._drained.wait()
        self.over = True
        self._lines.clear()
        self.changed.set()

    # What the front calls.

    def deliver(self, line: bytes) -> None:
        """Hand on what the client sent: one frame, as a line."""
        if self._receiver is None:
            self._early.append(line)
        else:
            self._receiver.data_received(line)

    def end(self, reason: str) -> None:
        """Tell the proxy that the client says no more, and reads no more."""
        if not self.over:
            self.over = True
            self._lines.clear()
            self._weigh(-self._waiting)
            if self._receiver is not None:
                self._receiver.ended(reason)
        self.changed.set()

    def sweep(self, now: float) -> None:
        """Nothing here grows old."""

    def take(self) -> bytes | None:
        """Give the next line, without line feed; None when there is none."""
        return self._lines.popleft() if self._lines else None

    def settle(self, size: int) -> None:
        """Take note that so much of what was taken has gone out."""
        if not self.over:
            self._weigh(-size)

    def _weigh(self, size: int) -> None:
        self._waiting += size
        if self._waiting <= 0:
            self._drained.set()
        high = self._limits.high_water_bytes
        if self._receiver is None or self._full == (self._waiting > (high // 4 if self._full else high)):
            return
        self._full = not self._full
        if self._full:
            self._receiver.pause_writing()
        else:
            self._receiver.resume_writing()
