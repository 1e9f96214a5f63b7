"""Requests that uvicorn's protocol serves without a task: read where they come, answered in one write.

Lives here: what is done where a POST has come as a whole, remembering its head, and writing its answer. Must not: limit
anything (`guard`), or know what a request is for: the front says whether it can be served at once. Imports uvicorn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from dragoman.transports.http.budget import Hold
from dragoman.transports.http.closing import ClosingTransport
from dragoman.transports.http.exchange import Headers, HttpRequest, Scope, Waits
from dragoman.transports.known_heads import KnownHead, know_head

if TYPE_CHECKING:
    from dragoman.transports.http.app import HttpFront


class AtOnceProtocol(HttpToolsProtocol):
    """One connection.

    A cycle, in uvicorn's words, is one request and its answer.
    """

    serving: HttpFront
    _closer: ClosingTransport
    _hold: Hold
    _at_once_bytes: int
    _known: KnownHead[HttpRequest] | None = None
    _unstarted: RequestResponseCycle | None
    _served: RequestResponseCycle
    _wanted: tuple[int, Headers, bool] | None = None
    _defaults: Sequence[tuple[bytes, bytes]] = ()
    _head: bytes | None = None
    _idle_since = 0.0
    _on_lost: Callable[[], None] | None = None
    _spare: RequestResponseCycle | None = None

    def _start(self, data: bytes, is_from_its_beginning: bool) -> None:
        """Serve a request that has begun: at once, if it is here as a whole and small.

        Args:
            data: What came last.
            is_from_its_beginning: Whether that begins where the request does. If its head came in pieces, the last
                piece alone would say less than the whole.
        """
        cycle, self._unstarted = self._unstarted, None
        assert cycle is not None
        if cycle.more_body or cycle.disconnected or len(cycle.body) > self._at_once_bytes:
            self._serve_in_task(cycle, self.app)
            return
        request = HttpRequest(cycle, self._hold, self._finish)  # type: ignore[arg-type]
        request.body = body = bytes(cycle.body)
        cycle.body.clear()
        cycle.message_event.clear()
        self._known = self._spare = None
        self.serving.serve_at_once(request)
        if cycle.keep_alive and is_from_its_beginning and request.again is not None:
            self._known = know_head(data, body, request)

    def _take_again(self, data: bytes) -> bool:
        """Serve a request whose head is known, if it is here as a whole; false if it has to be read."""
        known, before = self._known, self.cycle
        if known is None or not before.response_complete or self._is_reading():
            return False
        body = known.find_body(data)
        if body is None or len(body) > self._at_once_bytes or self._closer.is_closing():
            return False
        request = known.meaning
        if request.gate is not self.serving.gate:  # a secret may have been revoked
            return False
        if before is self._spare:
            before.response_started = before.response_complete = False
        else:
            self.cycle = self._spare = self._begin(request.scope)
            request = known.meaning = request.repeat(self.cycle)  # type: ignore[arg-type]
        request.body = body
        self.serving.serve_at_once(request)
        return True

    def _begin(self, scope: Scope) -> RequestResponseCycle:
        """Begin the cycle of a request that is here as a whole, with a head that is known.

        The next one with this head uses it again, if no task has ever seen it: then nobody is left who could answer it
        late.

        Args:
            scope: Of the request that had this head first.
        """
        cycle = RequestResponseCycle(
            scope=dict(scope),  # type: ignore[arg-type]
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=self.on_response_complete,
        )
        cycle.more_body = False
        return cycle

    def _watch_loss(self, on_lost: Callable[[], None]) -> None:
        """Call this if the connection is lost before the request is answered that is being served."""
        if self.parser is None:  # it is lost already
            on_lost()
        else:
            self._on_lost = on_lost
            if self.flow.read_paused:
                self.flow.resume_reading()

    def _finish(self, request: HttpRequest, waits: Waits) -> None:
        self._serve_in_task(request.asgi, lambda *_: self.serving.finish(request, waits))

    def _serve_in_task(self, cycle: Any, app: Any) -> None:
        if cycle is self._spare:
            self._spare = None
        super()._start_asgi_task(cycle, app)

    def _is_reading(self) -> bool:
        """Whether something has come of the next request already."""
        raise NotImplementedError

    def _reply(self, scope: Scope, status: int, headers: Headers, body: bytes) -> bool:
        """Write a whole answer: head and body in one packet, which wakes the client up once.

        What uvicorn does in two messages, for the common case. It is left to it to wait for a client that does not
        read, to close after an answer that says so, and to complain of what is not a header.
        """
        cycle = self.cycle
        if cycle.scope is not scope or cycle.disconnected or cycle.response_started or self.flow.write_paused:
            return False
        wanted = status, headers, cycle.keep_alive
        if wanted != self._wanted or self._defaults is not self.server_state.default_headers:
            self._wanted, self._defaults = wanted, self.server_state.default_headers
            self._head = _write_head(status, [*self._defaults, *headers], cycle.keep_alive)
        if self._head is None or scope["method"] == "HEAD":
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        self._closer.write(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
        if cycle is not self._spare:
            cycle.message_event.set()  # a task may wait for what comes next
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
        return True

    def on_response_complete(self) -> None:
        """Wait for the next request, or serve one that waits; what came in for this one is not needed any more.

        uvicorn sets a timer anew after each answer. This one is set once: it looks how long nothing has been asked.
        """
        self._on_lost = None
        self._idle_since = self.loop.time()
        if self._hold.size:
            self._hold.release()
        if self.pipeline:
            self._served = self.pipeline[-1][0]
        if self.pipeline or self.flow.read_paused:
            super().on_response_complete()
        elif self.timeout_keep_alive_task is None:
            self._time_idleness(self.timeout_keep_alive)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection of which nothing has been asked for long."""
        self.timeout_keep_alive_task = None
        if self.cycle.response_complete:
            left_s = self._idle_since + self.timeout_keep_alive - self.loop.time()
            if left_s > 0:
                self._time_idleness(left_s)
            else:
                super().timeout_keep_alive_handler()

    def _time_idleness(self, after_s: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(after_s, self.timeout_keep_alive_handler)


def _write_head(status: int, headers: Sequence[tuple[bytes, bytes]], keeps_alive: bool) -> bytes | None:
    """Write the head of an answer up to the length of its body; None for one that is left to uvicorn."""
    if status == 204 or any(name == b"connection" for name, _ in headers):
        return None
    closing = () if keeps_alive else ((b"connection", b"close"),)
    lines = [b"%b: %b\r\n" % header for header in (*headers, *closing)]
    head = b"".join((STATUS_LINE[status], *lines, b"content-length: "))
    if head.count(b"\n") != len(lines) + 1 or head.count(b"\r") != len(lines) + 1 or b"\0" in head:
        return None
    return head
