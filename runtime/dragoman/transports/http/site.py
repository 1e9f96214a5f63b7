"""What the connections of one listening socket share, and how all of them end.

Lives here: values, who is open, and how much of unfinished messages may be kept, for all clients together and for each.
Must not: read or write (`connection`), or refuse anything.

Theory of operation. A limit for one message does not bound a hundred messages that never end. So every connection has a
`Hold`: what it has received and nobody has taken yet. The first 64 KiB of a message are free: they cost no more than
the connection itself, and most messages are shorter. Everything beyond counts for the client and for the total. A
message for which there is no room is refused. Nobody waits for room: several clients that each keep half a message and
wait for the others would wait for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.transports.defects import describe
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.refusals import Refusals

logger = logging.getLogger("dragoman.http")

_GLANCE_S: Final = 0.01
"""How often we look whether all connections have ended."""


FREE_BYTES: Final = 64 * 1024
"""How much of one message counts towards no sum."""

MAX_MEMORY: Final = "--max-memory"
"""The option that sets the whole."""

SHARES: Final = 2
"""The part of the whole that one client may take: half of it, so that it alone locks nobody out."""


class Budget:
    """What all unfinished messages of one front may hold together.

    Args:
        total_bytes: For all of them.
        message_bytes: The longest message: one that is alone always has room.
    """

    __slots__ = ("_by_owner", "_share", "_total", "taken")

    def __init__(self, total_bytes: int, message_bytes: int) -> None:
        self._total = max(total_bytes, message_bytes)
        self._share = max(self._total // SHARES, message_bytes)
        self._by_owner: dict[str, int] = {}
        self.taken = 0

    def of(self, owner: str) -> int:
        """Return how much one client holds."""
        return self._by_owner.get(owner, 0)

    def move(self, owner: str, size: int) -> None:
        """Count bytes for a client, or, below zero, no longer."""
        self.taken += size
        left = self._by_owner.get(owner, 0) + size
        if left:
            self._by_owner[owner] = left
        else:
            self._by_owner.pop(owner, None)

    def excess(self, owner: str, size: int) -> Excess | None:
        """Say whose limit so many more bytes would break, if any."""
        if self.taken + size > self._total:
            return Excess(503, f"all unfinished messages together may hold {self._total} bytes")
        if self.of(owner) + size > self._share:
            return Excess(429, f"the unfinished messages of one client may hold {self._share} bytes")
        return None


class Excess(Exception):
    """There is no room for more of a message.

    Args:
        status: The HTTP status that says so.
        reason: For a person.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Hold:
    """What one connection holds of what nobody has taken yet.

    Args:
        budget: Of the front.
        owner: Whose it is: an address, until it is known to be a principal's.
    """

    __slots__ = ("_budget", "_owner", "size")

    def __init__(self, budget: Budget, owner: str) -> None:
        self._budget = budget
        self._owner = owner
        self.size = 0

    def belong(self, owner: str) -> None:
        """Count this for somebody else from now on."""
        if owner != self._owner:
            size = self.size
            self._budget.move(self._owner, -size)
            self._owner = owner
            self._budget.move(owner, size)

    def resize(self, size: int) -> None:
        """Hold so much.

        Raises:
            Excess: There is no room for that; what was held before still is.
        """
        more = size - self.size
        if more > 0 and (excess := self._budget.excess(self._owner, more)) is not None:
            raise excess
        if more:
            self._budget.move(self._owner, more)
            self.size = size

    def release(self) -> None:
        """Hold nothing."""
        if self.size:
            self._budget.move(self._owner, -self.size)
            self.size = 0


@dataclass(slots=True)
class Site:
    """What the connections of one listening socket share.

    Attributes:
        app: What serves requests: our front, or any application of ASGI.
        config: Limits and patience.
        budget: What unfinished bodies may hold together.
        refusals: Who is refused here is noted there. Only those of a front have limits that options set.
        ended: Called for each connection that has ended.
        read_scope: Where other instances of the proxy hand requests on: reads where one has come from.
        state: What the application keeps of its lifespan.
        arriving: What is accepted, and has nobody yet who serves it.
        connections: Those that are open.
        tasks: What is being served in tasks of their own.
    """

    app: Any
    config: FrontConfig
    budget: Budget
    refusals: Refusals = field(default_factory=lambda: Refusals(names_options=False))
    ended: Callable[[], object] = lambda: None
    read_scope: Callable[[dict[str, Any]], MutableMapping[str, Any]] | None = None
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
