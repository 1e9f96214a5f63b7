"""Reading event streams to their end, even if connections end before the streams.

Lives here: resuming with `Last-Event-ID`, waiting as `retry` says, polling, and giving up. Must not: know sessions or
write headers. Called by `streamable`.

Source: 2025-11-25/basic/transports, Streamable HTTP: Sending Messages 6, Listening 4, Resumability and Redelivery.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from dragoman.core.envelope import Frame
from dragoman.core.lines import Overlong
from dragoman.errors import FrameTooLarge, TransportError
from dragoman.transports.secrecy import Secrets
from dragoman.transports.upstream.allowance import Allowance
from dragoman.transports.upstream.answers import EVENT_STREAM, HttpResponse
from dragoman.transports.upstream.bodies import read_events
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.events import EventParser, SseEvent
from dragoman.transports.upstream.failures import FORGETTING, read_refusal, tells_of_session
from dragoman.transports.upstream.lanes import Delivery
from dragoman.transports.upstream.link import Link, Watch

logger = logging.getLogger("dragoman.upstream")

_RETRY_S: Final = 1.0
"""How long to wait before coming back, where the server does not say."""

_LEAST_WAIT_S: Final = 0.05
_LONGEST_WAIT_S: Final = 30.0
_DOUBLINGS: Final = 10
"""How often a wait is doubled at most: long before, it is the longest; after 1023 times it would not be a number."""

_ATTEMPTS: Final = 5
"""How often in a row coming back may fail before a request is given up."""

_AFTER_ANSWER_S: Final = 0.5
"""How long a stream may stay open after the answer that it was there for."""

Get = Callable[[str | None, float | None], Awaitable[HttpResponse]]
"""Opens a stream: with the last event's id, and how long nothing may come."""


class _Reading:
    """What one connection of a stream brought."""

    __slots__ = ("answered", "events", "failure", "messages", "reason")

    def __init__(self) -> None:
        self.answered = False
        self.failure: TransportError | None = None  # the answer came, and cannot be handed on
        self.events = 0
        self.messages = 0  # of the events, those that are not only there to be resumed from
        self.reason = "it closed the stream before the answer"


