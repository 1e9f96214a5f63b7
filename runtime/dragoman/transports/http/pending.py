"""A POST that waits for its answer without a task of its own.

Lives here: the common case of Streamable HTTP, where a request has come as a whole and is answered with JSON before
anything else is said. Must not: check requests, or send streams (`streamable`). Made by `app`.

A task and the rounds of the event loop that it needs cost as much as the work on the call itself. So everything that
can be done at once is done at once: the body is delivered where it was read, and the answer is written where it came
in. Any other case gets a task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.core.label import LABEL
from dragoman.transports.http.exchange import (
    JSON,
    LARGE_BYTES,
    REPLY,
    Headers,
    HttpExchange,
    Message,
    Receive,
    Reply,
    Scope,
    Send,
)
from dragoman.transports.http.posts import PostedCall
from dragoman.transports.http.reading import Posted
from dragoman.transports.http.sessions import HttpSession
from dragoman.transports.http.streamable_session import StreamableSession

if TYPE_CHECKING:
    from dragoman.transports.http.app import HttpFront


class AsgiRequest(Protocol):
    """What a server has of one request, as ASGI has it."""

    scope: Scope

    async def receive(self) -> Message:
        """Give what comes next of it."""

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""


Later = Callable[[Any, Callable[[Scope, Receive, Send], Awaitable[None]]], None]
"""Runs an application for a request in a task of its own."""


class Known(Protocol):
    """What was found out from the head of a POST that was served at once.

    Attributes:
        exchange: The first with this head.
    """

    exchange: HttpExchange

    def post(self, request: AsgiRequest, body: bytes, later: Later) -> bool:
        """Serve a request with this head at once; false if it has to be served as ASGI has it.

        Raises:
            RequestRefused: The other way says why.
        """


class KnownPost:
    """What was found out from the head of a POST; it holds for each one with the same head on the same connection.

    Args:
        exchange: One with this head.
        session: Whose it is.
        front: Answers it if that takes a task.
    """

    __slots__ = ("exchange", "front", "headers", "session", "write")

    def __init__(self, exchange: HttpExchange, session: HttpSession[StreamableSession], front: HttpFront) -> None:
        self.exchange = exchange
        self.session = session
        self.front = front
        self.headers = (JSON, *exchange.extra)
        self.write: Reply | None = exchange.scope.get("extensions", {}).get(REPLY)

    def post(self, request: AsgiRequest, body: bytes, later: Later) -> bool:
        """Serve a request with this head, if nothing about it has to wait; see `Known`."""
        LABEL.set(self.session.label)
        posted = self.front.streamable.read_at_once(self.session, body)
        if posted is None:
            return False
        PendingPost(self, request, later).deliver(posted)
        return True


class PendingPost:
    """A POST that has been checked and not answered yet.

    Args:
        known: What its head says.
        request: It.
        later: Runs what takes a task.
    """

    __slots__ = ("_call", "_known", "_later", "_request")

    def __init__(self, known: KnownPost, request: AsgiRequest, later: Later) -> None:
        self._known = known
        self._request = request
        self._later = later
        self._call: PostedCall | None = None

    def deliver(self, posted: Posted) -> None:
        """Deliver it, and answer it as soon as that can be done."""
        session = self._known.session
        session.visits += 1
        transport = session.transport
        call = self._call = transport.post(posted, True, self._answer)
        self._known.exchange.hold.release()
        if call is None:
            if not self._write(202, self._known.exchange.extra, b""):
                self._go_on()
        elif call.is_decided:
            self._go_on()
        elif not call.is_answered:
            call.on_decided = self._go_on
            transport.time(call)

    def _answer(self, line: bytes) -> bool:
        """Answer with the one thing that there is to say, if it is small."""
        return len(line) < LARGE_BYTES and self._write(200, self._known.headers, line)

    def _write(self, status: int, headers: Headers, body: bytes) -> bool:
        write = self._known.write
        if write is None or not write(self._request.scope, status, headers, body):
            return False
        self._known.session.leave()
        return True

    def _go_on(self) -> None:
        """Answer in a task."""
        known, request = self._known, self._request
        exchange = known.exchange.repeat(request.scope, request.receive, request.send)
        self._later(request, lambda *_: known.front.answer(exchange, lambda: self._finish(exchange)))

    async def _finish(self, exchange: HttpExchange) -> None:
        session = self._known.session
        LABEL.set(session.label)
        try:
            if self._call is None:
                await exchange.reply(202)
            else:
                await self._known.front.streamable.finish(exchange, session.transport, self._call, takes_json=True)
        finally:
            session.leave()
