"""What uvicorn leaves to others about WebSocket: clients that read nothing, and messages in very many parts.

Lives here: its WebSocket protocol, to be cut. Imports `websockets`, which takes as long as the rest of the server: only
`serve` imports this, at the first connection.
"""

from __future__ import annotations

from typing import Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from dragoman.transports.http.exchange import ABORT

_FLUSH_S: Final = 1.0
"""How long a client that has answered no ping gets to take what was written before."""

_FRAGMENTS: Final = 10_000
"""Of how many frames one WebSocket message may be made: empty ones count towards no other limit."""

_TOO_BIG: Final = 1009

_LINGER_S: Final = 5.0
"""How long is read on what nobody wants, so that the client learns why."""


class GuardedWebSocket(WebSocketsSansIOProtocol):
    """One WebSocket connection. Closing one whose client reads nothing would wait for it for ever."""

    lingers = False

    def data_received(self, data: bytes) -> None:
        """Take what comes; after the last word nothing of it counts."""
        if not self.lingers:
            super().data_received(data)

    def handle_parser_exception(self) -> None:
        """Say why nothing more is taken, and read on until the client closes.

        Were the connection closed while there is something to read, the system would reset it (RFC 9293, 3.6.1), and a
        client that is still sending would never see the close frame.
        """
        assert self.conn.close_sent is not None
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.close_sent = self.lingers = True
        self.close_timer = self.loop.call_later(_LINGER_S, self.transport.abort)
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    def handle_connect(self, event: Request) -> None:
        """Offer the application a way to cut it."""
        super().handle_connect(event)
        if not self.close_sent:  # as it is where the request was none
            extensions: dict[str, Any] = {ABORT: self.transport.abort}
            self.scope["extensions"].update(extensions)

    def handle_cont(self, event: Frame) -> None:
        """Take a part of a message; one of very many parts is refused."""
        if self.close_sent:
            return
        if len(self.frames) < _FRAGMENTS:
            super().handle_cont(event)
        else:
            self.conn.fail(_TOO_BIG, f"a message has more than {_FRAGMENTS} fragments")
            self.handle_parser_exception()

    def handle_ping(self) -> None:
        """Answer; not where the client takes nothing, for its pongs would pile up."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def keepalive_timeout(self) -> None:
        """Cut off a client that answers no ping."""
        super().keepalive_timeout()
        self.loop.call_later(_FLUSH_S, self.transport.abort)
