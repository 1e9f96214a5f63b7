"""A web for routines: what stands at which URL, who asked for it, and a person who goes where they are sent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qs, parse_qsl, urlsplit

from dragoman.errors import TransportError
from dragoman.signin.settings import SignInSettings
from dragoman.signin.wishes import Fetch, Fetched, Listen, Occasion, OpenPage, Routine, ShowCode, Sleep
from dragoman_spec import LATEST, facts

T = TypeVar("T")

SERVER = "https://mcp.example/team/mcp"
ISSUER = "https://auth.example"
BACK = "http://127.0.0.1:4711/callback"
REDIRECT = f"{BACK}/{hashlib.sha256(ISSUER.encode()).hexdigest()[:16]}"
"""Where people come back to from an authorization server that does not say who it is."""


def occasion(
    revision: str = LATEST,
    *,
    url: str = SERVER,
    challenge: Mapping[str, str] | None = None,
    requested: tuple[str, ...] = (),
    **settings: Any,
) -> Occasion:
    demands = facts(revision).authorization
    return Occasion(url, "the server", SignInSettings(**settings), challenge or {}, demands, requested)


def metadata(issuer: str = ISSUER, **more: Any) -> dict[str, Any]:
    said = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "registration_endpoint": f"{issuer}/register",
        "code_challenge_methods_supported": ["S256"],
        **more,
    }
    return {key: value for key, value in said.items() if value is not None}


def resource(issuer: str = ISSUER, **more: Any) -> dict[str, Any]:
    return {"resource": SERVER, "authorization_servers": [issuer], **more}


def token(**more: Any) -> dict[str, Any]:
    return {"access_token": "access-1", "token_type": "Bearer", "expires_in": 3600, **more}


Page = Any
"""A JSON object, with a status or without; or a function of the request that gives one."""


@dataclass
class Web:
    """What there is; a URL that it does not have is not found."""

    pages: dict[str, Page] = field(default_factory=dict)
    bring: Callable[[dict[str, str]], dict[str, str]] = lambda asked: {"code": "code-1", "state": asked["state"]}
    redirect: str = BACK
    asked: list[Fetch] = field(default_factory=list)
    visits: list[dict[str, str]] = field(default_factory=list)
    shown: list[ShowCode] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def run(self, routine: Routine[T]) -> T:
        """Carry a routine out."""
        given: Any = None
        failure: TransportError | None = None
        while True:
            try:
                wish = routine.send(given) if failure is None else routine.throw(failure)
            except StopIteration as over:
                result: T = over.value
                return result
            try:
                given, failure = self.grant(wish), None
            except TransportError as error:
                failure = error

    def grant(self, wish: Any) -> Any:
        match wish:
            case Fetch():
                self.asked.append(wish)
                page = self.pages.get(wish.url, (404, {}))
                page = page(wish) if callable(page) else page
                status, body = page if isinstance(page, tuple) else (200, page)
                return Fetched(status, body if isinstance(body, bytes) else json.dumps(body).encode())
            case Listen(_, own):
                return self.redirect + (own or "")
            case OpenPage(url):
                self.visits.append(dict(parse_qsl(urlsplit(url).query)))
                return self.bring(self.visits[-1])
            case ShowCode():
                self.shown.append(wish)
            case Sleep(seconds):
                self.slept.append(seconds)
        return None

    @property
    def urls(self) -> list[str]:
        return [fetch.url for fetch in self.asked]

    def sent_to(self, url: str) -> list[dict[str, str]]:
        """The forms that were posted to a URL."""
        return [form(fetch) for fetch in self.asked if fetch.url == url]


def form(fetch: Fetch) -> dict[str, str]:
    assert fetch.body is not None
    return {name: values[0] for name, values in parse_qs(fetch.body.decode()).items()}


def whole(**more: Any) -> Web:
    """A server with everything that the newest revision wants."""
    return Web(
        {
            "https://mcp.example/.well-known/oauth-protected-resource/team/mcp": resource(),
            f"{ISSUER}/.well-known/oauth-authorization-server": metadata(),
            f"{ISSUER}/register": (201, {"client_id": "client-1"}),
            f"{ISSUER}/token": token(),
            **more,
        }
    )
