"""A front transport without a peer: what a program says becomes frames, and frames are handed to it.

Lives here: the two ends of that, and waiting while the proxy is held back. Must not: know methods or ids (`session`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from dragoman.core.envelope import Frame
from dragoman.core.methods import CANCELLED
from dragoman.errors import ConnectionClosed
from dragoman.transports.base import Receiver


class CallTransport:
    """The transport that a proxy takes for its client.

    Args:
        take: Gets each frame that the proxy says; must not raise.
        lost: Called once, when the session is over.
    """

    def __init__(self, take: Callable[[Frame], None], lost: Callable[[], None]) -> None:
        self._take = take
        self._lost = lost
        self._receiver: Receiver | None = None
        self._waiting: list[Frame] = []
        self._paused = False
        self._ended = False
        self._closed = False

    def say(self, frame: Frame) -> None:
        """Say this to the server; at the end only that an answer is not waited for any more.

        Raises:
            ConnectionClosed: The session is over.
        """
        if self._closed or (self._ended and frame.method != CANCELLED):
            raise ConnectionClosed("the session is over")
        if self._receiver is None or self._paused or self._waiting:
            self._waiting.append(frame)
        else:
            self._receiver.received((frame,))

    def end(self) -> None:
        """Say no more; what was asked is still answered."""
        if not self._ended and not self._closed:
            self._ended = True
            asyncio.get_running_loop().call_soon(self._flush)

    # What the proxy calls

    def start(self, receiver: Receiver) -> None:
        """Begin to hand on what the program says, and what it has said already."""
        self._receiver = receiver
        asyncio.get_running_loop().call_soon(self._flush)

    def send(self, frames: Sequence[Frame]) -> None:
        """Hand frames to the program."""
        if not self._closed:
            for frame in frames:
                self._take(frame)

    def pause_reading(self) -> None:
        """Let what the program says wait: the server does not keep up."""
        self._paused = True

    def resume_reading(self) -> None:
        """Go on."""
        self._paused = False
        asyncio.get_running_loop().call_soon(self._flush)

    def hurry(self) -> None:
        """Nothing here takes time."""

    async def close(self) -> None:
        """Tell the program that the session is over."""
        if not self._closed:
            self._closed = True
            self._waiting.clear()
            self._lost()

    def _flush(self) -> None:
        receiver = self._receiver
        if receiver is None or self._paused or self._closed:
            return
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            receiver.received(waiting)
        if self._ended:
            receiver.ended("the program has closed the client")
