"""One HTTP request, the routine that serves it, and what is answered to it.

Lives here: how a routine is stepped, headers as a mapping, the body within its limits, and the few shapes of answers.
Must not: know MCP beyond the JSON-RPC error that explains a refusal. Called by the fronts beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Generator, Iterable, MutableMapping, Sequence
from typing import Any, Final

from dragoman.core.codes import INVALID_REQUEST
from dragoman.core.envelope import Malformed, encode_error
from dragoman.core.exact_json import encode_line
from dragoman.core.label import LABEL
from dragoman.core.lines import HEAD_BYTES
from dragoman.core.origin import Origin
from dragoman.core.peek import read_beginning
from dragoman.transports.base import HasHeads, Headers, HttpHeads
from dragoman.transports.http.config import Limits
from dragoman.transports.http.site import FREE_BYTES, MAX_MEMORY, Excess, Hold
from dragoman_spec import HANDSHAKE_REVISIONS, PER_REQUEST_REVISIONS, REVISIONS, facts

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

_NEWEST: Final = facts(PER_REQUEST_REVISIONS[-1]).headers
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

RELAYED: Final = "dragoman.relayed"
"""The name under which it says that another instance of the proxy has handed a request on."""

HANDED_BACK: Final = b"dragoman-handed-back"
"""The header of an answer to such a request that is for somebody else: this instance is ending."""

RETRY_AFTER: Final = (b"retry-after", b"5")


LARGE_BYTES: Final = 64 * 1024
"""From here on it matters whether a client reads what it is sent."""

_PIECE_BYTES: Final = 1024 * 1024

_BEGINNING_S: Final = 1.0
"""How long the beginning of a body is waited for that is too large to be read."""


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

    Attributes:
        garbled: What in it may have answered a question: whoever waits has to hear that no answer comes.
    """

    garbled: Sequence[Malformed] = ()

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
    """The client went away before it had said everything.

    Attributes:
        garbled: As of `RequestRefused`, where it was told that it has taken too long.
        key: The same.
    """

    garbled: Sequence[Malformed] = ()
    key: bytes | None = None


