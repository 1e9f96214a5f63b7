"""What the connections of one listening socket share, and how all of them end.

Lives here: values, and who is open. Must not: read or write (`connection`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.transports.defects import describe
from dragoman.transports.http.budget import Budget
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.refusals import Refusals

logger = logging.getLogger("dragoman.http")

_GLANCE_S: Final = 0.01
"""How often we look whether all connections have ended."""


@dataclass(slots=True)
class Site:
    """What the connections of one listening socket share.

    Attributes:
        app: What serves requests: our front, or any application of ASGI.
        config: Limits and patience.
        budget: What unfinished bodies may hold together.
        refusals: Who is refused here is noted there.
        ended: Called for each connection that has ended.
        state: What the application keeps of its lifespan.
        arriving: What is accepted, and has nobody yet who serves it.
        connections: Those that are open.
        tasks: What is being served in tasks of their own.
    """

    app: Any
    config: FrontConfig
    budget: Budget
    refusals: Refusals = field(default_factory=Refusals)
    ended: Callable[[], object] = lambda: None
    state: dict[str, Any] = field(default_factory=dict)
    arriving: dict[int, socket.socket] = field(default_factory=dict)
    connections: set[Any] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def close(self, patience_s: float) -> None:
        """End every connection: in order, if that does not take so long, in seconds."""
        for connection in list(self.connections):
            try:
                connection.shutdown()
            except Exception as error:  # one that is in a state that nobody thought of must not keep the others
                logger.error("internal error while a connection is closed: %s", describe(error))
                connection.transport.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while self.connections or self.tasks or self.arriving:
                    await asyncio.sleep(_GLANCE_S)
        for connection in list(self.connections):
            connection.transport.abort()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.sleep(0)  # for those that have been cut off to be told

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something in a task that is waited for at the end."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task
