"""Who we are to an authorization server.

Sources: 2026-07-28/basic/authorization/client-registration for the order; RFC 7591 for registration.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from dragoman.signin.discovery import AuthorizationServer, shorten
from dragoman.signin.settings import is_loopback
from dragoman.signin.wishes import Fetch, Fetched, Occasion, Routine, text

_NAME: Final = "Dragoman"
BASIC: Final = "client_secret_basic"
POST: Final = "client_secret_post"
_SECRET_METHODS: Final = (POST, BASIC)
"""By which a secret is shown, in the order in which we register for them: of those who offer both, some do not find in
the header who we are (MCP's Python SDK looks in the body alone)."""

_KINDS: Final = {"Content-Type": "application/json", "Accept": "application/json"}


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """Who we are to one authorization server.

    Attributes:
        id: What it calls us.
        secret: What shows that it is us; empty if nothing does.
        method: How that is shown: a value of `token_endpoint_auth_method`.
        redirect_uri: Where it sends people back to, if we registered for one.
        is_registered: Whether we have registered ourselves, and may do so again.
        scope: What we said then that we would ask for, with spaces between.
    """

    id: str
    secret: str = field(default="", repr=False)
    method: str = "none"
    redirect_uri: str = ""
    is_registered: bool = False
    scope: str = ""


def find_client(
    occasion: Occasion, server: AuthorizationServer, kept: OAuthClient | None, redirect_uri: str, scope: str
) -> Routine[OAuthClient]:
    """Return who we are to an authorization server; register where nobody has done that.

    Args:
        occasion: Why.
        server: The authorization server.
        kept: Who we were the last time.
        redirect_uri: Where people are to come back to; empty if nobody is asked.
        scope: What will be asked for.

    Raises:
        SignInFailed: It does not know us.
    """
    settings = occasion.settings
    if settings.client_id is not None:
        secret = "" if settings.client_secret_file is None else read_secret(occasion, settings.client_secret_file)
        # RFC 7591, 2: a client that was registered without a word about it uses the header.
        method = _choose_method(occasion, server, secret, (BASIC, POST))
        return OAuthClient(settings.client_id, secret, method)
    if settings.client_metadata_url is not None and server.reads_documents:
        method = "none" if settings.private_key_file is None else "private_key_jwt"
        return OAuthClient(settings.client_metadata_url, method=method)
    # RFC 7591, 2: `scope` is what "the client can use", so who needs more registers again.
    may_ask = kept is not None and set(scope.split()) <= set(kept.scope.split())
    if kept is not None and kept.is_registered and kept.redirect_uri == redirect_uri and may_ask:
        return kept
    if not server.registration_endpoint:
        raise occasion.failure(
            f"its authorization server {shorten(server.issuer)} takes no client that it does not know: register one "
            "there, and say --oauth-client-id"
        )
    return (yield from _register(occasion, server, redirect_uri, scope))


def _register(occasion: Occasion, server: AuthorizationServer, redirect_uri: str, scope: str) -> Routine[OAuthClient]:
    needs_secret = server.methods and "none" not in server.methods
    device = "urn:ietf:params:oauth:grant-type:device_code"
    grants = ["authorization_code"] if redirect_uri else [device]
    asked: dict[str, object] = {
        "client_name": _NAME,
        # 2026-07-28, client-registration: who is sent back to a host on the network is not "native".
        "application_type": "web" if redirect_uri and not is_loopback(redirect_uri) else "native",
        "grant_types": [*grants, "refresh_token"],
        "redirect_uris": [redirect_uri] if redirect_uri else [],
        "response_types": ["code"] if redirect_uri else [],
        "token_endpoint_auth_method": _choose_method(occasion, server, "?" if needs_secret else ""),
    }
    if scope:
        asked["scope"] = scope
    fetched: Fetched = yield Fetch("POST", server.registration_endpoint, _KINDS, json.dumps(asked).encode())
    said = fetched.json
    client_id, secret = text(said.get("client_id")), text(said.get("client_secret"))
    if fetched.status not in (200, 201) or not client_id:
        raise occasion.failure(
            f"its authorization server {shorten(server.issuer)} does not let us register ({fetched.why}): register a "
            "client there, and say --oauth-client-id; or send credentials of another kind with --header"
        )
    method = text(said.get("token_endpoint_auth_method"))
    if method not in ("none", *_SECRET_METHODS):
        method = _choose_method(occasion, server, secret)
    return OAuthClient(client_id, secret, method, redirect_uri, is_registered=True, scope=scope)


def _choose_method(
    occasion: Occasion, server: AuthorizationServer, secret: str, liked: tuple[str, ...] = _SECRET_METHODS
) -> str:
    """Say how a client shows that it is itself: as the server wants it, of what the client has."""
    if occasion.settings.private_key_file is not None:
        return "private_key_jwt"
    if not secret:
        return "none"
    likely = [method for method in liked if method in server.methods]
    # RFC 8414, 2: "If omitted, the default is client_secret_basic".
    return likely[0] if likely else "none" if "none" in server.methods else BASIC


def read_secret(occasion: Occasion, path: str) -> str:
    """Read a file that holds a secret.

    Raises:
        SignInFailed: It cannot be read, or holds nothing.
    """
    from dragoman.transports.live_values import fill_in

    try:
        return fill_in(f"${{file:{path}}}", {})
    except ValueError as error:
        raise occasion.failure(str(error)) from None
