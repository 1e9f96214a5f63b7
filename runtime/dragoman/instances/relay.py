"""Handing a request on to the instance that has what it names, and the answer back.

Lives here: what a request names, the connections to other instances, and bytes in both directions. Must not: read what
is handed on beyond that, send a request twice, or decide who may come in. Called by `transports.http`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs

from dragoman.core.codes import INTERNAL_ERROR
from dragoman.errors import TransportError
from dragoman.instances.adoption import Adoption
from dragoman.instances.directory import LOCAL, Directory
from dragoman.instances.events import GONE, EventLog
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.exchange import (
    HANDED_BACK,
    LARGE_BYTES,
    RELAYED,
    RETRY_AFTER,
    HttpRequest,
    RequestRefused,
)
from dragoman.transports.http.resource import find_path
from dragoman.transports.upstream.answers import HttpResponse
from dragoman.transports.upstream.connection import HttpConnection, Shelf

HOP: Final = b"dragoman-hop"
"""The header by which an instance tells another one where a request came from."""

_NAME_BYTES: Final = 8
_MOST_HEIRS: Final = 100
_CONNECT_S: Final = 2.0
LOOK_S: Final = 5.0
"""How often an instance whose answers are waited for is asked whether it is there."""

SILENCE_S: Final = 10.0
"""How long it may take for that; so long nobody finds one in a store that says nothing, either."""

_TRY_AGAIN_S: Final = 1.0
_PIECE_BYTES: Final = 1024 * 1024
_TOKEN_HEAD: Final = 24
"""So many characters of a token say which version it is, and which instance has sealed it."""

_OF_CONNECTION: Final = frozenset(
    b"connection keep-alive proxy-connection te trailer transfer-encoding upgrade content-length expect date".split()
) | {HOP}
"""Headers that are about one connection alone (RFC 9110, 7.6.1), and those that are written anew."""

_HANDED_ON: Final = frozenset({"GET", "POST", "DELETE"})
"""What a session is used by; an answer to HEAD has the length of a body that never comes."""

_PROBE: Final = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n%b:  0  0 http\r\n\r\n" % HOP
"""What is answered by whoever is there, if only that there is no such page."""

_UNREACHABLE: Final = "the instance of the proxy that has this cannot be reached just now"


def name_instance(instance: bytes) -> str:
    """Return how an instance is named in ids: of its random bytes, the first ones."""
    return instance[:_NAME_BYTES].hex()


class InstanceRelay:
    """Hands requests on.

    Args:
        name: This instance.
        directory: Where the others are.
        front: Whose sessions are served here.
        adopts: Says whether sessions of others that are gone are opened again here.
        events: What their clients may resume; None where nothing is kept of it.
    """

    def __init__(
        self,
        name: str,
        directory: Directory,
        front: HttpFront,
        adopts: Callable[[], bool],
        events: EventLog | None = None,
    ) -> None:
        self.name = name
        self.adoption = Adoption(name, directory, front, adopts, events)
        self._directory = directory
        self._config = front.config
        self._sessions = front.sessions
        self._shelves: dict[str, Shelf] = {}
        self._open: set[HttpConnection] = set()
        self._waiting: dict[str, set[Callable[[str], None]]] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}

    def find_session(self, request: HttpRequest) -> str:
        """Return the id that a request names of a session that another instance has, or had; nothing for none.

        Raises:
            RequestRefused: 421: another instance handed it on, and is to go on without this one, which has given it up.
        """
        if request.method not in _HANDED_ON:
            return ""
        if find_path(request.scope) == self._config.paths.messages:
            query = parse_qs(request.scope["query_string"].decode("latin-1"))
            session = query.get("sessionId", [""])[0]
        else:
            session = "" if request.speaks_for_itself else request.header(b"mcp-session-id") or ""
        is_elsewhere = session in self.adoption.given_up
        if RELAYED in request.scope.get("extensions", {}) and is_elsewhere:
            raise RequestRefused(421, "this instance of the proxy does not have it any more", (HANDED_BACK, b"1"))
        if not self._other(session.rpartition(".")[0]):
            return session if is_elsewhere else ""
        is_here = self._sessions.has(session) and not self.adoption.is_opening(session, request.principal)
        return "" if is_here else session

    async def serve_session(self, request: HttpRequest, session: str) -> bool:
        """Have a request served by the instance that has its session.

        Args:
            request: It.
            session: The id.

        Returns:
            Whether it has been; if not, the session is here, or nowhere.

        Raises:
            RequestRefused: As `hand_on`; or nobody can tell just now where it is.
            Disconnected: The client went away half-way.
        """
        owner, is_relayed = session.rpartition(".")[0], RELAYED in request.scope.get("extensions", {})
        for _ in range(_MOST_HEIRS):
            if owner == self.name:
                if session not in self.adoption.given_up:
                    return False
            elif not is_relayed and await self.hand_on(request, owner):
                return True
            owner = await self.adoption.find_heir(session, owner, request)
            if not owner:
                return False
        return False

    def find_owner_of_call(self, request: HttpRequest, params: Any) -> str:
        """Return which other instance has the call or task that a request goes on with; nothing for none."""
        if RELAYED in request.scope.get("extensions", {}) or not isinstance(params, Mapping):
            return ""
        token = params.get("requestState", params.get("taskId"))
        return self._other(_read_instance(token)) if isinstance(token, str) else ""

    async def hand_on(self, request: HttpRequest, owner: str, body: bytes | None = None) -> bool:
        """Hand a request on, and its answer back.

        Args:
            request: It.
            owner: Who has what it names.
            body: What has been read of it, if it has been read.

        Returns:
            False if there is no such instance any more, or it is ending and takes nothing new: it has done nothing.

        Raises:
            RequestRefused: It is too large, the instance cannot be reached just now, or it went in the middle of it.
            Disconnected: The client went away half-way.
        """
        address = await self._directory.find(owner)
        if address is None:
            return False
        body = request.body if body is None else body
        if body is None:
            body = await request.read_body(self._config.limits.body_bytes, self._config.patience.body_s)
            request.body = body  # for whoever serves it, if that is not the other one
        try:
            connection = self._take(address) or await self._connect(address)
        except (ConnectionRefusedError, FileNotFoundError):
            self._directory.forget(owner)
            return False
        except (OSError, ValueError, OverflowError):  # no way there, no descriptors left, no address: it may be alive
            raise RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, _UNREACHABLE, RETRY_AFTER) from None
        answer = connection.begin(_write_head(request, len(body)), body, request.hold.release, None)

        def give_up(reason: str) -> None:
            answer.fail(reason)
            connection.drop()

        request.wire.watch(partial(give_up, "its client has gone"))
        try:
            self._wait_for(address, give_up)
            await answer.until_head()
            if answer.status == HTTPStatus.MISDIRECTED_REQUEST and HANDED_BACK in answer.headers:
                return False
            await self._send_back(request, answer)
        except TransportError:
            if answer.status:
                request.wire.abort()  # the client must not take what it has for the whole
            elif not request.wire.is_gone:
                raise RequestRefused(HTTPStatus.BAD_GATEWAY, GONE, code=INTERNAL_ERROR) from None
        finally:
            self._waiting[address].discard(give_up)
            answer.close()
        return True

    async def close(self) -> None:
        """Close every connection."""
        for looking in self._looking.values():
            looking.cancel()
        for shelf in self._shelves.values():
            shelf.drop()
        for connection in list(self._open):
            connection.drop()
        await asyncio.sleep(0)  # they say so in the next round of the loop

    async def _send_back(self, request: HttpRequest, answer: HttpResponse) -> None:
        headers = tuple((name, part) for name, value in answer.headers.items() for part in _parts(name, value))
        is_small = answer.complete and answer.unread_bytes < LARGE_BYTES
        if is_small and request.wire.reply(answer.status, headers, answer.show()):
            return
        if answer.length is not None:
            headers = (*headers, (b"content-length", b"%d" % answer.length))
        await request.wire.send({"type": "http.response.start", "status": answer.status, "headers": headers})
        stall_s = self._config.patience.stall_s
        try:
            while data := await answer.some():
                for start in range(0, len(data), _PIECE_BYTES):
                    async with asyncio.timeout(stall_s):
                        await request.send_part(data[start : start + _PIECE_BYTES])
            async with asyncio.timeout(stall_s):
                await request.send_part(b"", more=False)
        except TimeoutError:
            request.wire.abort()

    def _wait_for(self, address: str, give_up: Callable[[str], None]) -> None:
        """Have this called if the instance at an address is found to hang; its kernel takes what it never reads."""
        self._waiting.setdefault(address, set()).add(give_up)
        if address not in self._looking:
            self._looking[address] = asyncio.create_task(self._look(address))

    async def _look(self, address: str) -> None:
        try:
            await asyncio.sleep(LOOK_S)
            while self._waiting[address]:
                if not await self._answers(address):
                    for give_up in list(self._waiting[address]):
                        give_up("it does not answer")
                await asyncio.sleep(LOOK_S)
        finally:
            del self._looking[address]
            if not self._waiting[address]:
                del self._waiting[address]

    async def _answers(self, address: str) -> bool:
        """Whether an instance answers anything at all, in the time after which it would count as gone."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SILENCE_S):
                while True:
                    answer = None
                    try:
                        connection = self._take(address) or await self._connect(address)
                        answer = connection.begin(_PROBE, None, lambda: None, None)
                        await answer.until_head()
                    except (OSError, TransportError):  # perhaps it has just closed this one
                        await asyncio.sleep(_TRY_AGAIN_S)
                    else:
                        return True
                    finally:
                        if answer is not None:
                            answer.close()
        return False

    def _other(self, name: str) -> str:
        return name if len(name) == 2 * _NAME_BYTES and name.isascii() and name.isalnum() and name != self.name else ""

    def _take(self, address: str) -> HttpConnection | None:
        shelf = self._shelves.get(address)
        connection = None if shelf is None else shelf.take()
        if connection is not None:
            self._adopt(address, connection)
        return connection

    async def _connect(self, address: str) -> HttpConnection:
        loop = asyncio.get_running_loop()

        def make() -> HttpConnection:
            return HttpConnection(address, lambda *_: None, lambda _: None)

        async with asyncio.timeout(_CONNECT_S):
            if sys.platform != "win32" and address.startswith(LOCAL):
                _, connection = await loop.create_unix_connection(make, address.removeprefix(LOCAL))
            else:
                host, _, port = address.rpartition(":")
                _, connection = await loop.create_connection(make, host.strip("[]"), int(port))
        self._adopt(address, connection)
        return connection

    def _adopt(self, address: str, connection: HttpConnection) -> None:
        def free(connection: HttpConnection, may_follow: bool) -> None:
            self._open.discard(connection)
            if may_follow:
                self._shelves.setdefault(address, Shelf()).keep(connection)
            else:
                connection.drop()

        connection.adopt(address, free, self._open.discard)
        self._open.add(connection)


