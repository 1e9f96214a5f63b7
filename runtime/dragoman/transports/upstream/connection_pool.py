"""HTTP requests to one server, over as few connections as it takes.

Lives here: the connections of one session, redirects, and what may be sent a second time; idle ones are shared
(`connection`). A request that is refused for want of a token is sent again with one (`challenge`). Must not: know
MCP, or how a token is got.

A server may close an idle connection at the moment in which a request goes out. That is sent again, over a new
connection, if it does no harm: a client "SHOULD NOT automatically retry a request with a non-idempotent method unless
it has some means to know that the request semantics are actually idempotent" (RFC 9110, 9.2.2), which MCP's methods are
for whoever sends them.

Headers go to the configured origin and nowhere else: a redirect is followed only where method and origin stay the same.
Why this is not done by a library: docs/decisions/0008.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from dragoman.errors import TransportError
from dragoman.transports.base import HttpHeads
from dragoman.transports.secrecy import Secrets, secrets_of, secrets_sent
from dragoman.transports.upstream.answers import HttpResponse
from dragoman.transports.upstream.bodies import discard
from dragoman.transports.upstream.challenge import CHALLENGES, Challenge
from dragoman.transports.upstream.config import Authority, UpstreamConfig, describe_url, origin_of
from dragoman.transports.upstream.connection import HttpConnection, Shelf
from dragoman.transports.upstream.connector import Dialler, trust
from dragoman.transports.upstream.failures import read_refusal, tells_of_session
from dragoman.transports.upstream.heads import Heads
from dragoman.transports.upstream.tunnel import explain_credentials, is_of_proxy

if TYPE_CHECKING:
    from dragoman.transports.upstream.cookies import Cookies

_REDIRECTS: Final = 3
_AT_ONCE_BYTES: Final = 64 * 1024

_REPEATABLE: Final = frozenset({"GET", "DELETE"})
_CHALLENGE: Final = b"www-authenticate"


def _nothing() -> None:
    """What follows from having written a request that nobody counts."""


class ConnectionPool:
    """The way to one server. Make it within an event loop; close it at the end.

    Attributes:
        on_heads: Told the headers of each exchange; None where nobody wants to know.
        secrets: What the server was sent that nobody else may read.

    Raises:
        OSError: TLS cannot be set up.
    """

    def __init__(self, config: UpstreamConfig) -> None:
        self.config = config
        self.peer = config.peer
        self.secrets = secrets_sent(config.url, config.headers, hides_path=config.name is not None)
        files = config.ca_file, config.client_cert, config.client_key
        tls = origin_of(config.url), *files, config.proxy, config.verify
        self._dialler = Dialler(config, config.idle.trust(tls, lambda: trust(config)))
        # What is sent by middleware, or to a server in our process, is not told apart by what is configured.
        is_alone = bool(config.header_middleware) or config.dial is not None
        self._shared = config.idle.join((asyncio.get_running_loop(), *tls, config.headers))
        self._own = Shelf()
        self._shelf = self._own if is_alone else self._shared
        self._renewals: set[asyncio.Future[None]] = set()  # for requests because of which a person may be asked
        self._authorization = ""
        if config.authority is not None:
            config.authority.join()
        self._heads: Heads | None = None
        self._last: tuple[Mapping[str, str], str, bytes] | None = None  # headers, URL and start of the last POST
        self._cookies: Cookies | None = None
        self._moved: dict[str, str] = {}
        self._connections: set[HttpConnection] = set()
        self._closed = False
        self.on_heads: Callable[[HttpHeads], None] | None = None

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        on_sent: Callable[[], None] = _nothing,
        idle_s: float | None = None,
        begun: HttpResponse | None = None,
        asks: bool = True,
        waits: bool = False,
        repeats: bool = False,
        key: bytes | None = None,
    ) -> HttpResponse:
        """Send a request and wait for the head of its answer; where that takes a token, for that, too.

        Args:
            method: Of HTTP.
            url: Where to; where a redirect led before is remembered.
            headers: Beside the configured ones.
            body: JSON.
            on_sent: Called when the body has been written.
            idle_s: How long nothing at all may come; None waits for ever.
            begun: What `post_at_once` gave, if it has been sent already.
            asks: Whether a person may be asked to sign in because of it.
            waits: Whether it waits, if not, until somebody has; else there is no token.
            repeats: Whether the server may get it twice, whatever its method says.
            key: The id of the JSON-RPC request in it, as JSON, for whoever is told its headers.

        Raises:
            TransportError: No answer, or one that must not be followed, or no token.
        """
        authority, attempt = self.config.authority, 0
        if authority is not None:
            await authority.load()
            if authority.authorization() and authority.has_ended():
                await authority.refresh_ended(tuple(headers.items()), self.config)
        while True:
            answer, refusal = (
                await self._send_along(method, url, headers, body, on_sent, idle_s, begun, repeats, key),
                None,
            )
            if authority is None or answer.status not in CHALLENGES:
                return answer
            if "Mcp-Session-Id" in headers and self.config.renews_sessions and not answer.header("WWW-Authenticate"):
                refusal = await read_refusal(answer)
                if tells_of_session(refusal.message):
                    raise refusal
            said, sent = answer.header("WWW-Authenticate"), tuple(headers.items())
            challenge = Challenge(attempt, answer.status, said, answer.authorization, sent, asks, waits)
            if not authority.takes(challenge):
                if refusal is not None:
                    raise refusal
                return answer
            await discard(answer)
            await self._renew(authority, challenge)
            attempt, begun = attempt + 1, None

    @property
    def signing_in(self) -> int:
        """How many requests wait for a person to sign in."""
        return len(self._renewals)

    def stop_signing_in(self) -> None:
        """Fail these requests: nobody waits for them any more."""
        for renewal in self._renewals:
            renewal.cancel()

    async def _renew(self, authority: Authority, challenge: Challenge) -> None:
        if not challenge.asks:
            await authority.renew(challenge, self.config)
            return
        renewal = asyncio.ensure_future(authority.renew(challenge, self.config))
        self._renewals.add(renewal)
        try:
            await asyncio.wait([renewal])
        finally:
            self._renewals.discard(renewal)
            renewal.cancel()
        if renewal.cancelled():
            error = TransportError(self.peer, "nobody waits for the sign-in any more")
            error.was_asked = True
            raise error
        renewal.result()

    async def _send_along(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        on_sent: Callable[[], None],
        idle_s: float | None,
        begun: HttpResponse | None,
        repeats: bool,
        key: bytes | None,
    ) -> HttpResponse:
        """Send a request to where redirects lead."""
        for _ in range(_REDIRECTS):
            if begun is None:
                there = self._moved.get(url, url)
                answer = await self.send_once(method, there, headers, body, on_sent, idle_s, repeats, key)
            else:
                there, sent, begun = begun.url, begun, None
                try:
                    answer = await self._receive(sent, there)
                except TransportError:
                    if not (repeats and _is_untouched(sent)):
                        raise
                    continue
            if not 300 <= answer.status < 400 or answer.status == HTTPStatus.NOT_MODIFIED:
                return answer
            answer.close()
            self._moved[url] = self._follow(answer, there)
        raise TransportError(self.peer, f"it redirects more than {_REDIRECTS} times")

    def post_at_once(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        on_sent: Callable[[], None],
        idle_s: float | None,
        key: bytes | None = None,
    ) -> HttpResponse | None:
        """Send a POST over a connection that is open and idle; None if there is none, or it has to be sent otherwise.

        Whoever takes the answer hands it to `send`, unless it is complete, successful and sets no cookies.
        """
        authority = self.config.authority
        has_ended = authority is not None and authority.has_ended()
        if len(body) > _AT_ONCE_BYTES or self.config.header_middleware or has_ended:
            return None
        there = self._moved.get(url, url)
        try:
            head = self._write_head("POST", there, headers, body)
        except TransportError:  # whoever waits is told by the other way
            return None
        connection = self._take_idle()
        if connection is None:
            return None
        answer = connection.begin(head, body, on_sent, idle_s)
        answer.url = there
        answer.authorization, answer.secrets = self._authorization, self.secrets
        if self.on_heads is not None:
            answer.on_head = partial(_tell_heads, self.on_heads, head, key)
        return answer

    async def close(self) -> None:
        """Close every connection."""
        if not self._closed:
            self._closed = True
            self._own.drop()
            self.config.idle.leave(self._shared)
            if self.config.authority is not None:
                await self.config.authority.leave()
        for connection in list(self._connections):
            connection.drop()
        await asyncio.sleep(0)  # they say so in the next round of the loop

    async def send_once(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        on_sent: Callable[[], None] = _nothing,
        idle_s: float | None = None,
        repeats: bool = False,
        key: bytes | None = None,
    ) -> HttpResponse:
        """Do what `send` does, and follow nothing: neither redirects nor challenges.

        Raises:
            TransportError: No answer.
        """
        head = self._write_head(method, url, headers, body)
        authorization = self._authorization
        connection = self._take_idle() or await self._connect()
        while True:
            answer = connection.begin(head, body, on_sent, idle_s)
            answer.authorization, answer.secrets = authorization, self.secrets
            if self.on_heads is not None:
                answer.on_head = partial(_tell_heads, self.on_heads, head, key)
            try:
                if not answer.status:
                    await answer.until_head()
            except BaseException as error:
                answer.close()
                may_repeat = (repeats or method in _REPEATABLE) and connection.requests > 1 and _is_untouched(answer)
                if not isinstance(error, TransportError) or not may_repeat:
                    raise
            else:
                break
            connection = await self._connect()
        return await self._receive(answer, url)

    async def _receive(self, answer: HttpResponse, url: str) -> HttpResponse:
        """Wait for the head of an answer."""
        try:
            if not answer.status:
                await answer.until_head()
        except BaseException:
            answer.close()
            raise
        proxy = self._heads.forwarder if self._heads else None
        if proxy is not None and is_of_proxy(answer, proxy):
            answer.close()
            raise TransportError(str(proxy), explain_credentials(proxy, answer))
        if cookies := answer.header("Set-Cookie"):
            self._take_cookies(cookies, url)
        return answer

    def _write_head(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        authority = self.config.authority
        if authority is not None and (token := authority.authorization()) != self._authorization:
            self._heads, self._last, self._authorization = None, None, token
            self.secrets.add(secrets_of("Authorization", token))
        last = self._last
        if last is not None and body is not None and last[0] is headers and last[1] is url:
            return b"%b%d\r\n\r\n" % (last[2], len(body))
        try:
            if self._heads is None:
                said = (("Authorization", self._authorization),) if self._authorization else ()
                self._heads = Heads(replace(self.config, headers=(*self.config.headers, *said)), self.secrets)
            cookies = self._cookies.give(url) if self._cookies else ""
            head = self._heads.write(method, url, headers, body is not None, cookies)
        except ValueError as error:
            raise TransportError(self.peer, f"nothing can be sent to it: {error}") from error
        if body is None:
            return head
        is_fresh = self.config.header_middleware or self.config.tells
        if method == "POST" and self._cookies is None and not is_fresh:
            self._last = headers, url, head  # cookies end, and what middleware gives may be a secret soon replaced
        return b"%b%d\r\n\r\n" % (head, len(body))

    def _take_cookies(self, lines: str, url: str) -> None:
        if self._cookies is None:
            from dragoman.transports.upstream.cookies import Cookies

            self._cookies, self._last = Cookies(self.config), None
            self._shelf = self._own  # a cookie may stand for a person, and servers may remember one with the connection
        self._cookies.take(lines, url)

    async def _connect(self) -> HttpConnection:
        connection = await self._dialler.connect(
            lambda: HttpConnection(self.peer, self._free, self._connections.discard)
        )
        if not connection.open:
            raise TransportError(self.peer, "it closed the connection as soon as it was open")
        self._connections.add(connection)
        return connection

    def _take_idle(self) -> HttpConnection | None:
        connection = self._shelf.take()
        if connection is not None:
            connection.adopt(self.peer, self._free, self._connections.discard)
            self._connections.add(connection)
        return connection

    def _free(self, connection: HttpConnection, reusable: bool) -> None:
        if reusable and not self._closed and not (self._heads and self._heads.forwarder):
            self._connections.discard(connection)
            self._shelf.keep(connection)
        else:
            connection.drop()

    def _follow(self, answer: HttpResponse, url: str) -> str:
        """Return where a redirect leads, if we may go there.

        307 and 308 keep the method. Where they lead is kept for the session: servers that redirect `/mcp` to `/mcp/`
        would cost every message a round trip.
        """
        try:
            location = urljoin(url, answer.header("Location"))
            same, where = origin_of(location) == origin_of(url), describe_url(location)
        except ValueError:
            same, where = False, "nowhere"
        if answer.status in (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT) and same:
            return location
        where = self.secrets.take_out(where)
        reason = f"it answered {answer.named_status}, to {where}"
        rule = "to another method" if same else "to another origin, which must not get our headers,"
        raise TransportError(self.peer, f"{reason}; a redirect {rule} is not followed: say --url {where}")


def _is_untouched(answer: HttpResponse) -> bool:
    """Whether the connection was closed before anything of an answer came: if it was idle, that was why."""
    return answer.lost and not answer.begun


def _tell_heads(on_heads: Callable[[HttpHeads], None], head: bytes, key: bytes | None, answer: HttpResponse) -> None:
    method = head.partition(b" ")[0].decode()
    headers, secrets = answer.headers, answer.secrets
    if secrets is not None:
        headers = {_take_out(secrets, name): _take_out(secrets, value) for name, value in headers.items()}
    on_heads(HttpHeads(method, head, answer.status, headers, () if key is None else (key,)))


def _take_out(secrets: Secrets, said: bytes) -> bytes:
    text = said.decode("latin-1")
    shown = secrets.take_out(text)
    return said if shown is text else shown.encode("latin-1", "replace")
