"""A client of HTTP+SSE, the transport of revision 2024-11-05.

Lives here: the GET stream with its `endpoint` event, and POSTs to where that leads. Must not: decide when a frame goes
(`lanes`). Called by `transport`.

Source: docs/specification/2024-11-05/basic/transports.mdx, HTTP with SSE.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import urljoin

from dragoman.core.envelope import Frame
from dragoman.core.lines import Overlong
from dragoman.core.methods import REPEATABLE
from dragoman.errors import TransportError
from dragoman.transports.upstream.allowance import Allowance
from dragoman.transports.upstream.answers import EVENT_STREAM
from dragoman.transports.upstream.bodies import discard, read_events
from dragoman.transports.upstream.config import UpstreamConfig, describe_url, origin_of
from dragoman.transports.upstream.connection_pool import ConnectionPool
from dragoman.transports.upstream.events import EventParser, SseEvent
from dragoman.transports.upstream.failures import read_refusal
from dragoman.transports.upstream.lanes import Delivery
from dragoman.transports.upstream.link import Link
from dragoman.transports.upstream.waiting import Waiting

logger = logging.getLogger("dragoman.upstream")

_ENDPOINT_BYTES: Final = 8 * 1024


class Legacy:
    """One session with an HTTP+SSE server: it lasts as long as its stream."""

    def __init__(self, config: UpstreamConfig, wire: ConnectionPool, link: Link, allowance: Allowance) -> None:
        self._config = config
        self._wire = wire
        self._link = link
        self._allowance = allowance
        self._endpoint: str | None = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting = Waiting(link, config.idle_timeout_s)
        self._initialize: Frame | None = None
        self._opened: Callable[[], None] = lambda: None

    async def open(self, job: Delivery, opened: Callable[[], None]) -> None:
        """Open the stream, if there is none yet, and send `initialize`; the answer comes on the stream.

        Raises:
            TransportError: This is no HTTP+SSE server, or it is not there.
        """
        self._initialize, self._opened = job.frame, opened
        self._link.on_response = self._note_response
        if self._endpoint is None:
            found = asyncio.get_running_loop().create_future()
            self._reader = asyncio.get_running_loop().create_task(self._read(found))
            while self._endpoint is None:
                await asyncio.wait([found], timeout=self._config.connect_timeout_s)
                if found.done():
                    self._endpoint = found.result()
                elif not self._wire.signing_in:
                    self._reader.cancel()
                    raise TransportError(self._link.peer, "no endpoint event came in time")
        await self.carry(job)

    def begin(self, job: Delivery, on_news: Callable[[], None]) -> bool:
        """Send no request without a task: its answer comes on the stream."""
        return False

    async def carry(self, job: Delivery) -> None:
        """POST one frame to the endpoint.

        Raises:
            TransportError: The server did not take it.
        """
        assert self._endpoint is not None
        frame = job.frame
        self._waiting.note_sent(frame)
        try:
            await self._post(job)
        except TransportError:
            if frame.kind != "request" or frame.key is None or self._waiting.forget(frame.key):
                raise  # not if it has been answered all the same

    async def listen(self) -> None:
        """Nothing to do: the stream is open already."""

    async def close(self) -> None:
        """Close the stream, which ends the session."""
        self._waiting.close()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    async def _post(self, job: Delivery) -> None:
        assert self._endpoint is not None
        headers = {"Accept": "*/*"}
        idle_s = self._config.idle_timeout_s
        frame, repeats = job.frame, job.frame.method in REPEATABLE
        answer = await self._wire.send(
            "POST", self._endpoint, headers, frame.raw, job.sent, idle_s, repeats=repeats, key=frame.key
        )
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise await read_refusal(answer)
        await discard(answer)  # "Accepted"; the answer comes on the stream

    async def _read(self, found: asyncio.Future[str]) -> None:
        ending = TransportError(self._link.peer, "it closed the stream")
        try:
            answer = await self._wire.send("GET", self._config.url, {"Accept": EVENT_STREAM})
            try:
                if answer.status != HTTPStatus.OK:
                    raise await read_refusal(answer)
                if answer.media_type != EVENT_STREAM:
                    raise TransportError(self._link.peer, f"it answered with {answer.media_type or 'nothing'}")
                parser, take = EventParser(self._config.limit_bytes), functools.partial(self._take, found)
                await read_events(answer, parser, self._link, self._allowance, take)
            finally:
                answer.close()
        except TransportError as error:
            ending.reason, ending.was_asked = error.reason, error.was_asked
        if found.done():
            self._link.end(str(ending))
        else:
            found.set_exception(ending)

    async def _take(self, found: asyncio.Future[str], event: SseEvent | Overlong) -> None:
        self._waiting.note_sign_of_life()
        if isinstance(event, Overlong):
            self._link.take_overlong(event)
        elif not found.done():
            if event.name != b"endpoint":
                raise TransportError(self._link.peer, "its first event is not the endpoint")
            found.set_result(self._read_endpoint(event.data))
        elif event.name in (b"", b"message"):
            await self._link.take(event.data)

    def _note_response(self, key: bytes, is_result: bool) -> None:
        self._waiting.forget(key)
        if is_result and self._initialize is not None and key == self._initialize.key:
            self._initialize = None
            self._opened()

    def _read_endpoint(self, data: bytes) -> str:
        """Return where to POST: a URL of the same origin, or our messages and headers would go to somebody else."""
        try:
            endpoint = urljoin(self._config.url, data.decode().strip())
            same = len(data) <= _ENDPOINT_BYTES and origin_of(endpoint) == origin_of(self._config.url)
            where = describe_url(endpoint)
        except ValueError:
            raise TransportError(self._link.peer, "its endpoint event holds no URL") from None
        if not same:
            raise TransportError(
                self._link.peer, f"its endpoint is at another origin, which is not allowed: {where[:200]}"
            )
        return endpoint
