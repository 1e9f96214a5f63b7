"""What a routine wants of the world, and what it is given: values only. `driver` carries them out."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import unicodedata
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode

from dragoman.errors import SignInFailed
from dragoman.signin.settings import SignInSettings

T = TypeVar("T")

_LONGEST_S: Final = 1e10
_CENSORED: Final = "***"
_PART: Final = 8
"""How much of a secret counts as a part of it."""

_HARMLESS: Final = frozenset(
    {
        *("grant_type", "client_id", "redirect_uri", "scope", "resource", "audience"),
        *("token_type_hint", "requested_token_type", "subject_token_type", "client_assertion_type"),
    }
)
"""What of our forms anybody may read."""

_HALF: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Fetch:
    """Send an HTTP request; given `Fetched`. Redirects are not followed."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What of it nobody else may read: all of a form that is not known to be harmless, and who we say we are."""
        sent = [value for name, value in parse_qsl((self.body or b"").decode("latin-1")) if name not in _HARMLESS]
        if pair := self.headers.get("Authorization", "").partition(" ")[2]:
            secret = base64.b64decode(pair).decode("latin-1").partition(":")[2]
            sent += [pair, unquote(secret)]
        return tuple(sorted(filter(None, (*sent, *map(_quote, sent))), key=len, reverse=True))


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer to a request; `location` is where it leads to, `secrets` are those of the request."""

    status: int
    body: bytes = field(default=b"", repr=False)
    location: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def json(self) -> dict[str, Any]:
        """The object in it; empty where it holds none."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def why(self) -> str:
        """Why it holds not what was asked for, for anybody: the error as OAuth names it, or the status."""
        return censored(self.json.get("error"), self.secrets) or f"status {self.status}"

    @property
    def about(self) -> str:
        """What is said about it in words, for whoever runs the proxy; empty if nothing is."""
        return censored(self.json.get("error_description"), self.secrets)


@dataclass(frozen=True, slots=True)
class Listen:
    """Get ready for a person who comes back from signing in; given the URL of that page.

    Attributes:
        before: What it was the last time, and should be again if that can be.
    """

    before: str = ""


@dataclass(frozen=True, slots=True)
class OpenPage:
    """Send a person to a page, and wait for them to come back; given the parameters that they bring.

    Attributes:
        url: The page.
        state: What they bring back as `state`; who brings another one is somebody else.
        is_open: Whether somebody else has sent them there already.
    """

    url: str = field(repr=False)
    state: str = field(repr=False)
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Keep:
    """Have something kept, so that another process can go on with it; given nothing."""

    value: object


@dataclass(frozen=True, slots=True)
class ShowCode:
    """Ask a person to go to a page and type a code there; given nothing.

    Attributes:
        url: The page.
        code: What to type.
        complete_url: The page with the code filled in; empty if there is none.
    """

    url: str
    code: str = field(repr=False)
    complete_url: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait; given nothing."""

    seconds: float


Wish = Fetch | Listen | OpenPage | Keep | ShowCode | Sleep
Routine = Generator[Wish, Any, T]


@dataclass(frozen=True, slots=True)
class Occasion:
    """Why there is a sign-in, and what it is for.

    Attributes:
        url: Of the server.
        peer: The same as errors name it.
        settings: What the user decided.
        challenge: What the server said in `WWW-Authenticate`.
        demands: What the revision's page on authorization demands: `dragoman_spec.Facts.authorization`.
        requested: The scopes that were asked for before.
    """

    url: str = field(repr=False)
    peer: str
    settings: SignInSettings
    challenge: Mapping[str, str]
    demands: frozenset[str]
    requested: tuple[str, ...] = ()

    def failure(self, reason: str) -> SignInFailed:
        """Make the error that says why it ends here."""
        return SignInFailed(self.peer, reason)


def post_form(url: str, parameters: Mapping[str, str], headers: Mapping[str, str]) -> Fetch:
    """Make the POST of a form; its answer should be JSON."""
    kinds = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    return Fetch("POST", url, {**kinds, **headers}, urlencode(parameters).encode())


def words(value: object) -> tuple[str, ...]:
    """Return the strings of a JSON array; nothing if it is anything else."""
    return tuple(filter(None, map(text, value))) if isinstance(value, list) else ()


def text(value: object) -> str:
    """Return a JSON string; empty if it is anything else, such as half of a character, which cannot be sent back."""
    return value if isinstance(value, str) and not _HALF.search(value) else ""


def seconds(value: object) -> float | None:
    """Give how long something takes or lasts; None if that is not said, or cannot be right. Some say it in a string."""
    with contextlib.suppress(ValueError):
        return float(str(value)) if 0 <= float(str(value)) <= _LONGEST_S else None
    return None


def censored(value: object, secrets: Sequence[str]) -> str:
    """Return what a server says as `quoted` does, without what it repeats of secrets, whole or in part.

    If something of a secret is left once all but letters and digits is taken out, or is there in Base64 or in
    hexadecimal digits, nothing of the text is returned.
    """
    said = unicodedata.normalize("NFKC", text(value))
    for secret in secrets:
        said = said.replace(secret, _CENSORED)
    parts = _parts_of(secrets)
    shown = " ".join(_CENSORED if _repeats(word, parts) else word for word in said.split())
    spellings = _parts_of(_bare(form) for secret in secrets for form in (secret, *_encode(secret.encode())))
    return _CENSORED if _repeats(_bare(shown), spellings) else quoted(shown)


def _quote(value: str) -> str:
    return quote(value, safe="")


def _parts_of(secrets: Iterable[str]) -> frozenset[str]:
    return frozenset(secret[at : at + _PART] for secret in secrets for at in range(len(secret) - _PART + 1))


def _repeats(word: str, parts: Collection[str]) -> bool:
    return any(word[at : at + _PART] in parts for at in range(len(word) - _PART + 1))


def _bare(said: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", said))).casefold()


def _encode(secret: bytes) -> tuple[str, ...]:
    """Return a secret in other digits; in Base64 it depends on how much stands before it."""
    shifted = (base64.b64encode(bytes(shift) + secret).decode()[2 * (shift > 0) + (shift > 1) :] for shift in range(3))
    return secret.hex(), *shifted


def quoted(value: object) -> str:
    """Return what a server says, short and on one line, for a person."""
    return "".join(char for char in " ".join(text(value).split()) if char.isprintable())[:200]
