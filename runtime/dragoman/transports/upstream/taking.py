"""The answer to a successful POST, in any revision: one JSON object, or a stream of events.

Lives here: finding out which it is, and checking that it contains the response. Must not: know sessions, or judge a
status. Called by `streamable`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from dragoman.errors import TransportError
from dragoman.transports.upstream.allowance import FREE_BYTES, Allowance
from dragoman.transports.upstream.answers import Headers, HttpResponse
from dragoman.transports.upstream.bodies import read_message
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.failures import WEB_PAGE, WEB_PAGE_HINT
from dragoman.transports.upstream.lanes import Delivery
from dragoman.transports.upstream.link import Link, Watch, read_plain
from dragoman.transports.upstream.streams import EVENT_STREAM

JSON: Final = "application/json"
NO_RESPONSE: Final = "its answer holds no response to the request"
ACCEPT_BOTH: Final = {"Accept": f"{JSON}, {EVENT_STREAM}"}


class PlainAnswers:
    """Takes answers that need no task: short ones, of JSON, which have come as a whole.

    Args:
        limit_bytes: The longest message.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = min(FREE_BYTES, limit_bytes)
        self._known: Headers | None = None

    def announces(self, answer: HttpResponse) -> bool:
        """Whether an answer is one of these, as far as can be seen from its head."""
        if answer.status != HTTPStatus.OK or answer.length is None or answer.length > self._limit_bytes:
            return False
        if answer.headers is not self._known:  # the same object: a head that its connection knows already
            if answer.media_type != JSON or answer.header("Content-Encoding") or answer.header("Set-Cookie"):
                return False
            self._known = answer.headers
        return True

    def take(self, answer: HttpResponse) -> bytes | None:
        """Return an answer as a line, and close it; None if it is not one of these, and nothing has been taken."""
        if not answer.complete or not self.announces(answer):
            return None
        body = answer.take()
        line = read_plain(body)
        if line is None:
            answer.put_back(body)
        else:
            answer.close()
        return line


async def take_success(
    answer: HttpResponse,
    job: Delivery,
    link: Link,
    config: UpstreamConfig,
    allowance: Allowance,
    follow: Callable[[HttpResponse, Delivery], Awaitable[None]],
    watch: Watch | None = None,
) -> None:
    """Hand on what a request was answered with.

    Args:
        answer: With status 200; not closed here.
        job: The request.
        link: Where messages go.
        config: The longest message.
        allowance: What messages may hold until they have come whole.
        follow: Reads a stream to its end.
        watch: Sees the response first.

    Raises:
        TransportError: The response is not among it.
    """
    media_type = answer.media_type
    if media_type == EVENT_STREAM:
        await follow(answer, job)
    elif media_type == JSON:
        body = await read_message(answer, config.limit_bytes, link, allowance)
        await link.reading.wait()
        if not await link.take(body, job.frame.key, watch, answer.framed) and not job.cancelled:
            raise TransportError(link.peer, NO_RESPONSE)
    else:
        named = f"{media_type[:80] or 'nothing'}{WEB_PAGE_HINT if media_type == WEB_PAGE else ''}"
        raise TransportError(link.peer, f"its answer must be {JSON} or {EVENT_STREAM}, and claims to be {named}")
