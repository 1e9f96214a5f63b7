"""What uvicorn leaves to others: requests that never end, and connections whose client reads nothing.

Lives here: its HTTP protocol with a limit for headers, and deadlines for headers and bodies (`guard_websocket` has its
WebSocket protocol). Imports uvicorn: only `serve` imports this.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import ABORT

_PIPELINED: Final = 100
"""How many requests may wait on one connection for the answer to the one before."""


class Corked:
    """A transport that writes the head of an answer and its body at once, where uvicorn writes one and then the other.

    Two writes are two packets, and wake the client up twice.

    Args:
        transport: Of asyncio; whatever is not here is its.
    """

    __slots__ = ("_held", "_transport", "_write", "abort", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._write = transport.write
        self._held = b""
        # What every request asks for; the rest goes through `__getattr__`.
        self.abort = transport.abort
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write, or hold a head that a body is certain to follow."""
        if self._held:
            data, self._held = self._held + data, b""
        elif data.startswith(b"HTTP/1.1 200") and b"\r\ncontent-length: " in data:
            self._held = data
            return
        if not self.is_closing():  # uvloop minds, and uvicorn tells only the last of several requests of the end
            self._write(data)

    def flush(self) -> None:
        """Write what is held."""
        if self._held:
            self.write(b"")

    def close(self) -> None:
        """Write what is held, and close."""
        self.flush()
        self._transport.close()


class Flow(FlowControl):
    """When a connection is read: not while requests of it wait, for uvicorn would take in more with each answer.

    Args:
        transport: Of asyncio.
        pipeline: The requests that wait.
    """

    def __init__(self, transport: asyncio.Transport, pipeline: deque[Any]) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        """Go on reading, if nothing waits."""
        if self.read_paused and not self._pipeline:
            super().resume_reading()


class GuardedProtocol(HttpToolsProtocol):
    """One connection. `front_config` is set by the subclass that `guard` makes."""

    front_config: FrontConfig

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock: a client that connects has something to say."""
        self._corked = Corked(transport)
        super().connection_made(self._corked)  # type: ignore[arg-type]
        self.flow = Flow(self._corked, self.pipeline)  # type: ignore[arg-type]
        self._header_bytes = self._barren_bytes = 0
        self._in_headers = self._in_body = self._handed_over = False
        self._deadline: asyncio.TimerHandle | None = None
        self._start_clock(self.front_config.patience.headers_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to headers or trailers that have not ended, so that endless ones are not kept."""
        self._barren_bytes += len(data)
        super().data_received(data)
        if self._handed_over:
            return
        if self._in_headers:
            self._header_bytes += len(data)
            self._watch(self._header_bytes, self.front_config.patience.headers_s)
        elif self._in_body:
            self._watch(self._barren_bytes, self.front_config.patience.body_s)
        elif self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._start_clock(self.front_config.patience.headers_s)  # blank lines: to uvicorn it is not idle any more

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._header_bytes = 0
        self._in_headers = True

    def on_headers_complete(self) -> None:
        """Its headers are here: from now on the application watches.

        Raises:
            ValueError: Very many requests wait for the answer to the one before; the parser gives up at that.
        """
        if len(self.pipeline) >= _PIPELINED:
            raise ValueError("too many requests wait")
        # A copy, for uvicorn adds trailers to its own. They "MUST NOT" be taken for headers (RFC 9110, 6.5.1).
        self.scope["headers"] = self.headers.copy()
        self._barren_bytes = 0
        self._in_headers, self._in_body = False, True
        if self._deadline is not None:
            self._stop_clock()
        self.scope["extensions"] = {ABORT: self._corked.abort}  # type: ignore[dict-item]
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of the body is here."""
        self._barren_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The body is here."""
        self._in_body = False
        if self._deadline is not None:
            self._stop_clock()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Whatever the body was, the head has gone by now."""
        self._corked.flush()
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to the other protocol, which has its own patience."""
        self._handed_over = True
        self._stop_clock()
        super().handle_websocket_upgrade()

    def _start_clock(self, after_s: float) -> None:
        self._deadline = self.loop.call_later(after_s, self._run_out)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _watch(self, size: int, patience_s: float) -> None:
        if size > 2 * self.front_config.limits.header_bytes:
            self._give_up(b"431 Request Header Fields Too Large")
        elif self._deadline is None:
            self._start_clock(patience_s)

    def _run_out(self) -> None:
        self._deadline = None
        if self._in_body and self.flow.read_paused:
            self._start_clock(self.front_config.patience.body_s)  # it is we who do not read
        else:
            self._give_up(b"408 Request Timeout")

    def _give_up(self, status: bytes) -> None:
        """Cut the connection; say why, if that cannot be taken for a part of another answer."""
        if self.transport.is_closing():
            return
        if (self._in_headers or self._in_body) and self._is_next():
            self.logger.warning("a connection is cut: %s", status.decode())
            self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; in silence, where that could be taken for a part of another answer."""
        if self._is_next():
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _is_next(self) -> bool:
        """Whether what is written now is the answer to what the client is sending."""
        if self._in_body:
            return not self.pipeline and not self.cycle.response_started
        return self.cycle is None or self.cycle.response_complete


def guard(config: FrontConfig) -> type[GuardedProtocol]:
    """Give the protocol with these limits."""
    return type("GuardedProtocol", (GuardedProtocol,), {"front_config": config})
