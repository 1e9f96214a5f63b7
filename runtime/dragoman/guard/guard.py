"""The guard of a front: finds out whose a token is, by the keys of its issuer or by asking it, and remembers that.

Lives here: what is remembered, for how long, and who is asked. Must not: answer over HTTP (`transports.http.resource`).

What is found out counts for a minute at most: so long a token is still taken that was withdrawn. The digest of a token
is kept, not the token; the token itself only where it is to be sent on.

Sources: RFC 7662 (introspection); 2026-07-28/basic/authorization, Token Handling.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from dragoman.core.label import PRINCIPAL, teller_of
from dragoman.core.places import keep_latest
from dragoman.errors import SignInFailed, TransportError
from dragoman.guard.claims import Wanted
from dragoman.guard.keys import Keys, fetch_keys
from dragoman.signin.driver import Driver
from dragoman.signin.people import AtDesktop
from dragoman.signin.settings import DEFAULT
from dragoman.signin.wishes import Fetched, Routine, post_form
from dragoman.transports.http.bearer import Bearer, TokenRefused
from dragoman.transports.upstream.config import UpstreamConfig

SURE_S: Final = 60.0
"""How long what was found out of a token counts."""

_KNOWN: Final = 2000
_ASKED: Final = 32
"""How many tokens that were good before the issuer is asked about at once, and how many others: who brings ever new
ones keeps out nobody who is known."""

_TOO_MANY: Final = "too many tokens are examined just now"

_WAITING: Final = 1000
"""How many tokens may be asked about or wait for their turn; more are refused for now."""

_TURN_S: Final = 5.0
"""How long a token waits for its turn."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """What can be decided about a guard.

    Attributes:
        issuer: Whose tokens count; empty where `introspection` answers for all of them.
        audiences: Whom a token has to be for, one of these; `url` where none is named.
        clients: Or else one of these clients was given it.
        scopes: What each token has to be good for.
        implied: What a scope is good for beside itself.
        jwks: Where the keys of the issuer are, an URL or a file; empty: its metadata says so.
        introspection: Where the issuer is asked about a token, in place of looking at it.
        client_id: Who asks there.
        client_secret: With which secret.
        url: Of what is guarded, as clients know it; empty: as they call it.
        is_optional: Whether whoever has no token is let in as nobody.
        forwards: Whether the token is sent on to the server.
        ca_file: Who signs the certificate of the issuer, if not who the system trusts.
    """

    issuer: str
    audiences: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    implied: tuple[tuple[str, tuple[str, ...]], ...] = ()
    jwks: str = ""
    introspection: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    url: str = ""
    is_optional: bool = False
    forwards: bool = False
    ca_file: str | None = None


class TokenGuard:
    """Knows whose tokens are.

    Args:
        settings: What was decided.
        now_s: Gives the time.
        clock: Gives seconds, and never goes back.
    """

    def __init__(
        self,
        settings: GuardSettings,
        now_s: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer, self.scopes, self.url = settings.issuer, settings.scopes, settings.url
        self.is_optional = settings.is_optional
        self._settings = settings
        self._now_s = now_s
        audiences = settings.audiences or ((settings.url,) if settings.url else ())
        self._wanted = Wanted(settings.issuer, audiences, settings.clients, settings.implied)
        self._keys = Keys(self._fetch_keys, clock)
        self._known: dict[bytes, Bearer] = {}
        self._refused: dict[bytes, tuple[float, str]] = {}
        self._examining: dict[bytes, asyncio.Task[Bearer]] = {}
        self._places = {was_good: asyncio.Semaphore(_ASKED) for was_good in (True, False)}
        self._tokens: dict[str, str] = {}

    def recall(self, token: str) -> Bearer | None:
        """Return what was found out of a token before; None where it has to be examined.

        Raises:
            TokenRefused: It has been refused just now.
        """
        digest = _digest(token)
        bearer = self._known.get(digest)
        if bearer is not None and bearer.until_s > self._now_s():
            self._note(bearer, token)
            return bearer
        until_s, reason = self._refused.get(digest, (0.0, ""))
        if until_s > self._now_s():
            raise TokenRefused(reason)
        return None

    async def examine(self, token: str) -> Bearer:
        """Find out whose a token is; who asks for the same at the same time is answered with the same.

        Raises:
            TokenRefused: It is nobody's.
        """
        digest = _digest(token)
        task = self._examining.get(digest)
        if task is None:
            if self._settings.introspection and len(self._examining) >= _WAITING:  # to look at a signature is quick
                raise TokenRefused(_TOO_MANY, is_away=True)
            task = self._examining[digest] = asyncio.get_running_loop().create_task(self._examine(token, digest))
            task.add_done_callback(lambda done: self._forget(digest, done))
        bearer = await asyncio.shield(task)
        self._note(bearer, token)
        return bearer

    def headers_to_server(self) -> Mapping[str, str]:
        """Return the token of whoever the request is of, for the server; middleware that gives headers."""
        token = self._tokens.get(teller_of(PRINCIPAL.get()))
        return {} if token is None else {"Authorization": f"Bearer {token}"}

    async def _examine(self, token: str, digest: bytes) -> Bearer:
        asks = bool(self._settings.introspection)
        try:
            claims = await (self._ask_in_turn(token, digest) if asks else self._keys.verify(token))
            now_s = self._now_s()
            bearer = self._wanted.read(claims, now_s, now_s + SURE_S)
        except TokenRefused as refused:
            if not refused.is_away:  # it will not become good any more
                self._known.pop(digest, None)
                if asks:
                    keep_latest(self._refused, digest, (self._now_s() + SURE_S, refused.reason), _KNOWN)
            raise
        keep_latest(self._known, digest, bearer, _KNOWN)
        return bearer

    def _forget(self, digest: bytes, task: asyncio.Task[Bearer]) -> None:
        del self._examining[digest]
        if not task.cancelled():
            task.exception()  # who waited for it may be gone

    def _note(self, bearer: Bearer, token: str) -> None:
        if self._settings.forwards:
            keep_latest(self._tokens, bearer.principal, token, _KNOWN)

    async def _fetch_keys(self) -> Any:
        jwks = self._settings.jwks
        if jwks and "://" not in jwks:
            return json.loads(await asyncio.to_thread(Path(jwks).read_bytes))
        return await self._run(fetch_keys(self._settings.issuer, jwks))

    async def _ask_in_turn(self, token: str, digest: bytes) -> Mapping[str, Any]:
        places = self._places[digest in self._known]  # that it was good is known when it does not count any more
        try:
            async with asyncio.timeout(_TURN_S):
                await places.acquire()
        except TimeoutError:
            raise TokenRefused(_TOO_MANY, is_away=True) from None
        try:
            return await self._introspect(token)
        finally:
            places.release()

    async def _introspect(self, token: str) -> Mapping[str, Any]:
        settings = self._settings
        try:
            claims = await self._run(
                ask_about(settings.introspection, token, settings.client_id, settings.client_secret)
            )
        except TransportError as error:
            raise TokenRefused("the issuer cannot be asked about tokens just now", is_away=True) from error
        if not claims["active"]:
            raise TokenRefused("the token is not active")
        # RFC 7662, 2.2: all but `active` may be left out. Whose word it is, is known by where it was asked.
        said = {name: value for name, value in claims.items() if value is not None}
        return {"iss": settings.issuer, "exp": self._now_s() + SURE_S, **said}

    async def _run(self, routine: Routine[_T]) -> _T:
        settings = self._settings
        config = UpstreamConfig(settings.issuer or settings.introspection, ca_file=settings.ca_file)
        return await Driver(config, DEFAULT, AtDesktop()).run(routine)


def ask_about(url: str, token: str, client_id: str, client_secret: str) -> Routine[dict[str, Any]]:
    """Ask what a token is: RFC 7662, 2.

    Raises:
        SignInFailed: There is no answer.
    """
    headers = {}
    if client_id:
        pair = f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    fetched: Fetched = yield post_form(url, {"token": token, "token_type_hint": "access_token"}, headers)
    if fetched.status != 200:
        raise SignInFailed("the issuer", f"it answers {fetched.why} where it is asked about a token")
    if not isinstance(fetched.json.get("active"), bool):  # RFC 7662, 2.2: it is REQUIRED
        raise SignInFailed("the issuer", "it does not answer whether a token is active, where it is asked that")
    return fetched.json


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
