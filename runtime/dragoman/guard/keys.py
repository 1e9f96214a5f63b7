"""The keys by which an issuer signs, and whether one of them signed a token.

Lives here: finding them, when they are fetched again, and what is a key. Must not: say what a token means (`claims`).

Keys are fetched by the address that the user or the issuer's metadata gives, never by one that a token names (`jku`,
`x5u`, `jwk`). While the issuer is away, the keys of before count. A kind of key that nobody here knows is left out.

Sources: RFC 7517; RFC 8725, 3; RFC 8414 and OpenID Connect Discovery 1.0 for where they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from dragoman.errors import SignInFailed, TransportError
from dragoman.signin.discovery import list_places, shorten
from dragoman.signin.settings import is_loopback, is_safe
from dragoman.signin.wishes import Fetch, Routine, text
from dragoman.transports.http.bearer import TokenRefused

logger = logging.getLogger("dragoman.guard")

FRESH_S: Final = 300.0
"""After so long keys are fetched again, beside the calls."""

PAUSE_S: Final = 30.0
"""How long it is at least from one fetch to the next, however many tokens name keys that are not known; but for the
second one."""

FIRST_PAUSE_S: Final = 2.0
"""The same while there is no key at all."""

WAIT_S: Final = 10.0
"""How long a request waits for keys."""

_MOST_KEYS: Final = 100
_MOST_TRIED: Final = 8
"""How many keys are tried for a token that names none."""

_LONGEST_TOKEN: Final = 16 * 1024
_TYPES: Final = frozenset({"", "jwt", "at+jwt", "application/jwt", "application/at+jwt"})
_KINDS: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", "")),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}
"""By algorithm: the kind of key and its curve. None of them is signed with a secret, which a public key could be."""


class PublicKey(NamedTuple):
    """A key, and what its set says of it."""

    said: Mapping[str, Any]
    key: Any


class Head(NamedTuple):
    """What a token says before its claims."""

    algorithm: str
    kid: str


class Keys:
    """The keys of an issuer.

    Args:
        fetch: Gives the set as it is now; raises a `TransportError` or `ValueError` where there is none.
        clock: Gives seconds, and never goes back.
    """

    def __init__(self, fetch: Callable[[], Awaitable[Any]], clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keys: list[PublicKey] = []
        self._tried_at = self._fetched_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token that one of the keys has signed.

        Raises:
            TokenRefused: None has, or it cannot be told now.
        """
        head = read_head(token)
        is_new = not self._keys
        if is_new:
            await self._refresh()
            if not self._keys:
                raise TokenRefused("the keys of the issuer cannot be had just now", is_away=True)
        elif self._clock() - self._fetched_at > FRESH_S:
            self._begin()  # nobody waits for it
        found = self._pick(head)
        if not found and not is_new:
            await self._refresh()
            found = self._pick(head)
        for one in found:
            claims = _decode(token, one.key, head.algorithm)
            if claims is not None:
                return claims
        raise TokenRefused("no key of the issuer has signed the token" if found else "the token names no key we know")

    def _pick(self, head: Head) -> list[PublicKey]:
        kind, curve = _KINDS[head.algorithm]
        fitting = [
            one
            for one in self._keys
            if (one.said.get("kty"), one.said.get("crv", "")) == (kind, curve)
            and _KINDS.get(one.said.get("alg", head.algorithm)) == (kind, curve)
            and (kind != "RSA" or one.said.get("alg", head.algorithm) == head.algorithm)
            and (not head.kid or one.said.get("kid", head.kid) == head.kid)
        ]
        return fitting[:_MOST_TRIED]

    async def _refresh(self) -> None:
        """Wait until the keys have been fetched, if it is time for that."""
        self._begin()
        if self._fetching is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WAIT_S):
                    await asyncio.shield(self._fetching)

    def _begin(self) -> None:
        pause_s = PAUSE_S if self._keys else FIRST_PAUSE_S
        if self._fetching is None and self._clock() - self._tried_at >= pause_s:
            self._tried_at = self._clock()
            self._fetching = asyncio.get_running_loop().create_task(self._take())
            self._fetching.add_done_callback(self._note)

    async def _take(self) -> None:
        try:
            found = read_keys(await self._fetch())
            if not found:
                raise ValueError("there is no key in it that can sign tokens")
        except (TransportError, OSError, ValueError) as error:
            stays = "; those of before count" if self._keys else ""
            logger.warning("the keys of the issuer cannot be had: %s%s", error, stays)
        else:
            if not self._keys:  # a key may change just after we came
                self._tried_at = float("-inf")
            self._keys, self._fetched_at = found, self._clock()

    def _note(self, task: asyncio.Task[None]) -> None:
        self._fetching = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("internal error while keys are read: %s: %s", type(error).__name__, error)


