"""Requests to a token endpoint, and the tokens that it gives.

Sources: OAuth 2.1; RFC 7523 for clients that sign who they are; RFC 8707 for `resource`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final, Literal
from urllib.parse import quote

from dragoman.errors import SignInFailed, TransportError
from dragoman.signin import discovery
from dragoman.signin.discovery import AuthorizationServer, OAuthClient, read_secret, shorten
from dragoman.signin.wishes import Fetched, Occasion, Routine, post_form, quoted, seconds, text

CLIENT_GONE: Final = frozenset({"invalid_client", "unauthorized_client"})
"""What an authorization server says of a client that it does not know any more."""

SLOW_DOWN: Final = "slow_down"
"""What is said of a request that came too soon, or at the wrong time (RFC 8628, 3.5)."""

UNREVOKED: Final = "unsupported_token_type"
"""What is said of a token that cannot be revoked, such as one that holds all that is to be known (RFC 7009, 2.2.1)."""

PASSING: Final = frozenset({SLOW_DOWN, "authorization_pending"})
"""What is said while nobody has typed a code yet."""

LATER: Final = frozenset({SLOW_DOWN, "temporarily_unavailable", "server_error"})
"""What is said where the same may be given later; this or nothing is said with 429 and 500 and above."""

VISIBLE: Final = re.compile(r"[\x21-\x7e]{1,65536}\Z")
_ASSERTION_S: Final = 300
_ALGORITHMS: Final = {
    ("EC", "P-256"): "ES256",
    ("EC", "P-384"): "ES384",
    ("EC", "P-521"): "ES512",
    ("OKP", "Ed25519"): "Ed25519",
}
_KINDS: Final[tuple[Literal["EC", "RSA", "OKP"], ...]] = ("EC", "RSA", "OKP")
_NO_KEY: Final = "it is neither an EC, an RSA nor an Ed25519 key"
_RSA_ALGORITHMS: Final = ("RS256", "PS256", "RS384", "PS384", "RS512", "PS512")


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a server's requests go with.

    Attributes:
        access: Goes with each of them.
        refresh: Gets others; empty if there is none.
        expires_at: When the first ends, in seconds since the epoch; None if that is not said.
        scope: What it is good for, with spaces between; empty if that is not said.
        requested: What was asked for.
    """

    access: str = field(repr=False)
    refresh: str = field(default="", repr=False)
    expires_at: float | None = None
    scope: str = ""
    requested: tuple[str, ...] = ()


class GrantRefused(SignInFailed):
    """An authorization server gives no token.

    Args:
        peer: The server that it is for.
        reason: Why, for a person.
        error: The same as OAuth names it; empty where it does not.
    """

    def __init__(self, peer: str, reason: str, error: str) -> None:
        super().__init__(peer, reason)
        self.error = error


def may_pass(error: TransportError) -> bool:
    """Whether what was asked in vain may be given later: there is no connection, or whoever was asked has no time."""
    return error.error in LATER if isinstance(error, GrantRefused) else not isinstance(error, SignInFailed)


def get_tokens(
    occasion: Occasion,
    server: AuthorizationServer,
    client: OAuthClient,
    parameters: Mapping[str, str],
    requested: tuple[str, ...],
    before: Tokens | None = None,
) -> Routine[Tokens]:
    """Ask a token endpoint for tokens.

    Args:
        occasion: Why.
        server: Whose.
        client: Who we are there.
        parameters: Of the grant.
        requested: The scopes that are asked for.
        before: The tokens in whose place they come; what is not said anew stays.

    Raises:
        GrantRefused: It gives nothing.
        SignInFailed: What it gives is of no use.
    """
    target = {"resource": server.resource} if server.resource is not None else {}
    fetched = yield from ask_as_client(occasion, server, client, server.token_endpoint, {**parameters, **target})
    said = fetched.json
    if fetched.status != 200 or "error" in said:
        error = quoted(said.get("error"))
        if fetched.status == HTTPStatus.UNAUTHORIZED and not error:  # RFC 6749, 5.2: it is said of clients alone
            error = "invalid_client"
        if fetched.status == HTTPStatus.TOO_MANY_REQUESTS or fetched.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            error = SLOW_DOWN  # whatever else it says, that passes
        reason = f"its authorization server {shorten(server.issuer)} gives no token ({fetched.why})"
        raise GrantRefused(occasion.peer, reason, error)
    access, lasts_s = text(said.get("access_token")), seconds(said.get("expires_in"))
    kind = text(said.get("token_type")) or "bearer"
    if kind.lower() != "bearer" or not VISIBLE.match(access):
        raise occasion.failure("its authorization server gives a token of a kind that is not known")
    return Tokens(
        access=access,
        refresh=text(said.get("refresh_token")) or (before.refresh if before else ""),
        expires_at=None if lasts_s is None else time.time() + lasts_s,
        scope=text(said.get("scope")) or (before.scope if before else " ".join(requested)),
        requested=requested,
    )


