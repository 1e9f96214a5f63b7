"""A POST of a client without a session that waits for its answer without a task of its own.

Lives here: the common case of the per-request era, as `pending` has it for sessions. Must not: judge what is wrong with
a request, or send streams (`per_request`). Made by `streamable`, called by `app`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.bridge.headers import check_collected, collect_headers, list_repeated, select_arguments
from dragoman.core.bridge.metadata import MetadataReader
from dragoman.core.bridge.names import PER_REQUEST_REVISIONS
from dragoman.core.edges.per_request_front import read_request
from dragoman.core.envelope import Frame
from dragoman.core.label import LABEL
from dragoman.errors import RemoteProtocolError
from dragoman.transports.http.exchange import JSON, LARGE_BYTES, LOST, REPLY, HttpExchange, OnLost, Reply
from dragoman.transports.http.pending import AsgiRequest, Later
from dragoman.transports.http.per_request import PerRequestHttpFront, find_place, list_headers
from dragoman.transports.http.reading import read_posted
from dragoman.transports.http.requests import Place, Post, RequestsTransport
from dragoman.transports.http.sessions import HttpSession

if TYPE_CHECKING:
    from dragoman.transports.http.app import HttpFront


class KnownRequest:
    """What was found out from the head of a POST that speaks for itself; it holds for each one with the same head.

    Args:
        exchange: One with this head, from a client that takes JSON and streams.
        requests: Serves such requests.
        front: Answers it if that takes a task.
    """

    __slots__ = (
        "arguments",
        "exchange",
        "found",
        "front",
        "headers",
        "reader",
        "repeated",
        "requests",
        "watch",
        "write",
    )

    def __init__(self, exchange: HttpExchange, requests: PerRequestHttpFront, front: HttpFront) -> None:
        listed = list_headers(exchange)
        extensions = exchange.scope.get("extensions", {})
        self.exchange = exchange
        self.requests = requests
        self.front = front
        self.arguments = select_arguments(listed)
        self.found = collect_headers(listed)
        self.reader = MetadataReader(PER_REQUEST_REVISIONS)
        self.repeated: tuple[object, ...] = ()
        self.headers = (JSON, *exchange.extra)
        self.write: Reply | None = extensions.get(REPLY)
        self.watch: OnLost | None = extensions.get(LOST)

    def post(self, request: AsgiRequest, body: bytes, later: Later) -> bool:
        """Serve a request with this head, if nothing about it is special; false if it has to be served as ASGI has it.

        Raises:
            RequestRefused: The other way says why.
        """
        limits = self.requests.config.limits
        if len(body) > limits.body_bytes or self.watch is None:
            return False
        frame = read_posted(body, limits.nesting, keeps_body=True).frame
        if frame.kind != "request" or frame.body is None or frame.method == "initialize":
            return False
        try:
            repeated = list_repeated(frame.body)
            if repeated == self.repeated:  # by a request before, which has been checked
                self.reader.read(frame.body["params"])
            else:
                check_collected(self.found, frame.body)
                read_request(frame.method or "", frame.body.get("params"), self.reader)
                self.repeated = repeated
        except RemoteProtocolError:
            return False
        place = find_place(self.exchange, frame)
        session = self.requests.find_at_once(self.exchange.principal, place)
        if session is None:
            return False
        LABEL.set(session.label)
        PendingRequest(self, request, later, session, place).deliver(frame)
        return True


class PendingRequest:
    """A request that has been checked and not answered yet.

    Args:
        known: What its head says.
        request: It.
        later: Runs what takes a task.
        session: Whose it is.
        place: With what it is counted.
    """

    __slots__ = ("_known", "_later", "_place", "_post", "_request", "_session")

    def __init__(
        self,
        known: KnownRequest,
        request: AsgiRequest,
        later: Later,
        session: HttpSession[RequestsTransport],
        place: Place,
    ) -> None:
        self._place = place
        self._known = known
        self._request = request
        self._later = later
        self._session = session
        self._post: Post | None = None

    def deliver(self, frame: Frame) -> None:
        """Deliver it, and answer it as soon as that can be done."""
        known, transport = self._known, self._session.transport
        exchange = known.exchange
        self._session.visits += 1
        known.requests.begin(self._place)
        assert known.watch is not None
        known.watch(self._lose)
        post = transport.post(frame, known.arguments, self._place, True, self)
        exchange.hold.release()
        if not post.is_over:
            self._post = post
            transport.time(post)

    def answer(self, post: Post, frame: Frame) -> bool:
        """Send the answer, if it is a small result; whether it has gone."""
        known = self._known
        if frame.kind != "result" or frame.headers or len(frame.raw) >= LARGE_BYTES:
            return False
        if known.write is None or not known.write(self._request.scope, 200, known.headers, frame.raw):
            return False
        self._leave(post)
        return True

    def go_on(self, post: Post) -> None:
        """Answer in a task."""
        request, known = self._request, self._known
        self._post = None
        exchange = known.exchange.repeat(request.scope, request.receive, request.send)
        self._later(request, lambda *_: known.front.answer(exchange, lambda: self._finish(exchange, post)))

    async def _finish(self, exchange: HttpExchange, post: Post) -> None:
        LABEL.set(self._session.label)
        try:
            requests, transport = self._known.requests, self._session.transport
            await requests.go_on(exchange, transport, post, self._place, True, stream_after_s=0.0)
        finally:
            self._session.leave()

    def _lose(self) -> None:
        """Cancel the request: its client has gone."""
        post = self._post
        if post is not None:
            post.waiter = None
            self._leave(post)

    def _leave(self, post: Post) -> None:
        self._post = None
        self._session.transport.leave(post)
        self._known.requests.end(self._place)
        self._session.leave()
