"""Running a front by itself, on a port of its own.

Lives here: the listening socket, and the order in which all of it ends. Must not: read flags (`cli.listen`). What reads
HTTP is imported from here, so only those who serve pay for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from dragoman.errors import TransportClosed
from dragoman.transports.defects import log_defects
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.door import Door
from dragoman.transports.http.site import Site
from dragoman.transports.keepalive import keep_alive
from dragoman_spec.record import record

logger = logging.getLogger("dragoman.http")

_BACKLOG: Final = 2048
"""How many connections the system keeps until we take them."""


@record
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


def bind(address: Address, shares_port: bool = False) -> socket.socket:
    """Open the listening socket.

    Args:
        address: Where.
        shares_port: Whether other processes of ours listen there, too; the system chooses one for each connection.

    Raises:
        TransportClosed: The address is taken, not ours, or unknown.
    """
    host = address.host.encode() if address.host.isascii() else address.host  # no name is to be put in another alphabet
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, address.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        # asyncio switches Nagle's algorithm off only where the protocol is named, as `socket.create_server` does not:
        # every answer would wait 40 ms for an acknowledgement.
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise TransportClosed(f"{address.host}:{address.port}", f"cannot listen: {error.strerror}") from error
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port and sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        keep_alive(listener)
        listener.bind(where)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise TransportClosed(f"{address.host}:{address.port}", f"cannot listen: {error.strerror}") from error
    return listener


def describe(listener: socket.socket, address: Address, path: str) -> str:
    """Return the URL at which a listening socket is reached."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{address.scheme}://{host}:{listener.getsockname()[1]}{path}"


class HttpServer:
    """A front on a port.

    Args:
        front: What to serve.
        listener: From `bind`.
        address: With the certificate, if there is one.

    Attributes:
        site: What its connections share.
    """

    def __init__(self, front: HttpFront, listener: socket.socket, address: Address) -> None:
        share_log()
        ended = front.sessions.tidying.count_connection
        self.site = Site(front, front.config, front.budget, front.refusals, ended)
        self._front = front
        self._address = address
        self._door = Door(listener, read_certificate(address), self.site)
        self._drain = asyncio.Event()
        self._stop = asyncio.Event()
        self._reason = "the server is stopping"

    def renew_certificate(self) -> None:
        """Read the certificate and its key again, for connections that come from now on.

        Raises:
            OSError: They cannot be used; then those from before stay.
        """
        self._door.tls = read_certificate(self._address)

    def drain(self, reason: str) -> None:
        """End as `stop` does, but let what is under way be answered before; new sessions are refused meanwhile.

        Before that everybody is served as before for `Patience.notice_s`, and only `/readyz` says what is to come.
        """
        self._reason = reason
        self._drain.set()

    def stop(self, reason: str) -> None:
        """End in order: every session is told and gone, then every connection, then the server."""
        self._stop.set()
        self.drain(reason)

    async def run(self, on_ready: Callable[[], None], on_stop: Callable[[], Awaitable[None]] | None = None) -> None:
        """Serve until told to stop.

        Args:
            on_ready: Called once connections are taken.
            on_stop: What else ends then, at the same time as the sessions.
        """
        log_defects(asyncio.get_running_loop())
        self._door.open()
        on_ready()
        await self._drain.wait()
        notice_s = self._front.config.patience.notice_s
        if notice_s and not self._stop.is_set():
            logger.warning("%s: from %g s on, no new sessions are taken", self._reason, notice_s)
            self._front.give_notice()
            await _wait_for_one(self._stop.wait(), asyncio.sleep(notice_s))
        if not self._stop.is_set():
            await _wait_for_one(self._stop.wait(), self._front.drain(self._reason))
        await asyncio.gather(self._front.close(self._reason), *([] if on_stop is None else [on_stop()]))
        self._door.close()
        await self.site.close(self._front.config.patience.closing_s)


def read_certificate(address: Address) -> ssl.SSLContext | None:
    """Read the certificate of an address and its key; None where it has none.

    Raises:
        OSError: They cannot be used.
    """
    if address.certificate is None:
        return None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(address.certificate, address.key)
    return tls


async def _wait_for_one(*ends: Coroutine[Any, Any, object]) -> None:
    """Wait until one of these is over, and give up the others."""
    tasks = [asyncio.ensure_future(end) for end in ends]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


def share_log() -> None:
    """Let the warnings of the event loop go where ours go, on one line each."""
    theirs = logging.getLogger("asyncio")
    theirs.setLevel(logging.WARNING)
    theirs.handlers = list(logging.getLogger("dragoman").handlers)
    theirs.propagate = not theirs.handlers
