"""A client of MCP over WebSocket: one text message a frame, subprotocol `mcp`. Not in the specification; SDKs have it.

Lives here: the one writer and the one reader of a connection, pings. Must not: look into frames beyond their ids, or
know WebSocket's own frames (`websocket_connection`). Imported by `connect` when a URL asks for it, and not before.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dragoman.core.envelope import Frame
from dragoman.errors import TransportError
from dragoman.transports.base import Receiver
from dragoman.transports.upstream.challenge import CHALLENGES, Challenge
from dragoman.transports.upstream.config import UpstreamConfig, origin_of
from dragoman.transports.upstream.connector import explain
from dragoman.transports.upstream.lanes import HIGH_WATER_BYTES, LOW_WATER_BYTES
from dragoman.transports.upstream.link import Link
from dragoman.transports.upstream.upgrade import UpgradeRefused, open_websocket
from dragoman.transports.upstream.waiting import Waiting
from dragoman.transports.upstream.websocket_connection import WebSocketConnection

if TYPE_CHECKING:
    from dragoman.middleware import HeaderMiddleware

logger = logging.getLogger("dragoman.upstream")

SUBPROTOCOL: Final = "mcp"
_PING_S: Final = 30.0
_HURRIED_S: Final = 0.5


class WebSocketUpstream:
    """A server behind a ws or wss URL.

    Args:
        config: Where, and how patient.
        ping_s: How often a silent server is pinged; one that lets two pings go by is gone.

    Attributes:
        is_signing_in: Whether requests wait for a person to sign in.
    """

    def __init__(self, config: UpstreamConfig, ping_s: float = _PING_S) -> None:
        self._config = config
        self._ping_s = ping_s
        self._patience_s = config.close_timeout_s
        self._receiver: Receiver | None = None
        self._link: Link | None = None
        self._waiting: Waiting | None = None
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._full = False
        self._more = asyncio.Event()
        self._closing = False
        self.is_signing_in = False
        self._silent_pings = 0
        self._runner: asyncio.Task[None] | None = None

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
        self._runner = asyncio.get_running_loop().create_task(self._run(self._link, waiting))

    def send(self, frames: Sequence[Frame]) -> None:
        """Send each frame as a message of its own."""
        if self._closing or self._waiting is None or self._receiver is None:
            return
        for frame in frames:
            self._waiting.note_sent(frame)
            line = frame.raw.removesuffix(b"\n")
            self._queue.append(line)
            self._queued_bytes += len(line)
        self._more.set()
        if not self._full and self._queued_bytes > HIGH_WATER_BYTES:
            self._full = True
            self._receiver.pause_writing()

    def pause_reading(self) -> None:
        """Leave what the server sends in the socket."""
        if self._link is not None:
            self._link.pause()

    def resume_reading(self) -> None:
        """Go on reading."""
        if self._link is not None:
            self._link.resume()

    def hurry(self) -> None:
        """Say goodbye quickly."""
        self._patience_s = min(self._patience_s, _HURRIED_S)

    async def close(self) -> None:
        """Write what is still to be written, close with 1000, and wait for the server to do the same."""
        self._closing = True
        self._more.set()
        if self._runner is None or self._link is None or self._waiting is None:
            return
        self._link.mute()
        self._link.resume()
        self._waiting.close()
        await asyncio.wait({self._runner}, timeout=self._patience_s)
        self._runner.cancel()
        await asyncio.gather(self._runner, return_exceptions=True)

    async def _run(self, link: Link, waiting: Waiting) -> None:
        """Connect, then read and write until one of the two ends."""
        connection: WebSocketConnection | None = None
        if self._config.authority is not None:
            self._config.authority.join()
        try:
            connection, confirmed = await self._open()
            if confirmed != SUBPROTOCOL:
                logger.warning("%s does not confirm the subprotocol %s", link.peer, SUBPROTOCOL)
            reason = await self._talk(connection, link, waiting)
            if self._closing:
                await connection.close()
        except TransportError as error:
            reason = error.reason
        except OSError as error:
            reason = explain(error, origin_of(self._config.url)[1])
        except BaseException:
            if connection is not None:
                connection.abort()
            raise
        finally:
            waiting.close()
            if self._config.authority is not None:
                await self._config.authority.leave()
        link.end(f"{link.peer}: {reason}")
        if connection is not None:
            try:
                await connection.leave()
            finally:
                connection.abort()

    async def _open(self) -> tuple[WebSocketConnection, str]:
        """Open a connection, with a token where it takes one."""
        authority, attempt = self._config.authority, 0
        if authority is not None:
            await authority.load()
        while True:
            sent = authority.authorization() if authority is not None else ""
            headers = (*self._config.headers, *((("Authorization", sent),) if sent else ()))
            try:
                return await open_websocket(dataclasses.replace(self._config, headers=headers), SUBPROTOCOL)
            except UpgradeRefused as error:
                challenge = Challenge(attempt, error.status, error.challenge, sent, (), asks=True, waits=False)
                if authority is None or error.status not in CHALLENGES or not authority.takes(challenge):
                    raise
                self.is_signing_in = True
                await authority.renew(challenge, self._config)
            finally:
                self.is_signing_in = False
            attempt += 1

    async def _talk(self, connection: WebSocketConnection, link: Link, waiting: Waiting) -> str:
        def note() -> None:
            self._silent_pings = 0
            waiting.note_sign_of_life()

        connection.on_bytes = note
        loop = asyncio.get_running_loop()
        reading = loop.create_task(self._read(connection, link))
        others = {loop.create_task(self._write(connection)), loop.create_task(self._ping(connection, link))}
        try:
            done, _ = await asyncio.wait({reading, *others}, return_when=asyncio.FIRST_COMPLETED)
            if reading in done:
                return reading.result()
            return next(iter(done)).result()
        finally:
            for task in (reading, *others):
                task.cancel()
            await asyncio.gather(reading, *others, return_exceptions=True)

    async def _read(self, connection: WebSocketConnection, link: Link) -> str:
        while True:
            if link.paused:
                await link.until_reading()
            await link.take(await connection.receive())

    async def _write(self, connection: WebSocketConnection) -> str:
        while True:
            while self._queue:
                line = self._queue.popleft()
                await connection.send(line)
                self._queued_bytes -= len(line)
                if self._full and self._queued_bytes <= LOW_WATER_BYTES and self._receiver is not None:
                    self._full = False
                    self._receiver.resume_writing()
            if self._closing:
                return "closed"
            self._more.clear()
            await self._more.wait()

    async def _ping(self, connection: WebSocketConnection, link: Link) -> str:
        """Notice a server that is gone without a word; not while nobody reads what it may say."""
        while True:
            await asyncio.sleep(self._ping_s)
            if link.paused:
                self._silent_pings = 0
                continue
            if self._silent_pings >= 2:
                return "it does not answer pings"
            self._silent_pings += 1
            connection.ping()
