"""What we send that nobody else may read, and how it is taken out of what a peer says in an error.

Lives here: which headers hold such, the spellings in which it is looked for, and what is left of an error. Must not:
know who said it. Used for servers (`upstream`) and for authorization servers (`dragoman.signin`).

A peer may repeat a secret by mistake or on purpose, and its words reach the log, the trace and the client. A secret is
found whole, in parts of eight characters, with other characters between, and in Base64 or hexadecimal digits. What
turns it into anything else is not found.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from dragoman.core.spelling import compose
from dragoman.core.unchecked import is_deeper

CENSORED: Final = "***"
_PART: Final = 8
"""How much of a secret counts as a part of it."""

_SHORTEST: Final = 4
"""What is shorter is no secret: it is in every text."""

_KEY: Final = 16
"""What is shorter is no key of access, where the name of a header says no more than that it is one: `X-Project-Key`."""

_WORD: Final = "(?:[a-z]{0,20}(?:[A-Z][a-z]{2,19})*|[A-Z]{1,12})[0-9]{0,4}"
_IN_WORDS: Final = re.compile(f"{_WORD}(?:[^A-Za-z0-9]+{_WORD})*")
"""A part of a path that is made of words, numbers and versions (`my-serverV2`, `2025-11-25`): nobody has drawn it."""

_RECENT: Final = 16
"""How many secrets are known that others have taken the place of: an answer may be late."""

_LONG: Final = 256 * 1024
_BEGINNING: Final = 1000
"""From how many characters and values on an error is cut, and what is kept of its message: to look through it all takes
long."""

_OTHER: Final = 4
"""For how many a character beyond ASCII counts before it is composed; then for as many as it becomes: 18, some."""

_DEEPEST: Final = 64
"""How deep an error may be nested of which a part is taken out: of others all goes that may repeat it."""

_WORDS: Final = (
    "authorization",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "credential",
    "cookie",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "bearer",
    "jwt",
)
_NOT_SECRET: Final = frozenset({"progresstoken"})
_SEPARATORS: Final = re.compile(r"[^a-z0-9]")


def is_secret_name(name: str) -> bool:
    """Whether what has this name is likely a secret."""
    plain = _SEPARATORS.sub("", name.lower())
    if plain in _NOT_SECRET:
        return False
    return plain.endswith("token") or any(word in plain for word in _WORDS)


def secrets_of(name: str, value: str) -> Iterator[str]:
    """Give what of the value of a header is secret: not the scheme of credentials, nor the names of cookies."""
    if "cookie" in name.lower():
        yield from (one.partition("=")[2].strip() for one in value.split(";"))
        return
    scheme, _, rest = value.strip().partition(" ")
    yield rest or scheme
    if scheme.lower() == "basic":
        with contextlib.suppress(binascii.Error):
            yield unquote(base64.b64decode(rest).decode("latin-1").partition(":")[2])


class Secrets:
    """What was sent to one peer.

    Args:
        own: What is sent always.
    """

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = tuple(own)
        self._recent: dict[str, None] = {}
        self._known: tuple[str, ...] | None = None  # in the order in which they are looked for; made when needed
        self._parts: frozenset[str] = frozenset()
        self._spellings: frozenset[str] = frozenset()

    def add(self, values: Iterable[str]) -> None:
        """Count these, too; those that came first are forgotten where there are many."""
        for value in values:
            if value not in self._recent:
                self._recent[value], self._known = None, None
                if len(self._recent) > _RECENT:
                    del self._recent[next(iter(self._recent))]

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._learn())

    def take_out(self, said: str) -> str:
        """Return a text without what it repeats; the same text, where it repeats nothing.

        Of one that is very long the beginning is kept.
        """
        if not self:
            return said
        if (texts := _texts_in(said)) is None:
            said = said[:_BEGINNING]
        plain = compose(said) if texts is None else texts[0]
        if not self._repeats(plain):
            return said
        for secret in self._known or ():
            plain = plain.replace(secret, CENSORED)
        shown = " ".join(CENSORED if _has_part(word, self._parts) else word for word in plain.split())
        return CENSORED if self._repeats(shown) else shown

    def are_in(self, value: Any) -> bool:
        """Whether JSON repeats something, or takes long to look through."""
        texts = _texts_in(value)
        return bool(self) and (texts is None or self._repeats(" ".join(texts)))

    def take_out_of(self, error: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the error of a JSON-RPC response without what it repeats; the same object, where it repeats nothing.

        Of one that is very long the beginning of the message is kept.
        """
        if not self:
            return error
        texts = _texts_in(error)
        if texts is not None and not self._repeats(" ".join(texts)):
            return error
        if texts is None or is_deeper(error, _DEEPEST):
            message = str(error.get("message"))[:_BEGINNING]
            return _without_data(error, CENSORED if self._repeats(compose(message)) else message)
        shown: Mapping[str, Any] = self._take_out_of_all(error)
        texts = _texts_in(shown)
        return _without_data(error, CENSORED) if texts is None or self._repeats(" ".join(texts)) else shown

    def _take_out_of_all(self, value: Any) -> Any:
        match value:
            case dict():
                return {self.take_out(name): self._take_out_of_all(member) for name, member in value.items()}
            case list():
                return [self._take_out_of_all(member) for member in value]
            case str():
                return self.take_out(value)
        return value

    def _learn(self) -> tuple[str, ...]:
        """Return all that is looked for, the longest first."""
        if self._known is None:
            secrets = [one for one in (*self._own, *self._recent) if len(one) >= _SHORTEST]
            self._known = tuple(sorted({*secrets, *(quote(one, safe="") for one in secrets)}, key=len, reverse=True))
            self._parts = _parts_of(self._known)
            forms = (form for one in self._known for form in (one, *_encode(one.encode())))
            self._spellings = _parts_of(_bare(compose(form)) for form in forms)
        return self._known

    def _repeats(self, plain: str) -> bool:
        """Whether a text repeats something, which is composed."""
        return (
            any(secret in plain for secret in self._known or ())
            or _has_part(plain, self._parts)
            or _has_part(_bare(plain), self._spellings)
        )