def _write_head(request: HttpRequest, length: int) -> bytes:
    """Write the head of a request anew: the same, for another connection, and where it came from."""
    scope = request.scope
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    client, server = scope.get("client") or ("", 0), scope.get("server") or ("", 0)
    hop = f"{client[0]} {client[1]} {server[0]} {server[1]} {scope['scheme']}".encode()
    kept = [(name, value) for name, value in scope["headers"] if name not in _OF_CONNECTION]
    lines = [b"%b: %b\r\n" % header for header in (*kept, (HOP, hop), (b"content-length", b"%d" % length))]
    return b"%b %b HTTP/1.1\r\n%b\r\n" % (request.method.encode(), target, b"".join(lines))


def _parts(name: bytes, value: bytes) -> list[bytes]:
    """Return the values of a header of an answer that are sent on."""
    if name in _OF_CONNECTION:
        return []
    return value.split(b"\n") if name == b"set-cookie" else [value]


def _read_instance(token: str) -> str:
    """Return the name of the instance that has sealed a token, which stands in it in clear (`core.rules.state`)."""
    head = token[:_TOKEN_HEAD]
    with contextlib.suppress(binascii.Error, ValueError):
        if len(head) == _TOKEN_HEAD and head.isascii():
            return name_instance(base64.b64decode(head, altchars=b"-_", validate=True)[1:])
    return ""
