"""A Starlette application with an MCP endpoint of its own, in front of a server that speaks stdio.

    python examples/embedded.py PORT COMMAND ARG …

Clients use http://127.0.0.1:PORT/tools/mcp; `/` is the application's own. Needs Starlette; FastAPI works the same way,
with `app.mount("/tools", front)`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncGenerator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.base import Transport
from dragoman.transports.http.app import HttpFront
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildTransport


def make_app(command: list[str]) -> Starlette:
    """Make the application."""

    def connect() -> Transport:
        return ChildTransport(spawn(command))

    front = HttpFront(lambda transport, caller: Proxy(ProxyConfig(), transport, connect))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None, None]:
        yield
        await front.close()

    async def welcome(request: Request) -> PlainTextResponse:
        return PlainTextResponse("MCP is at /tools/mcp\n")

    return Starlette(routes=[Route("/", welcome), Mount("/tools", app=front)], lifespan=lifespan)


if __name__ == "__main__":
    uvicorn.run(make_app(sys.argv[2:]), port=int(sys.argv[1]), timeout_graceful_shutdown=3)
