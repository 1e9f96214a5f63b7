"""A server that is an ASGI application inside our own process: an app of FastMCP or of the SDK, without a port.

Lives here: its lifespan, and connections to it over pairs of sockets that nobody else can reach. Must not: know MCP:
it is a server at a URL for everything else. Called by programs that embed one:

    async with mount(app, "/mcp") as connect:
        await Proxy(ProxyConfig(), front, connect).run()
"""

from __future__ import annotations

import asyncio
import dataclasses
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import uvicorn
from uvicorn.server import ServerState

from dragoman.errors import TransportClosed
from dragoman.transports.base import Transport
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream

ORIGIN: Final = "http://127.0.0.1:8000"
"""Whom an application believes to be: a name that the SDK's protection against foreign hosts lets pass."""

_GLANCE_S: Final = 0.01


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
        # What it logs and how it starts is its own affair.
        self._config = uvicorn.Config(app, log_config=None, access_log=False, ws="none", server_header=False)
        self._config.load()
        self._lifespan = self._config.lifespan_class(self._config)
        self._state = ServerState()

    async def start(self) -> None:
        await self._lifespan.startup()
        if self._lifespan.should_exit:
            raise TransportClosed("the mounted application", "it did not start: its lifespan failed")

    async def dial(self) -> socket.socket:
        """Open a connection; give our end of it."""
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)
        await asyncio.get_running_loop().connect_accepted_socket(self._make_protocol, theirs)
        return ours

    def _make_protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self._config.http_protocol_class(  # type: ignore[call-arg]
            config=self._config, server_state=self._state, app_state=self._lifespan.state
        )
        return made

    async def stop(self, patience_s: float) -> None:
        for connection in list(self._state.connections):
            connection.shutdown()
        end = asyncio.get_running_loop().time() + patience_s
        while (self._state.connections or self._state.tasks) and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_GLANCE_S)
        for task in list(self._state.tasks):
            task.cancel()
        await self._lifespan.shutdown()
