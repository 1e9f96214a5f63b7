"""One HTTP request and what is answered to it, over ASGI.

Lives here: headers as a mapping, the body within its limits, and the few shapes of answers. Must not: know MCP beyond
the JSON-RPC error that explains a refusal. Called by the fronts beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import lru_cache
from typing import Any, Final

from dragoman.core.codes import INVALID_REQUEST
from dragoman.core.envelope import encode_error
from dragoman.core.exact_json import encode_line
from dragoman.transports.http.budget import FREE_BYTES, MAX_MEMORY, Excess, Hold
from dragoman.transports.http.config import Limits
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS, facts

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MCP_HEADERS: Final = tuple(
    dict.fromkeys(
        header.name.lower().encode()
        for revision in REVISIONS
        for header in facts(revision).headers.values()
        if header.carries != "argument"
    )
)
"""The headers of the specification's own."""

_NEWEST: Final = facts(REVISIONS[-1]).headers
_REVISION: Final = _NEWEST["revision"].name.lower().encode()
_METHOD: Final = _NEWEST["method"].name.lower().encode()

_SINGLE: Final = frozenset(
    b"host origin authorization x-api-key content-type content-length content-encoding".split()
).union(MCP_HEADERS)
"""Headers that decide something: two of them could be read in two ways, so they are refused."""

JSON: Final = (b"content-type", b"application/json")
EVENT_STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),  # stored, Chromium repeats a DELETE that comes while it is read
    (b"x-accel-buffering", b"no"),
)


ABORT: Final = "dragoman.abort"
"""The name under which `serve` offers a way to cut a connection whose client reads nothing; ASGI has none."""

GONE: Final = "dragoman.gone"
"""The name under which it says whether a connection is lost; ASGI says so only after all that was sent before."""


HOLD: Final = "dragoman.hold"
"""The name under which `serve` offers the `Hold` of the connection, which counts what comes in before we see it."""

REPLY: Final = "dragoman.reply"
"""The name under which it offers to write a whole answer at once: a `Reply`."""

LOST: Final = "dragoman.lost"
"""The name under which it takes what is to be called if the connection is lost before the answer: an `OnLost`."""

OnLost = Callable[[Callable[[], None]], None]
"""Takes what to call once; an answer, or a task for the request, makes it be forgotten."""

Headers = tuple[tuple[bytes, bytes], ...]
"""Names in small letters and values, as ASGI has them."""

Reply = Callable[[Scope, int, Headers, bytes], bool]
"""Takes the scope, status, headers without the length, and body; false if it did not write: it has to wait, or nobody
is there any more."""

RETRY_AFTER: Final = (b"retry-after", b"5")


LARGE_BYTES: Final = 64 * 1024
"""From here on it matters whether a client reads what it is sent."""

_PIECE_BYTES: Final = 1024 * 1024


