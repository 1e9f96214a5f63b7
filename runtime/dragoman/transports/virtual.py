"""A transport that ends inside this process: what a session is given in place of a server of its own.

Lives here: delivery in order and only while its receiver reads. Must not: know what frames say. `shared` and
`throwaway` own these, and stand for the server behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from dragoman.core.envelope import Frame, to_keep
from dragoman.transports.base import Receiver
from dragoman.transports.label import LABEL


class Owner(Protocol):
    """Who stands behind a virtual transport."""

    def start_virtual(self, virtual: VirtualTransport) -> None:
        """The session listens from here on.

        Raises:
            TransportClosed: The server cannot be reached.
        """

    def take_sent(self, virtual: VirtualTransport, frames: Sequence[Frame]) -> None:
        """The session sent."""

    def take_reading(self, virtual: VirtualTransport) -> None:
        """The session pauses or goes on; see `is_paused`."""

    def take_taken(self, virtual: VirtualTransport) -> None:
        """The session took what waited."""

    def hurry_virtual(self, virtual: VirtualTransport) -> None:
        """The session ends because somebody told us to stop."""

    async def end_virtual(self, virtual: VirtualTransport) -> None:
        """The session is over."""


class VirtualTransport:
    """A session's end; the other end is its owner.

    Attributes:
        waiting_bytes: How much the session has not taken.
        stalled_at: Since when it has been taking nothing although something waits.
    """

    __slots__ = (
        "_end",
        "_inbox",
        "_label",
        "_owner",
        "_paused",
        "_scheduled",
        "closed",
        "receiver",
        "stalled_at",
        "waiting_bytes",
    )

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.receiver: Receiver | None = None
        self.closed = False
        self.waiting_bytes = 0
        self.stalled_at: float | None = None
        self._inbox: list[Frame] = []
        self._end: str | None = None
        self._paused = False
        self._scheduled = False
        self._label = ""

    @property
    def is_paused(self) -> bool:
        """Whether the session takes nothing."""
        return self._paused

    def start(self, receiver: Receiver) -> None:
        """Begin to deliver."""
        self.receiver = receiver
        self._label = LABEL.get()
        self._owner.start_virtual(self)
        self.schedule()

    def send(self, frames: Sequence[Frame]) -> None:
        """Hand frames to the owner."""
        if not self.closed:
            self._owner.take_sent(self, frames)

    def pause_reading(self) -> None:
        """Let what comes wait."""
        self._paused = True
        self._owner.take_reading(self)

    def resume_reading(self) -> None:
        """Deliver again."""
        self._paused = False
        self.stalled_at = None
        self._owner.take_reading(self)
        self.schedule()

    def hurry(self) -> None:
        """Let the owner be quick."""
        self._owner.hurry_virtual(self)

    async def close(self) -> None:
        """Leave."""
        if not self.closed:
            self.closed = True
            self._forget()
            await self._owner.end_virtual(self)
            self.receiver = None

    def add(self, frame: Frame) -> None:
        """Let a frame wait for the session; follow up with `flush` or `schedule`."""
        if not self.closed and self._end is None:
            self._inbox.append(frame._replace(raw=to_keep(frame.raw), body=None) if self._paused else frame)
            self.waiting_bytes += len(frame.raw)
            if self._paused and self.stalled_at is None:
                self.stalled_at = asyncio.get_running_loop().time()

    def end(self, reason: str) -> None:
        """Say that nothing more comes, after what waits."""
        if self._end is None:
            self._end = reason
            self.schedule()

    def cut(self, reason: str) -> None:
        """Say at once that nothing more comes; what waits is lost."""
        self._forget()
        self._paused = False
        self.end(reason)

    def schedule(self) -> None:
        """Deliver soon: never from within a call of the session's own."""
        if not self._scheduled and not self.closed:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._deliver)

    def flush(self) -> None:
        """Deliver what waits, if the session takes it; what is logged meanwhile is about this session."""
        if self.receiver is None or self._paused or self.closed:
            return
        token = LABEL.set(self._label)
        try:
            self._flush(self.receiver)
        finally:
            LABEL.reset(token)

    def _flush(self, receiver: Receiver) -> None:
        if self._inbox:
            frames, self._inbox = self._inbox, []
            self._forget()
            self._owner.take_taken(self)
            receiver.received(frames)
        if self._end is not None and not self._paused and not self.closed:
            self.receiver = None
            receiver.ended(self._end)

    def _deliver(self) -> None:
        self._scheduled = False
        self.flush()

    def _forget(self) -> None:
        self._inbox.clear()
        self.waiting_bytes = 0
        self.stalled_at = None
