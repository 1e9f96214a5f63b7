"""A server that is an ASGI application inside our own process: an app of FastMCP or of the SDK, without a port.

Lives here: its lifespan, and connections to it over pairs of sockets that nobody else can reach. Must not: know MCP:
it is a server at a URL for everything else. Called by programs that embed one:

    async with mount(app, "/mcp") as connect:
        await Proxy(ProxyConfig(), front, connect).run()
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from dragoman.errors import TransportClosed
from dragoman.transports.base import Transport
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.connection import ServedConnection
from dragoman.transports.http.exchange import Message
from dragoman.transports.http.site import Budget, Site
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream

ORIGIN: Final = "http://127.0.0.1:8000"
"""Whom an application believes to be: a name that the SDK's protection against foreign hosts lets pass."""


@asynccontextmanager
async def mount(
    app: Any, path: str = "/mcp", config: UpstreamConfig | None = None, *, drain_timeout_s: float = 5.0
) -> AsyncGenerator[Callable[[], Transport], None]:
    """Start an application, and give what opens transports to it; it is stopped at the end.

    Args:
        app: With the ASGI interface; its lifespan is run if it has one.
        path: Of its MCP endpoint.
        config: What is decided about connections to it; the URL is ours.
        drain_timeout_s: How long requests that are under way at the end may take, in seconds.

    Raises:
        TransportClosed: The application did not start.
    """
    served = _Served(app)
    await served.start()
    reached = dataclasses.replace(config or UpstreamConfig(""), url=ORIGIN + path, dial=served.dial)
    try:
        yield lambda: open_upstream(reached)
    finally:
        await served.stop(drain_timeout_s)


class _Served:
    """An application, and who is connected to it."""

    def __init__(self, app: Any) -> None:
        config = FrontConfig()
        self._site = Site(app, config, Budget(config.limits.memory_bytes, config.limits.body_bytes))
        self._heard: asyncio.Queue[Message] = asyncio.Queue()
        self._told: asyncio.Queue[Message] = asyncio.Queue()
        self._life = asyncio.ensure_future(self._live())

    async def start(self) -> None:
        if await self._pass("lifespan.startup") == "lifespan.startup.failed":
            raise TransportClosed("the mounted application", "it did not start: its lifespan failed")

    async def dial(self) -> socket.socket:
        """Open a connection; give our end of it."""
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)
        await asyncio.get_running_loop().connect_accepted_socket(lambda: ServedConnection(self._site), theirs)
        return ours

    async def stop(self, patience_s: float) -> None:
        await self._site.close(patience_s)
        await self._pass("lifespan.shutdown")

    async def _live(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self._site.state}
        with contextlib.suppress(Exception):  # so says an application that it has none
            await self._site.app(scope, self._heard.get, self._told.put)

    async def _pass(self, word: str) -> str:
        """Tell the application how far its life is; give what it says to that, nothing if it is over already."""
        self._heard.put_nowait({"type": word})
        answer = asyncio.ensure_future(self._told.get())
        await asyncio.wait({answer, self._life}, return_when=asyncio.FIRST_COMPLETED)
        return str(answer.result()["type"]) if answer.done() else ""