def ask_as_client(
    occasion: Occasion, server: AuthorizationServer, client: OAuthClient, url: str, parameters: Mapping[str, str]
) -> Routine[Fetched]:
    """Send a form with what shows who we are; if that is not found in the header, and may be in the body, there.

    Raises:
        SignInFailed: It cannot be shown.
    """
    headers, shown = _show_client(occasion, server, client)
    fetched: Fetched = yield post_form(url, {**parameters, **shown}, headers)
    if headers and discovery.POST in server.methods and quoted(fetched.json.get("error")) in CLIENT_GONE:
        _, shown = _show_client(occasion, server, replace(client, method=discovery.POST))
        fetched = yield post_form(url, {**parameters, **shown}, {})
    return fetched


def _show_client(
    occasion: Occasion, server: AuthorizationServer, client: OAuthClient
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers and the parameters that show who we are.

    Raises:
        SignInFailed: That takes a key, and it is of no use, or nobody has named it.
    """
    match client.method:
        case discovery.BASIC:
            pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, {}
        case discovery.POST:
            return {}, {"client_id": client.id, "client_secret": client.secret}
        case "private_key_jwt":
            kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            signed = sign_assertion(occasion, server, client.id)
            return {}, {"client_id": client.id, "client_assertion_type": kind, "client_assertion": signed}
        case _:
            return {}, {"client_id": client.id}


def sign_assertion(occasion: Occasion, server: AuthorizationServer, client_id: str) -> str:
    """Sign who we are: RFC 7523, 3.

    Raises:
        SignInFailed: The key is of no use.
    """
    from joserfc import jwt
    from joserfc.errors import JoseError

    path = occasion.settings.private_key_file
    if path is None:
        raise occasion.failure("its authorization server wants a signature, and --oauth-private-key-file is not given")
    written = read_secret(occasion, path)
    now = int(time.time())
    claims = {"iss": client_id, "sub": client_id, "aud": server.issuer, "iat": now, "exp": now + _ASSERTION_S}
    try:
        key = _import_key(written)
        algorithm = _choose_algorithm(key.as_dict(private=False), server.algorithms)
        header = {"alg": algorithm, **({"kid": key.kid} if key.kid else {})}
        return jwt.encode(header, {**claims, "jti": secrets.token_urlsafe(16)}, key, algorithms=[algorithm])
    except (JoseError, ValueError, TypeError) as error:
        raise occasion.failure(f"the private key in {path} cannot sign for it: {error}") from None


def _import_key(written: str) -> Any:
    """Read a private key, as JWK or PEM; what kind of key a PEM holds, its library wants to be told."""
    from joserfc import jwk
    from joserfc.errors import InvalidKeyTypeError

    if written.startswith("{"):
        value = json.loads(written)
        if value.get("kty") not in _KINDS:
            raise ValueError(_NO_KEY)
        return jwk.import_key(value)
    for kind in _KINDS:
        with contextlib.suppress(InvalidKeyTypeError):
            return jwk.import_key(written, kind)
    raise ValueError(_NO_KEY)


def _choose_algorithm(public: Mapping[str, Any], wanted: tuple[str, ...]) -> str:
    """Choose by what to sign, of what the key can and the server takes."""
    if public.get("kty") == "RSA":
        return next((one for one in _RSA_ALGORITHMS if one in wanted), _RSA_ALGORITHMS[0])
    return _ALGORITHMS[str(public.get("kty")), str(public.get("crv"))]