def secrets_sent(url: str, headers: Iterable[tuple[str, str]], hides_path: bool) -> Secrets:
    """Return what every request to a URL says that is secret: in its headers, and in the URL.

    Args:
        url: Where to.
        headers: Beside it.
        hides_path: Whether the path counts: not where the server is called by its URL.
    """
    parts = urlsplit(url)
    found = [parts.password or "", unquote(parts.password or "")]
    found += [value for name, value in parse_qsl(parts.query) if _is_secret(name, value)]
    found += secrets_in_path(url) if hides_path else []
    found += [one for given in headers if _is_secret(*given) for one in secrets_of(*given)]
    return Secrets(found)


def secrets_in_path(url: str) -> list[str]:
    """Return the parts of a URL's path that are likely secret: as long as a key, and not made of words."""
    parts = map(unquote, urlsplit(url).path.split("/"))
    return [part for part in parts if len(part) >= _KEY and not _IN_WORDS.fullmatch(part)]


def _is_secret(name: str, value: str) -> bool:
    return is_secret_name(name) or (name.lower().endswith(("key", "auth")) and len(value) >= _KEY)


def _without_data(error: Mapping[str, Any], message: str) -> dict[str, Any]:
    code = error.get("code")
    return {"code": code if isinstance(code, int) else None, "message": message}


def _texts_in(value: Any) -> list[str] | None:
    """Return all texts, names too, in their order, composed; None where it takes long to look through them."""
    found: list[str] = []
    left, looked_at = [value], 0
    while left:
        one = left.pop()
        looked_at += 1
        if isinstance(one, str):
            looked_at += len(one) if one.isascii() else _OTHER * len(one)
            if looked_at <= _LONG:
                found.append(compose(one))
                looked_at += len(found[-1]) - len(one)
        elif isinstance(one, dict | list):
            looked_at += len(one)
            if looked_at <= _LONG:
                members = one if isinstance(one, list) else [part for member in one.items() for part in member]
                left += reversed(members)
        if looked_at > _LONG:
            return None
    return found


def _parts_of(secrets: Iterable[str]) -> frozenset[str]:
    return frozenset(secret[at : at + _PART] for secret in secrets for at in range(len(secret) - _PART + 1))


def _has_part(said: str, parts: frozenset[str]) -> bool:
    return not parts.isdisjoint(said[at : at + _PART] for at in range(len(said) - _PART + 1))


def _bare(said: str) -> str:
    return "".join(filter(str.isalnum, said)).casefold()


def _encode(secret: bytes) -> tuple[str, ...]:
    """Return a secret in other digits; in Base64 it depends on how much stands before it."""
    shifted = (base64.b64encode(bytes(shift) + secret).decode()[2 * (shift > 0) + (shift > 1) :] for shift in range(3))
    return secret.hex(), *shifted
