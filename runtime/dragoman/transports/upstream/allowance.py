"""How many bytes of incomplete answers may be held at once.

Lives here: which answer may be read further, and which stays in its socket. Must not: read. Called by `bodies`;
there is one for each transport to a server.

Theory of operation. An answer is passed on when it is complete; until then it is held. While all of them together hold
less than the limit, all are read side by side. Beyond the limit only the oldest is read: it will be complete, and then
released. A server that wants another of its answers to be read first would wait for ever. So if the oldest makes no
progress for a while, the next one is read too; a few times, not without end. So memory is bounded by the limit and a
few times the longest message.
"""

from __future__ import annotations

import asyncio
from itertools import takewhile
from types import TracebackType
from typing import Final

FREE_BYTES: Final = 512 * 1024
"""An answer that holds no more than this is not counted: nearly all are that short."""

_PASSED_OVER: Final = 3
_STALL_S: Final = 2.0


class Allowance:
    """What the answers of one server may hold.

    Args:
        limit_bytes: How much together, beside what the eldest holds.
        stall_s: How long the eldest may get no further before another one is read too.
    """

    def __init__(self, limit_bytes: int, stall_s: float = _STALL_S) -> None:
        self.limit_bytes = limit_bytes
        self.held = 0
        self._stall_s = stall_s
        self._leases: dict[Lease, None] = {}  # of those that are counted, the eldest first
        self._changed: asyncio.Event | None = None

    def lease(self) -> Lease:
        """Give an answer its part; to be used as a context."""
        return Lease(self)

    async def grow(self, lease: Lease, size: int) -> None:
        """Let an answer hold so much, as soon as it may."""
        self._note(lease, size)
        self._leases.setdefault(lease)
        while not self._may_go_on(lease):
            lease.waits = True
            self._changed = self._changed or asyncio.Event()
            try:
                async with asyncio.timeout(self._stall_s):
                    await self._changed.wait()
            except TimeoutError:
                pass
            finally:
                lease.waits = False
        lease.moved_at = asyncio.get_running_loop().time()

    def give_back(self, lease: Lease) -> None:
        """Record that an answer holds nothing any more."""
        if self._leases.pop(lease, self) is None:
            self._note(lease, 0)

    def _note(self, lease: Lease, size: int) -> None:
        less = size < lease.size
        self.held += size - lease.size
        lease.size = size
        if less and self._changed is not None:
            self._changed.set()  # whoever waits looks again, and waits for another one
            self._changed = None

    def _may_go_on(self, lease: Lease) -> bool:
        if self.held <= self.limit_bytes:
            return True
        stalled_since = asyncio.get_running_loop().time() - self._stall_s
        ahead = list(takewhile(lambda other: other is not lease, self._leases))
        return len(ahead) <= _PASSED_OVER and not any(one.waits or one.moved_at > stalled_since for one in ahead)


class Lease:
    """What one answer holds.

    Attributes:
        size: How much of it has come.
        moved_at: When it last got further, by the clock of the loop.
        waits: Whether it waits for others.
    """

    __slots__ = ("_allowance", "moved_at", "size", "waits")

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self.size = 0
        self.moved_at = 0.0
        self.waits = False

    async def hold(self, size: int) -> None:
        """Hold so much from here on, which may take until others hold less."""
        if size > FREE_BYTES:
            await self._allowance.grow(self, size)
        elif self.size:
            self.release()

    def release(self) -> None:
        """Hold nothing any more."""
        self._allowance.give_back(self)

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
