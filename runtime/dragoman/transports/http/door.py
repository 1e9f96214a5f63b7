"""Accepting connections: each is counted and has a deadline from the moment the system has accepted it.

Lives here: the accept loop, the limit, and TLS handshakes. Must not: speak HTTP (`guard`). Called by `serve`.

Theory of operation. asyncio's own servers report a TLS connection to its protocol only after the handshake. If a client
is silent before that, nobody counts or ends its connection. So connections are accepted here, and the handshake is part
of the time that the first request may take (`Patience.headers_s`). Up to `SURPLUS` connections beyond the limit are
answered with 503; further ones are closed without an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import socket
import ssl
from collections.abc import Callable
from typing import Final

from dragoman.transports.defects import describe
from dragoman.transports.http.refusals import Refusals

SURPLUS: Final = 64
"""How many connections beyond the limit are told so."""

_AT_ONCE: Final = 128
"""How many connections are accepted before everybody else gets a turn."""

_REST_S: Final = 1.0
"""How long nothing is accepted after the system had no descriptor or memory for a connection."""

Made = Callable[[bool, float, Callable[[], object]], asyncio.Protocol]
"""Makes the protocol of a connection. It is told whether the connection is one too many, when it was accepted, by the
loop's clock, and what to call as soon as it has it: from then on `count` has it too."""


class Door:
    """Accepts the connections of one listening socket.

    Args:
        listener: Listens already.
        tls: With the certificate; None for none.
        handshake_s: How long a TLS handshake may take.
        limit: How many connections may be open at once.
        count: Gives how many protocols have a connection.
        make: Makes a protocol.
        refusals: Who is turned away is noted here.
        ended: Called for each connection that ended without its protocol having had it.

    Attributes:
        tls: The same, for connections that come from now on.
    """

    def __init__(
        self,
        listener: socket.socket,
        tls: ssl.SSLContext | None,
        handshake_s: float,
        limit: int,
        count: Callable[[], int],
        make: Made,
        refusals: Refusals,
        ended: Callable[[], object] = lambda: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self.tls = tls
        self._handshake_s = handshake_s
        self._limit = limit
        self._count = count
        self._make = make
        self._refusals = refusals
        self._ended = ended
        self._tasks: set[asyncio.Task[None]] = set()
        self._arriving: dict[int, socket.socket] = {}
        self._numbers = itertools.count()  # descriptors are used again
        self._rest: asyncio.TimerHandle | None = None

    @property
    def arriving(self) -> int:
        """How many connections are accepted, and have no protocol yet that serves them."""
        return len(self._arriving)

    def open(self) -> None:
        """Begin to accept."""
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        """Accept nothing more, and cut off those that are not through their handshake."""
        if self._rest is not None:
            self._rest.cancel()
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()
        for connection in self._arriving.values():
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
            self._take(connection, str(peer[0]))

    def _pause(self, error: OSError) -> None:
        """Wait a while: the system has nothing left for a connection, and would say so again at once."""
        self._refusals.note("no connection can be accepted", f"no connection can be accepted: {describe(error)}")
        self._loop.remove_reader(self._listener.fileno())
        self._rest = self._loop.call_later(_REST_S, self.open)

    def _take(self, connection: socket.socket, peer: str) -> None:
        taken = self._count() + len(self._arriving)
        if taken >= self._limit:
            is_closed = taken >= self._limit + SURPLUS
            line = f"a connection from {peer} is {'closed' if is_closed else 'answered with 503'}"
            self._refusals.note("", f"{line}: {self._limit} are open, which is the limit", "--max-connections")
            if is_closed:
                connection.close()
                return
        connection.setblocking(False)
        number = next(self._numbers)
        self._arriving[number] = connection
        arrived = functools.partial(self._arriving.pop, number, None)
        protocol = self._make(taken >= self._limit, self._loop.time(), arrived)
        task = self._loop.create_task(self._admit(connection, protocol, peer, arrived))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _admit(
        self, connection: socket.socket, protocol: asyncio.Protocol, peer: str, arrived: Callable[[], object]
    ) -> None:
        """Give a connection to its protocol, once it is through the handshake."""
        patience_s = None if self.tls is None else self._handshake_s
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=self.tls, ssl_handshake_timeout=patience_s
            )
        except OSError as error:  # TLS errors are among them
            self._refusals.note(
                "connections without TLS handshake", f"a connection from {peer} ends in its TLS handshake: {error}"
            )
            self._ended()
        finally:
            arrived()
