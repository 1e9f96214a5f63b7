"""A client of Streamable HTTP, in all its revisions.

Lives here: POST, GET and DELETE, the session id, the revision header, and what follows from each status. Must not:
decide when a frame goes (`lanes`), make the headers that repeat a body (`core.rules.headers`), nor read events
(`following`). Called by `transport`.

A request of 2026-07-28 brings its headers: it belongs to no session, and there is no GET for it, and nothing to resume:
if its stream breaks, it has failed. Closing that stream cancels it, which happens when the task of its job is
cancelled. An error with an HTTP status of its own is an answer, too.

Where the pages differ, we do what is right by all of them: `MCP-Protocol-Version` is sent from 2025-06-18 on, arrays
are never sent (only 2025-03-26 has them, and no Python server of that revision answers one), `retry` is always
respected.

Source: docs/specification/{2025-03-26,2025-06-18,2025-11-25}/basic/transports.mdx, Streamable HTTP;
2026-07-28/basic/transports/streamable-http.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from dragoman.core.codes import INVALID_REQUEST
from dragoman.core.envelope import Frame, decoded
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.methods import ELICITED, LISTEN, PING, REPEATABLE
from dragoman.core.unchecked import find
from dragoman.errors import TransportError
from dragoman.transports.upstream.allowance import Allowance
from dragoman.transports.upstream.answers import EVENT_STREAM, JSON, HttpResponse
from dragoman.transports.upstream.bodies import discard, read_message
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connection_pool import ConnectionPool
from dragoman.transports.upstream.failures import (
    FORGETTING,
    WEB_PAGE,
    WEB_PAGE_HINT,
    StatusRefused,
    hint_at_path,
    read_refusal,
    tells_of_session,
)
from dragoman.transports.upstream.following import StreamFollower
from dragoman.transports.upstream.lanes import Delivery
from dragoman.transports.upstream.link import Link, Watch
from dragoman.transports.upstream.questions import SessionQuestions
from dragoman.transports.upstream.visits import COME_BACK, MARK, VISITOR, AskedToVisit, Round, Visits
from dragoman_spec import HANDSHAKE_REVISIONS, facts

logger = logging.getLogger("dragoman.upstream")

NO_RESPONSE: Final = "its answer holds no response to the request (is it MCP, and the path of the URL right?)"
_ACCEPT_BOTH: Final = {"Accept": f"{JSON}, {EVENT_STREAM}"}

_LISTEN_PATIENCE_S: Final = 0.5
"""How long the requests of a new session wait for the server to open its stream; some say nothing before an event."""

_REASON_PATIENCE_S: Final = 0.5
"""How long to read what a server says about a session that is gone."""

_WITH_VISITS: Final = frozenset(known for known in HANDSHAKE_REVISIONS if ELICITED in facts(known).relayed)
"""The revisions of sessions in which a server may ask for a visit to a URL."""

_SESSION_ID = re.compile(r"[\x21-\x7e]{1,1024}\Z")
"""2025-11-25, Session Management: "MUST only contain visible ASCII characters (ranging from 0x21 to 0x7E)"."""


class Streamable:
    """One session with a Streamable HTTP server; another one after each `initialize`.

    Attributes:
        visits: What clients are asked for in the place of the server.
        trace_of: Gives the headers that say of which trace a frame is; None for none.
    """

    trace_of: Callable[[Frame], dict[str, str]] | None = None

    def __init__(self, config: UpstreamConfig, wire: ConnectionPool, link: Link, allowance: Allowance) -> None:
        self._config = config
        self._wire = wire
        self._link = link
        self._allowance = allowance
        self._session_id: str | None = None
        self._revision: str | None = None
        self._questions = SessionQuestions(link, config.parked_requests)
        self.visits = Visits(link)
        self._shows_pages = False  # whether the client can be asked for a visit in this session
        self._own: tuple[tuple[str, str], ...] = ()  # the headers that the last request brought
        self._asking: dict[str, str] = {}  # the headers of every request, as long as session and those are the same
        self._follower = StreamFollower(link, config, self._get, allowance)
        self._listener: asyncio.Task[None] | None = None

    async def open(self, job: Delivery, opened: Callable[[], None]) -> None:
        """Send `initialize` and hand on the answer.

        Args:
            job: The request.
            opened: Called when the server has accepted, before the answer is handed on.

        Raises:
            StatusRefused: The server answered with a status that is no success.
            TransportError: There was no answer.
        """
        self._stop_listening()

        def watch(frame: Frame) -> bool:
            if frame.kind == "result":
                self._revision = _read_revision(frame)
                asked = find(decoded(job.frame).body, "params", "capabilities", "elicitation", "url")
                self._shows_pages = asked is not None and self._revision in _WITH_VISITS
                self._asking = {}
                opened()
            return True

        answer = await self._post(job.frame, job.sent, _ACCEPT_BOTH)
        session_id = self._read_session_id(answer)
        if answer.status == HTTPStatus.OK:
            self._session_id = session_id
            self._asking = {}
            self._questions.epoch += 1
        await self._take_answer(answer, job, self._questions.epoch, watch)

    def begin(self, job: Delivery, on_news: Callable[[], None]) -> bool:
        """Send a request over a connection that is open already, if there is one.

        Args:
            job: The request; it gets the answer to come.
            on_news: Called when something has come of it: then `carry` may be called.
        """
        frame = job.frame
        if frame.method == LISTEN or (frame.headers and MARK in (frame.bare or frame.raw)):
            return False
        idle_s = self._config.idle_timeout_s
        headers = self._headers_for(frame)
        answer = self._wire.post_at_once(self._config.url, headers, frame.raw, job.sent, idle_s, frame.key)
        if answer is None:
            return False
        job.answer, job.sent_in, answer.on_news = answer, (self._questions.epoch, self._session_id is not None), on_news
        return True

    async def carry(self, job: Delivery) -> None:
        """Send one frame that is not `initialize`, and hand on what is answered.

        2025-11-25, Session Management: a 404 to a session says that it is gone, so nobody has looked at the frame.
        Servers say so in other ways, too (rule `forgotten-session`).

        Raises:
            TransportError: It was not sent, or not answered.
        """
        if job.frame.method is None and self._questions.drops(job.frame):
            return
        epoch, in_session = job.sent_in or (self._questions.epoch, self._session_id is not None)
        try:
            sent = self._questions.at_server(job.frame)
            answer = await self._post(sent, job.sent, self._headers_for(sent), job.answer)
        except AskedToVisit as asked:
            body = {"jsonrpc": "2.0", "id": decode(job.frame.key or b"null"), "result": asked.result}
            await self._link.take(encode_line(body), job.frame.key)
            return
        except StatusRefused as refused:
            if not in_session or not tells_of_session(refused.message):
                raise
            self._lose(job, epoch, refused)
            return
        told = None
        if in_session and not job.frame.headers:
            told = await self._read_forgetting(answer)
        if told is not None:
            self._lose(job, epoch, told)
        elif in_session and job.frame.kind == "request" and self._config.renews_sessions:
            await self._take_answer(answer, job, epoch, functools.partial(self._is_answer, job, epoch))
        elif job.frame.kind == "request":
            await self._take_answer(answer, job, epoch)
        elif HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            if job.frame.method is None:
                self._questions.settle(job.frame.key)
            await discard(answer)
        else:
            raise await read_refusal(answer)

    async def _read_forgetting(self, answer: HttpResponse) -> StatusRefused | None:
        """Read how a server says that it has forgotten the session; None where it does not.

        Raises:
            StatusRefused: It says something else with such a status.
        """
        if answer.status == HTTPStatus.NOT_FOUND:
            return await _read_shortly(answer)
        if not self._config.renews_sessions or answer.status not in FORGETTING:
            return None
        told = await read_refusal(answer)
        if tells_of_session(told.message):
            return told
        raise told

    def _is_answer(self, job: Delivery, epoch: int, frame: Frame) -> bool:
        """Whether a response is one: a request that is invalid because the session is not known was not looked at."""
        error = find(decoded(frame).body, "error") if frame.kind == "error" else None
        words = find(error, "message")
        if find(error, "code") != INVALID_REQUEST or not isinstance(words, str) or not tells_of_session(words):
            return True
        self._lose(job, epoch, StatusRefused(self._link.peer, words, HTTPStatus.OK, error))
        return False

    def _lose(self, job: Delivery, epoch: int, told: StatusRefused) -> None:
        """Say that the session is gone, and this frame was not looked at."""
        frame = None if job.cancelled else job.frame
        self._questions.lose(epoch)
        self._link.lose_session(frame, self._questions.epoch != epoch, told.message, told.code, told.data)
        if job.frame.method is None:
            self._questions.fail(job.frame.key)

    def drops(self, frame: Frame) -> bool:
        """Whether a response is not for the server: it answers a question of ours, or of a session that is gone."""
        if self.visits.drops(frame):
            self._questions.settle(frame.key)
            return True
        return self._questions.drops(frame)

    async def listen(self) -> None:
        """Open the stream on which the server speaks unasked, if it offers one.

        Returns when the server has said so, or has taken too long about it. Servers without an event store drop what
        they ask while this stream is not open, and whoever waits for the answer then waits for ever.
        """
        opened = self._start_listening()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LISTEN_PATIENCE_S):
                await opened.wait()

    async def close(self) -> None:
        """Tell the server that the session is over.

        2025-11-25, Session Management: clients "SHOULD send an HTTP DELETE to the MCP endpoint".
        """
        self._stop_listening()
        if self._session_id is None or not self._config.end_session:
            return
        with contextlib.suppress(TransportError):
            answer = await self._wire.send("DELETE", self._config.url, self._headers(), asks=False)
            answer.close()
            logger.debug("DELETE of the session: %s", answer.named_status)

    def _headers_for(self, frame: Frame) -> dict[str, str]:
        """Return the headers of a POST: those that the frame brings, or else those of the session."""
        if not self._asking or frame.headers != self._own:
            self._own = frame.headers
            self._asking = {**_ACCEPT_BOTH, **(dict(frame.headers) or self._headers())}
        asking = self._asking if self.trace_of is None else self._asking | self.trace_of(frame)
        if frame.sender and frame.headers and self._config.tells is not None:  # a session is not of one of several
            return {**asking, **self._config.tells(frame.sender)}
        return asking

    def _headers(self) -> dict[str, str]:
        """Return the headers of the session."""
        headers = {}
        if self._session_id is not None:
            headers["Mcp-Session-Id"] = self._session_id
        if self._revision is not None:
            known = self._revision if self._revision in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[-1]
            if (header := facts(known).headers.get("revision")) is not None:
                headers[header.name] = self._revision
        return headers

    async def _post(
        self, frame: Frame, sent: Callable[[], None], headers: dict[str, str], begun: HttpResponse | None = None
    ) -> HttpResponse:
        idle_s = None if frame.method == LISTEN else self._config.idle_timeout_s
        asks = frame.method != PING  # which is sent while nobody is there
        come_back = visitor = None  # of another call, perhaps, whose answer led to this one
        if frame.headers:
            turn = Round(frame)
            frame, come_back = turn.frame, turn.ask
        elif frame.kind == "request" and frame.key is not None and self._shows_pages:
            visitor = functools.partial(self.visits.ask, frame.key)
        COME_BACK.set(come_back)
        VISITOR.set(visitor)
        how = headers, frame.raw, sent, idle_s, begun, asks, False, frame.method in REPEATABLE, frame.key
        try:
            return await self._wire.send("POST", self._config.url, *how)
        finally:
            if visitor is not None and frame.key is not None:
                await self.visits.end(frame.key)

    async def _take_answer(self, answer: HttpResponse, job: Delivery, epoch: int, watch: Watch | None = None) -> None:
        """Hand on what a request was answered with; make sure that the answer is among it."""
        job.answer = answer
        self._questions.begin(job, epoch)
        try:
            media_type = answer.media_type
            if answer.status != HTTPStatus.OK:
                await self._take_refusal(answer, job.frame)
            elif media_type == EVENT_STREAM:
                is_current = None if job.frame.headers else lambda: self._questions.epoch == epoch
                await self._follower.follow(answer, job, is_current, watch)
            elif media_type == JSON:
                body = await read_message(answer, self._config.limit_bytes, self._link, self._allowance)
                await self._link.reading.wait()
                if not await self._link.take(body, job.frame.key, watch, answer.framed) and not job.cancelled:
                    raise TransportError(self._link.peer, NO_RESPONSE)
            else:
                hint = WEB_PAGE_HINT + hint_at_path(self._config) if media_type == WEB_PAGE else ""
                named = f"{media_type[:80] or 'nothing'}{hint}"
                raise TransportError(
                    self._link.peer, f"its answer must be {JSON} or {EVENT_STREAM}, and claims to be {named}"
                )
        finally:
            self._questions.end(job)
            answer.close()

    async def _take_refusal(self, answer: HttpResponse, frame: Frame) -> None:
        """Hand on the error that a refusal carries, where that is an answer as any other; raise what else it is."""
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise TransportError(self._link.peer, f"it answered {answer.named_status}, without a response")
        refusal = await read_refusal(answer)
        if refusal.error is None or not frame.headers or frame.key is None:
            raise refusal
        body = {"jsonrpc": "2.0", "id": decode(frame.key), "error": refusal.error}
        await self._link.take(encode_line(body), frame.key)

    def _read_session_id(self, answer: HttpResponse) -> str | None:
        session_id = answer.header("Mcp-Session-Id")
        if session_id and not _SESSION_ID.match(session_id):
            answer.close()
            raise TransportError(self._link.peer, "its Mcp-Session-Id is not made of visible ASCII characters")
        return session_id or None

    async def _get(self, last_id: str | None, idle_s: float | None) -> HttpResponse:
        headers = {"Accept": EVENT_STREAM, **self._headers()}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        return await self._wire.send("GET", self._config.url, headers, idle_s=idle_s, asks=False, waits=True)

    def _start_listening(self) -> asyncio.Event:
        self._stop_listening()
        opened = asyncio.Event()
        self._listener = asyncio.get_running_loop().create_task(self._listen(opened))
        return opened

    async def _listen(self, opened: asyncio.Event) -> None:
        epoch = self._questions.epoch
        if await self._follower.listen(opened.set) and self._session_id is not None:
            self._questions.lose(epoch)
            self._link.lose_session(None, self._questions.epoch != epoch)

    def _stop_listening(self) -> None:
        if self._listener is not None and self._listener is not asyncio.current_task():
            self._listener.cancel()
        self._listener = None


async def _read_shortly(answer: HttpResponse) -> StatusRefused:
    """Read why a session is gone, without waiting long for it: the status says it."""
    try:
        async with asyncio.timeout(_REASON_PATIENCE_S):
            return await read_refusal(answer)
    except TimeoutError:
        return StatusRefused(answer.peer, f"it answered {answer.named_status}", answer.status, None)


def _read_revision(frame: Frame) -> str | None:
    """Return the revision that the server chose; the core decides what to make of it."""
    try:
        body: Any = decode(frame.raw) if frame.body is None else frame.body
    except ValueError:
        return None
    revision = find(body, "result", "protocolVersion")
    return revision if isinstance(revision, str) and _SESSION_ID.match(revision) else None
