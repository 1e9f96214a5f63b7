"""One sign-in from its beginning to its end, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dragoman.signin.discovery import AuthorizationServer, discover, shorten
from dragoman.signin.grants import get_as_client, get_by_assertion, get_by_code, get_by_device, refresh
from dragoman.signin.registration import OAuthClient, find_client
from dragoman.signin.tokens import GrantRefused, Tokens
from dragoman.signin.wishes import Listen, Occasion, Routine

CLIENT_GONE: Final = frozenset({"invalid_client", "unauthorized_client"})
"""What an authorization server says of a client that it does not know any more."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """What came of a sign-in: tokens, and who gave them to whom."""

    server: AuthorizationServer
    client: OAuthClient
    tokens: Tokens


def sign_in(occasion: Occasion, kept: Mapping[str, OAuthClient]) -> Routine[SignedIn]:
    """Sign in.

    Args:
        occasion: Why.
        kept: Who we were the last time to each authorization server, by its issuer.

    Raises:
        SignInFailed: There are no tokens to be had.
    """
    server = yield from discover(occasion)
    before = kept.get(server.issuer)
    _check_binding(occasion, server, kept)
    try:
        return (yield from _sign_in_as(occasion, server, before))
    except GrantRefused as error:
        if before is None or not before.is_registered or error.error not in CLIENT_GONE:
            raise
    return (yield from _sign_in_as(occasion, server, None))


def renew(occasion: Occasion, before: SignedIn) -> Routine[SignedIn]:
    """Get new tokens in the place of old ones, without asking anybody.

    Raises:
        GrantRefused: There are none.
    """
    tokens = yield from refresh(occasion, before.server, before.client, before.tokens)
    return SignedIn(before.server, before.client, tokens)


def choose_scopes(occasion: Occasion, server: AuthorizationServer) -> tuple[str, ...]:
    """Choose what to ask for.

    2026-07-28/basic/authorization, Scope Selection Strategy and Step-Up Authorization Flow: what the challenge names,
    else what the resource names, and what was asked for before. `offline_access` gets a refresh token from those who
    list it.
    """
    settings = occasion.settings
    wanted = (occasion.challenge.get("scope", "") if settings.scope is None else settings.scope).split()
    wanted = wanted or list(server.resource_scopes)
    if occasion.challenge.get("error") == "insufficient_scope":
        wanted = [*occasion.requested, *occasion.challenge.get("scope", "").split(), *wanted]
    if wanted and "offline_access" in server.scopes and settings.grant in ("authorization_code", "device_code"):
        wanted.append("offline_access")
    return tuple(dict.fromkeys(wanted))


def _sign_in_as(occasion: Occasion, server: AuthorizationServer, before: OAuthClient | None) -> Routine[SignedIn]:
    grant, scopes = occasion.settings.grant, choose_scopes(occasion, server)
    redirect_uri = ""
    if grant == "authorization_code":
        redirect_uri = yield Listen(before.redirect_uri if before else "")
    client = yield from find_client(occasion, server, before, redirect_uri, " ".join(scopes))
    if grant == "authorization_code":
        tokens = yield from get_by_code(occasion, server, client, redirect_uri, scopes)
    else:
        ways = {
            "device_code": get_by_device,
            "client_credentials": get_as_client,
            "identity_assertion": get_by_assertion,
        }
        tokens = yield from ways[grant](occasion, server, client, scopes)
    return SignedIn(server, client, tokens)


def _check_binding(occasion: Occasion, server: AuthorizationServer, kept: Mapping[str, OAuthClient]) -> None:
    """2026-07-28, Authorization Server Binding: who we are somewhere is nobody's business elsewhere."""
    ours = occasion.settings.client_id
    others = [issuer for issuer, client in kept.items() if client.id == ours and issuer != server.issuer]
    if ours is not None and others and server.issuer not in kept:
        raise occasion.failure(
            f"its authorization server was {shorten(others[0])} and is now {shorten(server.issuer)}, and the client id "
            "belongs to the old one; if that is right, `dragoman logout URL` forgets the old one"
        )