def read_headers(scope: Scope, limits: Limits) -> dict[bytes, bytes]:
    """Return the headers by their lower-case names.

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


class Awaited:
    """What a routine waits for without a task; it comes once.

    Attributes:
        is_told: Whether it has come.
        resume: Called then, where somebody waits.
    """

    __slots__ = ("is_told", "resume")

    resume: Callable[[], None] | None

    def tell(self) -> None:
        """Let whoever waits go on."""
        self.is_told = True
        resume = self.resume
        if resume is not None:
            self.resume = None  # circles stay until somebody looks for such
            resume()

    def __await__(self) -> Generator[Any, None, None]:
        if not self.is_told:
            told = asyncio.Event()
            self.resume = told.set
            yield from told.wait().__await__()


Waits = Awaitable[Any] | None
"""What a routine yields: what it waits for; None for nothing."""

Routine = Generator[Waits, Any, None]
"""What serves a request: a page of the specification that is read from top to bottom."""


class Wire:
    """How a server has one request: as ASGI has it. Our own server can do more (`turn`).

    Args:
        scope: Of ASGI.
        receive: Of ASGI.
        send: Of ASGI.

    Attributes:
        is_gone: Whether the client is known to have gone.
        late: What had come of a body that was given up for taking too long; None where it was not.
    """

    late: bytes | None = None

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.is_gone = False
        self._tell: Callable[[], None]
        self._watch: asyncio.Task[None] | None = None

    def reply(self, status: int, headers: Headers, body: bytes) -> bool:
        """Write a whole answer at once, headers without the length; false if that cannot be."""
        return False

    def watch(self, tell: Callable[[], None]) -> None:
        """Call this, and no other any more, if the client goes before it is answered; the body has to be read."""
        self._tell = tell
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._wait_for_disconnect())

    def abort(self) -> None:
        """Cut the connection, where the server lets us; elsewhere it ends when the client does."""

    def leave(self) -> None:
        """Look no more whether the client has gone."""
        if self._watch is not None:
            self._watch.cancel()

    async def _wait_for_disconnect(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.is_gone = True
        self._tell()


class HttpRequest:
    """A request that is being served.

    Args:
        wire: The same, as its server has it.
        hold: What is read of the body counts there until it is released.
        later: Runs what is left of its routine in a task; None where it has one from the start.

    Attributes:
        headers: From `read_headers`.
        extra: Headers that every answer carries.
        gate: Who has found out whose it is.
        until_s: How long that is true, by the clock on the wall.
        origin: What is noted of it for middleware.
        body: The whole, if it is small and was here before the routine began.
        routine: What serves it.
        again: Serves others with the same head on the same connection, if that is known.
        address: Makes what it is answered with the answer to this principal; None where it is that already.
        brings: What it brings something for: its `on_heads` is told the headers of both, once this is answered.
        keys: The ids of the requests in it, for that.
    """

    __slots__ = (
        "_later",
        "address",
        "again",
        "body",
        "brings",
        "extra",
        "gate",
        "headers",
        "hold",
        "keys",
        "method",
        "origin",
        "principal",
        "routine",
        "scope",
        "until_s",
        "wire",
    )

    def __init__(self, wire: Wire, hold: Hold, later: Callable[[HttpRequest, Waits], None] | None = None) -> None:
        self.wire = wire
        self.scope = scope = wire.scope
        self.method: str = scope.get("method", "WebSocket")
        self.headers: dict[bytes, bytes] = {}
        self.hold = hold
        self.extra: Headers = ()
        self.principal = ""
        self.gate: object = None
        self.until_s = math.inf
        self.origin: Origin | None = None
        self.body: bytes | None = None
        self.routine: Routine
        self.again: Callable[[HttpRequest], Routine] | None = None
        self.address: Callable[[bytes, str], bytes] | None = None
        self.brings: HasHeads | None = None
        self.keys: Iterable[bytes] = ()
        self._later = later

    def repeat(self, wire: Wire) -> HttpRequest:
        """Return another request with the same head, of which the same is known."""
        again = HttpRequest(wire, self.hold, self._later)
        again.headers, again.extra, again.again = self.headers, self.extra, self.again
        again.principal, again.gate, again.address = self.principal, self.gate, self.address
        again.until_s, again.origin = self.until_s, self.origin
        return again

    def begin(self, routine: Routine) -> None:
        """Serve it by this routine, as far as that goes at once; the rest gets a task."""
        self.routine = routine
        self.go_on()
        LABEL.set("")

    def go_on(self) -> None:
        """Go on with its routine, as `begin` does."""
        waits: Waits
        try:
            for waits in self.routine:
                if waits is None:
                    continue
                if not isinstance(waits, Awaited):
                    break
                if not waits.is_told:
                    waits.resume = self.go_on
                    return
            else:
                return
        except Exception as error:
            waits = _fail(error)
        assert self._later is not None
        self._later(self, waits)

    async def run(self, waits: Waits = None) -> None:
        """Go on with its routine to the end.

        Args:
            waits: What it has yielded last.

        Raises:
            RequestRefused: It is not served.
            Disconnected: The client went away before there was anything to answer.
        """
        try:
            while True:
                try:
                    told = None if waits is None else await waits
                except BaseException as error:
                    waits = self.routine.throw(error)
                else:
                    waits = self.routine.send(told)
        except StopIteration:
            return

    def header(self, name: bytes) -> str | None:
        """Return the value of a header."""
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
        """Read the whole body, unless it is here; whoever hands it on releases the hold.

        Raises:
            RequestRefused: 413, 408, and 429 or 503 where no more may be held.
            Disconnected: The client went away half-way.
        """
        length = self.headers.get(b"content-length", b"0").strip(b" \t")  # a parser may have left what is around it
        if not length.isdigit() or int(length) > limit_bytes:
            raise _too_large(limit_bytes, await self._read_beginning())
        if self.body is not None:
            return self.body
        parts: list[bytes] = []
        reason = f"the body did not come within {timeout_s:g} s"
        try:
            async with asyncio.timeout(timeout_s):
                return await self._read_parts(parts, limit_bytes)
        except TimeoutError:
            refused = RequestRefused(408, reason, (b"connection", b"close"))
            refused.garbled = _find_answer(b"".join(parts), reason)
            raise refused from None
        except Disconnected as gone:
            if self.wire.late is not None:  # our own server has written the 408
                gone.garbled = _find_answer(b"".join(parts) + self.wire.late, reason)
            raise

    async def _read_parts(self, parts: list[bytes], limit_bytes: int) -> bytes:
        size, more = 0, True
        while more:
            message = await self.wire.receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > limit_bytes:
                raise _too_large(limit_bytes, b"".join(parts)[:HEAD_BYTES])
            self._count(size)
            more = message.get("more_body", False)
        return b"".join(parts)

    async def _read_beginning(self) -> bytes:
        """Return what comes at once of a body that is not read: an answer may be in it for which a server waits."""
        if b"expect" in self.headers:  # to receive would ask for the rest
            return b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_BEGINNING_S):
                beginning: bytes = (await self.wire.receive()).get("body", b"")
                return beginning[:HEAD_BYTES]
        return b""

    def _count(self, size: int) -> None:
        """Count what has been read, where the server does not do so itself, and sooner."""
        if size > max(FREE_BYTES, self.hold.size):
            try:
                self.hold.resize(size)
            except Excess as excess:
                closing = (RETRY_AFTER, (b"connection", b"close"))
                raise RequestRefused(excess.status, excess.reason, *closing, option=MAX_MEMORY) from None

    def reply(self, status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> Awaitable[None] | None:
        """Answer, whole; give what is to be waited for, if that cannot be done at once."""
        if self.address is not None:
            body = self.address(body, self.principal)
        if self.wire.reply(status, headers + self.extra, body):
            if self.brings is not None and self.brings.on_heads is not None:
                self._tell(self.brings.on_heads, status, headers)
            return None
        return self._reply(status, body, headers)

    async def _reply(self, status: int, body: bytes, headers: Headers) -> None:
        length = () if status == 204 else ((b"content-length", b"%d" % len(body)),)
        await self._begin(status, *headers, *length)
        await self.send_part(body, more=False)

    async def reply_large(
        self, body: bytes, weigh: Callable[[int], None], stall_s: float, *headers: tuple[bytes, bytes]
    ) -> None:
        """Answer with 200 and a body that may take long to send; a client that takes nothing of it is cut off.

        Args:
            body: It.
            weigh: Told how much more waits for the client, or less.
            stall_s: How long it may take nothing.
            headers: Beside the length.
        """
        if self.address is not None:
            body = self.address(body, self.principal)
        weigh(len(body))
        try:
            await self._begin(200, *headers, (b"content-length", b"%d" % len(body)))
            await self.send_within(body, stall_s)
            async with asyncio.timeout(stall_s):
                await self.send_part(b"", more=False)
        except TimeoutError:
            self.wire.abort()
        finally:
            weigh(-len(body))

    async def send_within(self, data: bytes, stall_s: float) -> None:
        """Send the next part of a stream; the client has so long for each megabyte.

        Raises:
            TimeoutError: It took longer.
        """
        if self.address is not None:
            data = self.address(data, self.principal)
        for start in range(0, len(data), _PIECE_BYTES):
            piece = data if len(data) <= _PIECE_BYTES else data[start : start + _PIECE_BYTES]
            async with asyncio.timeout(stall_s):
                await self.send_part(piece)

    def refuse(self, refused: RequestRefused) -> Awaitable[None] | None:
        """Answer with a refusal, explained by a JSON-RPC error, as `reply` does."""
        error = encode_error(refused.key, refused.code, refused.reason)
        if refused.key is None and self.speaks_for_itself:  # its schema has no null there
            error = encode_line({"jsonrpc": "2.0", "error": {"code": refused.code, "message": refused.reason}})
        return self.reply(refused.status, error, JSON, *refused.headers)

    async def start_stream(self, *headers: tuple[bytes, bytes]) -> None:
        """Begin to answer with a stream of events."""
        await self._begin(200, *EVENT_STREAM, *headers)

    async def _begin(self, status: int, *headers: tuple[bytes, bytes]) -> None:
        listed = [*headers, *self.extra]
        if self.brings is not None and self.brings.on_heads is not None:
            self._tell(self.brings.on_heads, status, headers)
        await self.wire.send({"type": "http.response.start", "status": status, "headers": listed})

    def _tell(self, on_heads: Callable[[HttpHeads], None], status: int, headers: Headers) -> None:
        on_heads(tuple.__new__(HttpHeads, (self.method, self.headers, status, headers + self.extra, self.keys)))

    async def send_part(self, data: bytes, more: bool = True) -> None:
        """Send the next part of a stream."""
        await self.wire.send({"type": "http.response.body", "body": data, "more_body": more})


async def _fail(error: Exception) -> None:
    """Raise an error where it is dealt with."""
    raise error


def _too_large(limit_bytes: int, beginning: bytes) -> RequestRefused:
    reason = f"the body is larger than the limit of {limit_bytes} bytes"
    refused = RequestRefused(413, reason, (b"connection", b"close"), option="--max-body")
    refused.garbled = _find_answer(beginning, reason)
    return refused


def _find_answer(beginning: bytes, reason: str) -> Sequence[Malformed]:
    """Return what may have answered a question, of which this is the beginning: nobody is to wait for the rest."""
    found = read_beginning(beginning[:HEAD_BYTES], INVALID_REQUEST, reason)
    return [found._replace(is_told=True)] if found.is_response and found.key is not None else ()
