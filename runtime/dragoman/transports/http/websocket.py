"""WebSocket towards clients: subprotocol `mcp`, one frame a message, the connection is the session.

Lives here: the opening, both directions, and with which code it closes. Pings and pongs are the server's business, as
ASGI has it. Must not: check who it is (`security`). Called by `app`.

Source: there is no page in the specification; this is what the official SDKs speak.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from dragoman.core.envelope import encode_error
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import JSON, Receive, Refused, Scope, Send
from dragoman.transports.http.lines import LineTransport
from dragoman.transports.http.reading import read_posted
from dragoman.transports.http.sessions import Caller, Sessions

logger = logging.getLogger("dragoman.http")

SUBPROTOCOL: Final = "mcp"

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
UNSUPPORTED_DATA: Final = 1003
POLICY: Final = 1008
TOO_BIG: Final = 1009


class WebSocketTransport(LineTransport):
    """A client that speaks WebSocket."""


class WebSocketFront:
    """Serves WebSocket connections.

    Args:
        config: What was decided.
        sessions: Those of the whole front.
    """

    def __init__(self, config: FrontConfig, sessions: Sessions) -> None:
        self._config = config
        self._sessions = sessions

    async def serve(self, scope: Scope, receive: Receive, send: Send, principal: str) -> None:
        """Serve one connection to its end.

        Raises:
            Refused: It is not accepted.
        """
        if SUBPROTOCOL not in scope.get("subprotocols", ()):
            raise Refused(400, f"expected the subprotocol {SUBPROTOCOL} to be offered")
        transport = WebSocketTransport(self._config.limits)
        session = self._sessions.open(transport, Caller(principal, "websocket"))
        with session:
            reason = "the connection is lost"
            try:
                await receive()  # websocket.connect
                await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
                reason = await self._talk(transport, receive, send)
            except OSError as error:  # how ASGI servers say that the client has gone
                reason = f"the connection is lost: {error}"
            finally:
                transport.end(reason)

    async def _talk(self, transport: WebSocketTransport, receive: Receive, send: Send) -> str:
        """Move frames both ways until either side ends; give the reason."""
        listening = asyncio.ensure_future(self._listen(transport, receive))
        sending = asyncio.ensure_future(self._send_all(transport, send))
        try:
            done, _ = await asyncio.wait({listening, sending}, return_when=asyncio.FIRST_COMPLETED)
            if listening in done:
                code, reason = listening.result()
            else:
                code, reason = sending.result()
        finally:
            for task in (listening, sending):
                task.cancel()
            await asyncio.gather(listening, sending, return_exceptions=True)
        if code:
            await send({"type": "websocket.close", "code": code, "reason": reason})
        return reason

    async def _listen(self, transport: WebSocketTransport, receive: Receive) -> tuple[int, str]:
        """Take what the client sends; give the code to close with, 0 if it has closed itself."""
        while True:
            await transport.readable.wait()
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return 0, f"the client has closed with {message.get('code', 1005)}"
            text = message.get("text")
            if text is None:
                return UNSUPPORTED_DATA, "expected text messages"
            body = text.encode("utf-8", "surrogatepass")
            if len(body) > self._config.limits.body_bytes:
                return TOO_BIG, f"a message is larger than {self._config.limits.body_bytes} bytes"
            try:
                line = read_posted(body, self._config.limits.nesting).line
            except Refused as refused:
                logger.info("a message over websocket is refused: %s", refused.reason)
                transport.write(encode_error(refused.key, refused.code, refused.reason))
            else:
                transport.deliver(line)

    async def _send_all(self, transport: WebSocketTransport, send: Send) -> tuple[int, str]:
        """Send what the server says; give the code to close with when it is over."""
        stall_s = self._config.patience.stall_s
        while True:
            transport.changed.clear()
            while (line := transport.take()) is not None:
                try:
                    async with asyncio.timeout(stall_s):
                        await send({"type": "websocket.send", "text": line.decode("utf-8", "replace")})
                except TimeoutError:
                    return POLICY, f"the client took nothing for {stall_s:g} s"
                transport.settle(len(line))
            if transport.closed:
                return GOING_AWAY if self._sessions.closing else NORMAL, "the session is over"
            await transport.changed.wait()


async def refuse(scope: Scope, receive: Receive, send: Send, refused: Refused, extra: tuple[Any, ...] = ()) -> None:
    """Answer the opening of a connection with an HTTP status, where the server can, else with a plain 403."""
    await receive()  # websocket.connect
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": POLICY, "reason": refused.reason})
        return
    headers = [JSON, *refused.headers, *extra]
    await send({"type": "websocket.http.response.start", "status": refused.status, "headers": headers})
    body = encode_error(refused.key, refused.code, refused.reason)
    await send({"type": "websocket.http.response.body", "body": body, "more_body": False})
