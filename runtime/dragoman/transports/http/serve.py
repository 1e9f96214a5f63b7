"""Running a front by itself, on a port of its own.

Lives here: the listening socket, the server (uvicorn) and the order in which all of it ends. Must not: read flags
(`cli.listen`). The server and uvloop are imported here, so only those who serve pay for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any

import uvicorn

from dragoman.errors import TransportClosed
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.guard import guard
from dragoman.transports.keepalive import keep_alive


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen.

    Attributes:
        host: A name or an address.
        port: 0 picks a free one.
        certificate: The file with the certificate chain, in PEM; without one there is no TLS.
        key: The file with its key, if it is not in the same.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: str | None = None
    key: str | None = None

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "http" if self.certificate is None else "https"


def bind(address: Address) -> socket.socket:
    """Open the listening socket.

    Raises:
        TransportClosed: The address is taken, not ours, or unknown.
    """
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        # asyncio switches Nagle's algorithm off only where the protocol is named, as `socket.create_server` does not:
        # every answer would wait 40 ms for an acknowledgement.
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise TransportClosed(f"{address.host}:{address.port}", f"cannot listen: {error.strerror}") from error
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keep_alive(listener)
        listener.bind(where)
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise TransportClosed(f"{address.host}:{address.port}", f"cannot listen: {error.strerror}") from error
    return listener


def describe(listener: socket.socket, address: Address, path: str) -> str:
    """Give the URL at which a listening socket is reached."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{address.scheme}://{host}:{listener.getsockname()[1]}{path}"


class _Server(uvicorn.Server):
    """uvicorn, but signals are for whoever runs us, and it stops at once when told to."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        while not self.stopping.is_set():
            await self.on_tick(0)  # keeps the Date header of answers up to date
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self.stopping.wait()


class HttpServer:
    """A front on a port.

    Args:
        front: What to serve.
        listener: From `bind`.
        address: With the certificate, if there is one.
    """

    def __init__(self, front: HttpFront, listener: socket.socket, address: Address) -> None:
        self._front = front
        self._listener = listener
        limits, patience = front.config.limits, front.config.patience
        options: dict[str, Any] = {"ssl_certfile": address.certificate, "ssl_keyfile": address.key}
        config = uvicorn.Config(
            front,
            http=guard(front.config),
            ws=_open_websocket,  # type: ignore[arg-type]  # whatever makes a protocol will do
            ws_max_size=limits.body_bytes,
            ws_ping_interval=patience.keepalive_s,
            ws_ping_timeout=patience.stall_s,
            ws_per_message_deflate=False,  # a small message must not unfold into a large one
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=limits.connections,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=max(1, round(patience.closing_s)),
            **{name: value for name, value in options.items() if value is not None},
        )
        share_log()
        config.load()  # reads the certificate: better now than at the first connection
        self._server = _Server(config)
        self._stop = asyncio.Event()
        self._reason = "the server is stopping"

    def stop(self, reason: str) -> None:
        """End in order: every session is told and gone, then every connection, then the server."""
        self._reason = reason
        self._stop.set()

    async def run(self, on_ready: Callable[[], None], on_stop: Callable[[], Awaitable[None]] | None = None) -> None:
        """Serve until told to stop.

        Args:
            on_ready: Called once connections are taken.
            on_stop: What else ends then, at the same time as the sessions.
        """
        serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0)
        on_ready()
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await asyncio.gather(self._front.close(self._reason), *([] if on_stop is None else [on_stop()]))
        self._server.stopping.set()
        await serving


def _open_websocket(**about: Any) -> asyncio.Protocol:
    """Give the protocol of a WebSocket connection; imported at the first one, for most servers never see any."""
    from dragoman.transports.http.guard_websocket import GuardedWebSocket

    return GuardedWebSocket(**about)


def share_log() -> None:
    """Let uvicorn's warnings go where ours go."""
    theirs = logging.getLogger("uvicorn.error")
    theirs.setLevel(logging.WARNING)
    theirs.handlers = list(logging.getLogger("dragoman").handlers)
    theirs.propagate = not theirs.handlers
    theirs.addFilter(_leave_out)


def _leave_out(record: logging.LogRecord) -> bool:
    """Give what a client sent one line: a trace is for defects of ours, and a refused or cut connection is none."""
    if str(record.msg).startswith("ASGI callable returned without completing"):
        return False
    if record.exc_info and isinstance(record.exc_info[1], UnicodeDecodeError):
        record.exc_info = None
    return True


def choose_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """Give what makes the event loop: uvloop's where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
