"""What uvicorn does not do itself: requests that never end, too many bodies, clients that do not read.

Lives here: its HTTP protocol with a limit for headers, deadlines for headers and bodies, the count of what comes in,
and handing over to WebSocket. Imports uvicorn: only `serve` imports this.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from dragoman.transports.defects import describe
from dragoman.transports.http.budget import FREE_BYTES, MAX_MEMORY, Budget, Excess, Hold
from dragoman.transports.http.closing import ClosingTransport, ReadingFlow
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import ABORT, HOLD, LARGE_BYTES, LOST, REPLY, Receive, Scope, Send
from dragoman.transports.http.guard_at_once import AtOnceProtocol
from dragoman.transports.http.refusals import Refusals

if TYPE_CHECKING:
    from dragoman.transports.http.app import HttpFront

_PIPELINED: Final = 100
"""How many requests may wait on one connection for the answer to the one before."""

_LAST_S: Final = 0.5
"""How long a connection that waits for nothing may take to close when the server stops; TLS says goodbye first."""

_DEFECT: Final = "internal error while a request is read"

_REASONS: Final = {
    400: b"Bad Request",
    408: b"Request Timeout",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    503: b"Service Unavailable",
}


class GuardedProtocol(AtOnceProtocol):
    """One connection. What all connections of a front share is set by the subclass that `guard` makes.

    Attributes:
        is_surplus: Whether it is one too many, and every request of it gets 503.
        accepted_at: When it was accepted, by the loop's clock; the first request has to come in time from then on.
        arrived: Called as soon as it is here.
        ended: Called when it has ended, whichever protocol it speaks by then.
    """

    serving: HttpFront
    front_config: FrontConfig
    budget: Budget
    refusals: Refusals
    is_surplus = False
    accepted_at: float | None = None
    arrived: Callable[[], object] | None = None
    ended: Callable[[], object]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock: a client that connects has something to say."""
        patience = self.front_config.patience
        self._closer = ClosingTransport(transport, self._is_unheard, patience.stall_s, self.ended)
        super().connection_made(self._closer)  # type: ignore[arg-type]
        self.flow: ReadingFlow = ReadingFlow(self._closer, self.pipeline, self.loop)  # type: ignore[arg-type]
        self.limit_concurrency = None  # counted at the door
        if self.arrived is not None:
            self.arrived()
        if self.is_surplus:
            self.app = _refuse_surplus
        self._hold = Hold(self.budget, self.client[0] if self.client else "")
        self._extensions: Any = {
            ABORT: self._closer.abort,
            HOLD: self._hold,
            REPLY: self._reply,
            LOST: self._watch_loss,
        }
        self._unstarted: RequestResponseCycle | None = None
        self._header_bytes = self._barren_bytes = self._body_bytes = 0
        self._in_headers = self._in_body = self._handed_over = self._begins = False
        self._deadline: asyncio.TimerHandle | None = None
        waited_s = 0.0 if self.accepted_at is None else self.loop.time() - self.accepted_at
        self._start_clock(max(0.0, patience.headers_s - waited_s))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        self._unset_keepalive_if_required()
        self._hold.release()
        super().connection_lost(exc)
        if self.pipeline:  # uvicorn tells only the last request, and it is the first that is served
            self._served.disconnected = True
            self._served.message_event.set()
            self.pipeline.clear()
        self.flow.forget()
        self._extensions.clear()
        self._known = self._spare = None
        if self.cycle is not None:
            del self.cycle.on_response  # circles stay until somebody looks for such
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is not None:
            on_lost()
        self._closer.lose()

    def data_received(self, data: bytes) -> None:
        """Take what came; whatever goes wrong about it ends this connection and nothing else."""
        if self._closer.is_lingering:
            return
        try:
            if not self._take_again(data):
                is_between = not (self._in_headers or self._in_body)
                self._take(data)
                if self._unstarted is not None:
                    self._start(data, is_between)
        except Exception as error:  # a defect of ours, or of the libraries below
            self.refusals.note(_DEFECT, f"{_DEFECT}: {describe(error)}")
            self._closer.abort()

    def _take(self, data: bytes) -> None:
        """Count what belongs to headers or trailers that have not ended, so that endless ones are not kept."""
        self._barren_bytes += len(data)
        self._unset_keepalive_if_required()
        self._parse(data)
        if self._handed_over or self._closer.is_closing():
            return
        if self._in_headers:
            self._header_bytes += len(data)
            self._watch(self._header_bytes, self.front_config.patience.headers_s)
        elif self._in_body:
            self._watch(self._barren_bytes, self.front_config.patience.body_s)
        elif self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._start_clock(self.front_config.patience.headers_s)  # blank lines: to uvicorn it is not idle any more

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if (
                not self._should_upgrade()
            ):  # something that we do not speak: answered as if it had not asked, and closed
                self.cycle.keep_alive = False
            elif upgrade.args[0] < len(data):  # it "MUST wait for a response" (RFC 6455, 4.1), and nobody would read it
                self._in_headers = True
                self._give_up(400, "frames of a WebSocket come before the answer to its opening")
            else:
                self.handle_websocket_upgrade()
        except httptools.HttpParserError as error:
            self._give_up(400, _explain(error))

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._header_bytes = self._body_bytes = 0
        self._in_headers = True

    def on_url(self, url: bytes) -> None:
        """Some of the URL is here.

        Raises:
            ValueError: There is too much of it; the parser gives up at that.
        """
        super().on_url(url)
        if len(self.url) > self.front_config.limits.header_bytes:
            raise ValueError(f"its URL is longer than {self.front_config.limits.header_bytes} bytes")

    def on_headers_complete(self) -> None:
        """Its headers are here: from now on the application watches.

        Raises:
            ValueError: It cannot be served; the parser gives up at that.
        """
        if len(self.pipeline) >= _PIPELINED:
            raise ValueError("too many requests wait for the answer to the one before")
        # A copy, for uvicorn adds trailers to its own. They "MUST NOT" be taken for headers (RFC 9110, 6.5.1).
        self.scope["headers"] = self.headers.copy()
        upgrades = self.parser.should_upgrade()
        if upgrades:
            self._check_upgrade()
        self.scope["extensions"] = self._extensions
        if self.cycle is not None and not self.pipeline:
            self._served = self.cycle  # unless it is answered already; then this one waits for nothing
        self._begins = not upgrades
        super().on_headers_complete()
        self._begins = False
        self._barren_bytes = 0
        self._in_headers, self._in_body = False, True
        if self._deadline is not None:
            self._stop_clock()

    def _check_upgrade(self) -> None:
        """Check a request that wants to speak something else on this connection, from here on.

        Raises:
            ValueError: It cannot.
        """
        if self.parser.get_method() == b"CONNECT":
            raise ValueError("it asks for a tunnel (CONNECT), and this is no forward proxy")
        if not self._should_upgrade():
            return
        if self.parser.get_method() != b"GET" or self.parser.get_http_version() != "1.1":
            raise ValueError("a WebSocket opens with GET and HTTP/1.1")
        if self.cycle is not None and not self.cycle.response_complete:
            raise ValueError("a WebSocket opens before the answer to the request before")
        if any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
            for name, value in self.headers
        ):
            raise ValueError("a WebSocket opens with a body")

    def on_body(self, body: bytes) -> None:
        """Some of the body is here."""
        self._barren_bytes = 0
        super().on_body(body)
        self._body_bytes += len(body)
        if self._body_bytes > FREE_BYTES and not self.cycle.response_complete:
            try:
                self._hold.resize(self._body_bytes)
            except Excess as excess:
                self._give_up(excess.status, excess.reason, MAX_MEMORY)

    def on_message_complete(self) -> None:
        """The body is here."""
        self._in_body = False
        if self._deadline is not None:
            self._stop_clock()
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Run the application: if it is asked for a request that begins, once we know whether its body is here."""
        if (
            self._begins
            and cycle.scope["method"] == "POST"
            and app is self.serving
            and not cycle.waiting_for_100_continue
        ):
            self._unstarted = cycle
        else:
            super()._start_asgi_task(cycle, app)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to WebSocket, which has its own patience; imported at the first, most see none."""
        self._handed_over = True
        self._stop_clock()
        if self.is_surplus:
            self._in_headers = True
            self._give_up(503, "there are too many connections")
            return
        from dragoman.transports.http.websocket_asgi import ServedWebSocket, WebSocketRequest

        opening = WebSocketRequest(dict(self.scope), self.url, self._closer.hand_over(), self._hold)
        served: Any = ServedWebSocket(opening, self.front_config, self.refusals)
        self.connections.remove(self)
        self.connections.add(served)
        task = self.loop.create_task(served.run(self.serving))
        self.tasks.add(task)
        task.add_done_callback(functools.partial(self._end_websocket, served))
        self._extensions.clear()

    def _end_websocket(self, served: Any, task: asyncio.Task[None]) -> None:
        self.connections.discard(served)
        self.tasks.discard(task)
        self._closer.lose()

    def shutdown(self) -> None:
        """End as soon as what is being answered is."""
        if self._in_body and not self.cycle.response_started:
            self._give_up(503, "the server is stopping")
        super().shutdown()
        if self._closer.is_closing():
            self._closer.abort_after(_LAST_S)

    def _start_clock(self, after_s: float) -> None:
        self._deadline = self.loop.call_later(after_s, self._run_out)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _watch(self, size: int, patience_s: float) -> None:
        if size > 2 * self.front_config.limits.header_bytes:
            self._give_up(431, "headers or trailers do not end")
        elif self._deadline is None:
            self._start_clock(patience_s)

    def _run_out(self) -> None:
        self._deadline = None
        paused_s = self.flow.take_paused() if self._in_body else 0.0
        if paused_s:
            self._start_clock(paused_s)  # it was we who did not read
        else:
            option = "--body-timeout" if self._in_body else "--header-timeout"
            self._give_up(408, "it did not come in time", option)

    def _give_up(self, status: int, reason: str, option: str = "") -> None:
        """End the connection; say why, if that cannot be taken for a part of another answer."""
        if self._closer.is_closing():
            return
        self._stop_clock()
        if (self._in_headers or self._in_body) and self._is_next():
            words = f"{status} {_REASONS[status].decode()}"
            peer = self.client[0] if self.client else "somebody"
            self.refusals.note(words, f"a request from {peer} is refused with {words}: {reason}", option)
            later = b"retry-after: 5\r\n" if status in (429, 503) else b""
            self._closer.write(
                b"HTTP/1.1 %d %s\r\n%sconnection: close\r\ncontent-length: 0\r\n\r\n"
                % (status, _REASONS[status], later)
            )
            self._closer.linger()
        else:
            self._closer.close()
        self._drop_body()

    def _drop_body(self) -> None:
        """Keep nothing of a body that is refused half-way; the application sees a client that has left."""
        if self._in_body:
            self.cycle.disconnected = True
            self.cycle.body.clear()
            self.cycle.message_event.set()
            self._hold.release()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._give_up(400, msg)

    def _is_unheard(self) -> bool:
        """Whether the client is still sending a body, which nobody wants."""
        return self._in_body

    def _is_reading(self) -> bool:
        return self._in_headers or self._in_body or self._deadline is not None

    def _is_next(self) -> bool:
        """Whether what is written now is the answer to what the client is sending."""
        if self._in_body:
            return not self.pipeline and not self.cycle.response_started
        return self.cycle is None or self.cycle.response_complete


def _explain(error: httptools.HttpParserError) -> str:
    """Say why a request cannot be read."""
    if not isinstance(error, httptools.HttpParserCallbackError):
        return str(error) or "it is no HTTP"
    cause = error.__context__
    if isinstance(
        cause, UnicodeError | AttributeError | httptools.HttpParserError
    ):  # what becomes of no path, or half a URL
        return "its URL cannot be read"
    return str(cause) if isinstance(cause, ValueError) else f"internal error: {describe(cause)}"


async def _refuse_surplus(_: Scope, __: Receive, send: Send) -> None:
    """Answer a request on a connection that is one too many."""
    headers = [(b"content-length", b"0"), (b"connection", b"close"), (b"retry-after", b"5")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def guard(front: HttpFront) -> type[GuardedProtocol]:
    """Give the protocol with the limits of a front."""
    shared = {
        "serving": front,
        "_at_once_bytes": min(LARGE_BYTES - 1, front.config.limits.body_bytes),
        "front_config": front.config,
        "budget": front.budget,
        "refusals": front.refusals,
    }
    return type("GuardedProtocol", (GuardedProtocol,), shared)
