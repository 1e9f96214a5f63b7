"""Opening a WebSocket: a GET over HTTP, and its answer 101.

Lives here: the request, and the check of the answer, as `websockets` has them. Must not: send (`connection_pool`), or
know frames (`transports.websocket`). Called by `websocket`.

Source: RFC 6455, 4.1.
"""

from __future__ import annotations

from typing import Final

from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHandshake
from websockets.http11 import Response
from websockets.protocol import CLIENT
from websockets.typing import Subprotocol
from websockets.uri import WebSocketURI

from dragoman.errors import TransportError
from dragoman.transports.upstream.answers import HttpResponse
from dragoman.transports.upstream.connection import SWITCHING_PROTOCOLS
from dragoman.transports.upstream.connection_pool import ConnectionPool
from dragoman.transports.websocket import WebSocketConnection

_ANYWHERE: Final = WebSocketURI(False, "localhost", 80, "/", "")
"""Where the library believes to connect to: request line, Host and whatever the URL says are written by `Heads`."""

PING_S: Final = 30.0
_WORDS: Final = 200


async def open_websocket(
    pool: ConnectionPool, subprotocol: str, ping_s: float = PING_S
) -> tuple[WebSocketConnection, str]:
    """Ask for a WebSocket, and take over the connection.

    Args:
        pool: The way to the server.
        subprotocol: Which is offered.
        ping_s: How often a silent server is pinged; one that lets two pings go by is gone.

    Returns:
        The connection, and the subprotocol that the server confirms; empty if it names none.

    Raises:
        TransportError: There is no connection, or it is refused.
    """
    config = pool.config
    opening = ClientProtocol(_ANYWHERE, subprotocols=[Subprotocol(subprotocol)])
    asked = {name: value for name, value in opening.connect().headers.raw_items() if name != "Host"}
    answer = await pool.send("GET", config.url, asked, idle_s=config.connect_timeout_s)
    try:
        if reason := _find_refusal(answer, opening):
            raise TransportError(config.peer, f"no WebSocket: {reason}")
        opened = WebSocketConnection(config.peer, config.limit_bytes, CLIENT, ping_s, 2 * ping_s)
        return answer.hand_over(opened), opening.subprotocol or ""
    finally:
        answer.close()  # unless it has been handed over


def _find_refusal(answer: HttpResponse, opening: ClientProtocol) -> str:
    """Say why an answer is not a yes; nothing if it is."""
    if answer.status != SWITCHING_PROTOCOLS:
        return f"it answered {answer.named_status} (the URL of a server over HTTP begins with http)"
    listed = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers.items()]
    try:
        opening.process_response(Response(answer.status, "", Headers(listed)))
    except InvalidHandshake as error:
        return f"its answer opens none: {str(error)[:_WORDS]}"
    return ""
