"""A POST that waits for its answer without a task of its own.

Lives here: the common case of Streamable HTTP, where a request has come as a whole and is answered with JSON before
anything else is said. Must not: check requests, or send streams (`streamable`). Made by `streamable`, run by `app`.

A task and the rounds of the event loop that it needs cost as much as the work on the call itself. So everything that
can be done at once is done at once: the body is delivered where it was read, and the answer is written where it came
in. Any other case gets a task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.label import LABEL
from dragoman.transports.http.exchange import JSON, LARGE_BYTES, HttpExchange
from dragoman.transports.http.posts import PostedCall
from dragoman.transports.http.reading import Posted
from dragoman.transports.http.sessions import HttpSession
from dragoman.transports.http.streamable_session import StreamableSession

if TYPE_CHECKING:
    from dragoman.transports.http.streamable import StreamableFront


class KnownPost(NamedTuple):
    """What was found out from the head of a POST; it holds for each one with the same head on the same connection.

    Attributes:
        exchange: It.
        session: Whose it is.
    """

    exchange: HttpExchange
    session: HttpSession[StreamableSession]


class PendingPost:
    """A POST that has been checked and not delivered yet.

    Args:
        known: It, and whose it is.
        posted: Its body.
        front: Answers it if that takes a task.
    """

    __slots__ = ("_call", "_exchange", "_front", "_later", "_posted", "_session")

    def __init__(self, known: KnownPost, posted: Posted, front: StreamableFront) -> None:
        self._exchange, self._session = known
        self._posted = posted
        self._front = front
        self._call: PostedCall | None = None

    def run(self, later: Callable[[Callable[[], Awaitable[None]]], None]) -> None:
        """Deliver it, and answer it as soon as that can be done.

        Args:
            later: Runs what takes a task.
        """
        exchange, transport = self._exchange, self._session.transport
        self._later = later
        call = self._call = transport.post(self._posted, takes_stream=True)
        self._session.__enter__()
        exchange.hold.release()
        if call is None:
            if exchange.reply_at_once(202):
                self._session.__exit__()
            else:
                later(self._finish)
        elif call.is_decided:
            self._take_decision()
        else:
            call.on_decided = self._take_decision
            transport.time(call)

    def _take_decision(self) -> None:
        call = self._call
        assert call is not None
        if self._reply(call):
            self._session.__exit__()
        else:
            self._later(self._finish)

    def _reply(self, call: PostedCall) -> bool:
        """Answer, if all there is to say is one small answer."""
        if call.stream is not None or not call.answers or call.headers:
            return False
        body = call.body()
        return len(body) < LARGE_BYTES and self._exchange.reply_at_once(200, body, JSON)

    async def _finish(self) -> None:
        LABEL.set(self._session.label)
        try:
            if self._call is None:
                await self._exchange.reply(202)
            else:
                await self._front.finish(self._exchange, self._session.transport, self._call, takes_json=True)
        finally:
            self._session.__exit__()
