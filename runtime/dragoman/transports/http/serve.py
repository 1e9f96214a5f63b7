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
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any, Final

import uvicorn

from dragoman.errors import TransportClosed
from dragoman.transports.defects import describe as describe_defect
from dragoman.transports.defects import fold_trace, log_defects
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.config import Limits, Patience
from dragoman.transports.http.door import Door
from dragoman.transports.http.guard import GuardedProtocol, guard
from dragoman.transports.http.refusals import Refusals
from dragoman.transports.keepalive import keep_alive

logger = logging.getLogger("dragoman.http")

_BACKLOG: Final = 2048
"""How many connections the system keeps until we take them."""

_GLANCE_S: Final = 0.01
"""How often we look whether all connections have ended."""


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
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise TransportClosed(f"{address.host}:{address.port}", f"cannot listen: {error.strerror}") from error
    return listener


def describe(listener: socket.socket, address: Address, path: str) -> str:
    """Give the URL at which a listening socket is reached."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{address.scheme}://{host}:{listener.getsockname()[1]}{path}"


class _Server(uvicorn.Server):
    """uvicorn, but signals are for whoever runs us, it takes in connections by our door, and it stops when told to.

    Args:
        config: Loaded.
        tls: With the certificate; None for none.
        limits: Of the front.
        patience: Of the front.
        refusals: Who is turned away is noted here.
        ended: Called for each connection that has ended.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        tls: ssl.SSLContext | None,
        limits: Limits,
        patience: Patience,
        refusals: Refusals,
        ended: Callable[[], object],
    ) -> None:
        super().__init__(config)
        self.stopping = asyncio.Event()
        self._tls = tls
        self._limits = limits
        self._patience = patience
        self._refusals = refusals
        self._ended = ended
        self._door: Door

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        assert sockets is not None
        self.servers = []
        self._door = Door(
            sockets[0],
            self._tls,
            self._patience.headers_s,
            self._limits.connections,
            lambda: len(self.server_state.connections),
            self._make_protocol,
            self._refusals,
            self._ended,
        )
        self._door.open()
        self.started = True

    def _make_protocol(self, is_surplus: bool, accepted_at: float, arrived: Callable[[], object]) -> asyncio.Protocol:
        protocol: GuardedProtocol = self.config.http_protocol_class(  # type: ignore[call-arg,assignment]
            config=self.config, server_state=self.server_state, app_state={}
        )
        protocol.is_surplus, protocol.accepted_at, protocol.arrived = is_surplus, accepted_at, arrived
        protocol.ended = self._ended
        return protocol

    def change_tls(self, tls: ssl.SSLContext | None) -> None:
        """Use another certificate for connections that come from now on."""
        self._door.tls = tls

    async def main_loop(self) -> None:
        while not self.stopping.is_set():
            await self.on_tick(0)  # keeps the Date header of answers up to date
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self.stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End every connection: in order, if that does not take long."""
        self._door.close()
        state = self.server_state
        for connection in list(state.connections):
            try:
                connection.shutdown()
            except Exception as error:  # one that is in a state that nobody thought of must not keep the others
                logger.error("internal error while a connection is closed: %s", describe_defect(error))
                connection.transport.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience.closing_s):
                while state.connections or state.tasks or self._door.arriving:
                    await asyncio.sleep(_GLANCE_S)
        for connection in list(state.connections):
            connection.transport.abort()
        for task in list(state.tasks):
            task.cancel()
        await asyncio.sleep(0)  # for those that have been cut off to be told


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
        config = uvicorn.Config(
            front,
            http=guard(front),
            ws=asyncio.Protocol,  # there is one; `guard` hands over to it
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=75,
        )
        share_log()
        config.load()
        self._address = address
        self._server = _Server(
            config,
            _read_certificate(address),
            limits,
            patience,
            front.refusals,
            front.sessions.tidying.count_connection,
        )
        self._drain = asyncio.Event()
        self._stop = asyncio.Event()
        self._reason = "the server is stopping"

    def renew_certificate(self) -> None:
        """Read the certificate and its key again, for connections that come from now on.

        Raises:
            OSError: They cannot be used; then those from before stay.
        """
        self._server.change_tls(_read_certificate(self._address))

    def drain(self, reason: str) -> None:
        """End as `stop` does, but let what is under way be answered before; new sessions are refused meanwhile."""
        self._reason = reason
        self._drain.set()

    def stop(self, reason: str) -> None:
        """End in order: every session is told and gone, then every connection, then the server."""
        self._reason = reason
        self._stop.set()
        self._drain.set()

    async def run(self, on_ready: Callable[[], None], on_stop: Callable[[], Awaitable[None]] | None = None) -> None:
        """Serve until told to stop.

        Args:
            on_ready: Called once connections are taken.
            on_stop: What else ends then, at the same time as the sessions.
        """
        log_defects(asyncio.get_running_loop())
        serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0)
        on_ready()
        await _wait_for_one(serving, self._drain.wait())
        if not self._stop.is_set():
            await _wait_for_one(self._stop.wait(), self._front.drain(self._reason))
        await asyncio.gather(self._front.close(self._reason), *([] if on_stop is None else [on_stop()]))
        self._server.stopping.set()
        await serving


def _read_certificate(address: Address) -> ssl.SSLContext | None:
    if address.certificate is None:
        return None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(address.certificate, address.key)
    return tls


async def _wait_for_one(*ends: Coroutine[Any, Any, object] | asyncio.Task[None]) -> None:
    """Wait until one of these is over; give up those that began with this."""
    tasks = [asyncio.ensure_future(end) for end in ends]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task, end in zip(tasks, ends, strict=True):
        if task is not end:
            task.cancel()


def share_log() -> None:
    """Let the warnings of uvicorn and of the event loop go where ours go, on one line each."""
    for name in ("uvicorn.error", "asyncio"):
        theirs = logging.getLogger(name)
        theirs.setLevel(logging.WARNING)
        theirs.handlers = list(logging.getLogger("dragoman").handlers)
        theirs.propagate = not theirs.handlers
        theirs.addFilter(fold_trace)
