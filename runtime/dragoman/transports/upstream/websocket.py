"""A client of MCP over WebSocket: one text message a frame, subprotocol `mcp`. Not in the specification; SDKs have it.

Lives here: everything that touches aiohttp (docs/decisions/0008): the connection, its one writer and its one reader,
pings. Must not: look into frames beyond their ids. Imported by `connect` when a URL asks for it, and not before.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import Final

import aiohttp

from dragoman.core.correlation import cancelled_key
from dragoman.core.envelope import Frame
from dragoman.core.peek import read_line
from dragoman.errors import FrameTooLarge, TransportError
from dragoman.transports.base import Receiver
from dragoman.transports.keepalive import keep_alive
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.dialling import explain as explain_dialling
from dragoman.transports.upstream.dialling import last_line, trust
from dragoman.transports.upstream.lanes import HIGH_WATER_BYTES, LOW_WATER_BYTES
from dragoman.transports.upstream.lingering import LingeringSocket
from dragoman.transports.upstream.link import Link
from dragoman.transports.upstream.waiting import Waiting

logger = logging.getLogger("dragoman.upstream")

SUBPROTOCOL: Final = "mcp"
_PING_S: Final = 30.0
_HURRIED_S: Final = 0.5
_ENDING = frozenset({aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED})
_TOO_BIG: Final = 1009
_READ_BYTES: Final = 256 * 1024


class WebSocketTransport:
    """A server behind a ws or wss URL.

    Args:
        config: Where, and how patient.
        ping_s: How often a silent server is pinged; one that lets two pings go by is gone.
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
        self._silent_pings = 0
        self._runner: asyncio.Task[None] | None = None

    def start(self, receiver: Receiver) -> None:
        """Begin to connect; what is written meanwhile waits."""
        self._receiver = receiver
        self._link = Link(receiver, self._config.peer)
        waiting = self._waiting = Waiting(self._link, self._config.idle_timeout_s)
        self._link.on_response = lambda key, _: _forget(waiting, key)
        self._runner = asyncio.get_running_loop().create_task(self._run(self._link, self._waiting))

    def write(self, data: bytes) -> None:
        """Send whole lines, each as a message of its own."""
        if self._closing or self._waiting is None or self._receiver is None:
            return
        for line in data.split(b"\n"):
            if line:
                frame = read_line(line)
                if isinstance(frame, Frame) and frame.kind == "request" and frame.key is not None:
                    self._waiting.expect(frame.key)
                elif isinstance(frame, Frame) and frame.method == "notifications/cancelled":
                    self._waiting.forget(cancelled_key(frame))
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
        reason = "it closed the connection"
        socket: LingeringSocket | None = None
        try:
            async with _open_session(self._config) as session:
                socket = await self._connect(session)
                async with socket:
                    reason = await self._talk(socket, link, waiting)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            reason = _explain(error)
        except TransportError as error:
            reason = error.reason
        finally:
            waiting.close()
        link.end(f"{link.peer}: {reason}")
        if socket is not None:
            await socket.linger()

    async def _connect(self, session: aiohttp.ClientSession) -> LingeringSocket:
        timeout = aiohttp.ClientWSTimeout(ws_close=self._patience_s)
        try:
            async with asyncio.timeout(self._config.connect_timeout_s):
                socket = await session.ws_connect(
                    self._config.url,
                    protocols=(SUBPROTOCOL,),
                    timeout=timeout,
                    autoping=False,
                    max_msg_size=self._config.limit_bytes,
                )
        except aiohttp.WSServerHandshakeError as error:
            said = f"it answered {error.status}" if error.status != 101 else error.message
            raise TransportError(self._config.peer, f"no WebSocket: {said}") from error
        if (connection := socket.get_extra_info("socket")) is not None:
            keep_alive(connection)
        if socket.protocol != SUBPROTOCOL:
            logger.warning("%s does not confirm the subprotocol %s", self._config.peer, SUBPROTOCOL)
        assert isinstance(socket, LingeringSocket)
        return socket

    async def _talk(self, socket: aiohttp.ClientWebSocketResponse, link: Link, waiting: Waiting) -> str:
        loop = asyncio.get_running_loop()
        reading = loop.create_task(self._read(socket, link, waiting))
        others = {loop.create_task(self._write(socket)), loop.create_task(self._ping(socket, link))}
        try:
            done, _ = await asyncio.wait({reading, *others}, return_when=asyncio.FIRST_COMPLETED)
            if reading in done:
                return reading.result()
            return next(iter(done)).result()
        finally:
            for task in (reading, *others):
                task.cancel()
            await asyncio.gather(reading, *others, return_exceptions=True)

    async def _read(self, socket: aiohttp.ClientWebSocketResponse, link: Link, waiting: Waiting) -> str:
        while True:
            if link.paused:
                await link.until_reading()
            message = await socket.receive()
            self._silent_pings = 0
            waiting.note_sign_of_life()
            if message.type is aiohttp.WSMsgType.TEXT:
                await link.take(message.data.encode(errors="surrogatepass"))
            elif message.type is aiohttp.WSMsgType.BINARY:
                logger.warning("%s sent a binary message, which is dropped: MCP is text", link.peer)
            elif message.type is aiohttp.WSMsgType.PING:
                await socket.pong(message.data)
            elif message.type is aiohttp.WSMsgType.ERROR:
                raise self._explain_error(message.data)
            elif message.type in _ENDING:
                return f"it closed the connection{_describe_close(socket.close_code, message.extra)}"

    def _explain_error(self, error: Exception) -> TransportError:
        if isinstance(error, aiohttp.WebSocketError) and error.code == _TOO_BIG:
            return FrameTooLarge(self._config.peer, self._config.limit_bytes)
        return TransportError(self._config.peer, f"what it sent is not WebSocket: {_explain(error)}")

    async def _write(self, socket: aiohttp.ClientWebSocketResponse) -> str:
        while True:
            while self._queue:
                line = self._queue.popleft()
                await socket.send_frame(line, aiohttp.WSMsgType.TEXT)
                self._queued_bytes -= len(line)
                if self._full and self._queued_bytes <= LOW_WATER_BYTES and self._receiver is not None:
                    self._full = False
                    self._receiver.resume_writing()
            if self._closing:
                await socket.close()
                return "closed"
            self._more.clear()
            await self._more.wait()

    async def _ping(self, socket: aiohttp.ClientWebSocketResponse, link: Link) -> str:
        """Notice a server that is gone without a word; not while nobody reads what it may say."""
        while True:
            await asyncio.sleep(self._ping_s)
            if link.paused:
                self._silent_pings = 0
                continue
            if self._silent_pings >= 2:
                return "it does not answer pings"
            self._silent_pings += 1
            with contextlib.suppress(ConnectionError):
                await socket.ping()


