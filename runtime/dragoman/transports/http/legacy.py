"""HTTP+SSE, as the revision 2024-11-05 has it, towards clients: one stream for all answers, posts beside it.

Lives here: the stream with its `endpoint` event, and what is posted. Must not: check who the client is (`security`).
Called by `app`. The stream is the session: it cannot be resumed, and when it ends so does the session.

Source: 2024-11-05/basic/transports, HTTP with SSE.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs

from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import Disconnected, HttpRequest, RequestRefused, Routine
from dragoman.transports.http.lines import LineTransport
from dragoman.transports.http.pump import pump
from dragoman.transports.http.reading import accepts, check_content, read_posted
from dragoman.transports.http.sessions import MAX_STREAMS, VISITS_A_STREAM, Caller, HttpSession, Sessions
from dragoman.transports.http.sse import encode_event, encode_message

_PARAMETER: Final = "sessionId"
_ALLOW_STREAM: Final = (b"allow", b"GET, OPTIONS")
_ALLOW_POST: Final = (b"allow", b"POST, OPTIONS")


class LegacyTransport(LineTransport):
    """A client that speaks HTTP+SSE."""

    @property
    def is_over(self) -> bool:
        """Whether nothing comes but what can be taken now."""
        return self.closed

    def take_part(self) -> tuple[bytes, int]:
        """Take the next line as an event, and what it counts; nothing when there is none."""
        line = self.take()
        return (b"", 0) if line is None else (encode_message(line), len(line))


class LegacyFront:
    """Serves the two endpoints.

    Args:
        config: What was decided.
        sessions: Those of the whole front.
    """

    def __init__(self, config: FrontConfig, sessions: Sessions) -> None:
        self._config = config
        self._sessions = sessions

    def serve_stream(self, request: HttpRequest) -> Routine:
        """Open a session and send everything of its server's.

        Raises:
            RequestRefused: It is not served.
            Disconnected: The client went away at once.
        """
        posted = None
        if request.method != "GET":
            if request.method != "POST" or not self._config.post_opens_sse:
                raise RequestRefused(405, "expected GET", _ALLOW_STREAM)
            limits = self._config.limits
            body = yield request.read_body(limits.body_bytes, self._config.patience.body_s)
            posted = read_posted(body, limits.nesting, request.origin) if body.strip() else None
        if not accepts(request.headers.get(b"accept"), "text/event-stream"):
            raise RequestRefused(406, "expected to Accept text/event-stream")
        session = self._sessions.open(LegacyTransport(self._config.limits), Caller(request.principal, "sse"))
        if posted is not None:
            session.transport.deliver(posted.frame)
            request.hold.release()
        with session:
            yield self._send_stream(request, session)

    async def _send_stream(self, request: HttpRequest, session: HttpSession[LegacyTransport]) -> None:
        transport, reason = session.transport, "the client has closed its stream"
        request.brings = transport
        try:
            await request.start_stream()
            endpoint = f"{request.scope.get('root_path', '')}{self._config.paths.messages}"
            await request.send_part(encode_event("endpoint", f"{endpoint}?{_PARAMETER}={session.id}"))
            if not await pump(request, transport, transport.settle, self._config.patience):
                reason = f"the client took nothing for {self._config.patience.stall_s:g} s"
        finally:
            transport.end(reason)

    def serve_post(self, request: HttpRequest) -> Routine:
        """Take one message.

        Raises:
            RequestRefused: It is not served.
            Disconnected: The client went away half-way.
        """
        if request.method != "POST":
            raise RequestRefused(405, "expected POST", _ALLOW_POST)
        check_content(request.headers)
        query = parse_qs(request.scope["query_string"].decode("latin-1"))
        session_id = query.get(_PARAMETER, [""])[0]
        if not session_id:
            raise RequestRefused(400, f"expected the {_PARAMETER} that the endpoint event names")
        session = self._sessions.find(session_id, request.principal, LegacyTransport)
        # All of them wait while the server does not read, with what they have said.
        if session.visits > VISITS_A_STREAM * self._config.limits.streams:  # its stream is one
            reason = "too many messages of this session are under way"
            raise RequestRefused(429, reason, (b"retry-after", b"1"), option=MAX_STREAMS)
        with session:
            limits, patience, readable = self._config.limits, self._config.patience, session.transport.readable
            waits = not session.takes_at_once
            if waits:
                yield session.turn.acquire()
            try:
                yield readable.wait()
                body = yield request.read_body(limits.body_bytes, patience.body_s)
                posted = read_posted(body, limits.nesting, request.origin)
                yield readable.wait()
                if session.transport.over:
                    raise RequestRefused(404, "the session is over")
                request.brings, request.keys = session.transport, posted.keys
                session.transport.deliver(posted.frame)
            except (RequestRefused, Disconnected) as refused:
                session.transport.lose_answers(refused.garbled)
                raise
            finally:
                if waits:
                    session.turn.release()
            request.hold.release()
            yield request.reply(202)
