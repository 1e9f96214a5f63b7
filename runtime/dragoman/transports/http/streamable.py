"""Streamable HTTP, as the revisions with sessions have it, towards clients; `per_request` serves the others.

Lives here: what a POST, a GET and a DELETE mean, and with which status they are answered. Must not: choose
streams (`streamable_session`), or check who the client is (`security`). Called by `app`.

Source: basic/transports of each revision, Streamable HTTP. A client's disconnecting "SHOULD NOT be interpreted as the
client cancelling its request": nothing here tells the server of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from dragoman.core.edges.session_state import AGAIN_S
from dragoman.core.exact_json import encode_line
from dragoman.core.methods import INITIALIZED, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import (
    JSON,
    LARGE_BYTES,
    RELAYED,
    Disconnected,
    HttpRequest,
    RequestRefused,
    Routine,
)
from dragoman.transports.http.per_request import PerRequestHttpFront, RequestHead
from dragoman.transports.http.pump import pump
from dragoman.transports.http.reading import Posted, accepts, check_content, read_posted
from dragoman.transports.http.resource import reply_refused
from dragoman.transports.http.sessions import (
    NO_SESSION,
    VISITS_A_STREAM,
    Caller,
    HttpSession,
    Sessions,
    too_many_streams,
)
from dragoman.transports.http.sse import encode_message
from dragoman.transports.http.streamable_session import PostedCall, StreamableSession
from dragoman.transports.http.streams import StreamConnection
from dragoman_spec import HANDSHAKE_REVISIONS, facts

logger = logging.getLogger("dragoman.http")

LASTING: Final = frozenset({SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE})
"""Requests of a client that hold until it asks for something else."""

_INITIALIZED: Final = encode_line({"jsonrpc": "2.0", "method": INITIALIZED})
_ALLOW_POST: Final = (b"allow", b"POST, OPTIONS")
_ALLOW: Final = (b"allow", b"GET, POST, DELETE, OPTIONS")


class StreamableFront:
    """Serves the MCP endpoint.

    Args:
        config: What was decided.
        sessions: Those of the whole front.
        server: Whose path it is; empty where all are served as one.

    Attributes:
        server: The same.
    """

    def __init__(self, config: FrontConfig, sessions: Sessions, server: str = "") -> None:
        self._config = config
        self._sessions = sessions
        self.server = server
        self._per_request = PerRequestHttpFront(config, sessions, self._open, server)

    def serve(self, request: HttpRequest) -> Routine:
        """Answer one request.

        Raises:
            RequestRefused: It is not served.
        """
        if request.method in ("GET", "DELETE") and request.speaks_for_itself:
            raise RequestRefused(
                405, "expected POST: this revision has neither sessions nor streams of their own", _ALLOW_POST
            )
        match request.method:
            case "POST":
                request.again = self._read_head(request)
                return request.again(request)
            case "GET":
                return self._serve_get(request)
            case "DELETE":
                return self._serve_delete(request)
            case _:
                raise RequestRefused(405, "expected GET, POST or DELETE", _ALLOW)

    def _read_head(self, request: HttpRequest) -> Callable[[HttpRequest], Routine]:
        """Find out from the head of a POST what serves it, and each one with the same head."""
        headers = request.headers
        takes = headers.get(b"accept")
        takes_json, takes_stream = accepts(takes, "application/json"), accepts(takes, "text/event-stream")
        if not takes_json and not takes_stream:
            raise RequestRefused(406, "expected to Accept application/json and text/event-stream")
        check_content(headers)
        if b"mcp-session-id" in headers and not request.speaks_for_itself:
            return partial(self._serve_posted, self._find(request), takes_json, takes_stream)
        return partial(self._per_request.serve, RequestHead(request, takes_json, takes_stream))

    def _serve_posted(
        self, session: HttpSession[StreamableSession], takes_json: bool, takes_stream: bool, request: HttpRequest
    ) -> Routine:
        session.speak()
        if session.transport.over:  # by now, where the head is known
            relay = self._sessions.relay
            elsewhere = "" if relay is None else relay.find_session(request)
            if relay is not None and elsewhere and (yield relay.serve_session(request, elsewhere)):
                return
            raise RequestRefused(404, NO_SESSION)
        config, transport = self._config, session.transport
        if session.visits >= VISITS_A_STREAM * config.limits.streams:
            raise too_many_streams(None)
        session.visits += 1
        try:
            body, waits = request.body, not session.takes_at_once
            if waits:
                yield session.turn.acquire()
            try:
                if waits or body is None:
                    yield transport.readable.wait()
                    body = yield request.read_body(config.limits.body_bytes, config.patience.body_s)
                    yield transport.readable.wait()
                posted = read_posted(body, config.limits.nesting, request.origin)
                request.brings, request.keys = transport, posted.keys
                if self._sessions.relay is not None:
                    yield self._keep(session, posted, request)
                call = transport.post(posted, takes_stream and not (config.answers == "json" and takes_json))
            except (RequestRefused, Disconnected) as refused:
                transport.lose_answers(refused.garbled)
                if transport.is_waiting((refused.key,)):  # its answer is still to come
                    refused.key = None
                raise
            finally:
                if waits:
                    session.turn.release()
            if request.hold.size:
                request.hold.release()
            if call is None:
                yield request.reply(202)
                return
            if not takes_json or config.answers == "sse":
                transport.begin_stream(call)
            if not call.takes_stream:
                request.wire.watch(call.tell)
            elif not call.is_told:
                transport.timer.start(call)
            yield call
            if call.connection is not None:
                yield self._send_stream(request, transport, call.connection, is_new=True)
            else:
                rest = self._reply(request, transport, call, takes_json)
                if rest is not None:
                    yield rest
        finally:
            session.leave()

    def _find(self, request: HttpRequest) -> HttpSession[StreamableSession]:
        session_id = request.header(b"mcp-session-id")
        if session_id is None:
            raise RequestRefused(400, "expected an Mcp-Session-Id header")
        session = self._sessions.find(session_id, request.principal, StreamableSession, self.server)
        header = request.header(b"mcp-protocol-version")
        if header is not None and header not in HANDSHAKE_REVISIONS and _names_revision(session.transport.revision):
            # "If the server receives a request with an invalid or unsupported MCP-Protocol-Version, it MUST respond
            # with 400 Bad Request." Without the header, the revision is the one negotiated.
            known = ", ".join(HANDSHAKE_REVISIONS)
            raise RequestRefused(400, f"expected MCP-Protocol-Version to name one of {known}")
        return session

    def _open(self, request: HttpRequest, posted: Posted, takes_json: bool) -> Routine:
        """Open a session; one whose `initialize` is not answered with a result ends."""
        if not posted.initializes:
            raise RequestRefused(
                400, "expected an Mcp-Session-Id header: only initialize goes without", key=posted.only_key
            )
        caller = Caller(request.principal, "streamable-http", server=self.server)
        session = self._sessions.open(StreamableSession(self._config), caller)
        transport, relay = session.transport, self._sessions.relay
        if relay is not None:
            relay.adoption.watch(session)
        with session:
            request.brings, request.keys = transport, posted.keys
            call = transport.post(posted, takes_stream=False)
            request.hold.release()
            assert call is not None
            request.wire.watch(call.tell)
            try:
                yield call
            finally:
                if not call.opened:
                    transport.end("initialize was not answered with a result")
            if call.opened and relay is not None:
                yield relay.adoption.remember(session, posted)
            headers = ((b"mcp-session-id", session.id.encode()),) if call.opened else ()
            yield self._reply(request, transport, call, takes_json, *headers)

    async def open_again(
        self,
        request: HttpRequest,
        session_id: str,
        initialize: bytes,
        revision: str | None,
        lasting: Sequence[tuple[str, Mapping[str, Any]]],
    ) -> bool:
        """Open a session that another instance had, with what its client said there.

        Args:
            request: One of that session.
            session_id: Its id, which stays.
            initialize: The request that opened it.
            revision: What was agreed on.
            lasting: Methods and params of what the client has asked for since, and still wants.

        Returns:
            Whether it goes on as it was: the server answers, and speaks the same revision.

        Raises:
            RequestRefused: It cannot be opened.
        """
        caller = Caller(request.principal, "streamable-http", server=self.server)
        assert self._sessions.relay is not None
        mark = self._sessions.relay.name  # a session is opened again only once at an instance
        session = self._sessions.open(StreamableSession(self._config, mark), caller, session_id)
        transport, nesting = session.transport, self._config.limits.nesting
        self._sessions.relay.adoption.watch(session)
        with session:
            call = transport.post(read_posted(initialize, nesting, request.origin), takes_stream=False)
            assert call is not None
            await call
            if not call.opened or transport.revision != revision:
                transport.end("the session that another instance had cannot go on here")
                return False
            transport.post(read_posted(_INITIALIZED, nesting, request.origin), takes_stream=False)
            await self._ask_again(request, transport, lasting)
        return True

    async def _ask_again(
        self, request: HttpRequest, transport: StreamableSession, lasting: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> None:
        """Ask for what the client had, one by one; once an answer is late, the rest without waiting."""
        until, is_late = transport.loop.time() + AGAIN_S, False
        for number, (method, params) in enumerate(lasting):
            frame = {"jsonrpc": "2.0", "id": f"dragoman/again/{number}", "method": method, "params": params}
            posted = read_posted(encode_line(frame), self._config.limits.nesting, request.origin)
            if is_late:
                transport.deliver(posted.frame)  # takes no place of the client's: its answer is nobody's
                continue
            asked = transport.post(posted, takes_stream=False)
            assert asked is not None
            try:
                async with asyncio.timeout_at(until):
                    await asked
            except TimeoutError:
                is_late = True
                transport.give_up(posted.keys)
                logger.warning(
                    "the server has not answered %s in %g s, which it is asked again for a session of an instance that "
                    "is gone; the session goes on, perhaps without it",
                    method,
                    AGAIN_S,
                )

    def _keep(
        self, session: HttpSession[StreamableSession], posted: Posted, request: HttpRequest
    ) -> Awaitable[None] | None:
        """Let another instance know what it needs to go on with this session.

        Raises:
            RequestRefused: Another instance is to serve this request, since this one is ending.
        """
        relay = self._sessions.relay
        assert relay is not None
        if posted.keys and self._sessions.closing and RELAYED in request.scope.get("extensions", {}):
            raise RequestRefused(404, NO_SESSION)
        return relay.adoption.remember(session, posted) if posted.frame.method in LASTING else None

    def _serve_get(self, request: HttpRequest) -> Routine:
        if not accepts(request.headers.get(b"accept"), "text/event-stream"):
            raise RequestRefused(406, "expected to Accept text/event-stream")
        session = self._find(request)
        transport = session.transport
        request.brings = transport
        last = request.header(b"last-event-id")
        connection = StreamConnection()
        with session:
            is_new, missed, relay = last is None or not transport.resume(last, connection), None, self._sessions.relay
            if is_new and last is not None and relay is not None:
                missed = yield relay.adoption.find_rest(session.id, last)
                is_new = not transport.resume(last, connection)  # by now, somebody else may have asked
            if is_new and last is not None and last.startswith("p"):
                if missed is None:
                    raise RequestRefused(410, "the stream of this event is gone")
                transport.end_elsewhere(last, missed, connection)
                is_new = False
            elif is_new:
                if transport.standing >= self._config.limits.streams:
                    raise too_many_streams(None)
                transport.stand(connection, missed or ())
            yield self._send_stream(request, transport, connection, is_new)

    def _serve_delete(self, request: HttpRequest) -> Routine:
        session = self._find(request)
        transport = request.brings = session.transport
        if self._sessions.relay is not None:
            yield self._sessions.relay.adoption.end_for_good(session.id)
        transport.end("the client has deleted its session")
        yield request.reply(204)

    async def _send_stream(
        self,
        request: HttpRequest,
        transport: StreamableSession,
        connection: StreamConnection,
        is_new: bool,
    ) -> None:
        stream = connection.stream
        polls = transport.revision in HANDSHAKE_REVISIONS and facts(transport.revision).polls
        await request.start_stream()
        if polls and is_new:
            await request.send_part(stream.prime(self._config.patience.retry_s))
        try:
            await pump(request, connection, stream.settle, self._config.patience, polls)
        finally:
            stream.detach(connection)

    def _reply(
        self,
        request: HttpRequest,
        transport: StreamableSession,
        call: PostedCall,
        takes_json: bool,
        *headers: tuple[bytes, bytes],
    ) -> Awaitable[None] | None:
        if call.answers and takes_json:
            body = call.body() if call.is_batch else call.answers[0]
            if call.headers and not call.is_batch:
                return reply_refused(request, body, call.headers, *headers)
            if len(body) < LARGE_BYTES:
                return request.reply(200, body, JSON, *headers)
            return request.reply_large(body, transport.weigh, self._config.patience.stall_s, JSON, *headers)
        if not call.answers and call.keys:
            if request.wire.is_gone:
                raise Disconnected
            raise RequestRefused(404, "the session is over, without a word about this request")
        if not call.answers and not call.takes_stream:
            return request.reply(202, b"", *headers)
        # Cancelled without an answer, nobody waits. Not a 404: the client "MUST start a new session" then.
        return _reply_stream(request, encode_message(call.body()) if call.answers else b"", *headers)


async def _reply_stream(request: HttpRequest, event: bytes, *headers: tuple[bytes, bytes]) -> None:
    """Answer with a stream of one event."""
    await request.start_stream(*headers)
    await request.send_part(event, more=False)


def _names_revision(revision: str | None) -> bool:
    """Whether the header that names the revision means something to a client; nothing is known of one that has none."""
    return revision not in HANDSHAKE_REVISIONS or "revision" in facts(revision).headers