def _forget(waiting: Waiting, key: bytes) -> None:
    waiting.forget(key)


def _describe_close(code: int | None, words: object) -> str:
    said = f": {words[:200]}" if isinstance(words, str) and words.isprintable() and words else ""
    return f" with {code}{said}" if code is not None else ""


def _open_session(config: UpstreamConfig) -> aiohttp.ClientSession:
    """Open what makes connections to one server, and follows no redirect: a handshake would be, headers and all."""
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_refuse_redirect)
    tls = trust(config)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=True if tls is None else tls, limit=0),
        headers=[*config.headers, ("Accept-Encoding", "identity")],
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=config.connect_timeout_s),
        skip_auto_headers=("User-Agent",),
        read_bufsize=_READ_BYTES,
        trace_configs=[trace],
        ws_response_class=LingeringSocket,
    )


async def _refuse_redirect(_session: object, _context: object, _params: object) -> None:
    raise aiohttp.ClientConnectionError("it redirects, which is not followed: give the URL where it leads")


def _explain(error: BaseException) -> str:
    """Say what went wrong on the network, for a person."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return explain_dialling(error.certificate_error, error.host)
        case aiohttp.ClientConnectorDNSError():
            return f"the name {error.host} is not known"
        case aiohttp.ClientConnectorError():
            return explain_dialling(error.os_error, error.host)
        case TimeoutError():
            return "no connection in time"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without an answer"
        case aiohttp.ClientResponseError():
            return f"its answer is not HTTP: {last_line(error.message)}"
        case aiohttp.ClientConnectionError() if str(error).startswith("it redirects"):
            return str(error)
        case aiohttp.InvalidURL():
            return "its URL cannot be used"
        case ConnectionResetError():
            return "it reset the connection"
        case _:
            return f"{type(error).__name__}: {last_line(error)}"