class RequestRefused(Exception):
    """A request that is not served: the status and the reason, which the client is told.

    Args:
        status: The HTTP status.
        reason: For a person.
        headers: What the answer carries beside the usual.
        code: The JSON-RPC error code.
        key: The id of the JSON-RPC request, as JSON, where there is one.
        advice: For whoever runs the proxy: what to do if this should have been served.
        option: The option that sets the limit which this is beyond, if it is.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        *headers: tuple[bytes, bytes],
        code: int = INVALID_REQUEST,
        key: bytes | None = None,
        advice: str = "",
        option: str = "",
    ) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason
        self.headers = headers
        self.code = code
        self.key = key
        self.advice = advice
        self.option = option


class Disconnected(Exception):
    """The client went away before it had said everything."""


def read_headers(scope: Scope, limits: Limits) -> dict[bytes, bytes]:
    """Give the headers by their lower-case names.

    Raises:
        RequestRefused: 431 for too many, 400 where a header that decides something is there twice.
    """
    headers: dict[bytes, bytes] = {}
    listed, size = scope["headers"], 0
    for name, value in listed:
        size += len(name) + len(value)
        if name in headers:
            if name in _SINGLE:
                raise RequestRefused(400, f"expected one {name.decode('latin-1')} header, found several")
            value = headers[name] + b", " + value
        headers[name] = value
    if len(listed) > limits.headers or size > limits.header_bytes:
        raise RequestRefused(431, "the headers are more or larger than the limit", (b"connection", b"close"))
    return headers


class HttpExchange:
    """A request that is being served.

    Args:
        scope: Of ASGI.
        receive: Of ASGI.
        send: Of ASGI.
        headers: From `read_headers`.
        hold: What is read of the body counts there until it is released.
        extra: Headers that every answer carries.
    """

    __slots__ = ("_receive", "_send", "extra", "gate", "headers", "hold", "method", "principal", "scope")

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: dict[bytes, bytes],
        hold: Hold,
        extra: Headers = (),
    ) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.headers = headers
        self.hold = hold
        self.extra = extra
        self.principal = ""
        self.gate: object = None  # who has found out who it is
        self._receive = receive
        self._send = send

    def repeat(self, scope: Scope, receive: Receive, send: Send) -> HttpExchange:
        """Give another request with the same head, of which the same is known."""
        again = HttpExchange(scope, receive, send, self.headers, self.hold, self.extra)
        again.principal = self.principal
        return again

    def header(self, name: bytes) -> str | None:
        """Give the value of a header."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1").strip()

    @property
    def speaks_for_itself(self) -> bool:
        """Whether the headers say already that this is a request of the era without sessions.

        A client with a handshake may send the headers of that era as well; it names its own revision, or its session.
        """
        named = self.headers.get(_REVISION, b"").decode("latin-1").strip()
        if named in REVISIONS:
            return named not in HANDSHAKE_REVISIONS
        return _METHOD in self.headers and b"mcp-session-id" not in self.headers

    async def read_body(self, limit_bytes: int, timeout_s: float) -> bytes:
        """Read the whole body; whoever hands it on releases the hold.

        Raises:
            RequestRefused: 413, 408, 415, and 429 or 503 where no more may be held.
            Disconnected: The client went away half-way.
        """
        encoding = self.headers.get(b"content-encoding")
        if encoding is not None and encoding.lower() != b"identity":
            raise RequestRefused(415, "expected a body without content encoding")
        length = self.headers.get(b"content-length", b"0").strip(b" \t")  # a parser may have left what is around it
        if not length.isdigit() or int(length) > limit_bytes:
            raise _too_large(limit_bytes)
        message = await self._receive_within(timeout_s)
        if message["type"] == "http.disconnect":
            raise Disconnected
        body: bytes = message.get("body", b"")
        if message.get("more_body", False):
            body = await self._read_on(body, limit_bytes, timeout_s)
        if len(body) > limit_bytes:
            raise _too_large(limit_bytes)
        return body

    def _receive_within(self, timeout_s: float) -> Awaitable[Message]:
        if ABORT in self.scope.get("extensions", ()):  # then the server has a deadline of its own, and a cheaper one
            return self._receive()
        return self._receive_or_time_out(timeout_s)

    async def _receive_or_time_out(self, timeout_s: float) -> Message:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._receive()
        except TimeoutError:
            reason = f"the body did not come within {timeout_s:g} s"
            raise RequestRefused(408, reason, (b"connection", b"close")) from None

    async def _read_on(self, body: bytes, limit_bytes: int, timeout_s: float) -> bytes:
        deadline = asyncio.get_running_loop().time() + timeout_s
        parts, size, more = [body], len(body), True
        while more:
            if size > limit_bytes:
                raise _too_large(limit_bytes)
            message = await self._receive_within(max(0.0, deadline - asyncio.get_running_loop().time()))
            if message["type"] == "http.disconnect":
                raise Disconnected
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self._count(size)
            more = message.get("more_body", False)
        return b"".join(parts)

    def _count(self, size: int) -> None:
        """Count what has been read, where the server does not do so itself, and sooner."""
        if size > FREE_BYTES and HOLD not in self.scope.get("extensions", ()):
            try:
                self.hold.resize(size)
            except Excess as excess:
                closing = (RETRY_AFTER, (b"connection", b"close"))
                raise RequestRefused(excess.status, excess.reason, *closing, option=MAX_MEMORY) from None

    async def wait_for_disconnect(self) -> None:
        """Wait until the client has gone; call it only after the whole body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def reply(self, status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> None:
        """Answer, whole."""
        if not self.reply_at_once(status, body, *headers):
            length = () if status == 204 else ((b"content-length", b"%d" % len(body)),)
            listed = [*headers, *length, *self.extra]
            await self._send({"type": "http.response.start", "status": status, "headers": listed})
            await self._send({"type": "http.response.body", "body": body, "more_body": False})

    def reply_at_once(self, status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> bool:
        """Answer, whole, if the server can do that at once; false if `reply` is needed."""
        write: Reply | None = self.scope.get("extensions", {}).get(REPLY)
        return write is not None and write(self.scope, status, headers + self.extra, body)

    async def reply_large(self, body: bytes, stall_s: float, *headers: tuple[bytes, bytes]) -> None:
        """Answer with 200 and a body that may take long to send; a client that takes nothing of it is cut off."""
        listed = [*headers, (b"content-length", b"%d" % len(body)), *self.extra]
        await self._send({"type": "http.response.start", "status": 200, "headers": listed})
        try:
            await self.send_within(body, stall_s)
            async with asyncio.timeout(stall_s):
                await self.send_part(b"", more=False)
        except TimeoutError:
            self.abort()

    async def send_within(self, data: bytes, stall_s: float) -> None:
        """Send the next part of a stream; the client has so long for each megabyte.

        Raises:
            TimeoutError: It took longer.
        """
        for start in range(0, len(data), _PIECE_BYTES):
            piece = data if len(data) <= _PIECE_BYTES else data[start : start + _PIECE_BYTES]
            async with asyncio.timeout(stall_s):
                await self.send_part(piece)

    async def refuse(self, refused: RequestRefused) -> None:
        """Answer with a refusal, explained by a JSON-RPC error."""
        error = encode_error(refused.key, refused.code, refused.reason)
        if refused.key is None and self.speaks_for_itself:  # its schema has no null there
            error = encode_line({"jsonrpc": "2.0", "error": {"code": refused.code, "message": refused.reason}})
        await self.reply(refused.status, error, JSON, *refused.headers)

    async def start_stream(self, *headers: tuple[bytes, bytes]) -> None:
        """Begin to answer with a stream of events."""
        await self._send(
            {"type": "http.response.start", "status": 200, "headers": [*EVENT_STREAM, *headers, *self.extra]}
        )

    def abort(self) -> None:
        """Cut the connection, where the server lets us; elsewhere it ends when the client does."""
        cut: Callable[[], None] | None = self.scope.get("extensions", {}).get(ABORT)
        if cut is not None:
            cut()

    async def send_part(self, data: bytes, more: bool = True) -> None:
        """Send the next part of a stream."""
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


def _too_large(limit_bytes: int) -> RequestRefused:
    reason = f"the body is larger than the limit of {limit_bytes} bytes"
    return RequestRefused(413, reason, (b"connection", b"close"), option="--max-body")


@lru_cache(maxsize=64)
def accepts(header: bytes | None, wanted: str) -> bool:
    """Whether an `Accept` header takes this media type; one that is missing takes all."""
    if header is None:
        return True
    group = wanted.partition("/")[0] + "/*"
    for part in header.decode("latin-1").lower().split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        if media in (wanted, group, "*/*") and not any(p.replace(" ", "") in _REFUSED_WEIGHTS for p in parameters):
            return True
    return False


_REFUSED_WEIGHTS: Final = frozenset({"q=0", "q=0.0", "q=0.00", "q=0.000"})


def encode_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Give headers as ASGI has them."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