def read_head(token: str) -> Head:
    """Return what a token says before its claims.

    Raises:
        TokenRefused: It is none that we could read, or signed in a way that does not count.
    """
    from joserfc.util import urlsafe_b64decode

    if len(token) > _LONGEST_TOKEN or token.count(".") != 2:
        raise TokenRefused("the token is not a signed JWT, or very long")
    try:
        head = json.loads(urlsafe_b64decode(token.partition(".")[0].encode("ascii")))
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict):
        raise TokenRefused("the token is not a signed JWT")
    algorithm = text(head.get("alg"))
    if algorithm not in _KINDS:
        raise TokenRefused("the token is signed in a way that does not count here")
    if text(head.get("typ")).lower() not in _TYPES or "crit" in head:
        raise TokenRefused("the token is of another kind than access tokens are")
    return Head(algorithm, text(head.get("kid")))


def _decode(token: str, key: Any, algorithm: str) -> Mapping[str, Any] | None:
    """Return the claims; None where this key has not signed them."""
    from joserfc import jwt
    from joserfc.errors import JoseError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the old name of Ed25519
            claims = jwt.decode(token, key, algorithms=[algorithm]).claims
    except (JoseError, ValueError, TypeError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def read_keys(found: Any) -> list[PublicKey]:
    """Return the keys of a set that can have signed something; others are left out."""
    from joserfc import jwk
    from joserfc.errors import JoseError

    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise ValueError("expected a set of keys, an object with the array keys")
    keys: list[PublicKey] = []
    known = frozenset(_KINDS.values())
    for said in listed[:_MOST_KEYS]:
        if not isinstance(said, dict) or any(not isinstance(said.get(name, ""), str) for name in _NAMED):
            continue
        kind, operations = said.get("kty"), said.get("key_ops", ["verify"])
        is_known = (kind, "" if kind == "RSA" else said.get("crv")) in known
        signs = said.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations
        if not is_known or not signs:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # a key that is too short
                keys.append(PublicKey(said, jwk.import_key(said)))
        except (JoseError, ValueError, TypeError, LookupError, Warning):
            logger.info("a key of the issuer cannot be used, and is left out")
    return keys


_NAMED: Final = ("kty", "crv", "alg", "kid", "use")


def fetch_keys(issuer: str, url: str) -> Routine[Any]:
    """Fetch the keys of an issuer.

    Args:
        issuer: It.
        url: Where they are; empty: the issuer's metadata says so.

    Raises:
        SignInFailed: They are not to be had.
    """
    peer = shorten(issuer)
    given = url
    for place in () if url else list_places(issuer):
        fetched = yield Fetch("GET", place, {"Accept": "application/json"})
        found = fetched.json if fetched.status == 200 else {}
        url = text(found.get("jwks_uri"))
        if url and text(found.get("issuer")).rstrip("/") != issuer.rstrip("/"):
            raise SignInFailed(peer, f"its metadata names another issuer, {shorten(text(found.get('issuer')))}")
        if url and found["issuer"] != issuer:
            logger.warning("the issuer writes its name %s, and some clients compare it exactly", found["issuer"])
        if url:
            break
    if not given and (not is_safe(url) or (is_loopback(url) and not is_loopback(issuer))):
        raise SignInFailed(peer, f"its metadata leads to {shorten(url)} for keys, which is not an https URL")
    fetched = yield Fetch("GET", url, {"Accept": "application/jwk-set+json, application/json"})
    if fetched.status != 200:
        raise SignInFailed(peer, f"{shorten(url)} answers {fetched.status} in place of keys")
    return fetched.json
