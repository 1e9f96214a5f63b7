"""Streamable HTTP as the per-request era has it, towards clients: one POST for each request, and no sessions.

Lives here: which requests are of that era, what is checked of them here, with which status they are answered, and the
stream of each. Must not: know what serves them (`requests` and whoever runs it), or check who the client is
(`security`). Called by `streamable`, which serves clients of both eras at one endpoint.

Source: 2026-07-28/basic/transports/streamable-http. A client that closes the stream of its request has cancelled it;
there are no sessions, and a session's header means nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.core.bridge.errors import find_http_status
from dragoman.core.bridge.headers import check_headers, select_arguments
from dragoman.core.bridge.metadata import claims_per_request
from dragoman.core.bridge.names import NEWER
from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.core.edges.per_request_front import read_request
from dragoman.core.envelope import Frame, decoded
from dragoman.core.exact_json import encode_line
from dragoman.core.methods import LISTEN
from dragoman.errors import RemoteProtocolError
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import (
    JSON,
    LARGE_BYTES,
    Disconnected,
    HttpExchange,
    RequestRefused,
    encode_headers,
)
from dragoman.transports.http.pump import pump
from dragoman.transports.http.reading import Posted
from dragoman.transports.http.requests import Place, Post, RequestsTransport
from dragoman.transports.http.sessions import MAX_STREAMS, Caller, HttpSession, Sessions


def claims_this_era(posted: Posted, by_headers: bool) -> bool:
    """Whether a POST is one that speaks for itself; what its headers say is held against its body.

    A client of both eras may send headers of the newer one with `initialize`, which is a handshake all the same, unless
    its body is of that era too.
    """
    if posted.is_batch or posted.frame.method is None or by_headers is not posted.initializes:
        return by_headers
    body = decoded(posted.frame).body
    return claims_per_request(body.get("params"))


def find_place(exchange: HttpExchange, frame: Frame) -> Place:
    """Say what a request is counted with."""
    principal = exchange.principal
    source = () if principal else tuple(exchange.scope.get("client") or ())
    return Place(principal, source, frame.method == LISTEN)


class PerRequestHttpFront:
    """Serves requests that speak for themselves.

    Args:
        config: What was decided.
        sessions: Those of the whole front: the requests of each principal are one.
    """

    def __init__(self, config: FrontConfig, sessions: Sessions) -> None:
        self.config = config
        self._sessions = sessions
        self._serving: dict[str, HttpSession[RequestsTransport]] = {}
        self._under_way: dict[Place, int] = {}

    async def serve(self, exchange: HttpExchange, posted: Posted, takes_json: bool, takes_stream: bool) -> None:
        """Answer a POST.

        Args:
            exchange: It.
            posted: What it holds.
            takes_json: Whether its client takes JSON.
            takes_stream: Whether it takes a stream.

        Raises:
            RequestRefused: It is not served.
            Disconnected: The client went away before there was anything to answer.
        """
        frame = posted.frame
        if posted.is_batch or frame.method is None:
            raise RequestRefused(400, "expected one JSON-RPC request or notification")
        frame = decoded(frame)
        fault = _find_fault(exchange, frame)
        if fault is not None:
            await _reply_error(exchange, frame, *fault)
        elif frame.kind == "notification":
            exchange.hold.release()
            await exchange.reply(202)  # none of them concerns anybody: closing the stream is what cancels
        else:
            await self._serve_request(exchange, frame, takes_json, takes_stream)

    async def _serve_request(self, exchange: HttpExchange, frame: Frame, takes_json: bool, takes_stream: bool) -> None:
        session = self._find(exchange.principal)
        transport = session.transport
        with session:
            if not transport.readable.is_set():
                await transport.readable.wait()
            place = find_place(exchange, frame)
            if self._is_full(place):
                reason = "too many listens are open" if place.listens else "too many requests are under way"
                raise RequestRefused(429, reason, (b"retry-after", b"1"), key=frame.key, option=MAX_STREAMS)
            if transport.over:
                raise RequestRefused(503, "the server has just gone", (b"retry-after", b"1"), key=frame.key)
            headers = select_arguments(list_headers(exchange))
            post = transport.post(frame, headers, place, takes_stream)
            exchange.hold.release()
            self.begin(place)
            await self.go_on(exchange, transport, post, place, takes_json)

    async def go_on(
        self,
        exchange: HttpExchange,
        transport: RequestsTransport,
        post: Post,
        place: Place,
        takes_json: bool,
        stream_after_s: float | None = None,
    ) -> None:
        """Answer a POST that has been delivered and counted.

        Args:
            exchange: It.
            transport: By which it was delivered.
            post: What it was given.
            place: With what it was counted.
            takes_json: Whether its client takes JSON.
            stream_after_s: How long to wait for an answer to be sent as JSON; None for what is configured.

        Raises:
            RequestRefused: There is no answer.
            Disconnected: The client went away before.
        """
        watch = asyncio.ensure_future(exchange.wait_for_disconnect())
        watch.add_done_callback(lambda _: post.wake.set())
        try:
            await self._answer(exchange, transport, post, takes_json, watch, stream_after_s)
        finally:
            watch.cancel()
            transport.leave(post)
            self.end(place)

    def begin(self, place: Place) -> None:
        """Count a request that is under way."""
        self._under_way[place] = self._under_way.get(place, 0) + 1

    def end(self, place: Place) -> None:
        """Count it no more."""
        left = self._under_way[place] - 1
        if left:
            self._under_way[place] = left
        else:
            del self._under_way[place]

    def _is_full(self, place: Place) -> bool:
        return self._under_way.get(place, 0) >= self.config.limits.streams

    def find_at_once(self, principal: str, place: Place) -> HttpSession[RequestsTransport] | None:
        """Give the session that serves a principal, if it takes a request now."""
        session = self._serving.get("" if self.config.shares_requests else principal)
        if session is None or session.transport.over or not session.transport.readable.is_set():
            return None
        if self._sessions.closing:
            return None
        return None if self._is_full(place) else session

    def _find(self, principal: str) -> HttpSession[RequestsTransport]:
        if self.config.shares_requests:
            principal = ""
        session = self._serving.get(principal)
        if session is None or session.transport.over or self._sessions.closing:
            caller = Caller(principal, "streamable-http", is_per_request=True)
            session = self._serving[principal] = self._sessions.open(RequestsTransport(self.config, principal), caller)
            for name in [name for name, other in self._serving.items() if other.transport.over]:
                del self._serving[name]
        return session

    async def _answer(
        self,
        exchange: HttpExchange,
        transport: RequestsTransport,
        post: Post,
        takes_json: bool,
        watch: asyncio.Future[None],
        stream_after_s: float | None,
    ) -> None:
        """Answer with JSON if the answer comes first and soon, else with a stream."""
        as_json = takes_json and not (self.config.answers == "sse" and post.takes_stream)
        after_s = self.config.patience.stream_after_s if stream_after_s is None else stream_after_s
        if as_json:
            await _wait(post, after_s if post.takes_stream and self.config.answers != "json" else None)
        if post.answer is not None and len(post.lines) == 1 and as_json:
            (line,) = post.lines
            post.lines = []
            try:
                await self._reply(exchange, post.answer)
            finally:
                transport.settle(len(line))
        elif watch.done():
            raise Disconnected
        elif post.is_over and post.answer is None:
            raise RequestRefused(503, "the server has gone without a word about this request", (b"retry-after", b"1"))
        else:
            await exchange.start_stream()
            await pump(exchange, post, transport.settle, self.config.patience, watch=watch)

    async def _reply(self, exchange: HttpExchange, answer: Frame) -> None:
        code = decoded(answer).body["error"].get("code") if answer.kind == "error" else None
        status = find_http_status(NEWER, code) if isinstance(code, int) else 200
        if answer.headers:
            await exchange.reply(429, answer.raw, JSON, *encode_headers(answer.headers))
        elif len(answer.raw) < LARGE_BYTES or status != 200:
            await exchange.reply(status, answer.raw, JSON)
        else:
            await exchange.reply_large(answer.raw, self.config.patience.stall_s, JSON)


async def _wait(post: Post, limit_s: float | None) -> bool:
    """Wait until there is something new; False when it takes too long."""
    if post.lines or post.is_over:
        return True
    post.wake.clear()
    try:
        async with asyncio.timeout(limit_s):
            await post.wake.wait()
    except TimeoutError:
        return False
    return True


def _find_fault(exchange: HttpExchange, frame: Frame) -> tuple[int, RemoteProtocolError] | None:
    """Find out whether a request can be served at all; give the status and the error if it cannot."""
    try:
        if frame.kind == "request" and not claims_per_request(frame.body.get("params")):
            read_request(frame.method or "", frame.body.get("params"))  # it does not say what a header could repeat
        check_headers(list_headers(exchange), frame.body)
        if frame.kind == "request":
            read_request(frame.method or "", frame.body.get("params"))
            if frame.method == "initialize":
                raise RemoteProtocolError(METHOD_NOT_FOUND, "revision " + NEWER + " has no initialize")
    except RemoteProtocolError as error:
        return find_http_status(NEWER, error.code, is_about_metadata=True), error
    return None


def list_headers(exchange: HttpExchange) -> list[tuple[str, str]]:
    """Give the headers as text of one character a byte."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in exchange.scope["headers"]]


async def _reply_error(exchange: HttpExchange, frame: Frame, status: int, error: RemoteProtocolError) -> None:
    said: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data:
        said["data"] = error.data
    exchange.hold.release()
    await exchange.reply(status, encode_line({"jsonrpc": "2.0", "id": frame.body.get("id"), "error": said}), JSON)
