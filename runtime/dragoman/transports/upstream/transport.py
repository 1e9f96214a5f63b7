"""The transport to a server behind an http or https URL.

Lives here: the `transports.base.Transport` protocol on top of lanes and a client, and finding out which client.
Must not: know how either client works. Called by `connect`.

2025-11-25/basic/transports, Backwards Compatibility: POST an `initialize`; if that is answered with 400, 404 or 405
(2025-06-18: any 4xx), GET the same URL and expect an `endpoint` event. Statuses that ask for credentials
or say "not now" prove nothing, and neither do network errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from dragoman.core.codes import ASKED_IN_VAIN, CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND
from dragoman.core.envelope import Frame, classify, decoded
from dragoman.core.exact_json import encode_line
from dragoman.core.label import speak_for
from dragoman.errors import TransportClosed, TransportError
from dragoman.transports.base import HttpHeads, Receiver
from dragoman.transports.upstream.allowance import FREE_BYTES, Allowance
from dragoman.transports.upstream.answers import EVENT_STREAM
from dragoman.transports.upstream.config import HURRIED_S, Kind, UpstreamConfig
from dragoman.transports.upstream.connection_pool import ConnectionPool
from dragoman.transports.upstream.events import only_data
from dragoman.transports.upstream.failures import StatusRefused, hint_at_path
from dragoman.transports.upstream.lanes import Delivery, Lanes
from dragoman.transports.upstream.legacy import Legacy
from dragoman.transports.upstream.link import Link
from dragoman.transports.upstream.streamable import NO_RESPONSE, Streamable

if TYPE_CHECKING:
    from dragoman.middleware import HeaderMiddleware

logger = logging.getLogger("dragoman.upstream")

_NO_EVIDENCE: Final = frozenset({401, 402, 403, 407, 408, 421, 425, 426, 429, 431, 451})

_INVALID: Final = b"%d" % INVALID_REQUEST
"""What an error has that may be about the session."""


class HttpTransport:
    """A server spoken to over Streamable HTTP or HTTP+SSE.

    Attributes:
        takes_headers: Requests of the per-request era go with the headers that they bring.
        on_heads: Told the headers of each exchange; None where nobody wants to know.
        trace_of: Gives the headers that say of which trace a frame is; None for none.
        was_asked: Whether what failed last did because a person was asked to sign in, in vain.
    """

    on_heads: Callable[[HttpHeads], None] | None = None
    trace_of: Callable[[Frame], dict[str, str]] | None = None

    takes_headers = True
    was_asked = False
    _wire: ConnectionPool
    _link: Link
    _lanes: Lanes
    _streamable: Streamable
    _client: Streamable | Legacy

    def __init__(self, config: UpstreamConfig) -> None:
        self._config = config
        self._patience_s = config.close_timeout_s
        self._is_started = self._was_open = self._is_held = self._answers_wait = False
        self._allowance = Allowance(config.held_bytes)
        self._short_bytes = min(FREE_BYTES, config.limit_bytes)

    def add_headers(self, middleware: Sequence[HeaderMiddleware]) -> None:
        """Send along what these give, too; called before `start`."""
        both = (*self._config.header_middleware, *middleware)
        self._config = dataclasses.replace(self._config, header_middleware=both)

    @property
    def is_signing_in(self) -> bool:
        """Whether requests wait for a person to sign in, and not for a client that is asked whether they want to."""
        return self._is_started and self._wire.signing_in > 0 and not self._streamable.visits.is_asking

    def stop_signing_in(self) -> None:
        """Fail the requests that wait for that: nobody waits for them."""
        if self._is_started:
            self._wire.stop_signing_in()

    def start(self, receiver: Receiver) -> None:
        """Get ready; nothing is sent before there is something to send."""
        try:
            self._wire = ConnectionPool(self._config)
        except OSError as error:
            raise TransportClosed(self._config.peer, f"TLS cannot be set up: {error.strerror or error}") from error
        self._wire.on_heads = self.on_heads
        self._link = Link(receiver, self._config.peer, self._config.restore_ids)
        self._link.secrets = self._wire.secrets
        full, room = receiver.pause_writing, receiver.resume_writing
        back, refuse = self._link.give_back, self._link.refuse
        places = self._config.open_requests, self._config.parked_requests
        self._lanes = Lanes(self._carry, self._begin, *places, full, room, back, refuse, self._hold_answers)
        self._client = self._streamable = Streamable(self._config, self._wire, self._link, self._allowance)
        self._streamable.trace_of = self.trace_of
        if self._config.kind is Kind.SSE:
            self._client = Legacy(self._config, self._wire, self._link, self._allowance)
        self._is_started = True

    def send(self, frames: Sequence[Frame]) -> None:
        """Send each frame as a request of its own."""
        if not self._is_started:
            return
        for frame in frames:
            if frame.method is None and isinstance(self._client, Streamable) and self._client.drops(frame):
                continue
            if frame.kind == "batch":
                for member in split_batch(frame):
                    self._lanes.put(member)
            else:
                self._lanes.put(frame)

    def pause_reading(self) -> None:
        """Leave what the server sends in its sockets."""
        self._is_held = True
        self._read_on()

    def resume_reading(self) -> None:
        """Go on reading."""
        self._is_held = False
        self._read_on()

    def _hold_answers(self, wait: bool) -> None:
        if wait is not self._answers_wait:
            self._answers_wait = wait
            self._read_on()

    def _read_on(self) -> None:
        """Read what the server sends, unless who gets it or the answers to it do not keep up."""
        if not self._is_started:
            return
        if self._is_held or self._answers_wait:
            self._link.reading.clear()
        else:
            self._link.reading.set()

    def hurry(self) -> None:
        """Say goodbye quickly."""
        self._patience_s = min(self._patience_s, HURRIED_S)

    async def close(self) -> None:
        """Send what is still to be sent, end the session, and close every connection."""
        if not self._is_started:
            return
        self._link.mute()
        self._link.reading.set()
        await self._lanes.drain(self._patience_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s):
                await self._client.close()
        await self._wire.close()

    async def _carry(self, job: Delivery) -> None:
        """Send one frame, and see to it that a request gets an answer whatever happens."""
        if job.frame.sender:
            speak_for(job.frame.sender)
        try:
            if job.frame.headers:
                await self._streamable.carry(job)
            elif job.frame.method == "initialize":
                await self._open(job)
            else:
                await self._client.carry(job)
        except StatusRefused as error:
            self._report(job, error.message, error.code, error.data)
        except TransportError as error:
            self.was_asked = error.was_asked
            self._report(job, str(error), data={ASKED_IN_VAIN: True} if error.was_asked else None)
        except Exception as error:  # a defect of ours: who waits is told all the same
            logger.debug("where it happened", exc_info=True)
            self._report(job, f"internal error: {type(error).__name__}: {error}", INTERNAL_ERROR)
        if job.frame.method == "notifications/initialized":
            await self._client.listen()
            self._lanes.note_ready()

    def _begin(self, job: Delivery) -> bool:
        """Send a request without a task, if there is a connection for it."""
        client = self._streamable if job.frame.headers else self._client
        return client.begin(job, functools.partial(job.context.run, self._take, job))

    def _take(self, job: Delivery) -> None:
        """Hand on what has come of a request that was sent without a task, if that can be done at once."""
        frame, answer, link = job.frame, job.answer, self._link
        assert frame.key is not None
        assert answer is not None
        is_stream = answer.plain == EVENT_STREAM
        length = answer.unread_bytes if is_stream else answer.length
        is_short = answer.plain and length is not None and length <= self._short_bytes
        if is_short and not (answer.complete or answer.failure or is_stream):
            answer.on_news = functools.partial(job.context.run, self._take, job)  # the rest of the body
            return
        read = None
        if is_short and answer.complete and link.reading.is_set():
            read = link.read(only_data(answer.show()) if is_stream else answer.show())
        if read is None or ((read[1] or read[0]).rfind(_INVALID) >= 0 and not frame.headers):
            self._lanes.go_on(job)  # what may be about the session is looked at there
            return
        answer.close()
        self._lanes.end(job)
        if not link.hand_on(*read, frame.key):
            self._report(job, str(TransportError(link.peer, NO_RESPONSE)))

    def _report(self, job: Delivery, reason: str, code: int = CONNECTION_CLOSED, data: object = None) -> None:
        frame = job.frame
        if frame.kind == "request" and frame.key is not None:
            if not job.cancelled:
                self._link.fail(frame.key, reason, code, data)
        else:
            shown = self._link.secrets.take_out(reason)
            logger.warning("%s of the client not delivered: %s", frame.method or "a response", shown)

    async def _open(self, job: Delivery) -> None:
        another = self._was_open
        try:
            await self._client.open(job, self._note_opened)
        except StatusRefused as error:
            if not another and self._is_evidence(error):
                await self._open_legacy(job, error)
            elif another or error.error is not None:
                self._report(job, error.message, error.code, error.data)
            else:
                self._link.end(str(error))
        except TransportError as error:
            if error.was_asked:
                raise
            if another:  # the server was there, and may be there again
                self._report(job, str(error))
            else:
                self._link.end(str(error))

    def _note_opened(self) -> None:
        self._was_open = True
        self._lanes.note_opened()

    def _is_evidence(self, error: StatusRefused) -> bool:
        """Whether the server may be one of the older transport.

        A 400 that carries a JSON-RPC error is an answer to `initialize`, as when the revision is not supported; so is a
        404 that says that there is no such method (2026-07-28/basic/transports/streamable-http).
        """
        if self._config.kind is not Kind.AUTO or not isinstance(self._client, Streamable):
            return False
        return (
            400 <= error.status < 500
            and error.status not in _NO_EVIDENCE
            and not (error.error is not None and (error.status == 400 or error.code == METHOD_NOT_FOUND))
        )

    async def _open_legacy(self, job: Delivery, refused: StatusRefused) -> None:
        logger.info("%s: no Streamable HTTP (%s); trying HTTP+SSE", self._link.peer, refused.reason)
        legacy = self._client = Legacy(self._config, self._wire, self._link, self._allowance)
        try:
            await legacy.open(job, self._note_opened)
        except TransportError as error:
            self._client = self._streamable
            await legacy.close()
            if error.was_asked:
                raise
            also = "and" if refused.reason == error.reason else f"{refused.reason}; to"
            hint = hint_at_path(self._config)
            self._link.end(f"{refused.peer} is not an MCP server: to POST {also} GET {error.reason}{hint}")


def split_batch(frame: Frame) -> list[Frame]:
    """Return the members of an array as frames of their own: the core puts the answers together again."""
    members = [classify(encode_line(member), member) for member in decoded(frame).body]
    return [member for member in members if isinstance(member, Frame)]
