"""What routines wait for without a task: something that comes once, and tells whoever waits.

Must not: know requests. A task for each request that waits would cost as much as all else that a call does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any


class Awaited:
    """What a routine waits for without a task; it comes once.

    Attributes:
        is_told: Whether it has come.
        resume: Called then, where somebody waits.
    """

    __slots__ = ("is_told", "resume")

    resume: Callable[[], None] | None

    def tell(self) -> None:
        """Let whoever waits go on."""
        self.is_told = True
        resume = self.resume
        if resume is not None:
            self.resume = None  # circles stay until somebody looks for such
            resume()

    def __await__(self) -> Generator[Any, None, None]:
        if not self.is_told:
            told = asyncio.Event()
            self.resume = told.set
            yield from told.wait().__await__()