class StreamFollower:
    """Reads the streams of one server.

    Args:
        link: Where messages go.
        config: Patience and limits.
        get: Opens a stream.
        allowance: What events may hold until they have ended.
    """

    def __init__(self, link: Link, config: UpstreamConfig, get: Get, allowance: Allowance) -> None:
        self._link = link
        self._allowance = allowance
        self._config = config
        self._get = get

    async def follow(
        self, answer: HttpResponse, job: Delivery, is_current: Callable[[], bool] | None, watch: Watch | None
    ) -> None:
        """Read the stream that answers a request, over as many connections as it takes, until the answer came.

        Args:
            answer: The first connection's.
            job: The request.
            is_current: Whether the session of that stream is the one that would be asked for the rest: event ids are
                unique "within that session" only, so in another one they may name somebody else's stream. None where
                the rest of a stream cannot be asked for.
            watch: Sees the answer first.

        Raises:
            TransportError: The answer will not come.
        """
        loop = asyncio.get_running_loop()
        parser = EventParser(self._config.limit_bytes)
        progress_at = loop.time()
        idle = 0
        while True:
            reading = await self._read(answer, parser, job.frame.key, watch)
            idle = 0 if reading.messages else idle + 1
            if reading.answered or job.cancelled:
                return
            if reading.failure is not None:
                raise reading.failure
            if reading.events or answer.waits:
                progress_at = loop.time()
            if parser.last_id is None or is_current is None:
                raise TransportError(
                    self._link.peer,
                    f"{reading.reason}; it cannot be resumed, and the request may have been carried out",
                )
            if loop.time() - progress_at > self._config.idle_timeout_s:
                raise TransportError(self._link.peer, "nothing came from it for too long")
            logger.debug("resuming a stream: %s", reading.reason)
            answer = job.answer = await self._resume(parser, idle, is_current, answer)

    async def listen(self, opened: Callable[[], None]) -> bool:
        """Read the stream on which the server speaks unasked, for as long as the session lasts.

        Args:
            opened: Called each time the server has said whether there is such a stream, or could not be asked.

        Returns:
            Whether the session is gone. False: the server offers no such stream.
        """
        parser = EventParser(self._config.limit_bytes)
        failures, idle, worked = 0, 0, False
        while True:
            try:
                answer = await self._get(parser.last_id, None)
            except TransportError as error:
                opened()
                failures += 1
                _report(failures, str(error))
            else:
                opened()
                if _is_stream(answer):
                    worked = True
                    reading = await self._read(answer, parser, None, None)
                    failures = 0 if reading.events else failures + 1
                    idle = 0 if reading.messages else idle + 1
                elif answer.status == HTTPStatus.NOT_FOUND and worked:
                    answer.close()
                    return True
                elif worked and self._config.renews_sessions and answer.status in FORGETTING:
                    return tells_of_session((await read_refusal(answer)).message)
                elif answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                    answer.close()
                    _report_none(self._link.peer, answer)
                    return False
                else:
                    answer.close()
                    failures += 1
                    _report(failures, f"{self._link.peer}: it answered {answer.named_status}")
            await asyncio.sleep(choose_wait(parser.retry_s, failures, idle))

    async def _read(
        self, answer: HttpResponse, parser: EventParser, key: bytes | None, watch: Watch | None
    ) -> _Reading:
        reading = _Reading()
        parser.restart()
        before = parser.last_id

        async def take(event: SseEvent | Overlong) -> None:
            await self._take(event, reading, key, watch)
            if reading.answered and not answer.complete and patience.when() is None:
                patience.reschedule(asyncio.get_running_loop().time() + _AFTER_ANSWER_S)

        try:
            async with asyncio.timeout(None) as patience:
                await read_events(answer, parser, self._link, self._allowance, take)
        except TimeoutError:
            pass  # it is answered, and the server does not close
        except TransportError as error:
            reading.reason = error.reason
        finally:
            answer.close()
        reading.events += parser.last_id != before
        return reading

    async def _take(
        self, event: SseEvent | Overlong, reading: _Reading, key: bytes | None, watch: Watch | None
    ) -> None:
        """Hand on one event.

        Raises:
            TransportError: It would be the answer, and cannot be handed on.
        """
        reading.events += 1
        reading.messages += isinstance(event, Overlong) or bool(event.data)
        try:
            if isinstance(event, Overlong):
                reading.failure = FrameTooLarge(self._link.peer, event.limit_bytes)  # it may have been the answer
                self._link.take_overlong(event, key)
            elif event.name in (b"", b"message"):
                reading.answered |= await self._link.take(event.data, key, _drop if reading.answered else watch)
        except TransportError as error:
            reading.failure = error
            raise

    async def _resume(
        self, parser: EventParser, idle: int, is_current: Callable[[], bool], before: HttpResponse
    ) -> HttpResponse:
        """Come back for the rest of a stream; if its server waits for an answer, it may be silent on that, too."""
        if (parser.retry_s or 0) > self._config.idle_timeout_s:
            raise TransportError(self._link.peer, f"it asks to come back after {parser.retry_s:g} s only")
        for failures in range(_ATTEMPTS):
            await asyncio.sleep(choose_wait(parser.retry_s, failures, idle))
            if not is_current():
                reason = "its session is gone"
                break
            try:
                answer = await self._get(parser.last_id, self._config.idle_timeout_s)
            except TransportError as error:
                reason = error.reason
                continue
            if _is_stream(answer):
                answer.waits = before.waits
                return answer
            refusal = await read_refusal(answer)
            reason = refusal.reason
            if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                break
        raise TransportError(
            self._link.peer, f"it cut the stream before the answer, and it cannot be resumed: {reason}"
        )


def _drop(frame: Frame) -> bool:
    """Keep back a second answer to a request that has been answered."""
    logger.warning("request %s was answered twice; the second answer is dropped", (frame.key or b"")[:60].decode())
    return False


def _is_stream(answer: HttpResponse) -> bool:
    return answer.status == HTTPStatus.OK and answer.media_type == EVENT_STREAM


def choose_wait(retry_s: float | None, failures: int, idle: int) -> float:
    """Return how long to wait before coming back, in seconds.

    Args:
        retry_s: What the server asks for, if it does. What is less than we would wait by ourselves it gets as long as
            it has something to say.
        failures: How often in a row coming back has failed.
        idle: How many connections in a row have brought no message.
    """
    least_s = min(_LEAST_WAIT_S * 2.0 ** min(idle, _DOUBLINGS), _RETRY_S)
    wait_s = _RETRY_S if retry_s is None else max(retry_s, least_s)
    return max(wait_s, min(wait_s * 2.0 ** min(failures, _DOUBLINGS), _LONGEST_WAIT_S)) if failures else wait_s


def _report(failures: int, reason: str) -> None:
    level = logging.WARNING if failures == 1 else logging.DEBUG
    logger.log(level, "no stream for what the server says unasked; trying again: %s", reason)


def _report_none(peer: str, answer: HttpResponse) -> None:
    # "or else return HTTP 405 Method Not Allowed, indicating that the server does not offer an SSE stream"
    level = logging.DEBUG if answer.status == HTTPStatus.METHOD_NOT_ALLOWED else logging.WARNING
    claims = (answer.secrets or Secrets()).take_out(answer.media_type)
    logger.log(level, "%s offers no stream for what it says unasked: %s %s", peer, answer.named_status, claims)
