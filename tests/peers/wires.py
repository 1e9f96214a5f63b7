"""How the peer programs meet: stdio, Streamable HTTP, HTTP+SSE and WebSocket, as far as a release has them.

Lives here: opening a client's two streams, and serving a server's sessions, on each transport, by the release's own
code. Runs under every release in `requirements/`; imports nothing of Dragoman. Called by `client.py` and `server.py`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator
from typing import Any

from mcp import StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from sdk import speaks

HAS_STREAMABLE_HTTP = speaks("2025-03-26")
"""Release 1.6.0 has HTTP+SSE only."""


@contextlib.asynccontextmanager
async def connect(over: str, target: list[str]) -> AsyncIterator[tuple[Any, Any]]:
    """Open the transport `over` to a server command (`stdio`) or URL (`http`, `sse`, `ws`); give the two streams."""
    if over == "stdio":
        parameters = StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
        opening: Any = stdio_client(parameters, errlog=sys.stderr)
    elif over == "sse":
        opening = sse_client(target[0])
    elif over == "ws":
        from mcp.client.websocket import websocket_client

        opening = websocket_client(target[0])
    else:
        from mcp.client.streamable_http import streamablehttp_client

        opening = streamablehttp_client(target[0])
    async with opening as streams:
        yield streams[0], streams[1]


async def serve_stdio(server: Any) -> None:
    """Serve one session on stdin and stdout until the client closes it."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_network(server: Any) -> None:
    """Serve `/mcp`, `/sse` and `/ws` on a free loopback port until the end; the first line on stdout is the address."""
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(_app(server), log_level="error", lifespan="on", timeout_graceful_shutdown=1)
    web = uvicorn.Server(config)
    print(f"listening on 127.0.0.1:{listener.getsockname()[1]}", flush=True)
    await web.serve(sockets=[listener])


def _app(server: Any) -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Mount, Route, WebSocketRoute

    sse = SseServerTransport("/messages/")

    async def serve_sse(scope: Any, receive: Any, send: Any) -> None:
        async with sse.connect_sse(scope, receive, send) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    async def serve_websocket(websocket: Any) -> None:
        from mcp.server.websocket import websocket_server

        async with websocket_server(websocket.scope, websocket.receive, websocket.send) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    routes: list[Any] = [
        Route("/sse", _Application(serve_sse), methods=["GET"]),
        Mount("/messages/", sse.handle_post_message),
        WebSocketRoute("/ws", serve_websocket),
    ]
    if not HAS_STREAMABLE_HTTP:
        return Starlette(routes=routes)
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    manager = StreamableHTTPSessionManager(server)
    routes.append(Route("/mcp", _Application(manager.handle_request)))
    return Starlette(routes=routes, lifespan=lambda _: manager.run())


class _Application:
    """An ASGI function as an object, which a route takes as it is; it would wrap a bare function."""

    def __init__(self, function: Any) -> None:
        self.function = function

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.function(scope, receive, send)
