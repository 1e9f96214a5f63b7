"""The answer to one request, while it comes.

Lives here: its head, what of its body has come and has not been read, and who waits for more. Must not: parse, or know
a socket. Filled by `connection`; read by `streamable`, `legacy` and `bodies`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol, TypeVar

from dragoman.core.pieces import Pieces
from dragoman.errors import TransportError
from dragoman.transports.secrecy import Secrets

_HIGH_WATER_BYTES: Final = 512 * 1024
"""Of a body that is read in pieces, no more than this, and what one read of the socket brings, waits to be read."""

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"

Headers = dict[bytes, bytes]
"""Names in lower case. Of a name that came several times the first value; all of `set-cookie`, by lines, and all that
say who is let in, with commas."""

Head = tuple[int, Headers, str]
"""Status, headers, and whether the answer is plain."""

SuccessorT = TypeVar("SuccessorT", bound=asyncio.Protocol)


class Source(Protocol):
    """Where an answer comes from."""

    def pause(self) -> None:
        """Leave what comes in the socket."""

    def resume(self) -> None:
        """Go on reading."""

    def let_go(self) -> None:
        """This answer is not read any more."""

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """Another protocol goes on."""


class HttpResponse:
    """The answer to one request: its head, and its body still to be read. Close it when done.

    Args:
        peer: Who gives it.
        source: Where it comes from.

    Attributes:
        status: Of HTTP; 0 as long as the head has not come.
        headers: As they came; not to be changed.
        on_news: Called once, when anything has come or nothing more will; that, too, is how somebody waits here.
        length: How long the body is going to be, if the head says so.
        begun: Whether any of it has come.
        complete: Whether all of it has come, although perhaps not been read.
        failure: Why no more of it comes; empty if nothing is wrong.
        lost: Whether that is because the connection ended.
        held: Whether nothing more is read from the connection, because so much waits here.
        waits: Whether the server waits for something of us: then it may be silent.
        plain: Its media type, where there is nothing to do but to hand on what it says: JSON or a stream, a success,
            neither compressed nor with a cookie; else empty.
        framed: Whether length or chunks say where the body ends: if only the end of the connection does, it may be cut.
        authorization: What the request said in `Authorization` for `Authority`.
        secrets: What the server was sent that nobody else may read; None where there is nothing.
        on_head: Told once the head has come, or that it does not, where somebody wants to know.
        url: Where the request went, if it was sent without waiting for the answer: that may lead elsewhere by now.
    """

    status = 0
    length: int | None = None
    begun = complete = lost = held = waits = False
    plain = failure = url = authorization = ""
    framed = True
    secrets: Secrets | None = None
    on_news: Callable[[], None] | None = None
    on_head: Callable[[HttpResponse], None] | None = None
    _first = b""  # the first part of what has come and has not been read
    _parts: Pieces | None = None  # all of it, if there are several
    _in_one = False

    def __init__(self, peer: str, source: Source) -> None:
        self.peer = peer
        self.headers: Headers = {}
        self._source: Source | None = source

    @property
    def named_status(self) -> str:
        """The status for a person."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)

    @property
    def media_type(self) -> str:
        """What the body claims to be, without parameters; empty if it does not."""
        return self.header("Content-Type").partition(";")[0].strip().lower()

    def header(self, name: str) -> str:
        """Return a header, or nothing."""
        value = self.headers.get(name.lower().encode())
        return value.decode("latin-1").strip() if value else ""

    async def until_head(self) -> None:
        """Wait for the head.

        Raises:
            TransportError: It did not come.
        """
        while not self.status:
            await self._wait()

    async def some(self) -> bytes:
        """Return what has come of the body, undecoded; nothing means that this was all.

        Raises:
            TransportError: It did not come whole.
        """
        while not self.unread_bytes:
            if self.complete:
                return b""
            await self._wait()
        return self._take_parts()

    async def whole(self) -> bytes:
        """Return the body at once: for one whose length is known.

        Raises:
            TransportError: It did not come whole.
        """
        self._in_one = True
        self._resume()
        while not self.complete:
            await self._wait()
        return self._take_parts()

    @property
    def unread_bytes(self) -> int:
        """How much of the body has come and has not been read."""
        return len(self._first) if self._parts is None else self._parts.size

    def take(self) -> bytes:
        """Return what has come of the body."""
        taken, self._first = self.show(), b""
        return taken

    def show(self) -> bytes:
        """Return what has come of the body, which stays here."""
        if self._parts is not None:
            self._first, self._parts = self._parts.take(), None
        return self._first

    def wait(self, waits: bool) -> None:
        """Take note whether the server waits for something of us; it has time again from the moment that it has it."""
        if self.waits and not (waits or self.held) and self._source is not None:
            self._source.resume()
        self.waits = waits

    def hand_over(self, protocol: SuccessorT) -> SuccessorT:
        """Let another protocol go on with the connection.

        Raises:
            TransportError: It is closed.
        """
        if self._source is not None:
            self._source.hand_over(protocol)
            self._source = None
        return protocol

    def close(self) -> None:
        """Give the connection back if the answer is complete, drop it if not."""
        source, self._source = self._source, None
        self._first, self._parts = b"", None
        if source is not None:
            source.let_go()

    def take_head(self, status: int, headers: Headers) -> None:
        """The head has come."""
        self.status = status
        self.headers = headers
        has_more = b"content-encoding" in headers or b"set-cookie" in headers
        media_type = self.media_type
        is_plain = status == HTTPStatus.OK and not has_more and media_type in (JSON, EVENT_STREAM)
        self.plain = media_type if is_plain else ""
        length = headers.get(b"content-length")
        if length is not None:
            self.length = int(length)
        self._tell_head()

    def take_body(self, part: bytes) -> None:
        """A part of the body has come."""
        if not self.unread_bytes:
            self._first = part
        else:
            if self._parts is None:
                self._parts = Pieces()
                self._parts.add(self._first)
            self._parts.add(part)
        is_much = self.unread_bytes > _HIGH_WATER_BYTES and not self._in_one
        if is_much and not self.held and self._source is not None:
            self.held = True
            self._source.pause()

    @property
    def head(self) -> Head:
        """What its head says, but for the length."""
        return self.status, self.headers, self.plain

    def take_whole(self, head: Head, body: bytes) -> None:
        """All of it has come, at once, with a head that another answer had before; the length is that of the body."""
        self.status, self.headers, self.plain = head
        self.length, self._first = len(body), body
        self.complete = True
        if self.on_head is not None:
            self._tell_head()

    def take_end(self) -> None:
        """Everything has come."""
        self.complete = True

    def take_close(self) -> bool:
        """The server sends no more; whether that was the end of the answer.

        RFC 9112, 6.3: a body with neither length nor chunks ends with the connection.
        """
        coding = self.headers.get(b"transfer-encoding", b"").lower()
        if self.status and self.length is None and not coding.rstrip().endswith(b"chunked"):
            self.framed = False
            self.take_end()
            self._tell_soon()
        return self.complete

    def fail(self, reason: str) -> None:
        """No more will come."""
        self.failure = reason
        self._tell_head()
        self._tell_soon()

    def tell(self) -> None:
        """Say that something has come; its source says so once it has read all that came."""
        if self._in_one and not (self.complete or self.failure):
            return  # nobody looks at a part of it
        tell, self.on_news = self.on_news, None
        if tell is not None:
            tell()

    def _tell_head(self) -> None:
        on_head, self.on_head = self.on_head, None
        if on_head is not None:
            on_head(self)

    def _tell_soon(self) -> None:
        if self.on_news is not None:
            asyncio.get_running_loop().call_soon(self.tell)

    def _take_parts(self) -> bytes:
        taken = self.take()
        self._resume()
        return taken

    def _resume(self) -> None:
        if self.held and self._source is not None:
            self.held = False
            self._source.resume()

    async def _wait(self) -> None:
        """Wait until anything has come, if more can come.

        Raises:
            TransportError: It cannot.
        """
        if self.failure:
            raise TransportError(self.peer, self.failure)
        came = asyncio.Event()
        self.on_news = came.set
        try:
            await came.wait()
        finally:
            self.on_news = None
