"""What a token has to say, and whose it is then.

Lives here: values alone; no clock, no network, no signature. What is wrong with a token is said in words of ours: no
part of it is repeated.

Sources: RFC 7519, 4.1; RFC 9068; RFC 7662, 2.2; OAuth 2.1, 5.2; 2026-07-28/basic/authorization, Token Handling.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from dragoman.transports.http.bearer import Bearer, TokenRefused

LEEWAY_S: Final = 30.0
"""How much clocks may differ."""

_LONGEST: Final = 200
"""The longest part of a name of a principal; what is longer is known by its digest."""

_LARGEST: Final = 2**128
"""What is larger is no number of anybody."""

_PLAIN: Final = "!#$&'*+,/:;?@[]~|"
"""What a name may have beside letters, digits and `-._`: no white space, so that its parts can be told apart, and
neither `=` nor brackets, which stand in what no token can say."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What tokens have to say.

    Attributes:
        issuer: Whose they are; empty: whoever is asked about them answers for all.
        audiences: Whom they are for: one of these is named.
        clients: Or else one of these clients was given them, where the issuer does not say whom they are for.
        implied: What a scope is good for beside itself.
    """

    issuer: str
    audiences: tuple[str, ...]
    clients: tuple[str, ...] = ()
    implied: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def read(self, claims: Mapping[str, Any], now_s: float, latest_s: float) -> Bearer:
        """Return whose a token is.

        Args:
            claims: What it says.
            now_s: The time.
            latest_s: When it is to be looked at again, if it does not end before.

        Raises:
            TokenRefused: It does not count.
        """
        if self.issuer and not _is_same(claims.get("iss"), self.issuer):
            raise TokenRefused("the token is of another issuer")
        until_s = _read_time(claims, "exp") + LEEWAY_S
        if now_s >= until_s:
            raise TokenRefused("the token has expired")
        if _read_time(claims, "nbf", -math.inf) > now_s + LEEWAY_S:
            raise TokenRefused("the token does not count yet")
        client = _read_name(claims, "client_id", "azp", "cid", "appid")
        named = _texts(claims.get("aud"))
        is_ours = any(_is_same(one, ours) for one in named for ours in self.audiences)
        if not is_ours and client not in self.clients:
            raise TokenRefused("the token is not for this server")
        bound = claims.get("cnf")
        if bound is not None:  # RFC 9449, 7.1: it counts with a proof alone, which we do not ask for
            raise TokenRefused("the token is bound to a key, and is no bearer token")
        subject = _read_name(claims, "sub")
        if subject == client == "":
            raise TokenRefused("the token says neither whose it is nor which client has it")
        said = *_words(claims.get("scope")), *_words(claims.get("scp"))
        principal = name_principal(client, self.issuer or _read_name(claims, "iss"), subject)
        return Bearer(principal, self.widen(said), claims, min(until_s, latest_s))

    def widen(self, scopes: Iterable[str]) -> frozenset[str]:
        """Return scopes with all that they imply: a broader one is good for what a narrower one is."""
        found, left, implied = set[str](), list(scopes), dict(self.implied)
        while left:
            scope = left.pop()
            if scope not in found:
                found.add(scope)
                left += implied.get(scope, ())
        return frozenset(found)


def name_principal(client: str | int, issuer: str | int, subject: str | int) -> str:
    """Name the one whom client, issuer and subject make together, so that no two have one name.

    A text and a number are two, whatever they look like. Empty is what the token does not say.

    A name of the file of secrets has no blank in it, and this has some.
    """
    return f"{_part(subject)} by {_part(client)} of {_part(issuer)}"


def _part(text: str | int) -> str:
    """Return text without white space and control characters, and not long."""
    if isinstance(text, int):
        return f"number={text}"
    if not text:
        return "(none)"
    if len(text) > _LONGEST:
        return f"sha256={hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()}"
    return quote(text, safe=_PLAIN, errors="surrogatepass")


def _is_same(one: object, other: str) -> bool:
    """Whether two URLs are one: a slash at the end is what libraries add and take away."""
    return isinstance(one, str) and one.removesuffix("/") == other.removesuffix("/")


def _read_time(claims: Mapping[str, Any], name: str, default_s: float | None = None) -> float:
    value = claims.get(name, default_s)
    if type(value) not in (int, float) or value != value:
        raise TokenRefused(f"the token does not say when it {'ends' if name == 'exp' else 'begins'}")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _read_name(claims: Mapping[str, Any], *names: str) -> str | int:
    """Return the first of these claims that is there: a text, or a number, as some issuers write it; empty for none.

    Raises:
        TokenRefused: It is anything else: of those whom it means, all would be one.
    """
    for name in names:
        match claims.get(name):
            case None | "":
                continue
            case bool():
                break
            case str() as found:
                return found
            case int() as found if abs(found) < _LARGEST:
                return found
            case _:
                break
    else:
        return ""
    raise TokenRefused("the token says whose it is in neither a text nor a whole number")


def _texts(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [one for one in listed if isinstance(one, str)]


def _words(value: object) -> list[str]:
    """Return scopes: words of a text, or a list of such."""
    return [word for text in _texts(value) for word in text.split()]
