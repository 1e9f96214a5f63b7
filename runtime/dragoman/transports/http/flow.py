"""Both directions of a session over HTTP, as far as one of them waits for the other end.

Lives here: what a client says before there is somebody to hear it, holding clients up, and holding their servers back
while too much waits to be read. Must not: know what waits, or where. A part of `session` and of `lines`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from dragoman.transports.base import Receiver

_LAST_WORDS_S: Final = 2.0
"""How long clients get at the end to take what they are owed."""


class Flow:
    """The flow of one session.

    Args:
        high_water_bytes: When more than this waits for the client, the server is held back until a quarter is left.

    Attributes:
        readable: Set while the client may be read.
        held: Whether the server is held back.
    """

    def __init__(self, high_water_bytes: int) -> None:
        self.readable = asyncio.Event()
        self.readable.set()
        self.held = False
        self._high_water_bytes = high_water_bytes
        self._receiver: Receiver | None = None
        self._early: list[bytes] = []
        self._waiting = 0
        self._drained = asyncio.Event()

    def start(self, receiver: Receiver) -> None:
        """Hand on what the client has said already, and from now on what it says."""
        self._receiver = receiver
        early, self._early = self._early, []
        for line in early:
            receiver.data_received(line)

    def deliver(self, line: bytes) -> None:
        """Hand on what the client says: one frame or batch, as a line."""
        if self._receiver is None:
            self._early.append(line)
        else:
            self._receiver.data_received(line)

    def end(self, reason: str) -> None:
        """Tell the proxy, if there is one yet, that the client says no more."""
        if self._receiver is not None:
            self._receiver.ended(reason)

    def weigh(self, waiting: int) -> None:
        """Take note of how many bytes wait for the client."""
        self._waiting = waiting
        if waiting <= 0:
            self._drained.set()
        high = self._high_water_bytes
        if self._receiver is None or self.held == (waiting > (high // 4 if self.held else high)):
            return
        self.held = not self.held
        if self.held:
            self._receiver.pause_writing()
        else:
            self._receiver.resume_writing()

    async def drain(self) -> None:
        """Wait until the client has taken everything, or has had the time to."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                while self._waiting > 0:
                    self._drained.clear()
                    await self._drained.wait()
