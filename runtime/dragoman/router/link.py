"""Frames between a router and a proxy: no bytes, no buffers, no task.

Lives here: the end of a proxy, which takes it for its client or its server. Must not: look into frames.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from dragoman.core.envelope import Frame
from dragoman.transports.base import Receiver

WAITING_BYTES = 16 * 1024 * 1024
"""How much may wait for a server that does not keep up: more is refused, so that the others are not held up."""


class RouterLink:
    """What a proxy takes for its peer: for its client before a server, for its server before the client.

    Args:
        take: Gets each frame of the proxy.
        limit_bytes: How much may wait for it.
    """

    __slots__ = (
        "_closed",
        "_ended",
        "_is_free",
        "_limit_bytes",
        "_paused",
        "_receiver",
        "_take",
        "_waiting",
        "_waiting_bytes",
    )

    def __init__(self, take: Callable[[Frame], None], limit_bytes: float = WAITING_BYTES) -> None:
        self._take = take
        self._limit_bytes = limit_bytes
        self._receiver: Receiver | None = None
        self._waiting: list[Frame] = []
        self._waiting_bytes = 0
        self._paused = self._ended = self._closed = False
        self._is_free = False  # whether what is said may go on at once

    def say(self, frame: Frame) -> bool:
        """Say something to the proxy; False where too much waits for it already, for all but answers."""
        if self._is_free:
            assert self._receiver is not None
            self._receiver.received((frame,))
        elif self._waiting_bytes > self._limit_bytes and frame.method is not None:
            return False
        elif not self._closed:
            self._waiting.append(frame)
            self._waiting_bytes += len(frame.raw)
            self._schedule()
        return True

    def end(self) -> None:
        """Say no more."""
        self._ended = True
        self._schedule()

    def mute(self) -> None:
        """Hear no more of the proxy."""
        self._take = _ignore

    def hold(self, held: bool) -> None:
        """Let the proxy wait, because the client does not keep up; or go on."""
        if self._receiver is not None and not self._closed:
            (self._receiver.pause_writing if held else self._receiver.resume_writing)()

    # What the proxy calls

    def start(self, receiver: Receiver) -> None:
        """Begin to hand on."""
        self._receiver = receiver
        self._is_free = not (self._paused or self._waiting)
        self._schedule()

    def send(self, frames: Sequence[Frame]) -> None:
        """Take what the proxy says."""
        if not self._closed:
            self._is_free = False  # an answer to it must not come before this returns
            try:
                for frame in frames:
                    self._take(frame)
            finally:
                self._is_free = not (self._paused or self._waiting)

    def pause_reading(self) -> None:
        """Let what is said to the proxy wait."""
        self._paused, self._is_free = True, False

    def resume_reading(self) -> None:
        """Go on."""
        self._paused, self._is_free = False, self._receiver is not None and not self._waiting
        self._schedule()

    def hurry(self) -> None:
        """Nothing here takes time."""

    async def close(self) -> None:
        """Hand on nothing more."""
        self._closed, self._is_free = True, False
        self._receiver = None
        self._waiting.clear()

    def _schedule(self) -> None:
        if self._receiver is not None and not self._paused and (self._waiting or self._ended):
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        receiver = self._receiver
        if receiver is None or self._paused:
            return
        if self._waiting:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            self._is_free = True
            receiver.received(waiting)
        if self._ended:
            self._ended = False
            receiver.ended("the session is over")


def _ignore(frame: Frame) -> None:
    pass
