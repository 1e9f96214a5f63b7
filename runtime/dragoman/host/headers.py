"""Headers of middleware for a server: handed to the transports that have some, and refused for the others.

Lives here: what opens such a transport. Must not: ask middleware (`transports.upstream.heads`). Called by `proxy`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.envelope import Frame
from dragoman.transports.base import Receiver, Transport

if TYPE_CHECKING:
    from dragoman.middleware import HeaderMiddleware

REASON: Final = "a middleware gives headers, and this server is not reached over HTTP: there is nowhere to put them"


def with_headers(connect: Callable[[], Transport], middleware: Sequence[HeaderMiddleware]) -> Callable[[], Transport]:
    """Return what opens a transport that sends these headers, too.

    Args:
        connect: Opens a transport to the server.
        middleware: Asked before each request over HTTP.
    """

    def open_transport() -> Transport:
        transport = connect()
        add_headers: Any = getattr(transport, "add_headers", None)
        if add_headers is None:
            return UnusableTransport(transport)
        add_headers(middleware)
        return transport

    return open_transport


class UnusableTransport:
    """A transport that is started and closed, as a child process needs that to end, and not used in between.

    Args:
        inner: What it stands for.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.pause_reading = inner.pause_reading
        self.resume_reading = inner.resume_reading
        self.hurry = inner.hurry
        self.close = inner.close

    def start(self, receiver: Receiver) -> None:
        """Say that nothing comes, and why."""
        self._inner.start(receiver)
        asyncio.get_running_loop().call_soon(receiver.ended, REASON)

    def send(self, frames: Sequence[Frame]) -> None:
        """The server is told nothing."""
