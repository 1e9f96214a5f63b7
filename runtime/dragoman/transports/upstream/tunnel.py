"""A tunnel to a server through an HTTP proxy.

Lives here: CONNECT, and what a proxy's refusal means. Must not: choose the proxy (`proxies`), or dial (`connector`).

Source: RFC 9110, 9.3.6.
"""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import Final

from dragoman.errors import TransportError
from dragoman.transports.upstream.answers import HttpResponse
from dragoman.transports.upstream.connection import HttpConnection
from dragoman.transports.upstream.proxies import HttpProxy

# A kind of credentials in a list of them; or what is in quotes, where commas mean nothing.
_SCHEME: Final = re.compile(r'(?:^|,)\s*([A-Za-z0-9-]+)(?![^\s,])|"[^"]*"')


class ProxyRefused(OSError):
    """A proxy does not lead to the server; the text says why."""


def speak_to_proxy() -> HttpConnection:
    """Make a connection of which only the first answer counts."""
    return HttpConnection("the proxy", _forget, _forget)


async def open_tunnel(connection: HttpConnection, proxy: HttpProxy, host: str, port: int | None) -> asyncio.Transport:
    """Ask a proxy that we are connected to for a way to a server; give that.

    Raises:
        ProxyRefused: It gives none.
    """
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    head = f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n".encode() + proxy.authorization + b"\r\n"
    answer = connection.begin(head, None, _forget, None)
    try:
        await answer.until_head()
        if 200 <= answer.status < 300:
            return connection.release()
    except TransportError as error:
        raise ProxyRefused(error.reason) from None
    # The server has not been asked yet, so a 401 is the proxy's: tinyproxy says it of a wrong password.
    if answer.status in (HTTPStatus.PROXY_AUTHENTICATION_REQUIRED, HTTPStatus.UNAUTHORIZED):
        raise ProxyRefused(explain_credentials(proxy, answer))
    raise ProxyRefused(f"it does not lead to {where}: it answered {answer.named_status}")


def is_of_proxy(answer: HttpResponse, proxy: HttpProxy) -> bool:
    """Whether an answer to a request that a proxy was handed is the proxy's own: it wants other credentials.

    tinyproxy says 401 of a wrong password, as a server does. What comes from a server has passed the proxy, which
    "MUST" say so in `Via` (RFC 9110, 7.6.3).
    """
    if answer.status == HTTPStatus.UNAUTHORIZED:
        is_basic = answer.header("WWW-Authenticate").lower().startswith("basic")
        return bool(proxy.credentials) and is_basic and not answer.header("Via")
    return answer.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED


def explain_credentials(proxy: HttpProxy, answer: HttpResponse) -> str:
    """Say what a proxy wants that refuses our credentials."""
    if proxy.credentials:
        return "it does not accept the user and password that its URL has"
    offered = sorted(set(_SCHEME.findall(answer.header("Proxy-Authenticate"))) - {""})
    if offered and "basic" not in map(str.lower, offered):
        return f"it wants credentials of a kind that is not spoken here ({', '.join(offered)}; Basic is)"
    return "it wants credentials: write its URL as http://USER:PASSWORD@HOST:PORT"


def _forget(*_: object) -> None:
    """Nobody keeps a connection to a proxy."""
