"""The port of its own at which metrics are read.

Lives here: an ASGI application with one page, and its socket. Must not: know what is counted (`metrics`). Opened by
`dragoman.cli.metrics`.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from dragoman.transports.http.app import own_address
from dragoman.transports.http.config import Admission, FrontConfig
from dragoman.transports.http.door import Door
from dragoman.transports.http.exchange import (
    Disconnected,
    HttpRequest,
    Receive,
    RequestRefused,
    Scope,
    Send,
    Wire,
    read_headers,
)
from dragoman.transports.http.resource import find_path
from dragoman.transports.http.security import Doorkeeper
from dragoman.transports.http.site import Budget, Hold, Site

PATH = "/metrics"


class TextSite:
    """Serves one page of text to whoever asks.

    Args:
        write: Makes the text.
        content_type: Of the text.
        config: Which hosts may be named.
    """

    def __init__(self, write: Callable[[], bytes], content_type: bytes, config: FrontConfig) -> None:
        self._write = write
        self._type = content_type
        self._config = config
        self._gate = Doorkeeper(config.admission)
        self.budget = Budget(config.limits.memory_bytes, config.limits.body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, as ASGI 3 has it."""
        if scope["type"] != "http":
            return
        hold = Hold(self.budget, "")
        request = HttpRequest(Wire(scope, receive, send), hold)
        try:
            status, body, headers = self._answer(request)
            answer = request.reply(status, body, *headers)
            if answer is not None:
                await answer
        except (Disconnected, OSError):
            pass
        finally:
            request.wire.leave()
            hold.release()

    def _answer(self, request: HttpRequest) -> tuple[int, bytes, tuple[tuple[bytes, bytes], ...]]:
        scope = request.scope
        try:
            request.headers = read_headers(scope, self._config.limits)
            host = self._gate.check_host(request.headers, own_address(scope))
            self._gate.check_origin(request.headers, scope["scheme"], host)
            if find_path(scope) != PATH:
                raise RequestRefused(404, f"there is nothing at this path; metrics are at {PATH}")
            if request.method not in ("GET", "HEAD"):
                raise RequestRefused(405, "expected GET", (b"allow", b"GET, HEAD"))
        except RequestRefused as refused:
            text = (b"content-type", b"text/plain; charset=utf-8")
            return refused.status, f"{refused.reason}\n".encode(), (text, *refused.headers)
        body = b"" if request.method == "HEAD" else self._write()
        return 200, body, ((b"content-type", self._type), (b"cache-control", b"no-store"))


@contextlib.asynccontextmanager
async def served_at(
    listener: socket.socket, hosts: tuple[str, ...], write: Callable[[], bytes], content_type: bytes
) -> AsyncIterator[None]:
    """Serve a text at `/metrics` of this socket, as long as this is open."""
    defaults = FrontConfig()
    limits = replace(defaults.limits, body_bytes=4096, connections=64)
    config = replace(defaults, admission=Admission(hosts=hosts), limits=limits)
    page = TextSite(write, content_type, config)
    site = Site(page, config, page.budget)
    door = Door(listener, None, site)
    door.open()
    try:
        yield
    finally:
        door.close()
        await site.close(config.patience.closing_s)
