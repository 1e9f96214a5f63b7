"""Opening a WebSocket: a GET over HTTP, and its answer 101.

Lives here: the request, and the check of the answer, as `websockets` has them. Must not: connect (`connector`), parse
HTTP (`connection`), or know frames (`transports.websocket`). Called by `websocket`.

Source: RFC 6455, 4.1.
"""

from __future__ import annotations

import asyncio
from typing import Final

from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHandshake
from websockets.http11 import Request, Response
from websockets.protocol import CLIENT
from websockets.typing import Subprotocol
from websockets.uri import WebSocketURI

from dragoman.errors import TransportError
from dragoman.transports.upstream.answers import HttpResponse
from dragoman.transports.upstream.config import UpstreamConfig, describe_url
from dragoman.transports.upstream.connection import SWITCHING_PROTOCOLS, HttpConnection
from dragoman.transports.upstream.connector import Dialler, trust
from dragoman.transports.upstream.heads import Heads
from dragoman.transports.websocket import WebSocketConnection

_ANYWHERE: Final = WebSocketURI(False, "localhost", 80, "/", "")
"""Where the library believes to connect to: request line, Host and whatever the URL says are written by `Heads`."""

PING_S: Final = 30.0
_WORDS: Final = 200


class UpgradeRefused(TransportError):
    """A server does not open a WebSocket.

    Args:
        peer: The server.
        reason: Why, for a person.
        answer: What it said.
    """

    def __init__(self, peer: str, reason: str, answer: HttpResponse) -> None:
        super().__init__(peer, reason)
        self.status, self.challenge = answer.status, answer.header("WWW-Authenticate")


async def open_websocket(
    config: UpstreamConfig, subprotocol: str, ping_s: float = PING_S
) -> tuple[WebSocketConnection, str]:
    """Connect, and ask for a WebSocket.

    Args:
        config: The server.
        subprotocol: Which is offered.
        ping_s: How often a silent server is pinged; one that lets two pings go by is gone.

    Returns:
        The connection, and the subprotocol that the server confirms; empty if it names none.

    Raises:
        TransportError: There is no connection, it is refused (`UpgradeRefused`), or that takes too long.
        OSError: TLS cannot be set up.
    """
    until = asyncio.get_running_loop().time() + config.connect_timeout_s
    connection = await Dialler(config, trust(config)).connect(lambda: HttpConnection(config.peer, _free, _lose))
    try:
        async with asyncio.timeout_at(until):
            confirmed = await _ask(connection, config, subprotocol)
            opened = WebSocketConnection(config.peer, config.limit_bytes, CLIENT, ping_s, 2 * ping_s)
            return connection.hand_over(opened), confirmed
    except TimeoutError as error:
        reason = "no WebSocket: no answer in time (--connect-timeout sets how long to wait)"
        raise TransportError(config.peer, reason) from error
    finally:
        connection.drop()  # unless it has been handed over


async def _ask(connection: HttpConnection, config: UpstreamConfig, subprotocol: str) -> str:
    _expect_open(connection, config)
    opening = ClientProtocol(_ANYWHERE, subprotocols=[Subprotocol(subprotocol)])
    answer = connection.begin(_write_head(config, opening.connect()), None, _nothing, None)
    await answer.until_head()
    if reason := _find_refusal(answer, opening):
        raise UpgradeRefused(config.peer, reason, answer)
    _expect_open(connection, config)
    return opening.subprotocol or ""


def _expect_open(connection: HttpConnection, config: UpstreamConfig) -> None:
    if not connection.open:
        raise TransportError(config.peer, "it closed the connection as soon as it was open")


def _write_head(config: UpstreamConfig, request: Request) -> bytes:
    asked = {name: value for name, value in request.headers.raw_items() if name != "Host"}
    try:
        return Heads(config).write("GET", config.url, asked, None)
    except ValueError as error:
        raise TransportError(config.peer, f"nothing can be sent to it: {error}") from error


def _find_refusal(answer: HttpResponse, opening: ClientProtocol) -> str:
    """Say why an answer is not a yes; nothing if it is."""
    if 300 <= answer.status < 400 and answer.header("Location"):
        # Our headers would be sent there; they are for the configured origin alone.
        return f"it redirects, which is not followed: say --url {_name_target(answer.header('Location'))}"
    if answer.status != SWITCHING_PROTOCOLS:
        return f"no WebSocket: it answered {answer.status}"
    listed = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers.items()]
    try:
        opening.process_response(Response(answer.status, "", Headers(listed)))
    except InvalidHandshake as error:
        return f"no WebSocket: its answer opens none: {str(error)[:_WORDS]}"
    return ""


def _name_target(location: str) -> str:
    try:
        return describe_url(location)
    except ValueError:
        return "with the URL where it leads"


def _nothing() -> None:
    """What follows from having written the head."""


def _free(_connection: HttpConnection, _reusable: bool) -> None:
    """What follows from having read an answer: whoever asked drops the connection."""


def _lose(_connection: HttpConnection) -> None:
    """What follows from a lost connection: its answer says so."""
