"""What a routine wants of the world, and what it is given: values only. `driver` carries them out."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode

from dragoman.errors import SignInFailed
from dragoman.signin.settings import SignInSettings
from dragoman.transports.secrecy import Secrets, secrets_of

T = TypeVar("T")

_LONGEST_S: Final = 1e10

_HARMLESS: Final = frozenset(
    {
        *("grant_type", "client_id", "redirect_uri", "scope", "resource", "audience"),
        *("token_type_hint", "requested_token_type", "subject_token_type", "client_assertion_type"),
    }
)
"""What of our forms anybody may read."""

_LOOKED_AT: Final = 1000
_SHOWN: Final = 200
"""How much of what a server says is looked at for a person, and how much is shown."""

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
        return (*sent, *secrets_of("Authorization", self.headers.get("Authorization", "")))


@dataclass(frozen=True)
class Fetched:
    """The answer to a request; `location` is where it leads to, `secrets` are those of the request."""

    status: int
    body: bytes = field(default=b"", repr=False)
    location: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @functools.cached_property
    def json(self) -> dict[str, Any]:
        """The object in it; empty where it holds none."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    @functools.cached_property
    def why(self) -> str:
        """Why it holds not what was asked for, for anybody: the error as OAuth names it, or the status."""
        return censored(self.json.get("error"), self.secrets) or f"status {self.status}"

    @functools.cached_property
    def about(self) -> str:
        """What is said about it in words, for whoever runs the proxy; empty if nothing is."""
        return censored(self.json.get("error_description"), self.secrets)


@dataclass(frozen=True, slots=True)
class Listen:
    """Get ready for a person who comes back from signing in; given the URL of that page.

    Attributes:
        before: What it was the last time, and should be again if that can be.
        own: What is added to its path, where only one authorization server is to know it; None for what `before` has.
    """

    before: str = ""
    own: str | None = None


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
    """Return what a server says as `quoted` does, without what it repeats of secrets, whole or in part."""
    return quoted(Secrets(secrets).take_out(text(value)[:_LOOKED_AT]))


def quoted(value: object) -> str:
    """Return what a server says, short and on one line, for a person."""
    said = text(value)[:_LOOKED_AT]
    return "".join(char for char in " ".join(said.split()) if char.isprintable())[:_SHOWN]
