"""An issuer on a port of this machine, whose tokens and manners a test decides, and a front that it guards.

async with issuer() as one, guarded(one) as stage:
    reply = await stage.post(initialize(), authorization=f"Bearer {one.give(sub='ada')}")
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from joserfc import jwk, jwt

from dragoman.guard.guard import GuardSettings, TokenGuard
from dragoman.transports.http.config import Admission, FrontConfig
from tests.transports.http.stage import Stage, serving
from tests.transports.upstream.stage import Reply, Request, server

OURS = "https://tools.example/mcp"


@dataclass
class Issuer:
    """Gives tokens, and says by which keys.

    Attributes:
        url: Its name.
        keys: By which it signs, the newest last.
        asked: The path of each request.
        about: What it says of tokens when it is asked about one; None of those that it does not know.
        misbehave: Answers in its place.
    """

    url: str = ""
    keys: list[Any] = field(default_factory=list)
    more: list[Any] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    forms: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    misbehave: Callable[[Request, Reply], Any] | None = None

    def add_key(self, kind: str = "EC", **said: Any) -> Any:
        named = {"kid": f"key-{len(self.keys)}", **said}
        sizes: dict[str, Any] = {"EC": "P-256", "RSA": 2048, "OKP": "Ed25519"}
        made: Any = {"EC": jwk.ECKey, "RSA": jwk.RSAKey, "OKP": jwk.OKPKey}[kind]
        self.keys.append(made.generate_key(sizes[kind], {k: v for k, v in named.items() if v is not None}))
        return self.keys[-1]

    def give(self, key: Any = None, head: dict[str, Any] | None = None, **claims: Any) -> str:
        """Make a token; a claim that is None is left out."""
        key = key or self.keys[-1]
        algorithm = {"EC": "ES256", "RSA": "RS256", "OKP": "Ed25519"}[key.key_type]
        head = {"alg": algorithm, "kid": key.kid, "typ": "at+jwt", **(head or {})}
        now = int(time.time())
        usual = {"iss": self.url, "aud": OURS, "sub": "ada", "client_id": "editor", "exp": now + 600, "iat": now}
        said = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            head = {name: value for name, value in head.items() if value is not None}
            return jwt.encode(head, said, key, algorithms=[head["alg"]])

    async def serve(self, request: Request, reply: Reply) -> None:
        self.asked.append(request.path)
        if self.misbehave is not None:
            await self.misbehave(request, reply)
        elif request.path == "/.well-known/oauth-authorization-server":
            await reply.json({"issuer": self.url, "jwks_uri": f"{self.url}/keys", **self.metadata})
        elif request.path == "/keys":
            await reply.json({"keys": [*self.more, *(key.as_dict(private=False) for key in self.keys)]})
        elif request.path == "/token":
            form = dict(parse_qsl(request.body.decode()))
            self.forms.append((request.headers.get("authorization", ""), form))
            scope = form.get("scope", "")
            token = self.give(scope=scope, aud=form["resource"], client_id="robot", sub=None)
            await reply.json({"access_token": token, "token_type": "Bearer", "expires_in": 600, "scope": scope})
        elif request.path == "/introspect":
            form = dict(parse_qsl(request.body.decode()))
            self.forms.append((request.headers.get("authorization", ""), form))
            await reply.json(self.about.get(form["token"], {"active": False}))
        else:
            await reply.status("404 Not Found")


@contextlib.asynccontextmanager
async def issuer(kind: str = "EC") -> AsyncIterator[Issuer]:
    one = Issuer()
    one.add_key(kind)
    async with server(one.serve) as url:
        one.url = url.removesuffix("/mcp")
        yield one


def guard_of(one: Issuer, now_s: Callable[[], float] = time.time, **settings: Any) -> TokenGuard:
    given = {"audiences": (OURS,), **settings}
    return TokenGuard(GuardSettings(one.url, **given), now_s)


@contextlib.asynccontextmanager
async def guarded(
    one: Issuer,
    tokens: dict[str, str] | None = None,
    now_s: Callable[[], float] = time.time,
    proxy: dict[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Stage]:
    guard = guard_of(one, now_s, **settings)
    admission = Admission(tokens=tokens or {}, guard=guard, notes_origins=True, hosts=("tools.example",))
    async with serving(FrontConfig(admission=admission), **(proxy or {})) as stage:
        stage.guard = guard  # type: ignore[attr-defined]
        yield stage
