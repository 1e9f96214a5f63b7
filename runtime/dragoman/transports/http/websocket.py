"""WebSocket towards clients: subprotocol `mcp`, one frame a message, the connection is the session.

Lives here: the opening, both directions, and the close codes. Pings and pongs are done by the ASGI server. Must not:
check who the client is (`security`). Called by `app`.

Source: there is no page in the specification; this is what the official SDKs speak.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from dragoman.core.codes import CONNECTION_CLOSED, PARSE_ERROR
from dragoman.core.commands import Outcome
from dragoman.core.envelope import Malformed, encode_error
from dragoman.core.wholeness import read_broken
from dragoman.transports.base import HttpHeads
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import (
    ABORT,
    GONE,
    JSON,
    LARGE_BYTES,
    HttpRequest,
    Message,
    Receive,
    RequestRefused,
    Scope,
    Send,
)
from dragoman.transports.http.lines import LineTransport
from dragoman.transports.http.reading import read_posted
from dragoman.transports.http.sessions import Caller, HttpSession, Sessions

logger = logging.getLogger("dragoman.http")

SUBPROTOCOL: Final = "mcp"

_CHOSEN: Final = b"sec-websocket-protocol"

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
UNSUPPORTED_DATA: Final = 1003
POLICY: Final = 1008
TOO_BIG: Final = 1009
INTERNAL: Final = 1011

_CODES: Final[Mapping[Outcome, int]] = MappingProxyType({Outcome.CLIENT_CLOSED: NORMAL, Outcome.STOPPED: GOING_AWAY})
"""With what a connection closes whose session ended so; every other end is one that the client did nothing for."""

_REASON_BYTES: Final = 123
"""RFC 6455, 5.5: a control frame has no more than 125 bytes, of which the code has two."""

_LOOK_S: Final = 1.0
"""How often it is looked whether a client is still there whose server does not read."""

_QUIET_S: Final = 0.025
_LATE_S: Final = 1.0
"""When a session is over, what came meanwhile is still answered: until nothing came for a moment, at most so long."""

_CLOSING_S: Final = 2.0
"""How long a close frame may take, and how long the end of the front waits for those of all connections."""


class WebSocketFront:
    """Serves WebSocket connections.

    Args:
        config: What was decided.
        sessions: Those of the whole front.
    """

    def __init__(self, config: FrontConfig, sessions: Sessions) -> None:
        self._config = config
        self._sessions = sessions
        self._open: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Wait until every client has been told with which code its connection closes."""
        if self._open:
            await asyncio.wait(self._open, timeout=_CLOSING_S)

    async def serve(
        self, request: HttpRequest, receive: Receive, send: Send, is_let_in: Callable[[], Awaitable[bool]]
    ) -> None:
        """Serve one connection to its end.

        Args:
            request: The one that opens it.
            receive: Of ASGI.
            send: Of ASGI.
            is_let_in: Whether whoever sent it still may come in.

        Raises:
            RequestRefused: It is not accepted.
        """
        scope = request.scope
        if SUBPROTOCOL not in scope.get("subprotocols", ()):
            raise RequestRefused(400, f"expected the subprotocol {SUBPROTOCOL} to be offered")
        session = self._sessions.open(LineTransport(self._config.limits), Caller(request.principal, "websocket"))
        session.transport.origin = request.origin
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        watch = asyncio.ensure_future(_end_in_time(request, session, is_let_in))
        with session:
            reason = "the connection is lost"
            try:
                await receive()  # websocket.connect
                await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
                if session.transport.on_heads is not None:
                    session.transport.on_heads(
                        HttpHeads("GET", dict(scope["headers"]), 101, {_CHOSEN: SUBPROTOCOL.encode()})
                    )
                gone = scope.get("extensions", {}).get(GONE, _never)
                code, reason = await self._talk(session, receive, send, gone)
                session.transport.end(reason)
                if code:
                    await self._close(scope, send, code, reason)
            except OSError as error:  # how ASGI servers say that the client has gone
                reason = f"the connection is lost: {error}"
            finally:
                watch.cancel()
                session.transport.end(reason)
                self._open.discard(task)

    async def _talk(
        self, session: HttpSession[LineTransport], receive: Receive, send: Send, gone: Callable[[], bool]
    ) -> tuple[int, str]:
        """Move frames both ways until either side ends; give the code to close with, and the reason."""
        late: list[bytes] = []
        listening = asyncio.ensure_future(self._listen(session.transport, receive, gone, late))
        sending = asyncio.ensure_future(self._send_all(session, send))
        try:
            done, _ = await asyncio.wait({listening, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (listening, sending):
                task.cancel()
            await asyncio.gather(listening, sending, return_exceptions=True)
        if listening in done:
            return listening.result()
        code, reason = sending.result()
        if session.transport.closed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LATE_S):
                    await self._answer_late(late, reason, receive, send)
        return code, reason

    async def _answer_late(self, late: list[bytes], reason: str, receive: Receive, send: Send) -> None:
        """Answer the requests that came when nobody was there any more: after the close frame nothing may be said."""
        quiet = 0
        while True:
            for body in late:
                for line in _refuse_late(body, self._config.limits.nesting, reason):
                    await send({"type": "websocket.send", "text": line.decode()})
            late.clear()
            try:
                async with asyncio.timeout(_QUIET_S):
                    message = await receive()
            except TimeoutError:
                quiet += 1
                if quiet == 2:  # a loop that was held up may have had something to read the first time
                    return
            else:
                if message["type"] == "websocket.disconnect":
                    return
                quiet = 0
                late.append(_read_text(message) or b"")

    async def _close(self, scope: Scope, send: Send, code: int, reason: str) -> None:
        """Close the connection; cut it, where the server lets us, if the client does not take that either."""
        cut = scope.get("extensions", {}).get(ABORT, _leave)
        said = reason.encode()[:_REASON_BYTES].decode(errors="ignore")
        try:
            async with asyncio.timeout(_CLOSING_S):
                await send({"type": "websocket.close", "code": code, "reason": said})
        except TimeoutError:
            cut()
        else:
            asyncio.get_running_loop().call_later(self._config.patience.stall_s, cut)

    async def _listen(
        self, transport: LineTransport, receive: Receive, gone: Callable[[], bool], late: list[bytes]
    ) -> tuple[int, str]:
        """Take what the client sends; give the code to close with, 0 if it has closed itself.

        Args:
            transport: Where it goes.
            receive: Of ASGI.
            gone: Whether the connection is lost.
            late: Where it goes once the session is over.
        """
        while True:
            if not transport.readable.is_set() and not await _readable_before(transport, gone):
                return 0, "the connection is lost"
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return 0, f"the client has closed with {message.get('code', 1005)}"
            body = _read_text(message)
            if body is None:
                return UNSUPPORTED_DATA, "expected text messages"
            if transport.closed:
                late.append(body)
                if sum(map(len, late)) > LARGE_BYTES:
                    await asyncio.Event().wait()  # until we are cancelled; the rest stays in its socket
                continue
            if len(body) > self._config.limits.body_bytes:
                return TOO_BIG, f"a message is larger than {self._config.limits.body_bytes} bytes"
            try:
                frame = read_posted(body, self._config.limits.nesting).frame
            except RequestRefused as refused:
                logger.info("a message over websocket is refused: %s", refused.reason)
                # What has no more than an id answers a question, or is answered itself: the core knows; also whether
                # its id is that of a request which still waits.
                answers = [one._replace(is_told=one.key != refused.key) for one in refused.garbled]
                transport.lose_answers(answers)
                if all(one.is_told for one in answers):
                    for key in _find_keys(body, refused):
                        transport.deliver(Malformed(refused.code, refused.reason, key))
            else:
                transport.deliver(frame)

    async def _send_all(self, session: HttpSession[LineTransport], send: Send) -> tuple[int, str]:
        """Send what the server says; give the code to close with when it is over."""
        transport, stall_s = session.transport, self._config.patience.stall_s
        while True:
            transport.wake.clear()
            while (line := transport.take()) is not None:
                try:
                    async with asyncio.timeout(stall_s):
                        await send({"type": "websocket.send", "text": line.decode("utf-8", "replace")})
                except TimeoutError:
                    return POLICY, f"the client took nothing for {stall_s:g} s"
                transport.settle(len(line))
            if transport.closed:
                assert session.task is not None
                await asyncio.wait({session.task})  # to learn how it ended
                return self._judge(session)
            await transport.wake.wait()

    def _judge(self, session: HttpSession[LineTransport]) -> tuple[int, str]:
        """Return the code that goes with the end of a session, and the reason."""
        if session.finish is not None:
            return _CODES.get(session.finish.outcome, INTERNAL), session.finish.reason
        return GOING_AWAY if self._sessions.closing else NORMAL, "the session is over"


async def _end_in_time(
    request: HttpRequest, session: HttpSession[LineTransport], is_let_in: Callable[[], Awaitable[bool]]
) -> None:
    """End a session once the token is not good any more that came with its only request."""
    while request.until_s < math.inf:
        await asyncio.sleep(max(request.until_s - time.time(), 1.0))
        if not await is_let_in():
            session.runner.stop("the token that this was opened with is not good any more")
            return


async def _readable_before(transport: LineTransport, gone: Callable[[], bool]) -> bool:
    """Wait until the server reads again; False if the client has gone before. Its going is behind all that it said."""
    while not gone():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await transport.readable.wait()
                return True
    return False


def _never() -> bool:
    """What is known of the client's going where the server does not say."""
    return False


def _read_text(message: Message) -> bytes | None:
    text = message.get("text")
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _find_keys(body: bytes, refused: RequestRefused) -> Sequence[bytes | None]:
    """Return the ids under which a message is refused: of each request, where several texts are in it."""
    if refused.code != PARSE_ERROR:
        return [refused.key]
    found = [one.key for one in read_broken(body, refused.code, refused.reason) if one.is_owed]
    return [key for key in dict.fromkeys(found) if key is not None] or [None]


def _refuse_late(body: bytes, nesting: int, reason: str) -> list[bytes]:
    """Write the errors for the requests of a message that came too late, as messages."""
    try:
        posted = read_posted(body, nesting)
    except RequestRefused as refused:
        return [encode_error(key, refused.code, refused.reason).rstrip() for key in _find_keys(body, refused)]
    errors = [encode_error(key, CONNECTION_CLOSED, reason).rstrip() for key in posted.keys]
    return [b"[" + b",".join(errors) + b"]"] if posted.is_batch and errors else errors


def _leave() -> None:
    """What can be done about a client that reads nothing where the server does not let us cut it off."""


async def refuse(
    scope: Scope, receive: Receive, send: Send, refused: RequestRefused, extra: tuple[Any, ...] = ()
) -> None:
    """Answer the opening of a connection with an HTTP status, where the server can, else with a plain 403."""
    await receive()  # websocket.connect
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": POLICY, "reason": refused.reason})
        return
    headers = [JSON, *refused.headers, *extra]
    await send({"type": "websocket.http.response.start", "status": refused.status, "headers": headers})
    body = encode_error(refused.key, refused.code, refused.reason)
    await send({"type": "websocket.http.response.body", "body": body, "more_body": False})
