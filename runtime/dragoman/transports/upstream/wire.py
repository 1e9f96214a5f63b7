"""HTTP requests to one server, and what can go wrong with them, in words.

Lives here: everything that touches the HTTP library (aiohttp: docs/decisions): connections, TLS, redirects, timeouts.
Must not: know MCP. Called by `streamable`, `legacy` and `websocket`.

Headers go to the configured origin and nowhere else: a redirect is followed only where method and origin stay the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from dragoman.errors import TransportError
from dragoman.transports.upstream.config import UpstreamConfig, describe_url, origin_of

logger = logging.getLogger("dragoman.upstream")

_REDIRECTS: Final = 3
_KEEP_ALIVE_S: Final = 4.0
"""Idle connections are dropped before the server does (uvicorn: after 5 s): a POST that meets a closing connection
cannot be repeated, because nobody knows whether it was carried out."""

_READ_BYTES: Final = 256 * 1024
_LARGE_BYTES: Final = 256 * 1024


class _Body(aiohttp.Payload):
    """A body that says when it has been written."""

    _value: bytes

    def __init__(self, value: bytes, on_sent: Callable[[], None]) -> None:
        super().__init__(value, content_type="application/json")
        self._size = len(value)
        self._on_sent = on_sent

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._value.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        if self._size is not None and self._size <= _LARGE_BYTES:
            await writer.write(self._value)
        else:
            view = memoryview(self._value)
            for start in range(0, len(view), _LARGE_BYTES):
                await writer.write(view[start : start + _LARGE_BYTES])
                await writer.drain()
        self._on_sent()


class Answer:
    """The answer to one request: its head, and its body still to be read. Close it when done."""

    def __init__(self, peer: str, response: aiohttp.ClientResponse) -> None:
        self.peer = peer
        self.status = response.status
        self.length = response.content_length
        self._response = response

    @property
    def named_status(self) -> str:
        """The status for a person."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)

    @property
    def media_type(self) -> str:
        """What the body claims to be, without parameters; empty if it does not."""
        return self.header("Content-Type").partition(";")[0].strip().lower()

    def header(self, name: str) -> str:
        """Give a header, or nothing."""
        return self._response.headers.get(name, "")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Give the body as it comes, undecoded.

        Raises:
            TransportError: It did not come whole.
        """
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransportError(self.peer, explain(error)) from error

    async def whole(self) -> bytes:
        """Give the body at once: for one whose length is known.

        Raises:
            TransportError: It did not come whole.
        """
        try:
            return await self._response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransportError(self.peer, explain(error)) from error

    def close(self) -> None:
        """Give the connection back if the body was read to its end, drop it if not."""
        self._response.release() if self._response.content.at_eof() else self._response.close()


class Wire:
    """The way to one server. Make it within an event loop; close it at the end."""

    def __init__(self, config: UpstreamConfig) -> None:
        self.config = config
        self.peer = config.peer
        self._moved: dict[str, str] = {}
        self._timeouts: dict[float | None, aiohttp.ClientTimeout] = {}
        self.session = open_session(config)

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        on_sent: Callable[[], None] = lambda: None,
        idle_s: float | None = None,
    ) -> Answer:
        """Send a request and wait for the head of its answer.

        Args:
            method: Of HTTP.
            url: Where to; where a redirect led before is remembered.
            headers: Beside the configured ones.
            body: JSON.
            on_sent: Called when the body has been written.
            idle_s: How long nothing at all may come; None waits for ever.

        Raises:
            TransportError: No answer, or one that must not be followed.
        """
        for _ in range(_REDIRECTS):
            there = self._moved.get(url, url)
            answer = await self._send_once(method, there, headers, body, on_sent, idle_s)
            if not 300 <= answer.status < 400 or answer.status == HTTPStatus.NOT_MODIFIED:
                return answer
            answer.close()
            self._moved[url] = self._follow(answer, there)
        raise TransportError(self.peer, f"it redirects more than {_REDIRECTS} times")

    async def close(self) -> None:
        """Close every connection."""
        await self.session.close()

    async def _send_once(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        on_sent: Callable[[], None],
        idle_s: float | None,
    ) -> Answer:
        timeout = self._timeouts.get(idle_s)
        if timeout is None:
            connect_s = self.config.connect_timeout_s
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_s, sock_read=idle_s)
            self._timeouts[idle_s] = timeout
        data = None if body is None else _Body(body, on_sent)
        try:
            response = await self.session.request(
                method, url, data=data, headers=headers, allow_redirects=False, timeout=timeout
            )
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise TransportError(self.peer, explain(error)) from error
        return Answer(self.peer, response)

    def _follow(self, answer: Answer, url: str) -> str:
        """Give where a redirect leads, if we may go there.

        307 and 308 keep the method. Where they lead is kept for the session: servers that redirect `/mcp` to `/mcp/`
        would cost every message a round trip.
        """
        location = urljoin(url, answer.header("Location"))
        try:
            same, where = origin_of(location) == origin_of(url), describe_url(location)
        except ValueError:
            same, where = False, "nowhere"
        if answer.status in (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT) and same:
            return location
        reason = f"it answered {answer.named_status}, to {where}"
        rule = "to another method" if same else "to another origin, which must not get our headers: give that URL"
        raise TransportError(self.peer, f"{reason}; a redirect {rule} is not followed")


def open_session(config: UpstreamConfig) -> aiohttp.ClientSession:
    """Open what makes connections to one server, and follows none of its redirects by itself."""
    traces = []
    if origin_of(config.url)[0] in ("ws", "wss"):
        traces.append(aiohttp.TraceConfig())
        traces[0].on_request_redirect.append(_refuse_redirect)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=_trust(config), limit=0, keepalive_timeout=_KEEP_ALIVE_S),
        headers=[*config.headers, ("Accept-Encoding", "identity")],
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=config.connect_timeout_s),
        skip_auto_headers=("User-Agent",),
        auto_decompress=False,
        read_bufsize=_READ_BYTES,
        trace_configs=traces,
    )


async def _refuse_redirect(_session: object, _context: object, _params: object) -> None:
    """Stop a redirect that the library would follow: a WebSocket handshake does, headers and all."""
    raise aiohttp.ClientConnectionError("it redirects, which is not followed: give the URL where it leads")


def explain(error: BaseException) -> str:
    """Say what went wrong on the network, for a person."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            why = _last_line(error.certificate_error)
            return f"its TLS certificate is not trusted (--ca-file names who signs it): {why}"
        case aiohttp.ClientConnectorDNSError():
            return f"the name {error.host} is not known"
        case aiohttp.ClientConnectorError():
            return f"no connection: {_name_os_error(error.os_error)}"
        case aiohttp.ConnectionTimeoutError():
            return "no connection in time"
        case aiohttp.SocketTimeoutError() | asyncio.TimeoutError():
            return "nothing came from it for too long"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            return "it closed the connection in the middle of its answer"
        case aiohttp.ClientResponseError():
            return f"its answer is no HTTP: {_last_line(error.message)}"
        case aiohttp.ClientConnectionError() if str(error).startswith("it redirects"):
            return str(error)
        case aiohttp.InvalidURL():
            return "its URL cannot be used"
        case ConnectionResetError():
            return "it reset the connection"
        case _:
            return f"{type(error).__name__}: {_last_line(error)}"


def _name_os_error(error: OSError) -> str:
    """Say what the system said; several addresses that all failed come as one error without number."""
    return os.strerror(error.errno).lower() if error.errno else _last_line(error)


def _last_line(error: Any) -> str:
    text = str(error).strip()
    return text.splitlines()[-1][:200] if text else type(error).__name__


def _trust(config: UpstreamConfig) -> ssl.SSLContext | bool:
    if origin_of(config.url)[0] not in ("https", "wss"):
        return True
    context = ssl.create_default_context(cafile=config.ca_file)
    if not config.verify:
        logger.warning("%s: its certificate is not checked; who is in between reads everything", config.peer)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    with contextlib.suppress(NotImplementedError):
        context.set_alpn_protocols(["http/1.1"])
    return context
