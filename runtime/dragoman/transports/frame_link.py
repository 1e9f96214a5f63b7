"""Frames between a proxy and whoever is in the same process: no bytes, no buffers, no task.

Lives here: the end of a proxy, which takes it for its client or its server. A program that is a client has one, and so
has a router, on both of its sides. Must not: look into frames.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from dragoman.core.envelope import Frame
from dragoman.transports.base import Receiver


class FrameLink:
    """What a proxy takes for its peer.

    Args:
        take: Gets each frame of the proxy; must not raise.
        limit_bytes: How much may wait for it.
        lost: Called once, when the proxy has closed this.

    Attributes:
        is_ended: Whether nothing more is said.
        is_closed: Whether nothing is heard any more either.
    """

    __slots__ = (
        "_farewell",
        "_is_free",
        "_limit_bytes",
        "_lost",
        "_paused",
        "_receiver",
        "_take",
        "_waiting",
        "_waiting_bytes",
        "is_closed",
        "is_ended",
    )

    def __init__(
        self, take: Callable[[Frame], None], limit_bytes: float = math.inf, lost: Callable[[], None] | None = None
    ) -> None:
        self._take = take
        self._limit_bytes = limit_bytes
        self._lost = lost
        self._receiver: Receiver | None = None
        self._waiting: list[Frame] = []
        self._waiting_bytes = 0
        self._farewell = ""  # why nothing more is said, as long as the proxy has not been told
        self._paused = self.is_ended = self.is_closed = False
        self._is_free = False  # whether what is said may go on at once

    def say(self, frame: Frame) -> bool:
        """Say something to the proxy; False where too much waits for it already, for all but answers."""
        if self._is_free:
            assert self._receiver is not None
            self._receiver.received((frame,))
        elif self._waiting_bytes > self._limit_bytes and frame.method is not None:
            return False
        elif not self.is_closed:
            self._waiting.append(frame)
            self._waiting_bytes += len(frame.raw)
            self._schedule()
        return True

    def end(self, reason: str = "the session is over") -> None:
        """Say no more, though the proxy reads nothing now; what was asked is still answered."""
        if not self.is_ended:
            self.is_ended, self._farewell = True, reason
            self._schedule()

    def mute(self) -> None:
        """Hear no more of the proxy."""
        self._take = _ignore

    def hold(self, held: bool) -> None:
        """Let the proxy wait, because who hears it does not keep up; or go on."""
        if self._receiver is not None and not self.is_closed:
            (self._receiver.pause_writing if held else self._receiver.resume_writing)()

    # What the proxy calls

    def start(self, receiver: Receiver) -> None:
        """Begin to hand on what is said, and what has been said already."""
        self._receiver = receiver
        self._is_free = not (self._paused or self._waiting)
        self._schedule()

    def send(self, frames: Sequence[Frame]) -> None:
        """Take what the proxy says."""
        if not self.is_closed:
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
        lost, self._lost = self._lost, None
        self.is_closed, self._is_free = True, False
        self._receiver = None
        self._waiting.clear()
        if lost is not None:
            lost()

    def _schedule(self) -> None:
        if self._receiver is not None and (self._farewell or (self._waiting and not self._paused)):
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        receiver = self._receiver
        if receiver is None or (self._paused and not self._farewell):
            return
        if self._waiting:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            self._is_free = not self._paused
            receiver.received(waiting)
        if self._farewell:
            reason, self._farewell = self._farewell, ""
            receiver.ended(reason)


def _ignore(frame: Frame) -> None:
    """What nobody wants to hear."""
