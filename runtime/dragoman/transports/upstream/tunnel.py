"""A tunnel to a server through an HTTP proxy.

Lives here: CONNECT, and what a proxy's refusal means. Must not: choose the proxy (`proxies`), or dial (`connector`).

Source: RFC 9110, 9.3.6.
"""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import Final

from dragoman.transports.upstream.answers import HttpResponse
from dragoman.transports.upstream.proxies import HttpProxy

_HEAD_BYTES: Final = 64 * 1024
_STATUS: Final = re.compile(rb"HTTP/1\.[01] +(\d{3})")
_OFFERED: Final = re.compile(rb"^proxy-authenticate: *([A-Za-z-]+)", re.IGNORECASE | re.MULTILINE)


class ProxyRefused(OSError):
    """A proxy does not lead to the server; the text says why."""


async def open_tunnel(
    transport: asyncio.Transport, answer: TunnelAnswer, proxy: HttpProxy, host: str, port: int | None
) -> None:
    """Ask a proxy that we are connected to for a way to a server.

    Raises:
        ProxyRefused: It gives none.
    """
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    transport.write(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n".encode() + proxy.authorization + b"\r\n")
    head = await answer.head
    found = _STATUS.match(head)
    if found is None:
        raise ProxyRefused("what it answers is not HTTP")
    status = int(found[1])
    if not 200 <= status < 300:
        # The server has not been asked yet, so a 401 is the proxy's: tinyproxy says it of a wrong password.
        if status not in (HTTPStatus.PROXY_AUTHENTICATION_REQUIRED, HTTPStatus.UNAUTHORIZED):
            named = f"{status} {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else str(status)
            raise ProxyRefused(f"it does not lead to {where}: it answered {named}")
        raise ProxyRefused(explain_credentials(proxy, [scheme.decode() for scheme in _OFFERED.findall(head)]))


def is_of_proxy(answer: HttpResponse, proxy: HttpProxy) -> bool:
    """Whether an answer to a request that a proxy was handed is the proxy's own: it wants other credentials.

    tinyproxy says 401 of a wrong password, as a server does. What comes from a server has passed the proxy, which
    "MUST" say so in `Via` (RFC 9110, 7.6.3).
    """
    if answer.status == HTTPStatus.UNAUTHORIZED:
        is_basic = answer.header("WWW-Authenticate").lower().startswith("basic")
        return bool(proxy.credentials) and is_basic and not answer.header("Via")
    return answer.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED


def explain_credentials(proxy: HttpProxy, schemes: list[str]) -> str:
    """Say what a proxy wants that refuses our credentials."""
    if proxy.credentials:
        return "it does not accept the user and password that its URL has"
    offered = sorted(set(schemes))
    if offered and "basic" not in map(str.lower, offered):
        return f"it wants credentials of a kind that is not spoken here ({', '.join(offered)}; Basic is)"
    return "it wants credentials: write its URL as http://USER:PASSWORD@HOST:PORT"


class TunnelAnswer(asyncio.Protocol):
    """The head of what a proxy answers to CONNECT.

    Attributes:
        head: Comes, or fails.
    """

    def __init__(self) -> None:
        self.head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._come = b""

    def data_received(self, data: bytes) -> None:
        """Something came; nothing follows the head before we have spoken to the server."""
        self._come += data
        if self.head.done():
            return
        if b"\r\n\r\n" in self._come:
            self.head.set_result(self._come)
        elif len(self._come) > _HEAD_BYTES:
            self.head.set_exception(ProxyRefused("what it answers is not HTTP"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The proxy has closed the connection, or we have."""
        if not self.head.done():
            self.head.set_exception(ProxyRefused("it closed the connection"))
            self.head.exception()  # nobody may be waiting any more
