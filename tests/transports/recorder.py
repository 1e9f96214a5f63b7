"""A receiver that writes down what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dragoman.core.envelope import Frame, Malformed
from tests.support.frames import bytes_of


class Recorder:
    def __init__(self) -> None:
        self.data = bytearray()  # bytes would be copied with each read
        self.reads = 0
        self.end: str | None = None
        self.break_reason: str | None = None
        self.paused = False
        self.pauses = 0
        self.changed = asyncio.Event()

    def received(self, frames: Sequence[Frame | Malformed]) -> None:
        assert frames
        self.data_received(bytes_of(frames))

    def failed(self, frame: Frame) -> None:
        self.data_received(frame.raw)

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.reads += 1
        self.changed.set()

    def ended(self, reason: str) -> None:
        assert self.end is None, "ended twice"
        self.end = reason
        self.changed.set()

    def broken(self, reason: str) -> None:
        assert self.break_reason is None, "broken twice"
        self.break_reason = reason
        self.changed.set()

    def pause_writing(self) -> None:
        self.paused = True
        self.pauses += 1
        self.changed.set()

    def resume_writing(self) -> None:
        self.paused = False
        self.changed.set()

    async def until(self, condition: object, patience_s: float = 60.0) -> None:
        assert callable(condition)
        async with asyncio.timeout(patience_s):
            while not condition():
                self.changed.clear()
                await self.changed.wait()
