"""Streamable HTTP as the per-request era has it, towards clients: one POST for each request, and no sessions.

Lives here: which requests are of that era, what is checked of them here, with which status they are answered, and the
stream of each. Must not: know what serves them (`requests` and whoever runs it), or check who the client is
(`security`). Called by `streamable`, which serves clients of both eras at one endpoint.

Source: 2026-07-28/basic/transports/streamable-http. A client that closes the stream of its request has cancelled it;
there are no sessions, and a session's header means nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.core.edges.per_request_front import read_request
from dragoman.core.envelope import Frame, decoded
from dragoman.core.exact_json import encode_line
from dragoman.core.label import speak_for
from dragoman.core.methods import LISTEN
from dragoman.core.rules.errors import find_http_status
from dragoman.core.rules.headers import check_collected, collect_headers, list_repeated, select_arguments
from dragoman.core.rules.metadata import MetadataReader, claims_per_request
from dragoman.core.rules.names import NEWER
from dragoman.errors import RemoteProtocolError
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import (
    JSON,
    LARGE_BYTES,
    Disconnected,
    HttpRequest,
    RequestRefused,
    Routine,
)
from dragoman.transports.http.pump import pump
from dragoman.transports.http.reading import Posted, read_posted
from dragoman.transports.http.requests import Place, Post, RequestsTransport
from dragoman.transports.http.resource import reply_refused
from dragoman.transports.http.sessions import MAX_STREAMS, Caller, HttpSession, Sessions
from dragoman_spec import PER_REQUEST_REVISIONS

_SOON: Final = (b"retry-after", b"1")
_OPENING_BYTES: Final = 1024 * 1024
"""The longest `initialize`: nobody is known yet who would be held to the limits of a session."""


def claims_this_era(posted: Posted, by_headers: bool) -> bool:
    """Whether a POST is one that speaks for itself; what its headers say is held against its body.

    A client of both eras may send headers of the newer one with `initialize`, which is a handshake all the same, unless
    its body is of that era too.
    """
    if posted.is_batch or posted.frame.method is None or by_headers is not posted.initializes:
        return by_headers
    body = decoded(posted.frame).body
    return claims_per_request(body.get("params"))


class RequestHead:
    """What the head of a POST without a session says; it holds for each one with the same head.

    Args:
        request: One with this head.
        takes_json: Whether its client takes JSON.
        takes_stream: Whether it takes a stream.
    """

    __slots__ = ("_found", "_reader", "_repeated", "arguments", "by_headers", "places", "takes_json", "takes_stream")

    def __init__(self, request: HttpRequest, takes_json: bool, takes_stream: bool) -> None:
        listed = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.scope["headers"]]
        source = () if request.principal else tuple(request.scope.get("client") or ())
        self.by_headers = request.speaks_for_itself
        self.takes_json = takes_json
        self.takes_stream = takes_stream
        self.arguments = select_arguments(listed)
        self.places = Place(request.principal, source, False), Place(request.principal, source, True)
        self._found = collect_headers(listed)
        self._reader = MetadataReader(PER_REQUEST_REVISIONS)
        self._repeated: tuple[object, ...] = ()

    def find_fault(self, frame: Frame) -> tuple[int, RemoteProtocolError] | None:
        """Find out whether a request can be served at all; give the status and the error if it cannot."""
        body = frame.body
        try:
            repeated = list_repeated(body)
            if repeated == self._repeated:  # by a request before, which has been checked
                self._reader.read(body.get("params"))
                return None
            params = body.get("params")
            if frame.kind == "request" and not claims_per_request(params):
                read_request(frame.method or "", params)  # it does not say what a header could repeat
            check_collected(self._found, body)
            if frame.kind == "request":
                read_request(frame.method or "", params, self._reader)
                if frame.method == "initialize":
                    raise RemoteProtocolError(METHOD_NOT_FOUND, "revision " + NEWER + " has no initialize")
                self._repeated = repeated
        except RemoteProtocolError as error:
            return find_http_status(PER_REQUEST_REVISIONS, error.code, is_about_metadata=True), error
        return None


class PerRequestHttpFront:
    """Serves requests that speak for themselves.

    Args:
        config: What was decided.
        sessions: Those of the whole front: the requests of each principal are one.
        otherwise: Serves a POST without a session that does not speak for itself, with what it holds and whether its
            client takes JSON.
        server: Whose path it is; empty where all are served as one.
    """

    def __init__(
        self,
        config: FrontConfig,
        sessions: Sessions,
        otherwise: Callable[[HttpRequest, Posted, bool], Routine],
        server: str = "",
    ) -> None:
        self._config = config
        self._server = server
        self._sessions = sessions
        self._otherwise = otherwise
        self._serving: dict[str, HttpSession[RequestsTransport]] = {}
        self._under_way: dict[Place, int] = {}

    def serve(self, head: RequestHead, request: HttpRequest) -> Routine:
        """Answer a POST without a session.

        Raises:
            RequestRefused: It is not served.
            Disconnected: The client went away before there was anything to answer.
        """
        limits = self._config.limits
        if (body := request.body) is None:
            most = limits.body_bytes if head.by_headers else min(_OPENING_BYTES, limits.body_bytes)
            body = yield request.read_body(most, self._config.patience.body_s)
        posted = read_posted(body, limits.nesting, request.origin, keeps_body=True)
        frame = posted.frame
        if not claims_this_era(posted, head.by_headers):
            yield from self._otherwise(request, posted, head.takes_json)
            return
        if posted.is_batch or frame.method is None:
            raise RequestRefused(400, "expected one JSON-RPC request or notification")
        frame = decoded(frame)
        fault = head.find_fault(frame)
        if fault is not None or frame.kind == "notification":
            yield _reply_at_once(request, frame, fault)
            return
        relay = self._sessions.relay
        owner = "" if relay is None else relay.find_owner_of_call(request, frame.body.get("params"))
        if relay is not None and owner and (yield relay.hand_on(request, owner, body)):
            return
        session = self._find(request.principal)
        transport = session.transport
        with session:
            if transport.readable.shut is not None:
                yield transport.readable.wait()
            place = head.places[frame.method == LISTEN]
            under_way = self._under_way.get(place, 0)
            if under_way >= limits.streams or transport.over:
                raise _refuse_post(place, frame.key, is_full=under_way >= limits.streams)
            self._under_way[place] = under_way + 1
            post = transport.post(frame, head.arguments, place, head.takes_stream)
            request.brings, request.keys = transport, (post.key,)
            if request.hold.size:
                request.hold.release()
            try:
                as_json = head.takes_json and not (self._config.answers == "sse" and head.takes_stream)
                request.wire.watch(post.note)
                if as_json:
                    if head.takes_stream and self._config.answers != "json":
                        transport.timer.start(post)
                    yield post
                if post.answer is not None and as_json and not post.lines:
                    if (rest := self._reply(request, transport, post.answer)) is not None:
                        yield rest
                elif request.wire.is_gone:
                    raise Disconnected
                elif post.is_over and post.answer is None:
                    raise RequestRefused(503, "the server has gone without a word about this request", _SOON)
                else:
                    yield self._send_stream(request, transport, post)
            finally:
                transport.leave(post)
                self._count_off(place)

    def _count_off(self, place: Place) -> None:
        left = self._under_way[place] - 1
        if left:
            self._under_way[place] = left
        else:
            del self._under_way[place]

    def _find(self, sender: str) -> HttpSession[RequestsTransport]:
        principal = "" if self._config.shares_requests else sender
        session = self._serving.get(principal)
        if session is None or session.transport.over or self._sessions.closing:
            caller = Caller(principal, "streamable-http", is_per_request=True, server=self._server)
            session = self._serving[principal] = self._sessions.open(RequestsTransport(self._config, principal), caller)
            for name in [name for name, other in self._serving.items() if other.transport.over]:
                del self._serving[name]
        session.speak()
        if sender and not principal:
            speak_for(sender)
        return session

    async def _send_stream(self, request: HttpRequest, transport: RequestsTransport, post: Post) -> None:
        transport.begin_stream(post)
        await request.start_stream()
        await pump(request, post, lambda size: transport.weigh(-size), self._config.patience)

    def _reply(self, request: HttpRequest, transport: RequestsTransport, answer: Frame) -> Awaitable[None] | None:
        code = decoded(answer).body["error"].get("code") if answer.kind == "error" else None
        status = find_http_status(PER_REQUEST_REVISIONS, code) if isinstance(code, int) else 200
        if answer.headers:
            return reply_refused(request, answer.raw, answer.headers)
        if len(answer.raw) < LARGE_BYTES or status != 200:
            return request.reply(status, answer.raw, JSON)
        return request.reply_large(answer.raw, transport.weigh, self._config.patience.stall_s, JSON)


def _refuse_post(place: Place, key: bytes | None, *, is_full: bool) -> RequestRefused:
    """Return why a request is not taken: its place is full, or there is no server any more."""
    if is_full:
        reason = "too many listens are open" if place.listens else "too many requests are under way"
        return RequestRefused(429, reason, _SOON, key=key, option=MAX_STREAMS)
    return RequestRefused(503, "the server has just gone", _SOON, key=key)


def _reply_at_once(
    request: HttpRequest, frame: Frame, fault: tuple[int, RemoteProtocolError] | None
) -> Awaitable[None] | None:
    """Reply to what goes nowhere; no notification concerns anybody: closing the stream is what cancels."""
    request.hold.release()
    if fault is None:
        return request.reply(202)
    status, error = fault
    said: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data:
        said["data"] = error.data
    return request.reply(status, encode_line({"jsonrpc": "2.0", "id": frame.body.get("id"), "error": said}), JSON)
