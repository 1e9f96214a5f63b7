"""Streamable HTTP, as the revisions with sessions have it, towards clients; `per_request` serves the others.

Lives here: what a POST, a GET and a DELETE mean, and with which status they are answered. Must not: choose
streams (`streamable_session`), or check who the client is (`security`). Called by `app`.

Source: basic/transports of each revision, Streamable HTTP. A client's disconnecting "SHOULD NOT be interpreted as the
client cancelling its request": nothing here tells the server of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import (
    JSON,
    LARGE_BYTES,
    Disconnected,
    HttpExchange,
    RequestRefused,
    accepts,
    encode_headers,
)
from dragoman.transports.http.pending import Known, KnownPost
from dragoman.transports.http.pending_request import KnownRequest
from dragoman.transports.http.per_request import PerRequestHttpFront, claims_this_era
from dragoman.transports.http.posts import PostedCall
from dragoman.transports.http.pump import pump
from dragoman.transports.http.reading import Posted, check_batch, check_content_type, read_posted
from dragoman.transports.http.sessions import MAX_STREAMS, VISITS_A_STREAM, Caller, HttpSession, Sessions
from dragoman.transports.http.sse import encode_message
from dragoman.transports.http.streamable_session import StreamableSession
from dragoman.transports.http.streams import Reader, Stream, StreamConnection
from dragoman_spec import HANDSHAKE_REVISIONS, facts

if TYPE_CHECKING:
    from dragoman.transports.http.app import HttpFront

_OPENING_BYTES: Final = 1024 * 1024
"""The longest `initialize`: nobody is known yet who would be held to the limits of a session."""

_ALLOW_POST: Final = (b"allow", b"POST, OPTIONS")
_ALLOW: Final = (b"allow", b"GET, POST, DELETE, OPTIONS")


class StreamableFront:
    """Serves the MCP endpoint.

    Args:
        config: What was decided.
        sessions: Those of the whole front.
    """

    def __init__(self, config: FrontConfig, sessions: Sessions) -> None:
        self._config = config
        self._sessions = sessions
        self._per_request = PerRequestHttpFront(config, sessions)

    def serve(self, exchange: HttpExchange) -> Awaitable[None]:
        """Answer one request.

        Raises:
            RequestRefused: It is not served.
            Disconnected: The client went away before there was anything to answer.
        """
        if exchange.method in ("GET", "DELETE") and exchange.speaks_for_itself:
            raise RequestRefused(
                405, "expected POST: this revision has neither sessions nor streams of their own", _ALLOW_POST
            )
        match exchange.method:
            case "POST":
                return self._take_post(exchange)
            case "GET":
                return self._take_get(exchange)
            case "DELETE":
                return self._take_delete(exchange)
            case _:
                raise RequestRefused(405, "expected GET, POST or DELETE", _ALLOW)

    def know(self, exchange: HttpExchange, front: HttpFront) -> Known | None:
        """Find out from the head of a POST how it is served at once; None if `serve` has to do it.

        Raises:
            RequestRefused: It is not served.
        """
        headers = exchange.headers
        if not all(_check_post(headers)) or self._config.answers != "auto" or b"content-encoding" in headers:
            return None
        if exchange.speaks_for_itself:
            return KnownRequest(exchange, self._per_request, front)
        return KnownPost(exchange, self._find(exchange), front) if b"mcp-session-id" in headers else None

    def read_at_once(self, session: HttpSession[StreamableSession], body: bytes) -> Posted | None:
        """Read a POST whose body is here, if nothing about it has to wait; None if `serve` has to do it.

        Raises:
            RequestRefused: It is not served.
        """
        limits = self._config.limits
        if (
            len(body) > limits.body_bytes
            or not session.takes_at_once
            or session.visits >= VISITS_A_STREAM * limits.streams
        ):
            return None
        posted = read_posted(body, limits.nesting)
        if posted.is_batch or not session.transport.may_take(posted, limits.streams):
            return None
        return posted

    async def _take_post(self, exchange: HttpExchange) -> None:
        takes_json, takes_stream = _check_post(exchange.headers)
        speaks_for_itself = exchange.speaks_for_itself
        if speaks_for_itself or b"mcp-session-id" not in exchange.headers:
            limits, most = self._config.limits, self._config.limits.body_bytes
            most = most if speaks_for_itself else min(_OPENING_BYTES, most)
            body = await exchange.read_body(most, self._config.patience.body_s)
            posted = read_posted(body, limits.nesting, keeps_body=True)
            if claims_this_era(posted, speaks_for_itself):
                await self._per_request.serve(exchange, posted, takes_json, takes_stream)
            else:
                await self._open(exchange, posted, takes_json)
            return
        session = self._find(exchange)
        if session.visits >= VISITS_A_STREAM * self._config.limits.streams:
            raise _too_many_streams(None)
        with session:
            readable = session.transport.readable
            async with session.turn(readable.is_set()):
                if not readable.is_set():
                    await readable.wait()
                body = await exchange.read_body(self._config.limits.body_bytes, self._config.patience.body_s)
                posted = read_posted(body, self._config.limits.nesting)
                call = await self._post(session.transport, posted, takes_json, takes_stream)
                exchange.hold.release()
            if call is None:
                await exchange.reply(202)
            else:
                await self._answer(exchange, session.transport, call, takes_json)

    def _find(self, exchange: HttpExchange) -> HttpSession[StreamableSession]:
        session_id = exchange.header(b"mcp-session-id")
        if session_id is None:
            raise RequestRefused(400, "expected an Mcp-Session-Id header")
        session = self._sessions.find(session_id, exchange.principal, StreamableSession)
        header = exchange.header(b"mcp-protocol-version")
        if header is not None and header not in HANDSHAKE_REVISIONS and _names_revision(session.transport.revision):
            # "If the server receives a request with an invalid or unsupported MCP-Protocol-Version, it MUST respond
            # with 400 Bad Request." Without the header, the revision is the one negotiated.
            known = ", ".join(HANDSHAKE_REVISIONS)
            raise RequestRefused(400, f"expected MCP-Protocol-Version to name one of {known}")
        return session

    async def _open(self, exchange: HttpExchange, posted: Posted, takes_json: bool) -> None:
        """Open a session; one whose `initialize` is not answered with a result ends."""
        if not posted.initializes:
            raise RequestRefused(
                400, "expected an Mcp-Session-Id header: only initialize goes without", key=_only_key(posted)
            )
        session = self._sessions.open(StreamableSession(self._config), Caller(exchange.principal, "streamable-http"))
        transport = session.transport
        with session:
            call = await self._post(transport, posted, takes_json, takes_stream=False)
            exchange.hold.release()
            assert call is not None
            try:
                await _wait(exchange, call)
            finally:
                if not call.opened:
                    transport.end("initialize was not answered with a result")
            headers = ((b"mcp-session-id", session.id.encode()),) if call.opened else ()
            await self._reply_whole(exchange, transport, call, takes_json, *headers)

    async def _post(
        self, transport: StreamableSession, posted: Posted, takes_json: bool, takes_stream: bool
    ) -> PostedCall | None:
        check_batch(posted, transport.revision)
        if not transport.readable.is_set():
            await transport.readable.wait()
        self._check_posted(transport, posted)
        streams = takes_stream and not (self._config.answers == "json" and takes_json)
        return transport.post(posted, streams)

    def _check_posted(self, transport: StreamableSession, posted: Posted) -> None:
        if transport.may_take(posted, self._config.limits.streams):
            return
        if transport.is_waiting(posted.keys):
            raise RequestRefused(400, "the id of this request belongs to one that is not answered yet")
        if transport.over:
            raise RequestRefused(404, "the session is over")
        raise _too_many_streams(_only_key(posted))

    async def _answer(
        self, exchange: HttpExchange, transport: StreamableSession, call: PostedCall, takes_json: bool
    ) -> None:
        if call.takes_stream:
            if not takes_json or self._config.answers == "sse":
                transport.begin_stream(call)
            if not call.is_decided:
                transport.time(call)
                await call.wait()
        elif not call.is_decided:
            await _wait(exchange, call)
        await self.finish(exchange, transport, call, takes_json)

    async def finish(
        self, exchange: HttpExchange, transport: StreamableSession, call: PostedCall, takes_json: bool
    ) -> None:
        """Answer a call of which it is clear how.

        Raises:
            RequestRefused: There is no answer.
        """
        if call.stream is not None and call.connection is not None:
            await self._send_stream(exchange, transport, call.stream, call.connection, is_new=True)
        else:
            await self._reply_whole(exchange, transport, call, takes_json)

    async def _take_get(self, exchange: HttpExchange) -> None:
        if not accepts(exchange.headers.get(b"accept"), "text/event-stream"):
            raise RequestRefused(406, "expected to Accept text/event-stream")
        session = self._find(exchange)
        transport = session.transport
        last = exchange.header(b"last-event-id")
        connection = StreamConnection()
        with session:
            stream = None if last is None else transport.resume(last, connection)
            is_new = stream is None
            if stream is None:
                if last is not None and last.startswith("p"):
                    raise RequestRefused(410, "the stream of this event is gone")
                if transport.standing >= self._config.limits.streams:
                    raise _too_many_streams(None)
                stream = transport.stand(connection)
            await self._send_stream(exchange, transport, stream, connection, is_new)

    async def _take_delete(self, exchange: HttpExchange) -> None:
        self._find(exchange).transport.end("the client has deleted its session")
        await exchange.reply(204)

    async def _send_stream(
        self,
        exchange: HttpExchange,
        transport: StreamableSession,
        stream: Stream,
        connection: StreamConnection,
        is_new: bool,
    ) -> None:
        polls = transport.revision in HANDSHAKE_REVISIONS and facts(transport.revision).polls
        await exchange.start_stream()
        if polls and is_new:
            await exchange.send_part(stream.prime(self._config.patience.retry_s))
        try:
            await pump(exchange, Reader(stream, connection), stream.settle, self._config.patience, polls)
        finally:
            stream.detach(connection)

    async def _reply_whole(
        self,
        exchange: HttpExchange,
        transport: StreamableSession,
        call: PostedCall,
        takes_json: bool,
        *headers: tuple[bytes, bytes],
    ) -> None:
        body = call.body()
        if not call.answers and call.keys:
            raise RequestRefused(404, "the session is over, without a word about this request")
        if not call.answers and not call.takes_stream:
            await exchange.reply(202, b"", *headers)
        elif not call.answers or not takes_json:
            # Cancelled without an answer, so nobody waits. Not a 404: the client "MUST start a new session" then.
            await exchange.start_stream(*headers)
            await exchange.send_part(encode_message(body) if call.answers else b"", more=False)
        elif len(body) < LARGE_BYTES:
            is_refused = call.headers and not call.is_batch
            more = encode_headers(call.headers) if is_refused else ()
            await exchange.reply(429 if is_refused else 200, body, JSON, *headers, *more)
        else:
            transport.charge(len(body))
            try:
                await exchange.reply_large(body, self._config.patience.stall_s, JSON, *headers)
            finally:
                transport.charge(-len(body))


def _check_post(headers: dict[bytes, bytes]) -> tuple[bool, bool]:
    """Give whether the client takes JSON, and streams.

    Raises:
        RequestRefused: It takes neither, or does not post JSON.
    """
    takes = headers.get(b"accept")
    takes_json, takes_stream = accepts(takes, "application/json"), accepts(takes, "text/event-stream")
    if not takes_json and not takes_stream:
        raise RequestRefused(406, "expected to Accept application/json and text/event-stream")
    check_content_type(headers.get(b"content-type"))
    return takes_json, takes_stream


async def _wait(exchange: HttpExchange, call: PostedCall) -> None:
    """Wait for answers that cannot be streamed, as long as the client does."""
    watch, decided = asyncio.ensure_future(exchange.wait_for_disconnect()), asyncio.ensure_future(call.wait())
    try:
        await asyncio.wait({watch, decided}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watch.cancel()
        decided.cancel()
    if not call.is_decided:
        raise Disconnected


def _names_revision(revision: str | None) -> bool:
    """Whether the header that names the revision means something to a client; nothing is known of one that has none."""
    return revision not in HANDSHAKE_REVISIONS or "revision" in facts(revision).headers


def _only_key(posted: Posted) -> bytes | None:
    return next(iter(posted.keys)) if len(posted.keys) == 1 else None


def _too_many_streams(key: bytes | None) -> RequestRefused:
    reason = "too many requests of this session are under way"
    return RequestRefused(429, reason, (b"retry-after", b"1"), key=key, option=MAX_STREAMS)
