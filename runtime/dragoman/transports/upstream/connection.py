"""One HTTP/1.1 connection as a client: a request goes out, its answer comes in, and then perhaps the next.

Lives here: writing requests no faster than they are taken, feeding the parser (httptools), bounds for what it keeps,
the patience with a server that says nothing, and keeping connections that are idle. Must not: know MCP, where to
connect, or what a status means. Made by `connection_pool`.

Theory of operation: a connection has at most one answer under way. The parser fills it, in the order message begin,
header, headers complete, body, message complete; informational answers (1xx) go by the same way and are passed over.
If anything comes while no answer is expected, the connection is not used again: otherwise it could become the answer to
the next request.

A connection that nobody uses now is kept for the next request to the same origin with the same credentials. Sessions of
one configured server share them; a session that asks middleware for headers, or has cookies, keeps to connections of
its own. A tool call that meets a closing connection cannot be repeated: nobody knows whether it was carried out. So a
connection is looked at before it is used, which takes a microsecond, and once a server has closed an idle connection,
those to it are kept for less than that time.

Source: RFC 9112.
"""

from __future__ import annotations

import asyncio
import math
import select
import sys
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

import httptools

from dragoman import system
from dragoman.errors import TransportError
from dragoman.transports.countdown import Countdown
from dragoman.transports.known_heads import KnownHead, know_head
from dragoman.transports.pieces import PARTS_AT_ONCE, PIECE_BYTES, has_chunks, parse_pieces, rest_after
from dragoman.transports.upstream.answers import Head, Headers, HttpResponse

HEAD_BYTES: Final = 64 * 1024
HEADERS: Final = 256
"""The most headers, informational answers and trailers that one answer may have; together they fill `HEAD_BYTES`."""

_AT_ONCE_BYTES: Final = 256 * 1024
_KNOWN_BYTES: Final = 64 * 1024
SWITCHING_PROTOCOLS: Final = 101
_CODINGS: Final = (b"chunked", b"identity")
_WITHOUT_BODY: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
"""Whatever length they name: RFC 9112, 6.3."""
_JOINED: Final = {b"set-cookie": b"\n", b"www-authenticate": b", ", b"proxy-authenticate": b", "}
"""Headers of which each value counts, and what is put between them."""
_LATE_S: Final = 0.001

_KEEP_S: Final = 60.0
_LEAST_S: Final = 2.0
"""A server that closes a connection sooner than this does so for another reason."""

_MARGIN: Final = 0.8
_MOST: Final = 256
"""How many are kept for one origin and set of credentials; the oldest go."""


class Unexpected(Exception):
    """What the parser found cannot be an answer, or not ours; raised to make it stop."""


