"""Work that may take for ever, beside the event loop: it waits for a person, or for a peer that says nothing."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def do_aside(work: Callable[[], T]) -> T:
    """Do in a thread what may take for ever, and give what comes of it; no end of the process waits for it."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[T] = loop.create_future()

    def settle(settled: Callable[[Any], None], outcome: object) -> None:
        if not found.done():
            settled(outcome)

    def run() -> None:
        try:
            told = found.set_result, work()
        except Exception as error:
            told = found.set_exception, error  # type: ignore[assignment]
        with contextlib.suppress(RuntimeError):  # the loop may have ended
            loop.call_soon_threadsafe(settle, *told)

    threading.Thread(target=run, name="dragoman-aside", daemon=True).start()
    return await found
