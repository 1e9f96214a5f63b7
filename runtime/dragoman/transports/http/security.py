"""Whom to let in: by the host they think we are, by the page that sends them, by the secret they hold.

Lives here: `Host`, `Origin`, CORS, bearer tokens and API keys. Must not: log or repeat a secret. Called by `app` before
anything else is looked at.

Theory of operation. A page on the web may make its visitor's browser call a server on the visitor's own machine. By
CORS it cannot read the answers, but with a name of its own that resolves to 127.0.0.1 (DNS rebinding) it can: to the
browser both are one origin. So `Host` has to name us, and `Origin`, where there is one, somebody we know: "Servers
MUST validate the Origin header on all incoming connections to prevent DNS rebinding attacks" (2025-11-25/basic/
transports, Security Warning). WebSocket has no CORS at all: there `Origin` is the only guard.

An address in `Host` cannot be rebound: only names are looked up, and a browser puts there what stands in the URL. A
page at the same address was served by us; to any other page we are another origin, and `Origin` says so. We take only
the address that the connection came to: that needs no list of interfaces, and is right where addresses change.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from dragoman.core.label import name_told
from dragoman.core.origin import INSUFFICIENT, NOTHING, Origin
from dragoman.transports.base import Headers
from dragoman.transports.callers import HEADER, Callers
from dragoman.transports.http.bearer import Bearer, TokenRefused
from dragoman.transports.http.config import Admission
from dragoman.transports.http.exchange import (
    MCP_HEADERS,
    RETRY_AFTER,
    HttpRequest,
    RequestRefused,
    Routine,
    Waits,
)
from dragoman.transports.http.refusals import shorten
from dragoman.transports.http.resource import Resource

_SECRET: Final = re.compile(r"[!-~]+")
_NAME: Final = re.compile(r"[a-z0-9._-]{1,100}|\[[0-9a-f:.]{2,45}\]")
_ORIGIN: Final = re.compile(r"null|[a-z][a-z0-9+.-]{0,20}://[a-z0-9._-]{1,100}(:[0-9]{1,5})?")
_SHOW_SECRET: Final = (
    "clients show a secret of --auth-token-file or $DRAGOMAN_AUTH_TOKEN, as Authorization: Bearer SECRET "
    "or X-API-Key: SECRET"
)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PREFLIGHT: Final[Headers] = (
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
    (b"access-control-max-age", b"600"),
)
_SENT: Final = b", ".join((b"content-type", b"accept", b"authorization", b"x-api-key", *MCP_HEADERS))
_ARGUMENT: Final = re.compile(rb"mcp-param-[!#$%&'*+.^_`|~0-9a-z-]{1,200}")
"""The headers that repeat arguments: each tool has others, and `*` does not stand for them beside `Authorization`."""
_EXPOSED: Final = (b"access-control-expose-headers", b"mcp-session-id, mcp-protocol-version, www-authenticate")
_VARY: Final = (b"vary", b"origin")
CALLER: Final = HEADER.lower().encode()
_CARRIERS: Final = (b"traceparent", b"tracestate", b"baggage")


class Doorkeeper:
    """Decides whom to let in.

    Args:
        admission: What the user decided.
    """

    def __init__(self, admission: Admission, home: str = "/mcp") -> None:
        self.resource = None if admission.guard is None else Resource(admission.guard, home)
        self._notes_origins = admission.notes_origins
        self._callers = admission.callers
        self._hosts = frozenset(host.lower() for host in admission.hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in admission.origins)
        self._tokens = tuple((name, _digest(secret)) for name, secret in list_secrets(admission.tokens))

    def find_revoked(self, later: Doorkeeper) -> frozenset[str]:
        """Return the principals of whom a later doorkeeper does not take each secret that this one takes.

        Which of its secrets has opened a session of one, nobody knows.
        """
        return frozenset(name for name, _ in set(self._tokens).difference(later._tokens))

    def check_host(self, headers: dict[bytes, bytes], own: str | None = None, is_check: bool = False) -> str:
        """Check whom the client thinks it talks to.

        Args:
            headers: Of the request.
            own: The address of this machine that the connection came to, where that is known.
            is_check: Whether it only asks how we are. Balancers do so by an address that they know us by, or in
                HTTP/1.0 without any.

        Returns:
            The host, with its port where one is named; nothing where such a check names none of ours.

        Raises:
            RequestRefused: 400 without `Host`, 421 for another's.
        """
        host, name = _read_host(headers.get(b"host", b""))
        if not host:
            if is_check:
                return ""
            raise RequestRefused(400, "expected a Host header")
        if name.rstrip(".") in _LOOPBACK or "*" in self._hosts or host in self._hosts or name in self._hosts:
            return host
        if own is not None and _is_address(name, own):
            return host
        if is_check and _is_address(name, name.strip("[]")):
            return ""
        advice = f"if {shorten(host)} is this server, add --allow-host {name if _NAME.fullmatch(name) else 'NAME'}"
        raise RequestRefused(421, "the Host header names another server than this one", advice=advice)

    def check_origin(self, headers: dict[bytes, bytes], scheme: str, host: str) -> Headers:
        """Check which page sends the client, if any.

        Returns:
            The headers that let the page read the answer.

        Raises:
            RequestRefused: 403.
        """
        value = headers.get(b"origin")
        if value is None:
            if headers.get(b"sec-fetch-site") in _ELSEWHERE:
                reason = "a page of another site sends this, and not in a way that names its origin"
                raise RequestRefused(403, reason, advice="an image, a link or a form cannot be let in")
            return ()
        origin = value.decode("latin-1").strip().lower()
        own = f"{_HTTP_OF.get(scheme, scheme)}://{host}"
        if origin != own and not self._allows(origin):
            named = origin if _ORIGIN.fullmatch(origin) else "SCHEME://HOST"
            advice = f"if pages of {shorten(origin)} may call this server, add --allow-origin {named}"
            raise RequestRefused(403, "the Origin header names a page that may not call this server", advice=advice)
        return ((b"access-control-allow-origin", value), _EXPOSED, _VARY)

    def answer_preflight(self, headers: dict[bytes, bytes]) -> Headers:
        """Return the headers that answer a browser which asks before it sends."""
        asked = [name.strip() for name in headers.get(b"access-control-request-headers", b"").lower().split(b",")]
        allowed = b", ".join((_SENT, *filter(_ARGUMENT.fullmatch, asked)))
        told = (*_PREFLIGHT, (b"access-control-allow-headers", allowed))
        if headers.get(b"access-control-request-private-network") == b"true":
            return (*told, (b"access-control-allow-private-network", b"true"))
        return told

    def identify(self, request: HttpRequest) -> Routine:
        """Find out who sends a request, and note it there.

        Raises:
            RequestRefused: 401 or 403, or 503 where nobody can tell just now.
        """
        scopes, claims = frozenset[str](), NOTHING
        given, key = _given_bearer(request.headers), _given_key(request.headers)
        by_name = self._tokens and (key is not None if given is None else self._find_name(given))
        if self.resource is None or by_name:
            request.principal = self.authenticate(request.headers)
        elif given is not None:
            bearer = yield from self._examine(self.resource, request, given)
            request.principal, scopes, claims, request.until_s = bearer
        elif not self.resource.guard.is_optional:
            raise self.resource.refuse(request, "expected a bearer token")
        if self._callers is not None and (told := request.header(CALLER)) is not None:
            self._take_told(self._callers, request, told)
        if self._notes_origins:
            carrier = {name.decode(): value for name in _CARRIERS if (value := request.header(name)) is not None}
            request.origin = Origin(scopes, claims, tuple(request.scope.get("client") or ()), carrier)

    def _take_told(self, callers: Callers, request: HttpRequest, told: str) -> None:
        """Take a request for that of whoever another proxy says; what opens a WebSocket says it for good.

        Raises:
            RequestRefused: 403, since nobody can tell whose it is.
        """
        try:
            caller = callers.read(told)
        except ValueError as error:
            reason = "the Dragoman-Caller header does not count here"
            raise RequestRefused(403, reason, advice=f"the Dragoman-Caller header does not count: {error}") from None
        request.principal = name_told(request.principal, caller.tag)
        if request.method == "WebSocket":
            del request.headers[CALLER]  # whether it may still come in is asked again, and this will be too old
        else:
            request.until_s = min(request.until_s, caller.until_s)

    def _examine(self, resource: Resource, request: HttpRequest, token: str) -> Generator[Waits, Any, Bearer]:
        guard = resource.guard
        try:
            bearer: Bearer = guard.recall(token) or (yield guard.examine(token))
        except TokenRefused as refused:
            if refused.is_away:
                raise RequestRefused(503, refused.reason, RETRY_AFTER) from None
            raise resource.refuse(request, refused.reason, error="invalid_token") from None
        if not bearer.scopes.issuperset(guard.scopes):
            raise resource.refuse(request, "the token is good for less than what this takes", 403, INSUFFICIENT)
        return bearer

    def authenticate(self, headers: dict[bytes, bytes]) -> str:
        """Find out who it is by the secrets of a file alone.

        Returns:
            The name of the principal; empty where everybody may come in.

        Raises:
            RequestRefused: 401.
        """
        if not self._tokens and self.resource is None:
            return ""
        given = _given_bearer(headers) or _given_key(headers)
        if given is None:
            challenge = b'Bearer realm="mcp"'
            raise RequestRefused(
                401, "expected a bearer token or an API key", (b"www-authenticate", challenge), advice=_SHOW_SECRET
            )
        found = self._find_name(given)
        if not found:
            challenge = b'Bearer realm="mcp", error="invalid_token"'
            raise RequestRefused(
                401, "the bearer token or API key is not known", (b"www-authenticate", challenge), advice=_SHOW_SECRET
            )
        return found

    def _find_name(self, secret: str) -> str:
        """Return who has a secret of the file; empty for nobody."""
        found, digest = "", _digest(secret)
        for name, known in self._tokens:  # all of them, however early one fits
            if hmac.compare_digest(known, digest):
                found = name
        return found

    def recognise(self, secret: str) -> str | None:
        """Return who has a secret of the file, or a token that has let a client in, for pages.

        Returns:
            The name of the principal; empty where everybody may come in, None for nobody.
        """
        if not self._tokens and self.resource is None:
            return ""
        return self._find_name(secret) or self._find_bearer(secret)

    def _find_bearer(self, secret: str) -> str | None:
        """Return whose token it is, where that is known already, and it is good for enough."""
        if self.resource is None:
            return None
        guard = self.resource.guard
        try:
            bearer = guard.recall(secret)
        except TokenRefused:
            return None
        return None if bearer is None or not bearer.scopes.issuperset(guard.scopes) else bearer.principal

    def _allows(self, origin: str) -> bool:
        any_port = origin if origin.endswith("]") or origin.count(":") < 2 else origin.rpartition(":")[0]
        return not self._origins.isdisjoint(("*", origin, f"{any_port}:*"))


_ELSEWHERE: Final = (b"cross-site", b"same-site")
"""What browsers say in `Sec-Fetch-Site` for another origin. Images and links of a page come without `Origin`, and could
open streams, with a server each, even though the page cannot read them."""


@lru_cache(maxsize=64)
def _read_host(value: bytes) -> tuple[str, str]:
    """Return what a `Host` header names, with its port where there is one, and without."""
    host = value.decode("latin-1").strip().lower()
    name, colon, port = (host, "", "") if host.endswith("]") else host.rpartition(":")
    return host, name if colon and (port.isdecimal() or not port) else host


@lru_cache(maxsize=64)
def _is_address(name: str, own: str) -> bool:
    """Whether a host's name is this very address, however it is written."""
    try:
        # Behind the address that a connection came to may stand an interface; in `Host`, it may be anybody's name.
        return _read_address(name.removeprefix("[").removesuffix("]")) == _read_address(own.partition("%")[0])
    except ValueError:
        return False