class HttpConnection(asyncio.Protocol):
    """A connection, and what is under way on it.

    Args:
        peer: The server, as a person would name it.
        on_free: Called when an answer is not read any more; with whether another request may follow.
        on_lost: Called when the connection is gone.

    Attributes:
        on_lost: As given; whoever keeps an idle connection is told in its place.
        requests: How many requests have been sent.
    """

    def __init__(
        self, peer: str, on_free: Callable[[HttpConnection, bool], None], on_lost: Callable[[HttpConnection], None]
    ) -> None:
        self._peer = peer
        self._on_free = on_free
        self.on_lost = on_lost
        self.requests = 0
        self._idle_since = 0.0
        self._poll: Any = None
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._answer: HttpResponse | None = None
        self._reusable = False
        # Reading.
        self._headers: Headers = {}
        self._head_bytes = 0
        self._head_count = 0
        self._quiet_bytes = self._parts = 0
        self._beyond = b""
        self._left = b""  # what has come, and is not parsed yet
        self._rests = False  # while others have a turn
        self._has_chunks = False  # whether an answer had any: they may be short
        self._known: KnownHead[Head] | None = None
        # Writing.
        self._full = False
        self._rest: memoryview | None = None
        self._on_sent: Callable[[], None] | None = None
        # Patience.
        self._idle_s: float | None = None
        self._alive_at = 0.0
        self._timer = Countdown()
        self._timer_at = math.inf

    @property
    def open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def idle_s(self) -> float:
        """How long ago the last request was done, in seconds."""
        return self._loop.time() - self._idle_since

    def is_usable(self, within_s: float) -> bool:
        """Whether an idle connection is open, and was used within so many seconds.

        What has come, and was not yet read by the loop, could only be its end.
        """
        if self._transport is None or self._transport.is_closing():
            return False
        if self._loop.time() - self._idle_since >= within_s:
            return False
        if sys.platform == "win32":
            return not system.has_more(self._transport.get_extra_info("socket").fileno())
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not self._poll.poll(0)

    def adopt(
        self, peer: str, on_free: Callable[[HttpConnection, bool], None], on_lost: Callable[[HttpConnection], None]
    ) -> None:
        """Serve another session."""
        self._peer, self._on_free, self.on_lost = peer, on_free, on_lost

    def begin(self, head: bytes, body: bytes | None, on_sent: Callable[[], None], idle_s: float | None) -> HttpResponse:
        """Send a request, as fast as it is taken; its answer fills itself.

        Args:
            head: Request line and headers.
            body: What follows.
            on_sent: Called when everything has been written, perhaps before this returns.
            idle_s: How long nothing may happen on the connection; None waits for ever.
        """
        assert self._transport is not None
        answer = self._answer = HttpResponse(self._peer, self)
        self.requests += 1
        self._reusable = False
        self._head_bytes = self._head_count = self._quiet_bytes = 0
        self._idle_s = idle_s
        self._alive_at = self._loop.time()
        if idle_s is not None and self._timer_at > self._alive_at + idle_s:
            self._arm(idle_s)
        if body is None or len(body) <= _AT_ONCE_BYTES:
            self._transport.write(head + body if body else head)  # one write is one packet, if it is short
            on_sent()
        else:
            self._transport.write(head)
            self._rest, self._on_sent = memoryview(body), on_sent
            self._write_more()
        return answer

    def drop(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def release(self) -> asyncio.Transport:
        """Give away what is below; this connection is of no use any more.

        Raises:
            TransportError: It is closed.
        """
        if self._transport is None or not self.open:
            raise TransportError(self._peer, "it closed the connection as soon as it was open")
        transport, self._transport = self._transport, None
        self._answer, self._parser = None, None
        return transport

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """Let another protocol go on, after an answer with 101; it gets what came behind that.

        Raises:
            TransportError: It is closed.
        """
        transport = self.release()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        transport.resume_reading()
        if self._beyond:
            protocol.data_received(self._beyond)
        self.on_lost(self)

    # What an answer asks for.

    def pause(self) -> None:
        """Leave what comes in the socket."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Go on reading; a server that was not listened to has not been silent."""
        if self._transport is not None and not self._transport.is_closing():
            self._alive_at = self._loop.time()
            if self._rests:
                return
            if self._left:  # which is taken first
                self._read_later(0.0)
            else:
                self._transport.resume_reading()

    def let_go(self) -> None:
        """The answer is not read any more."""
        answer, self._answer, self._on_sent, self._rest = self._answer, None, None, None
        self._idle_since = self._loop.time()
        # Else nobody would read the next answer either, or what came behind this one would be taken for it.
        is_read = (answer is None or not answer.held) and not self._left
        self._on_free(self, self._reusable and is_read)

    # What the event loop says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are of no class of asyncio's
        self._parser = httptools.HttpResponseParser(self)
        # Servers end lines with LF alone, or put spaces after the size of a chunk; no harm comes of either.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def data_received(self, data: bytes) -> None:
        """Something came."""
        answer, parser = self._answer, self._parser
        if answer is None or parser is None:
            self.drop()  # nobody asked
            return
        is_first, answer.begun = not answer.begun, True
        body = self._known.find_body(data) if is_first and self._known is not None else None
        if self._known is not None and body is not None:
            self._reusable = self._rest is None and not self._full
            answer.take_whole(self._known.meaning, body)
        else:
            self._alive_at = self._loop.time()
            self._parts = 0
            if len(data) > PIECE_BYTES and (self._has_chunks or (is_first and has_chunks(data))):
                left = parse_pieces(data, partial(self._parse, answer, parser))
                if answer.status == SWITCHING_PROTOCOLS:
                    self._beyond += left
                else:
                    self._left = left
            else:
                self._parse(answer, parser, data)
            if self._parts > PARTS_AT_ONCE:
                self.pause()
                self._read_later(rest_after(self._loop, self._parts))
            if is_first and self._reusable:
                self._know(answer, data)
        answer.tell()

    def _read_later(self, rest_s: float) -> None:
        self._rests = True
        self._loop.call_later(rest_s, self._read_on)

    def _read_on(self) -> None:
        """Go on with what has come, and then reading, unless whoever wants the answer does not."""
        self._rests = False
        if self._answer is not None and self._answer.held:
            return
        left, self._left = self._left, b""
        if left:
            self.data_received(left)
        if not self._rests and not (self._answer is not None and self._answer.held):
            self.resume()

    def _know(self, answer: HttpResponse, data: bytes) -> None:
        """Remember the head of an answer that came in one piece, if what it says of the length means the body."""
        length = answer.length
        if length is not None and length < _KNOWN_BYTES and answer.status not in _WITHOUT_BODY:
            self._known = know_head(data, data[len(data) - length :], answer.head)

    def _parse(self, answer: HttpResponse, parser: httptools.HttpResponseParser, data: bytes) -> bool:
        """Parse this; whether more may be parsed before others have had a turn."""
        self._quiet_bytes += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._reusable = False
            self._beyond = data[upgrade.args[0] :]
            self.pause()
        except httptools.HttpParserError as error:
            self._reusable = False
            if not answer.complete:
                self._fail(f"its answer is not HTTP: {error.__context__ or error}"[:200])
        else:
            if self._quiet_bytes > HEAD_BYTES and not answer.complete:
                self._fail("its answer is not HTTP: its headers do not end")
        is_over = answer.failure or self._transport is None or answer.status == SWITCHING_PROTOCOLS
        return self._parts <= PARTS_AT_ONCE and not is_over

    def eof_received(self) -> None:
        """The server sends no more. What it has not read of the request it will not answer."""
        self._end(None)
        self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._end(exc)
        self._timer.stop()
        self._transport = self._parser = None  # parser and connection hold each other
        self.on_lost(self)

    def pause_writing(self) -> None:
        """The server does not take it as fast as we write."""
        self._full = True

    def resume_writing(self) -> None:
        """There is room again."""
        self._full = False
        if self._rest is not None:
            self._write_more()

    # What the parser says.

    def on_message_begin(self) -> None:
        """An answer begins, or something that follows it."""
        if self._answer is None or self._answer.complete:
            raise Unexpected("nothing was asked")
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer."""
        self._quiet_bytes = 0
        self._count(len(name) + len(value))
        key = name.lower()
        if key not in self._headers:
            self._headers[key] = value
        elif key in _JOINED:
            self._headers[key] += _JOINED[key] + value

    def on_headers_complete(self) -> None:
        """The head is here; that of an informational answer is passed over."""
        assert self._parser is not None
        assert self._answer is not None
        status = self._parser.get_status_code()
        if status < 200 and status != SWITCHING_PROTOCOLS:
            if status < 100:
                raise Unexpected(f"its status is {status}")
            self._count(0)
            return
        if (coding := self._headers.get(b"transfer-encoding")) is not None:
            if coding.strip().lower() not in _CODINGS:
                raise Unexpected("its Transfer-Encoding is another one than chunked")
            self._has_chunks = True
        self._answer.take_head(status, self._headers)
        self._headers = {}  # trailers are nobody's

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        assert self._answer is not None
        self._quiet_bytes = 0
        self._parts += 1
        self._answer.take_body(body)

    def on_message_complete(self) -> None:
        """The answer is complete, if it was one."""
        assert self._parser is not None
        assert self._answer is not None
        if self._answer.status:
            whole = self._rest is None and not self._full
            keeps = self._parser.should_keep_alive() and self._answer.status != SWITCHING_PROTOCOLS
            self._reusable = whole and keeps
            self._answer.take_end()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        self._head_count += 1
        if self._head_bytes > HEAD_BYTES or self._head_count > HEADERS:
            raise Unexpected("it has too many headers")

    def _write_more(self) -> None:
        assert self._transport is not None
        while self._rest is not None and not self._full:
            piece, rest = self._rest[:_AT_ONCE_BYTES], self._rest[_AT_ONCE_BYTES:]
            self._rest = rest if rest else None
            self._alive_at = self._loop.time()
            self._transport.write(piece)
        if self._rest is None and self._on_sent is not None:
            on_sent, self._on_sent = self._on_sent, None
            on_sent()

    def _end(self, error: Exception | None) -> None:
        answer, self._reusable, self._rest = self._answer, False, None
        if answer is None or answer.complete or answer.failure:
            return
        answer.lost = True
        when = "in the middle of its answer" if answer.begun else "without an answer"
        if isinstance(error, ConnectionResetError):
            answer.fail(f"it reset the connection {when}")
        elif error is not None:
            answer.fail(f"the connection broke {when}: {str(error) or type(error).__name__}"[:200])
        elif not answer.take_close():
            answer.fail(f"it closed the connection {when}")

    def _fail(self, reason: str) -> None:
        self._reusable = False
        if self._answer is not None:
            self._answer.fail(reason)
        self.drop()

    def _arm(self, after_s: float) -> None:
        self._timer_at = self._loop.time() + after_s
        self._timer.set(after_s, self._check)

    def _check(self) -> None:
        """See whether something has happened lately. One timer serves many requests: it is set again, not for each."""
        self._timer_at, answer = math.inf, self._answer
        if answer is None or answer.complete or self._idle_s is None:
            return
        left_s = self._alive_at + self._idle_s - self._loop.time()
        if answer.held or answer.waits:
            self._arm(self._idle_s)  # it may speak, but nobody listens; or it is not its turn
        elif left_s > _LATE_S:
            self._arm(left_s)
        else:
            self._fail("nothing came from it for too long")


class Shelf:
    """The idle connections to one origin with one set of credentials.

    Attributes:
        users: How many sessions use them.
        keep_s: For how long each is kept.
        kept: In the order of use, the longest idle first.
    """

    def __init__(self) -> None:
        self.users = 0
        self.keep_s = _KEEP_S
        self.kept: list[HttpConnection] = []
        self._sweeper = Countdown()

    def take(self) -> HttpConnection | None:
        """Return the connection that was used last; one that is closing is of no use."""
        while self.kept:
            connection = self.kept[-1]
            if connection.is_usable(self.keep_s):
                return self.kept.pop()
            self._lose(connection)
            connection.drop()
        return None

    def keep(self, connection: HttpConnection) -> None:
        """Take a connection that may be used again."""
        connection.on_lost = self._lose
        self.kept.append(connection)
        if len(self.kept) > _MOST:
            self.kept.pop(0).drop()
        if not self._sweeper.is_set:
            self._sweeper.set(self.keep_s, self._sweep)

    def drop(self) -> None:
        """Close them."""
        kept, self.kept = self.kept, []
        for connection in kept:
            connection.drop()
        self._sweep()

    def _lose(self, connection: HttpConnection) -> None:
        if connection not in self.kept:
            return  # we closed it
        self.kept.remove(connection)
        age_s = connection.idle_s
        if _LEAST_S <= age_s < self.keep_s:  # the server has closed it
            self.keep_s = age_s * _MARGIN
            self._sweep()

    def _sweep(self) -> None:
        """Drop what has been idle for too long."""
        self._sweeper.stop()
        while self.kept and self.kept[0].idle_s >= self.keep_s:
            self.kept.pop(0).drop()
        if self.kept:
            self._sweeper.set(self.keep_s - self.kept[0].idle_s, self._sweep)
