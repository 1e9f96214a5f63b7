"""The notifications of a server, as a program reads them with `async for`.

Lives here: a queue that never grows beyond its limit. Must not: read frames (`client`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

Takes = Callable[[Mapping[str, Any], object], bool]
"""Whether a notification is taken: its frame, and the stream that it names, where it names one."""

LIMIT: Final = 1000
"""How many notifications may wait for a program that does not read them; then the oldest is discarded."""


def take_all(body: Mapping[str, Any], subscription: object) -> bool:
    """Take every notification."""
    return True


class Notices:
    """An asynchronous iterator that ends with the session.

    Args:
        discard: Told that a notification was thrown away, because nobody read it in time.
        takes: Which it is given.
    """

    def __init__(self, discard: Callable[[str, str], None], takes: Takes) -> None:
        self._discard = discard
        self.takes = takes
        self._waiting: deque[Any] = deque()
        self._changed = asyncio.Event()
        self._ended = False

    def put(self, notice: Any) -> None:
        """Add one."""
        if len(self._waiting) == LIMIT:
            self._waiting.popleft()
            self._discard("a notification", f"{LIMIT} wait already that the program has not read")
        self._waiting.append(notice)
        self._changed.set()

    def end(self) -> None:
        """Nothing more comes."""
        self._ended = True
        self._changed.set()

    def __aiter__(self) -> Notices:
        return self

    async def __anext__(self) -> Any:
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.popleft()
