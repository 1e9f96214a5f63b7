"""Accepting connections: each is counted and has a deadline from the moment the system has accepted it.

Lives here: the accept loop, the limit, and TLS handshakes. Must not: speak HTTP (`connection`). Called by `serve`.

Theory of operation. asyncio's own servers report a TLS connection to its protocol only after the handshake. If a client
is silent before that, nobody counts or ends its connection. So connections are accepted here, and the handshake is part
of the time that the first request may take (`Patience.headers_s`). Up to `SURPLUS` connections beyond the limit are
answered with 503; further ones are closed without an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import ssl
import sys
from typing import Final

from dragoman.transports.countdown import Countdown
from dragoman.transports.defects import describe
from dragoman.transports.http.connection import ServedConnection
from dragoman.transports.http.site import Site

SURPLUS: Final = 64
"""How many connections beyond the limit are told so."""

_AT_ONCE: Final = 128
"""How many connections are accepted before everybody else gets a turn."""

_REST_S: Final = 1.0
"""How long nothing is accepted after the system had no descriptor or memory for a connection."""


class Door:
    """Accepts the connections of one listening socket.

    Args:
        listener: Listens already.
        tls: With the certificate; None for none.
        site: What they share.

    Attributes:
        tls: The same, for connections that come from now on.
    """

    def __init__(self, listener: socket.socket, tls: ssl.SSLContext | None, site: Site) -> None:
        self._listener = listener
        self.tls = tls
        self._site = site
        self._numbers = itertools.count()  # descriptors are used again
        self._rest = Countdown()
        self._accepting: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to accept."""
        self._loop = asyncio.get_running_loop()
        self._listener.setblocking(False)
        if sys.platform == "win32":
            self._accepting = self._loop.create_task(self._accept_in_turn())
        else:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        """Accept nothing more, and cut off those that are not through their handshake."""
        self._rest.stop()
        self._stop()
        self._listener.close()
        for connection in self._site.arriving.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # the handshake ends by that: the descriptor is the loop's

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, peer = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            self._take(connection, str(peer[0]) if peer else "this machine")  # a Unix socket's has no name

    async def _accept_in_turn(self) -> None:
        """Accept where a loop does it only by itself: on Windows."""
        while True:
            try:
                connection, peer = await self._loop.sock_accept(self._listener)
            except OSError as error:
                self._accepting = None
                self._pause(error)
                return
            self._take(connection, str(peer[0]))

    def _stop(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
        elif sys.platform != "win32":
            self._loop.remove_reader(self._listener.fileno())

    def _pause(self, error: OSError) -> None:
        """Wait a while: the system has nothing left for a connection, and would say so again at once."""
        self._site.refusals.note("no connection can be accepted", f"no connection can be accepted: {describe(error)}")
        self._stop()
        self._rest.set(_REST_S, self.open)

    def _take(self, connection: socket.socket, peer: str) -> None:
        taken, limit = len(self._site.connections) + len(self._site.arriving), self._site.config.limits.connections
        if taken >= limit:
            is_closed = taken >= limit + SURPLUS
            line = f"a connection from {peer} is {'closed' if is_closed else 'answered with 503'}"
            self._site.refusals.note("", f"{line}: {limit} are open, which is the limit", "--max-connections")
            if is_closed:
                connection.close()
                return
        connection.setblocking(False)
        number = next(self._numbers)
        self._site.arriving[number] = connection
        protocol = ServedConnection(self._site, taken >= limit, self._loop.time(), number)
        self._site.run(self._admit(connection, protocol, peer, number))

    async def _admit(self, connection: socket.socket, protocol: ServedConnection, peer: str, number: int) -> None:
        """Give a connection to its protocol, once it is through the handshake."""
        patience_s = None if self.tls is None else self._site.config.patience.headers_s
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=self.tls, ssl_handshake_timeout=patience_s
            )
        except OSError as error:  # TLS errors are among them
            self._site.refusals.note(
                "connections without TLS handshake", f"a connection from {peer} ends in its TLS handshake: {error}"
            )
            self._site.ended()
        finally:
            self._site.arriving.pop(number, None)
