"""A client of MCP over WebSocket: one text message a frame, subprotocol `mcp`. Not in the specification; SDKs have it.

Lives here: the one reader of a connection, and what is written before it is open. Must not: look into frames beyond
their ids, or know WebSocket's own (`transports.websocket`). Imported by `connect` when a URL asks for it, not before.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from dragoman.core.envelope import Frame
from dragoman.errors import TransportError
from dragoman.transports.base import HttpHeads, Receiver
from dragoman.transports.upstream.config import HURRIED_S, UpstreamConfig, origin_of
from dragoman.transports.upstream.connection_pool import ConnectionPool
from dragoman.transports.upstream.connector import explain
from dragoman.transports.upstream.lanes import HIGH_WATER_BYTES
from dragoman.transports.upstream.link import Link
from dragoman.transports.upstream.upgrade import PING_S, open_websocket
from dragoman.transports.upstream.waiting import Waiting
from dragoman.transports.websocket import WebSocketConnection

if TYPE_CHECKING:
    from dragoman.middleware import HeaderMiddleware

logger = logging.getLogger("dragoman.upstream")

SUBPROTOCOL: Final = "mcp"


class WebSocketUpstream:
    """A server behind a ws or wss URL.

    Args:
        config: Where, and how patient.
        ping_s: How often a silent server is pinged.

    Attributes:
        on_heads: Told the headers of the exchange that opens it; None where nobody wants to know.
        was_asked: Whether it failed because a person was asked to sign in, in vain.
    """

    on_heads: Callable[[HttpHeads], None] | None = None
    was_asked = False

    def __init__(self, config: UpstreamConfig, ping_s: float = PING_S) -> None:
        self._config = config
        self._ping_s = ping_s
        self._patience_s = config.close_timeout_s
        self._receiver: Receiver | None = None
        self._link: Link | None = None
        self._pool: ConnectionPool | None = None
        self._waiting: Waiting | None = None
        self._connection: WebSocketConnection | None = None
        self._early: list[bytes] = []  # written before there is a connection
        self._early_bytes = 0
        self._closing = False
        self._runner: asyncio.Task[None] | None = None

    @property
    def is_signing_in(self) -> bool:
        """Whether it waits for a person to sign in."""
        return self._pool is not None and self._pool.signing_in > 0

    def add_headers(self, middleware: Sequence[HeaderMiddleware]) -> None:
        """Send along what these give, too, when it opens; called before `start`."""
        both = (*self._config.header_middleware, *middleware)
        self._config = dataclasses.replace(self._config, header_middleware=both)

    def start(self, receiver: Receiver) -> None:
        """Begin to connect; what is written meanwhile waits."""
        self._receiver = receiver
        self._link = Link(receiver, self._config.peer, self._config.restore_ids)
        waiting = self._waiting = Waiting(self._link, self._config.idle_timeout_s)
        self._link.on_response = lambda key, is_result: waiting.forget(key)
        self._runner = asyncio.get_running_loop().create_task(self._run(self._link, waiting, receiver))

    def send(self, frames: Sequence[Frame]) -> None:
        """Send each frame as a message of its own."""
        if self._closing or self._waiting is None or self._receiver is None:
            return
        for frame in frames:
            self._waiting.note_sent(frame)
            line = frame.raw.removesuffix(b"\n")
            if self._connection is not None:
                self._connection.write(line)
                continue
            self._early.append(line)
            self._early_bytes += len(line)
            if self._early_bytes > HIGH_WATER_BYTES >= self._early_bytes - len(line):
                self._receiver.pause_writing()

    def pause_reading(self) -> None:
        """Leave what the server sends in the socket."""
        if self._link is not None:
            self._link.reading.clear()

    def resume_reading(self) -> None:
        """Go on reading."""
        if self._link is not None:
            self._link.reading.set()

    def hurry(self) -> None:
        """Say goodbye quickly."""
        self._patience_s = min(self._patience_s, HURRIED_S)

    async def close(self) -> None:
        """Write what is still to be written, close with 1000, and wait for the server to do the same."""
        self._closing = True
        if self._runner is None or self._link is None or self._waiting is None:
            return
        self._link.mute()
        self._link.reading.set()
        self._waiting.close()
        if self._connection is not None:
            self._connection.say_goodbye()
        await asyncio.wait({self._runner}, timeout=self._patience_s)
        self._runner.cancel()
        await asyncio.gather(self._runner, return_exceptions=True)

    async def _run(self, link: Link, waiting: Waiting, receiver: Receiver) -> None:
        """Connect, then read until it ends."""
        try:
            self._pool = ConnectionPool(self._config)
            self._pool.on_heads, link.secrets = self.on_heads, self._pool.secrets
            connection, confirmed = await open_websocket(self._pool, SUBPROTOCOL, self._ping_s)
            if confirmed != SUBPROTOCOL:
                logger.warning("%s does not confirm the subprotocol %s", link.peer, SUBPROTOCOL)
            connection.on_bytes = waiting.note_sign_of_life
            connection.on_full, connection.on_room = receiver.pause_writing, receiver.resume_writing
            self._begin(connection, receiver)
            while True:
                await link.reading.wait()
                message = await connection.receive()
                if message is None:
                    logger.warning("%s sent a binary message, which is dropped: MCP is text", link.peer)
                else:
                    await link.take(message)
        except TransportError as error:
            reason, self.was_asked = error.reason, error.was_asked
        except OSError as error:
            reason = explain(error, origin_of(self._config.url)[1])
        except BaseException:
            if self._connection is not None:
                self._connection.abort()
            raise
        finally:
            waiting.close()
            if self._pool is not None:
                await self._pool.close()
        link.end(f"{link.peer}: {reason}")
        if self._connection is not None:
            try:
                await self._connection.leave()
            finally:
                self._connection.abort()

    def _begin(self, connection: WebSocketConnection, receiver: Receiver) -> None:
        """Write what has waited for the connection; from now on nothing waits but in it."""
        self._connection = connection
        if self._early_bytes > HIGH_WATER_BYTES:
            receiver.resume_writing()
        for line in self._early:
            connection.write(line)
        self._early.clear()
        if self._closing:
            connection.say_goodbye()