def _read_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Read an address; one of IPv4 that a socket for both has is written in another way."""
    address = ipaddress.ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


_HTTP_OF: Final = {"ws": "http", "wss": "https"}


def _given_bearer(headers: dict[bytes, bytes]) -> str | None:
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _given_key(headers: dict[bytes, bytes]) -> str | None:
    key = headers.get(b"x-api-key")
    return None if key is None else key.decode("latin-1").strip()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def check_secret(secret: str, where: str) -> str:
    """Return a secret if a header can hold it.

    Raises:
        ValueError: It is empty, or has other characters than visible ASCII.
    """
    if not _SECRET.fullmatch(secret):
        raise ValueError(f"{where}: expected a secret of visible ASCII characters, as headers can hold them")
    return secret


def list_secrets(tokens: Mapping[str, str | Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Give each secret, with the name of who has it."""
    for name, held in tokens.items():
        for secret in (held,) if isinstance(held, str) else held:
            yield name, secret


def read_tokens(text: str) -> dict[str, tuple[str, ...]]:
    """Read secrets from a file's text: one a line, with the name of who has it before it if there are several.

    A name may come again: while one secret takes the place of another, both count.

    Raises:
        ValueError: A line has more than a name and a secret, or a secret comes twice.
    """
    tokens: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 2:
            raise ValueError(f"line {number}: expected a secret, or a name and a secret, found {len(words)} words")
        check_secret(words[-1], f"line {number}")
        name = words[0] if len(words) == 2 else f"line-{number}"
        if any(words[-1] in held for held in tokens.values()):
            raise ValueError(f"line {number}: expected each secret once")
        tokens[name] = (*tokens.get(name, ()), words[-1])
    if not tokens:
        raise ValueError("expected at least one secret, found none")
    return tokens
