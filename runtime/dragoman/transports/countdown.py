"""A timer that may be set, and may be taken back: one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Countdown:
    """Calls something later, unless it is stopped or set anew before.

    Attributes:
        is_set: Whether something is still to be called.
    """

    __slots__ = ("_handle", "is_set")

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None
        self.is_set = False

    def set(self, after_s: float, call: Callable[[], object]) -> None:
        """Call this after so many seconds, and not what was to be called before."""
        self.stop()
        self._handle, self.is_set = asyncio.get_running_loop().call_later(after_s, self._ring, call), True

    def stop(self) -> None:
        """Call nothing."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self.is_set = None, False

    def _ring(self, call: Callable[[], object]) -> None:
        self._handle, self.is_set = None, False
        call()
