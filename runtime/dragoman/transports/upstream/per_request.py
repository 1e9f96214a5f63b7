"""A client of Streamable HTTP as revision 2026-07-28 describes it: one POST for each request.

Lives here: the POST of one request and what follows from its status. Must not: decide when it goes (`lanes`), make the
headers that repeat its body (`core.bridge.headers`), or read events (`following`). Called by `transport`.

There is no session, no GET, and nothing to resume: if a stream breaks, its request has failed. An error with an HTTP
status of its own is an answer too ("it MUST respond with `404 Not Found` and a JSON-RPC error with code
`-32601`"). Closing the stream cancels the request; this happens when the task of a job is cancelled.

Source: 2026-07-28/basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import NoReturn

from dragoman.core.exact_json import decode, encode_line
from dragoman.core.methods import LISTEN, REPEATABLE
from dragoman.errors import TransportError
from dragoman.transports.upstream.allowance import Allowance
from dragoman.transports.upstream.answers import HttpResponse
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connection_pool import ConnectionPool
from dragoman.transports.upstream.failures import read_refusal
from dragoman.transports.upstream.following import StreamFollower
from dragoman.transports.upstream.lanes import Delivery
from dragoman.transports.upstream.link import Link
from dragoman.transports.upstream.taking import ACCEPT_BOTH, take_success


class PerRequestPosts:
    """Requests to a server of the per-request era."""

    def __init__(self, config: UpstreamConfig, wire: ConnectionPool, link: Link, allowance: Allowance) -> None:
        self._config = config
        self._wire = wire
        self._link = link
        self._allowance = allowance
        self._headers: tuple[tuple[str, str], ...] = ()
        self._asking: dict[str, str] = {}  # what goes with those headers
        self._follower = StreamFollower(link, config, self._never, allowance, resumes=False)

    def begin(self, job: Delivery, on_news: Callable[[], None]) -> bool:
        """Send a request over a connection that is open already, if there is one.

        Args:
            job: The request; it gets the answer to come.
            on_news: Called when something has come of it: then `carry` may be called.
        """
        frame = job.frame
        if frame.method == LISTEN:
            return False
        if frame.headers != self._headers:
            self._headers, self._asking = frame.headers, {**ACCEPT_BOTH, **dict(frame.headers)}
        idle_s = self._config.idle_timeout_s
        answer = self._wire.post_at_once(self._config.url, self._asking, frame.raw, job.sent, idle_s)
        if answer is None:
            return False
        job.answer, answer.on_news = answer, on_news
        return True

    async def carry(self, job: Delivery) -> None:
        """Send one request, and hand on what it is answered with.

        Raises:
            TransportError: It was not sent, or not answered.
        """
        frame = job.frame
        key = frame.key
        assert key is not None
        idle_s = None if frame.method == LISTEN else self._config.idle_timeout_s
        headers = {**ACCEPT_BOTH, **dict(frame.headers)}
        answer = await self._wire.send(
            "POST",
            self._config.url,
            headers,
            frame.raw,
            job.sent,
            idle_s,
            job.answer,
            repeats=frame.method in REPEATABLE,
        )
        try:
            if answer.status != HTTPStatus.OK:
                await self._take_refusal(answer, key)
                return
            await take_success(answer, job, self._link, self._config, self._allowance, self._follow)
        finally:
            answer.close()

    async def _follow(self, answer: HttpResponse, job: Delivery) -> None:
        await self._follower.follow(answer, job, lambda: False, None)

    async def _take_refusal(self, answer: HttpResponse, key: bytes) -> None:
        """Hand on the error that a refusal carries."""
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise TransportError(self._link.peer, f"it answered {answer.named_status}, without a response")
        refusal = await read_refusal(answer)
        if refusal.error is None:
            raise refusal
        await self._link.take(encode_line({"jsonrpc": "2.0", "id": decode(key), "error": refusal.error}), key)

    async def _never(self, last_id: str | None, idle_s: float | None) -> NoReturn:
        """ "Resumable SSE streams via `Last-Event-ID` are not supported"."""
        raise TransportError(self._link.peer, "its streams cannot be resumed")
