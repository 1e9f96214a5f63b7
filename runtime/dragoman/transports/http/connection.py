"""One HTTP connection: requests are read, held to limits and deadlines, and served one after another.

Lives here: reading with `httptools`, what a client may take up while it sends, which request is served, and handing
over to WebSocket. Must not: write answers (`turn`), or know what a request is for: the front does.

Theory of operation. A request is served by the routine of the front, begun where its head was read: at once, if the
body is here and small. The head of such a request is remembered; the same bytes mean the same again on this
connection, so they are compared, and not read. Requests that come before the answer to the one before wait, and then
nothing more is read; what is no request waits there for its 400 too (RFC 9112, 2.2 and 9.3.2).
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import time
from collections import deque
from collections.abc import Coroutine, Iterable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

import httptools

from dragoman import system
from dragoman.core.lines import HEAD_BYTES
from dragoman.transports.countdown import Countdown
from dragoman.transports.defects import describe
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.closing import ClosingTransport, TurnFlow
from dragoman.transports.http.exchange import LARGE_BYTES, HttpRequest, Scope, Waits
from dragoman.transports.http.refusals import explain_parser
from dragoman.transports.http.site import FREE_BYTES, MAX_MEMORY, Excess, Hold, Site
from dragoman.transports.http.turn import Turn, opens_websocket, write_refusal
from dragoman.transports.known_heads import KnownHead, know_head
from dragoman.transports.pieces import PARTS_AT_ONCE, PIECE_BYTES, has_chunks, parse_pieces, rest_after

_PIPELINED: Final = 100
"""How many requests may wait on one connection for the answer to the one before."""

_LAST_S: Final = 0.5
"""How long a connection that waits for nothing may take to close when the server stops; TLS says goodbye first."""

_DEFECT: Final = "internal error while a request is read"


class ServedConnection(asyncio.Protocol):
    """One connection.

    Args:
        site: What it shares with others.
        is_surplus: Whether it is one too many, and every request of it gets 503.
        accepted_at: When it was accepted, by the loop's clock; the first request has to come in time from then on.
        number: Under which it is among those that arrive.
    """

    transport: ClosingTransport
    flow: TurnFlow
    known: KnownHead[HttpRequest] | None = None

    def __init__(
        self, site: Site, is_surplus: bool = False, accepted_at: float | None = None, number: int = -1
    ) -> None:
        self.site = site
        self._front = site.app if isinstance(site.app, HttpFront) and not is_surplus else None
        self._is_surplus = is_surplus
        self._accepted_at = accepted_at
        self._number = number
        self.loop = asyncio.get_running_loop()
        self._at_once_bytes = min(LARGE_BYTES - 1, site.config.limits.body_bytes)
        self.parser: Any = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # so that it can be answered
        self.turn: Turn | None = None  # the one that is served, or was served last
        self.pipeline: deque[Turn] = deque()  # those that wait, and the last of them may be read yet
        self._unstarted: Turn | None = None
        self._reading: Turn | None = None  # the one that came last
        self._spare: Turn | None = None
        self._refused: tuple[Turn, int, str, str] | None = None  # the last that waits, and what it gets
        self._header_bytes = self._barren_bytes = self._body_bytes = 0
        self._parts = self._unwanted_bytes = 0
        self._has_chunks = False  # whether it has had any: they may be short again
        self.in_headers = self.in_body = self._handed_over = False
        self._seen = bytearray()  # of the head that is read: the parser takes RTSP/1.0 for HTTP/1.0
        self._deadline = Countdown()
        self.idle_s = 75.0  # how long it may be open while nothing is asked of it
        self._idle = Countdown()
        self._idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock: a client that connects has something to say."""
        patience = self.site.config.patience
        self.transport = ClosingTransport(transport, self._is_unheard, patience.stall_s, self.site.ended)
        self.flow = TurnFlow(self.transport, self.pipeline, self.loop, self.data_received)
        self._context = contextvars.copy_context()
        client, server = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self.client = client[:2] if isinstance(client, tuple) else None
        self.site.connections.add(self)
        self.site.arriving.pop(self._number, None)
        self._hold = Hold(self.site.budget, self.client[0] if self.client else "")
        self._known_of_all: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": server[:2] if isinstance(server, tuple) else None,
            "client": self.client,
            "scheme": "http" if transport.get_extra_info("sslcontext") is None else "https",
            "root_path": "",
        }
        waited_s = 0.0 if self._accepted_at is None else self.loop.time() - self._accepted_at
        self._deadline.set(max(0.0, patience.headers_s - waited_s), self._run_out)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks, and let go of everything."""
        self._deadline.stop()
        self._idle.stop()
        self._hold.release()
        self.site.connections.discard(self)
        for turn in (self.turn, *self.pipeline):
            if turn is not None and not turn.is_complete:
                turn.lose()
        self.pipeline.clear()
        self.flow.forget()
        # Circles stay until somebody looks.
        self.known = self._spare = self.turn = self._reading = self._refused = self.parser = None
        self.transport.lose()

    def pause_writing(self) -> None:
        """The client does not read."""
        self.flow.writable.clear()

    def resume_writing(self) -> None:
        """It reads again."""
        self.flow.writable.set()

    def data_received(self, data: bytes) -> None:
        """Take what came; whatever goes wrong about it ends this connection and nothing else."""
        if self.transport.is_lingering or self._refused is not None:
            return
        if self.flow.left:
            self.flow.left += data
            return
        try:
            if not self._take_again(data):
                is_between = not (self.in_headers or self.in_body)
                self._take(data)
                turn, self._unstarted = self._unstarted, None
                if turn is not None:
                    self._start(turn, data if is_between else b"")
        except Exception as error:  # a defect of ours, or of the library below
            self.site.refusals.note(_DEFECT, f"{_DEFECT}: {describe(error)}")
            self.transport.abort()

    # Requests that are served

    def _start(self, turn: Turn, data: bytes = b"") -> None:
        """Serve a request: at once, as far as that goes.

        Args:
            turn: It.
            data: What came last, if that begins where the request does. If its head came in pieces, the last piece
                alone would say less than the whole.
        """
        if turn.is_gone:
            return
        self.turn = turn
        if self._refused is not None and turn is self._refused[0]:
            self._refuse(*self._refused[1:])
            return
        if self._is_surplus:
            turn.reply(503, ((b"connection", b"close"), (b"retry-after", b"5")), b"")
            self.transport.close()
            return
        if self._front is None:
            self._run(turn, self.site.app(turn.scope, turn.receive, turn.send))
            return
        request = HttpRequest(turn, self._hold, self._finish)
        if not turn.more_body and len(turn.body) <= self._at_once_bytes:
            request.body, turn.body = bytes(turn.body), b""
        self._spare = None
        self._front.serve_at_once(request)
        if request.body is not None and turn.keeps_alive and data and request.again is not None:
            self.known = know_head(data, request.body, request)

    def _take_again(self, data: bytes) -> bool:
        """Serve a request whose head is known, if it is here as a whole; false if it has to be read."""
        known, before = self.known, self.turn
        if known is None or before is None or not before.is_complete:
            return False
        body = known.find_body(data)
        if body is None or len(body) > self._at_once_bytes or self.transport.is_closing():
            return False
        request, again = known.meaning, known.meaning.again
        if again is None or self._front is None or request.gate is not self._front.gate:  # a secret may be revoked
            return False
        if request.until_s < math.inf and request.until_s <= time.time():
            return False
        if before is self._spare:  # no task has ever seen it: nobody is left who could answer it late
            before.is_started = before.is_complete = False
        else:
            self.turn = self._spare = Turn(self.flow, self.end_turn, request.scope, True)
            request = known.meaning = request.repeat(self.turn)
        request.body = body
        request.begin(again(request))
        return True

    def _finish(self, request: HttpRequest, waits: Waits) -> None:
        self._run(request.wire, self.site.app.finish(request, waits))

    def _run(self, turn: Any, work: Coroutine[Any, Any, None]) -> None:
        if turn is self._spare:
            self._spare = None
        self.site.run(self._serve(turn, work))

    async def _serve(self, turn: Turn, work: Coroutine[Any, Any, None]) -> None:
        """Serve a request to its end, in a task; one that has no answer then is none."""
        try:
            await work
        except Exception as error:  # a defect of ours, or of the application
            what = "internal error while a request is answered"
            self.site.refusals.note(what, f"{what}: {describe(error)}")
        is_owed = not (turn.is_complete or turn.is_gone)
        if is_owed and (turn.is_started or not turn.reply(500, ((b"connection", b"close"),), b"")):
            self.transport.abort()

    def end_turn(self) -> None:
        """Wait for the next request, or serve one that waits; what came in for this one is not needed any more.

        The timer for idleness is set once, and looks how long nothing has been asked.
        """
        self._idle_since = self.loop.time()
        if self._hold.size:
            self._hold.release()
        if not self._idle.is_set:
            self._idle.set(self.idle_s, self._look_idle)
        if (self.pipeline or self.flow.is_paused) and not self.transport.is_closing():
            if self.pipeline:  # not read on before it has an answer or waits for one: what comes may end all
                self.turn = self.pipeline.popleft()
                self.loop.call_soon(self._start, self.turn, context=self._context)
            else:
                self.flow.resume_reading()

    def _look_idle(self) -> None:
        """Close a connection of which nothing has been asked for long."""
        if self.turn is None or self.turn.is_complete:
            left_s = self._idle_since + self.idle_s - self.loop.time()
            if left_s > 0:
                self._idle.set(left_s, self._look_idle)
            else:
                self.transport.close()

    def shutdown(self) -> None:
        """End as soon as what is being answered is."""
        if self.in_body and self._is_next():
            self._give_up(503, "the server is stopping")
        if self.turn is None or self.turn.is_complete:
            self.transport.close()
        else:
            self.turn.keeps_alive = False
        if self.transport.is_closing():
            self.transport.abort_after(_LAST_S)

    # Requests that are read

    def _take(self, data: bytes) -> None:
        """Count what belongs to headers or trailers that have not ended, so that endless ones are not kept."""
        patience = self.site.config.patience
        self.known = None  # until a request has come whole again
        self._barren_bytes += len(data)
        self._parts = 0
        self._idle.stop()
        if len(data) > PIECE_BYTES and (self._has_chunks or (not self.in_body and has_chunks(data))):
            self.flow.left = parse_pieces(data, self._parse)
        else:
            self._parse(data)
        if self._handed_over or self.transport.is_closing():
            return
        if self._parts > PARTS_AT_ONCE:
            self._has_chunks = True
            self.flow.rest(rest_after(self.loop, self._parts))
        if self.in_headers:
            self._header_bytes += len(data)
            self._watch(self._header_bytes, patience.headers_s)
        elif self.in_body:
            self._watch(self._barren_bytes, patience.body_s)
            self._leave_unread(len(data))
        elif not self._deadline.is_set and (self.turn is None or self.turn.is_complete):
            self._deadline.set(patience.headers_s, self._run_out)  # blank lines: it is not idle any more

    def _parse(self, data: bytes) -> bool:
        """Parse this; whether more may be parsed before others have had a turn."""
        if self.in_headers:
            self._seen += data
        elif not self.in_body:
            self._seen = bytearray(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._reading is not None:  # something that we do not speak: answered as if it had not asked
                self._reading.keeps_alive = False
            elif upgrade.args[0] < len(data):  # it "MUST wait for a response" (RFC 6455, 4.1), and nobody would read it
                self.in_headers = True
                self._give_up(400, "frames of a WebSocket come before the answer to its opening")
            else:
                self._hand_over()
        except httptools.HttpParserError as error:
            self._give_up(400, explain_parser(error))
        return self._parts <= PARTS_AT_ONCE and not (self._handed_over or self._refused or self.transport.is_closing())

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._header_bytes = self._body_bytes = self._unwanted_bytes = 0
        self.in_headers = True

    def on_url(self, url: bytes) -> None:
        """Some of the URL is here.

        Raises:
            ValueError: There is too much of it; the parser gives up at that.
        """
        self._url += url
        if len(self._url) > self.site.config.limits.header_bytes:
            raise ValueError(f"its URL is longer than {self.site.config.limits.header_bytes} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header is here, or a trailer; these "MUST NOT" be taken for headers (RFC 9110, 6.5.1)."""
        if self.in_headers:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Its headers are here: from now on whoever serves it watches.

        Raises:
            ValueError: It cannot be served; the parser gives up at that.
        """
        if len(self.pipeline) >= _PIPELINED:
            raise ValueError("too many requests wait for the answer to the one before")
        parser, headers = self.parser, self._headers
        method, version = parser.get_method().decode("ascii"), parser.get_http_version()
        expects, self._has_chunks = _check_head(headers, version, self._seen)
        upgrades = parser.should_upgrade() and opens_websocket(
            method,
            version,
            tuple(headers),
            # A relayed one is at the instance that its client has come to.
            is_served=self._front is not None and self.site.read_scope is None,
            is_busy=self.turn is not None and not self.turn.is_complete,
        )
        url = httptools.parse_url(self._url)
        self._scope: Scope = {
            **self._known_of_all,
            "http_version": version,
            "method": method,
            "path": unquote(url.path.decode("ascii")),
            "raw_path": url.path,
            "query_string": url.query or b"",
            "state": dict(self.site.state),
            "headers": headers,
        }
        if self.site.read_scope is not None:
            self._scope = self.site.read_scope(self._scope)
            self._hold.belong((self._scope["client"] or ("",))[0])  # its client's, and not the other instance's
        self._barren_bytes = 0
        self._deadline.stop()
        self.in_headers, self.in_body, self._reading = False, True, None
        if upgrades:
            return
        turn = self._reading = Turn(
            self.flow, self.end_turn, self._scope, version != "1.0" and parser.should_keep_alive(), expects
        )
        if self.turn is None or self.turn.is_complete:
            self.turn = self._unstarted = turn
        else:
            self.flow.pause_reading()
            self.pipeline.append(turn)

    def on_body(self, body: bytes) -> None:
        """Some of the body is here."""
        turn = self._reading
        self._barren_bytes = 0
        self._parts += 1
        if turn is None or turn.is_complete:
            return
        if not turn.body:  # a large part is alone here, and not copied
            turn.body = body
        else:
            turn.body = turn.body if isinstance(turn.body, bytearray) else bytearray(turn.body)
            turn.body += body
        turn.wake()
        if len(turn.body) > LARGE_BYTES:
            self.flow.pause_reading()
        self._body_bytes += len(body)
        if self._body_bytes > FREE_BYTES:
            system.keep_freed_memory()
            try:
                self._hold.resize(self._body_bytes)
            except Excess as excess:
                self._give_up(excess.status, excess.reason, MAX_MEMORY)

    def on_message_complete(self) -> None:
        """The body is here."""
        self.in_body = False
        self._deadline.stop()
        if self._reading is not None:
            self._reading.more_body = False
            self._reading.wake()

    def _hand_over(self) -> None:
        """Hand the connection over to WebSocket, which has its own patience; imported at the first, most see none."""
        from dragoman.transports.http.websocket_asgi import WebSocketRequest, take_over

        self._handed_over = True
        self.site.connections.remove(self)
        opening = WebSocketRequest(self._scope, self._url, self.transport.hand_over(), self._hold)
        take_over(self.site, opening, self.transport.lose)

    def _watch(self, size: int, patience_s: float) -> None:
        if size > 2 * self.site.config.limits.header_bytes:
            self._give_up(431, "headers or trailers do not end")
        elif not self._deadline.is_set:
            self._deadline.set(patience_s, self._run_out)

    def _leave_unread(self, size: int) -> None:
        """Close what sends more to a request that is answered than a body can have: chunks may hold next to nothing."""
        if self._reading is not None and self._reading.is_complete:
            self._unwanted_bytes += size
            if self._unwanted_bytes > self.site.config.limits.body_bytes:
                self.transport.close()

    def _run_out(self) -> None:
        paused_s = self.flow.take_paused() if self.in_body else 0.0
        if paused_s:
            self._deadline.set(paused_s, self._run_out)  # it was we who did not read
        else:
            option = "--body-timeout" if self.in_body else "--header-timeout"
            self._give_up(408, "it did not come in time", option)

    def _give_up(self, status: int, reason: str, option: str = "") -> None:
        """End the connection; say why, if that cannot be taken for a part of another answer: if need be, behind it."""
        if self.transport.is_closing():
            return
        self._deadline.stop()
        if (self.in_headers or self.in_body) and self._is_next():
            self._refuse(status, reason, option)
        elif self.in_headers or (self.in_body and self.pipeline):
            refused = self.pipeline.pop() if self.in_body else Turn(self.flow, self.end_turn, {}, False)
            self._refused = refused, status, reason, option
            self.in_headers = self.in_body = False
            self.flow.pause_reading()
            self.pipeline.append(refused)
        else:
            self.transport.close()
        if self.in_body and self._reading is not None:  # whoever serves it sees a client that has left
            if status == HTTPStatus.REQUEST_TIMEOUT:
                self._reading.late = bytes(self._reading.body[:HEAD_BYTES])
            self._reading.body = b""
            self._reading.lose()
            self._hold.release()

    def _refuse(self, status: int, reason: str, option: str) -> None:
        """Write why what the client is sending is not served, and close."""
        words = f"{status} {HTTPStatus(status).phrase}"
        peer = self.client[0] if self.client else "somebody"
        self.site.refusals.note(words, f"a request from {peer} is refused with {words}: {reason}", option)
        self.transport.write(write_refusal(words))
        self.transport.linger()

    def _is_unheard(self) -> bool:
        """Whether the client is sending what nobody will read."""
        return self.in_body or self._refused is not None

    def _is_next(self) -> bool:
        """Whether what is written now is the answer to what the client is sending."""
        if self.in_body:
            return not self.pipeline and self._reading is not None and not self._reading.is_started
        return self.turn is None or self.turn.is_complete


def _check_head(headers: Iterable[tuple[bytes, bytes]], version: str, seen: bytes | bytearray) -> tuple[bool, bool]:
    """Check what a request is written in; whether it waits for a word before its body, and whether that is in chunks.

    Raises:
        ValueError: It is not HTTP/1.0 or HTTP/1.1, of which the parser is not sure, or its body is compressed.
    """
    if version != "1.1" and (version != "1.0" or b" HTTP/1.0" not in seen):
        raise ValueError("it is not HTTP/1.0 or HTTP/1.1")
    expects = has_chunks = False
    for name, value in headers:
        if name == b"expect":
            expects = version == "1.1" and value.lower() == b"100-continue"  # RFC 9110, 10.1.1
        elif name == b"transfer-encoding":
            if value.strip().lower() != b"chunked":
                raise ValueError("its Transfer-Encoding is another one than chunked")
            has_chunks = True
    return expects, has_chunks
