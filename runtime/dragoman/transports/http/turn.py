"""One request on a connection, and its answer: what ASGI calls a scope, receive and send.

Lives here: the parts of a body on their way to who serves the request, and how an answer is written. Must not: read,
or limit anything (`connection`).

Source: RFC 9112, 4, 6 and 7.1; ASGI, HTTP Connection Scope.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from dragoman.transports.base import Headers
from dragoman.transports.http.closing import TurnFlow
from dragoman.transports.http.exchange import Message, Scope, Wire

_CLOSE: Final = (b"connection", b"close")
_DAYS: Final = b"Mon Tue Wed Thu Fri Sat Sun".split()
_MONTHS: Final = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
"""As dates are written in every language; `email` has them too, and takes as long to import as 30 calls."""

_BARE: Final = frozenset({204, 304})
"""Answers with these have no body, and no word about its length."""


class Turn(Wire):
    """One request, and its answer.

    Args:
        flow: When the connection is read and written to.
        done: Called when the answer is complete.
        scope: Of ASGI.
        keeps_alive: Whether the connection may serve another after it.
        expects: Whether the client waits for a word before it sends the body.

    Attributes:
        body: What has come of it and was not taken.
        more_body: Whether more comes.
        is_gone: Whether nobody waits for an answer any more.
        is_started: Whether some of the answer is written.
        is_complete: Whether all of it is.
    """

    __slots__ = (
        "_done",
        "_flow",
        "_head",
        "_head_of",
        "_head_until",
        "_is_chunked",
        "_is_read",
        "_tell",
        "_wake",
        "body",
        "expects",
        "is_complete",
        "is_gone",
        "is_started",
        "keeps_alive",
        "late",
        "more_body",
        "scope",
    )

    def __init__(
        self,
        flow: TurnFlow,
        done: Callable[[], None],
        scope: Scope,
        keeps_alive: bool,
        expects: bool = False,
    ) -> None:
        self._flow = flow
        self._done = done
        self.scope = scope
        self.keeps_alive = keeps_alive
        self.expects = expects
        self.body: bytes | bytearray = b""
        self.late: bytes | None = None
        self.more_body = True
        self.is_gone = self.is_started = self.is_complete = self._is_chunked = self._is_read = False
        self._wake: asyncio.Event | None = None
        self._tell = _ignore
        self._head_of: tuple[object, ...] = ()
        self._head_until = 0.0

    async def receive(self) -> Message:
        """Return what has come of the body; the end of the connection, or of the answer, once all was given."""
        if self.expects:
            self.expects = False
            self._flow.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self.body or self.is_gone or self.is_complete or not (self.more_body or self._is_read)):
            self._flow.resume_reading()
            self._wake = asyncio.Event()
            await self._wake.wait()
        if self.is_gone or self.is_complete:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), b""
        self._is_read = not self.more_body
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    def wake(self) -> None:
        """Let whoever takes it go on: there is something new."""
        if self._wake is not None:
            self._wake.set()

    async def send(self, message: Message) -> None:
        """Write a part of the answer, once the client has taken most of what was written before."""
        await self._flow.writable.wait()
        if self.is_gone:
            return
        if message["type"] == "http.response.start":
            headers = tuple((bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ()))
            has_length = message["status"] in _BARE or any(name == b"content-length" for name, _ in headers)
            # "A server MUST NOT send a response containing Transfer-Encoding unless the corresponding request
            # indicates HTTP/1.1 (or later minor revisions)": the end of the connection ends that body (RFC 9112, 6.1).
            is_counted = has_length or self.scope["http_version"] == "1.0"
            self._is_chunked = not is_counted and self.scope["method"] != "HEAD"
            head = self._begin(message["status"], headers)
            self._flow.transport.write(head + (b"transfer-encoding: chunked\r\n\r\n" if self._is_chunked else b"\r\n"))
            return
        body = message.get("body", b"") if self.scope["method"] != "HEAD" else b""
        more = message.get("more_body", False)
        if self._is_chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        if body:
            self._flow.transport.write(body)
        if not more:
            self._end()

    def reply(self, status: int, headers: Headers, body: bytes) -> bool:
        """Write a whole answer: head and body in one packet, which wakes the client up once.

        Returns:
            False if it has to be sent in parts: the client does not read, or has gone.
        """
        is_bare = status in _BARE or self.scope["method"] == "HEAD"
        if is_bare or self.is_gone or self.is_started or self._flow.writable.shut is not None:
            return False
        head = self._begin(status, headers)
        self._flow.transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))
        self._end()
        return True

    def watch(self, tell: Callable[[], None]) -> None:
        """Call this, and no other any more, if the client goes before it is answered."""
        if self.is_gone:
            tell()
        self._tell = tell
        if self._flow.is_paused:
            self._flow.resume_reading()

    def leave(self) -> None:
        """Nothing to do: nobody looks."""

    def abort(self) -> None:
        """Cut the connection."""
        self._flow.transport.abort()

    def lose(self) -> None:
        """Give up: the client has gone."""
        self.is_gone = True
        self.wake()
        self._tell()

    def _begin(self, status: int, headers: Headers) -> bytes:
        self.is_started, self.expects = True, False
        now = self._flow.loop.time()
        wanted = status, headers, self.keeps_alive
        if wanted != self._head_of or now >= self._head_until:
            self._head_of, self._head_until = wanted, now + 1.0  # the date in it is right so long
            self._head = _write_head(*wanted)
            self.keeps_alive = self.keeps_alive and _CLOSE not in headers
        return self._head

    def _end(self) -> None:
        self.is_complete, self._tell = True, _ignore
        if self._wake is not None:
            self.wake()
        if not self.keeps_alive:
            self._flow.transport.close()
        self._done()


def _write_head(status: int, headers: Headers, keeps_alive: bool) -> bytes:
    """Write the head of an answer, but for what is said of its body and the empty line.

    Raises:
        ValueError: A header would be more than one line.
    """
    closing = () if keeps_alive or _CLOSE in headers else (_CLOSE,)
    date = b"date", write_date(int(time.time()))
    lines = [b"%b: %b\r\n" % header for header in (*headers, date, *closing)]
    head = b"".join((b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode()), *lines))
    if head.count(b"\n") != len(lines) + 1 or head.count(b"\r") != len(lines) + 1 or b"\0" in head:
        raise ValueError("a header of an answer is more than one line")
    return head


@lru_cache(maxsize=1)
def write_date(second: int) -> bytes:
    """Return a second since 1970 as HTTP writes it (RFC 9110, 5.6.7)."""
    now = time.gmtime(second)
    day, month = _DAYS[now.tm_wday], _MONTHS[now.tm_mon - 1]
    return b"%b, %02d %b %d %02d:%02d:%02d GMT" % (day, now.tm_mday, month, now.tm_year, *now[3:6])


def _ignore() -> None:
    """What nobody has asked for."""


def opens_websocket(method: str, version: str, listed: Headers, *, is_served: bool, is_busy: bool) -> bool:
    """Check a request that wants to speak something else on its connection, from here on.

    Args:
        method: Of it.
        version: Of HTTP.
        listed: Its headers.
        is_served: Whether WebSockets are served here.
        is_busy: Whether the request before has no answer yet.

    Raises:
        ValueError: It cannot.
    """
    if method == "CONNECT":
        raise ValueError("it asks for a tunnel (CONNECT), and this is no forward proxy")
    headers = dict(listed)
    tokens = [token.strip() for token in headers.get(b"connection", b"").lower().split(b",")]
    if b"upgrade" not in tokens or headers.get(b"upgrade", b"").lower() != b"websocket" or not is_served:
        return False
    if method != "GET" or version != "1.1":
        raise ValueError("a WebSocket opens with GET and HTTP/1.1")
    if is_busy:
        raise ValueError("a WebSocket opens before the answer to the request before")
    if b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0":
        raise ValueError("a WebSocket opens with a body")
    return True


def write_refusal(words: str) -> bytes:
    """Return the whole answer to a request that is not served, after which nothing more comes.

    Args:
        words: Its status and phrase.
    """
    later = b"retry-after: 5\r\n" if words.startswith(("429", "503")) else b""
    return b"HTTP/1.1 %b\r\n%bconnection: close\r\ncontent-length: 0\r\n\r\n" % (words.encode(), later)
