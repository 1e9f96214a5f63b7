"""One sign-in from its beginning to its end, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from dragoman.signin.discovery import AuthorizationServer, check_endpoint, discover, shorten
from dragoman.signin.grants import (
    PendingVisit,
    finish_visit,
    get_as_client,
    get_by_assertion,
    get_by_code,
    get_by_device,
)
from dragoman.signin.registration import OAuthClient, find_client
from dragoman.signin.tokens import CLIENT_GONE, UNREVOKED, GrantRefused, Tokens, ask_as_client, get_tokens
from dragoman.signin.wishes import Listen, Occasion, Routine


@dataclass(frozen=True, slots=True)
class SignedIn:
    """What came of a sign-in: tokens, and who gave them to whom."""

    server: AuthorizationServer
    client: OAuthClient
    tokens: Tokens


def sign_in(
    occasion: Occasion, kept: Mapping[str, OAuthClient], visit: PendingVisit | None = None, *, is_open: bool = False
) -> Routine[SignedIn]:
    """Sign in.

    Args:
        occasion: Why.
        kept: Who we were the last time to each authorization server, by its issuer.
        visit: Whom another process has sent to sign in, and does not wait for any more: they come to us instead, if we
            can have the page that they come back to.
        is_open: Whether they have their page before them; else it is shown again.

    Raises:
        SignInFailed: There are no tokens to be had.
    """
    if visit is not None and (yield Listen(visit.redirect_uri)) == visit.redirect_uri:
        tokens = yield from finish_visit(occasion, visit, is_open=is_open)
        return SignedIn(visit.server, visit.client, tokens)
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
    server, client, tokens = before.server, before.client, before.tokens
    asked = {"grant_type": "refresh_token", "refresh_token": tokens.refresh}
    return SignedIn(server, client, (yield from get_tokens(occasion, server, client, asked, tokens.requested, tokens)))


def revoke(occasion: Occasion, before: SignedIn) -> Routine[bool]:
    """Give tokens back; whether their authorization server takes them. RFC 7009.

    Raises:
        SignInFailed: It does not, although it should.
    """
    server, tokens = before.server, before.tokens
    check_endpoint(occasion, server.revocation_endpoint)
    if not server.revocation_endpoint:
        return False
    for kind, token in (("refresh_token", tokens.refresh), ("access_token", tokens.access)):
        if token:
            asked = {"token": token, "token_type_hint": kind}
            fetched = yield from ask_as_client(occasion, server, before.client, server.revocation_endpoint, asked)
            # RFC 7009, 2.2.1: a server need not know how to revoke access tokens.
            if fetched.status != HTTPStatus.OK and fetched.json.get("error") != UNREVOKED:
                name = shorten(server.issuer)
                raise occasion.failure(f"its authorization server {name} does not revoke it ({fetched.why})")
    return True


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
        tokens = yield from get_by_code(occasion, server, client, redirect_uri, scopes, client is before)
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
