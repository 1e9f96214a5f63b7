"""What uvicorn leaves to others about WebSocket: clients that read nothing, and messages in very many parts.

Lives here: its WebSocket protocol, to be cut. Imports `websockets`, which takes as long as the rest of the server: only
`serve` imports this, at the first connection.
"""

from __future__ import annotations

from typing import Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from dragoman.transports.http.exchange import ABORT, GONE

_FLUSH_S: Final = 1.0
"""How long a client that has answered no ping gets to take what was written before."""

_FRAGMENTS: Final = 10_000
"""Of how many frames one WebSocket message may be made: empty ones count towards no other limit."""

_TOO_BIG: Final = 1009


class GuardedWebSocket(WebSocketsSansIOProtocol):
    """One WebSocket connection. Closing one whose client reads nothing would wait for it for ever."""

    def handle_connect(self, event: Request) -> None:
        """Offer the application a way to cut it, and to see that it is lost."""
        super().handle_connect(event)
        if not self.close_sent:  # as it is where the request was none
            extensions: dict[str, Any] = {ABORT: self.transport.abort, GONE: self.transport.is_closing}
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
        """Cut off a client that answers no ping; not one whose pong may wait behind what its server does not take."""
        if self.read_paused and not self.transport.is_closing():
            self.pong_timer = self.pending_ping_payload = None
            self.schedule_ping()
            return
        super().keepalive_timeout()
        self.loop.call_later(_FLUSH_S, self.transport.abort)
