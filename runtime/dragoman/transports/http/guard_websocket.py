"""What uvicorn does not do itself for WebSocket: clients that do not read, messages in many parts, too many at once.

Lives here: its WebSocket protocol, with a way to cut a connection, and the count of what comes in. Imports
`websockets`, which takes as long as the rest of the server: only `serve` imports this, at the first connection.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from dragoman.transports.defects import describe
from dragoman.transports.http.budget import FREE_BYTES, MAX_MEMORY, Budget, Excess, Hold
from dragoman.transports.http.closing import ClosingTransport
from dragoman.transports.http.exchange import ABORT, GONE, HOLD
from dragoman.transports.http.refusals import Refusals

_FLUSH_S: Final = 1.0
"""How long a client that has answered no ping gets to take what was written before."""

_LAST_S: Final = 1.0
"""How long a client may take to answer our close frame when the server stops."""

_FRAGMENTS: Final = 10_000
"""Of how many frames one WebSocket message may be made: empty ones count towards no other limit."""

_POLICY: Final = 1008
_TOO_BIG: Final = 1009
_INVALID: Final = 1007
_TRY_AGAIN: Final = 1013
"""RFC 6455 names it no further than the registry does: "Try Again Later"."""

_DEFECT: Final = "internal error while a WebSocket is read"
_BAD_REQUEST: Final = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class GuardedWebSocket(WebSocketsSansIOProtocol):
    """One WebSocket connection. Closing one whose client reads nothing would wait for it for ever.

    Args:
        message_s: How long a message may take, once more than 64 KiB of it are here, in seconds.
        budget: What its messages count towards until they are taken.
        refusals: What is cut is noted here.
        about: What uvicorn's protocol takes.
    """

    transport: ClosingTransport  # type: ignore[assignment]

    def __init__(self, message_s: float, budget: Budget, refusals: Refusals, **about: Any) -> None:
        super().__init__(**about)
        self._message_s = message_s
        self._deadline: asyncio.TimerHandle | None = None
        self._budget = budget
        self._refusals = refusals
        self._hold = Hold(budget, "")
        self._in_frames = self._in_queue = 0  # bytes of the message that comes, and of those that wait to be taken

    def connection_made(self, transport: Any) -> None:
        """Count for the client's address, until more is known of it."""
        super().connection_made(transport)
        self._hold.belong(self.client[0] if self.client else "")

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what is held."""
        self.connections.add(self)  # for theirs minds if it is not there any more
        super().connection_lost(exc)
        self.frames = []
        self._stop_clock()
        self._hold.release()
        self.transport.lose()

    def data_received(self, data: bytes) -> None:
        """Take what came; whatever goes wrong about it ends this connection and nothing else."""
        try:
            super().data_received(data)
            if not self.handshake_initiated and not self.close_sent:  # the whole opening comes at once
                self._refuse(str(self.conn.handshake_exc or "it is no opening"))
            elif not self.close_sent:
                self._weigh()
        except Excess as excess:
            self._fail(_TRY_AGAIN, excess.reason, MAX_MEMORY)
        except Exception as error:  # a defect of ours, or of the libraries below
            self._refusals.note(_DEFECT, f"{_DEFECT}: {describe(error)}")
            self.transport.abort()

    def _weigh(self) -> None:
        """Count what nobody has taken yet.

        Raises:
            Excess: It is more than may be kept.
        """
        unfinished = len(self.conn.reader.buffer) + self._in_frames
        held = unfinished + self._in_queue
        if held > FREE_BYTES or self._hold.size:
            self._hold.resize(held if held > FREE_BYTES else 0)
        if unfinished <= FREE_BYTES:
            self._stop_clock()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._message_s, self._run_out)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _run_out(self) -> None:
        self._deadline = None
        if self.read_paused:  # it is we who do not read
            self._deadline = self.loop.call_later(self._message_s, self._run_out)
        elif not self.close_sent:
            self._fail(_POLICY, f"a message did not come within {self._message_s:g} s")

    def handle_connect(self, event: Request) -> None:
        """Offer the application a way to cut it, to see that it is lost, and the count."""
        super().handle_connect(event)
        if not self.close_sent:  # as it is where the request was none
            lost = self.transport.is_closing
            extensions: dict[str, Any] = {ABORT: self.transport.abort, GONE: lost, HOLD: self._hold}
            self.scope["extensions"].update(extensions)

    def handle_text(self, event: Frame) -> None:
        """Take a message, or the first part of one."""
        self._in_frames = len(event.data)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        """Take a message, or the first part of one."""
        self._in_frames = len(event.data)
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        """Take a part of a message; one of very many parts is refused."""
        if self.close_sent:
            return
        if len(self.frames) < _FRAGMENTS:
            self._in_frames += len(event.data)
            super().handle_cont(event)
        else:
            self._fail(_TOO_BIG, f"a message has more than {_FRAGMENTS} fragments")

    def send_receive_event_to_app(self) -> None:
        """Queue a message as the bytes that came: as text it may take four times as much, and it may wait for long."""
        data = self.frames[0] if len(self.frames) == 1 else b"".join(self.frames)
        self.frames, self._in_frames = [], 0
        if self.close_sent:
            return
        self._stop_clock()
        self._in_queue += len(data)
        self.queue.put_nowait({"type": "websocket.receive", self.curr_msg_data_type: data})  # type: ignore[arg-type]
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    async def receive(self) -> Any:
        """Give the application the next message, and read on once none waits."""
        while True:
            message: dict[str, Any] = await super().receive()  # type: ignore[assignment]
            if message["type"] != "websocket.receive":
                return message
            data = message.get("text", message.get("bytes", b""))
            self._in_queue -= len(data)
            try:
                if "text" in message:
                    message["text"] = data.decode()
            except UnicodeDecodeError:
                self._fail(_INVALID, "a text message is not UTF-8")
                continue
            if self._hold.size:
                self._weigh()
            return message

    def handle_ping(self) -> None:
        """Answer; not where the client takes nothing, for its pongs would pile up."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def handle_parser_exception(self) -> None:
        """Close with the code that names what is wrong; what was not a request at all gets 400."""
        self.frames, self._in_frames = [], 0
        self._stop_clock()
        self._hold.release()
        if self.conn.close_sent is None:  # what came before the answer to the opening
            self._refuse(str(self.conn.parser_exc))
            return
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        if not self.close_sent:
            self.close_sent = True
            self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.linger()

    def _refuse(self, reason: str) -> None:
        """Answer with 400 to what opens no WebSocket, and end."""
        self._refusals.note("400 Bad Request", f"a WebSocket is refused with 400 Bad Request: {reason}")
        self.close_sent = self.handshake_complete = True
        self.transport.write(_BAD_REQUEST)
        self.transport.linger()

    def shutdown(self) -> None:
        """Close, and wait no longer for the client than it takes to answer."""
        try:
            super().shutdown()
        finally:
            self.transport.abort_after(_LAST_S)

    def keepalive_timeout(self) -> None:
        """Cut off a client that answers no ping; not one whose pong may wait behind what its server does not take."""
        if self.read_paused and not self.transport.is_closing():
            self.pong_timer = self.pending_ping_payload = None
            self.schedule_ping()
            return
        super().keepalive_timeout()
        self.loop.call_later(_FLUSH_S, self.transport.abort)

    def _fail(self, code: int, reason: str, option: str = "") -> None:
        """Close: the client has done what cannot be served."""
        self._refusals.note(f"WebSockets closed with {code}", f"a WebSocket is closed with {code}: {reason}", option)
        self.conn.fail(code, reason)
        self.handle_parser_exception()
