"""What our own code has of a connection of a world: a transport of frames, as over pipes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from dragoman.core.envelope import Frame
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.transports.base import Receiver
from dragoman.transports.lines import FramedReceiver, join_lines
from tests.world.streams import End

_AFTER_EOF_S = 3.0
"""How long a child is heard after its input was closed."""


class LineTransport:
    """Frames, one a line: what the transports of pipes and of children do, without their descriptors.

    Args:
        end: Of the connection.
        is_child: Whether the peer is a server, which is heard until it has gone, for a moment.
        limit_bytes: The longest line accepted.

    Attributes:
        is_paused: Whether the peer is not read.
    """

    def __init__(self, end: End, is_child: bool = False, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._end = end
        self._is_child = is_child
        self._limit_bytes = limit_bytes
        self._gone = asyncio.Event()
        self.is_paused = False

    def start(self, receiver: Receiver) -> None:
        framed = FramedReceiver(receiver, self._limit_bytes)
        self.data_received, self._tell = framed.data_received, framed.ended
        self.broken, self.pause_writing, self.resume_writing = (
            framed.broken,
            framed.pause_writing,
            framed.resume_writing,
        )
        self._end.start(self)

    def ended(self, reason: str) -> None:
        self._gone.set()
        self._tell(reason)

    def send(self, frames: Sequence[Frame]) -> None:
        self._end.write(join_lines(frames))

    @property
    def is_full(self) -> bool:
        """Whether the peer does not keep up."""
        return self._end.says.is_full

    def pause_reading(self) -> None:
        self.is_paused = True
        self._end.hears.pause(True)

    def resume_reading(self) -> None:
        self.is_paused = False
        self._end.hears.pause(False)

    def hurry(self) -> None: ...

    async def close(self) -> None:
        self._end.end()
        if self._is_child:
            self._end.hears.pause(False)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), _AFTER_EOF_S)
        self._end.close()
