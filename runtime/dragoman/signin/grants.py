"""One sign-in from its beginning to its end: the ways to get tokens, each a routine, and what is kept.

Sources: OAuth 2.1 for the code, with RFC 7636 (PKCE) and RFC 9207 (who answers); RFC 8628 for devices; the extensions
`oauth-client-credentials` and `enterprise-managed-authorization` of MCP, with RFC 8693 and RFC 7523.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, urlencode, urlsplit

from dragoman.errors import SignInFailed, TransportError
from dragoman.signin.discovery import (
    AuthorizationServer,
    OAuthClient,
    UnregisteredError,
    check_endpoint,
    discover,
    find_client,
    find_issuer,
    read_secret,
    registers,
    shorten,
)
from dragoman.signin.tokens import (
    CLIENT_GONE,
    PASSING,
    SLOW_DOWN,
    UNREVOKED,
    GrantRefused,
    Tokens,
    ask_as_client,
    get_tokens,
)
from dragoman.signin.wishes import (
    Fetch,
    Fetched,
    Keep,
    Listen,
    Occasion,
    OpenPage,
    Routine,
    ShowCode,
    Sleep,
    censored,
    post_form,
    quoted,
    seconds,
    text,
)

logger = logging.getLogger("dragoman.signin")

_URN: Final = "urn:ietf:params:oauth"
_DEVICE_CODE: Final = f"{_URN}:grant-type:device_code"
_REFUSALS: Final = (400, 401)
"""How an authorization endpoint answers to a client that it does not know; it sends others on, or shows a page."""

_DEVICE_INTERVAL_S: Final = 5.0
_DEVICE_S: Final = 600.0
_SHORTEST_INTERVAL_S: Final = 1.0
_LONGEST_INTERVAL_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class PendingVisit:
    """A person who was sent to sign in, and what is needed when they come back.

    Attributes:
        server: Where to.
        client: Who we are there.
        redirect_uri: Where they come back to.
        url: Of the page.
        state: What they bring back.
        verifier: What shows that it is us who sent them.
        scopes: What was asked for.
        at: When, in seconds since the epoch.
    """

    server: AuthorizationServer
    client: OAuthClient
    redirect_uri: str
    url: str = field(repr=False)
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    scopes: tuple[str, ...]
    at: float


def get_by_code(
    occasion: Occasion,
    server: AuthorizationServer,
    client: OAuthClient,
    redirect_uri: str,
    scopes: tuple[str, ...],
    is_kept: bool,
) -> Routine[Tokens]:
    """Send a person to sign in, and trade the code that they bring back.

    Args:
        occasion: Why.
        server: Where to.
        client: Who we are there.
        redirect_uri: Where they come back to.
        scopes: What to ask for.
        is_kept: Whether we have registered a while ago.

    Raises:
        SignInFailed: They did not, or what they bring is not to be trusted.
    """
    visit = _plan_visit(occasion, server, client, redirect_uri, scopes)
    if client.is_registered and is_kept and (yield from _is_forgotten(visit)):
        reason = f"its authorization server {shorten(server.issuer)} does not know us any more"
        raise GrantRefused(occasion.peer, reason, "invalid_client")
    yield Keep(visit)
    return (yield from finish_visit(occasion, visit, is_open=False))


def _plan_visit(
    occasion: Occasion, server: AuthorizationServer, client: OAuthClient, redirect_uri: str, scopes: tuple[str, ...]
) -> PendingVisit:
    state, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    asked = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
        **({"scope": " ".join(scopes)} if scopes else {}),
        **({"resource": server.resource} if server.resource is not None else {}),
        # OpenID Connect Core 1.0, 11: without it, the server MUST ignore the scope that gets a refresh token.
        **({"prompt": "consent"} if "offline_access" in scopes else {}),
        **dict(occasion.settings.authorize_params),
    }
    joint = "&" if "?" in server.authorization_endpoint else "?"
    url = f"{server.authorization_endpoint}{joint}{urlencode(asked)}"
    return PendingVisit(server, client, redirect_uri, url, state, verifier, scopes, time.time())


def _is_forgotten(visit: PendingVisit) -> Routine[bool]:
    """Whether a person would find an error instead of the page, since the client is not known there any more.

    OAuth 2.1, 4.1.2.1: whoever brings an unknown client is not sent back to us, so we would wait for nobody.
    """
    try:
        fetched: Fetched = yield Fetch("GET", visit.url, {"Accept": "text/html"})
    except TransportError:
        return False  # a browser may get there all the same
    errors = parse_qs(urlsplit(fetched.location).query).get("error", [])
    return fetched.status in _REFUSALS or not CLIENT_GONE.isdisjoint(errors)


def finish_visit(occasion: Occasion, visit: PendingVisit, *, is_open: bool) -> Routine[Tokens]:
    """Wait for a person, and trade the code that they bring back.

    Args:
        occasion: Why they were sent.
        visit: What is needed.
        is_open: Whether they have the page before them already.

    Raises:
        SignInFailed: They did not come, or what they bring is not to be trusted.
    """
    answer = yield OpenPage(visit.url, visit.state, is_open)
    trade = {
        "grant_type": "authorization_code",
        "code": read_code(occasion, visit.server, visit.state, answer),
        "redirect_uri": visit.redirect_uri,
        "code_verifier": visit.verifier,
    }
    return (yield from get_tokens(occasion, visit.server, visit.client, trade, visit.scopes))


def read_code(occasion: Occasion, server: AuthorizationServer, state: str, answer: Mapping[str, str]) -> str:
    """Read what a person brings back.

    2026-07-28/basic/authorization, Authorization Response Validation: on a mismatch of the issuer "the client MUST NOT
    act on or display `error`, `error_description`, or `error_uri`".

    Raises:
        SignInFailed: It comes from somebody else, or is no code.
    """
    issuer = answer.get("iss")
    if not secrets.compare_digest(answer.get("state", "").encode(), state.encode()):
        raise occasion.failure("the answer of its authorization server belongs to another sign-in, and is not used")
    if issuer is None and server.names_itself:
        raise occasion.failure("the answer of its authorization server does not say who gives it, and is not used")
    expected = server.answers_as or server.issuer
    if issuer is not None and issuer != expected:
        raise occasion.failure(
            f"the answer comes from another authorization server than {shorten(expected)}, and is not used"
        )
    if "error" in answer:
        why = quoted(answer["error"])
        if about := censored(answer.get("error_description"), (state,)):
            logger.warning("%s: its authorization server refuses the sign-in: %s: %s", occasion.peer, why, about)
        raise GrantRefused(occasion.peer, f"the sign-in was refused ({why})", why)
    if not answer.get("code"):
        raise occasion.failure("the answer of its authorization server holds no code")
    return answer["code"]


def get_as_client(
    occasion: Occasion, server: AuthorizationServer, client: OAuthClient, scopes: tuple[str, ...]
) -> Routine[Tokens]:
    """Get tokens for ourselves: nobody is asked.

    Raises:
        GrantRefused: There are none.
    """
    asked = {"grant_type": "client_credentials", **({"scope": " ".join(scopes)} if scopes else {})}
    return (yield from get_tokens(occasion, server, client, asked, scopes))


def get_by_assertion(
    occasion: Occasion, server: AuthorizationServer, client: OAuthClient, scopes: tuple[str, ...]
) -> Routine[Tokens]:
    """Get tokens for what says who the user is.

    Raises:
        SignInFailed: There are none.
    """
    settings = occasion.settings
    assert settings.assertion_file is not None
    assertion = read_secret(occasion, settings.assertion_file)
    scope = {"scope": " ".join(scopes)} if scopes else {}
    if settings.idp_token_endpoint is not None:
        exchange = {
            "grant_type": f"{_URN}:grant-type:token-exchange",
            "requested_token_type": f"{_URN}:token-type:id-jag",
            "subject_token": assertion,
            "subject_token_type": f"{_URN}:token-type:id_token",
            "audience": server.issuer,
            "resource": server.resource or occasion.url,
            **scope,
            **({"client_id": settings.idp_client_id} if settings.idp_client_id is not None else {}),
        }
        fetched: Fetched = yield post_form(settings.idp_token_endpoint, exchange, {})
        assertion = text(fetched.json.get("access_token")) if fetched.status == 200 else ""
        if not assertion:
            raise occasion.failure(f"the identity provider gives nothing for it ({fetched.why})")
    asked = {"grant_type": f"{_URN}:grant-type:jwt-bearer", "assertion": assertion, **scope}
    return (yield from get_tokens(occasion, server, client, asked, scopes))


def get_by_device(
    occasion: Occasion, server: AuthorizationServer, client: OAuthClient, scopes: tuple[str, ...]
) -> Routine[Tokens]:
    """Ask a person to type a code elsewhere, and ask for the tokens until they have.

    Raises:
        SignInFailed: They did not, or it cannot be done.
    """
    if not server.device_endpoint:
        raise occasion.failure(f"its authorization server {shorten(server.issuer)} knows no sign-in by device code")
    target = {"resource": server.resource} if server.resource is not None else {}
    scope = {"scope": " ".join(scopes)} if scopes else {}
    fetched: Fetched = yield post_form(server.device_endpoint, {"client_id": client.id, **scope, **target}, {})
    said = fetched.json
    code, page = text(said.get("user_code")), text(said.get("verification_uri"))
    if fetched.status != 200 or not code or not page or not text(said.get("device_code")):
        reason = f"its authorization server {shorten(server.issuer)} gives no device code ({fetched.why})"
        raise GrantRefused(occasion.peer, reason, quoted(said.get("error")))
    complete_url = text(said.get("verification_uri_complete"))
    check_endpoint(occasion, page)
    check_endpoint(occasion, complete_url)
    yield ShowCode(page, quoted(code), complete_url)
    asked = {"grant_type": _DEVICE_CODE, "device_code": text(said["device_code"])}
    interval_s = seconds(said.get("interval")) or _DEVICE_INTERVAL_S
    left_s = min(seconds(said.get("expires_in")) or _DEVICE_S, _DEVICE_S)
    while left_s > 0:
        interval_s = min(max(interval_s, _SHORTEST_INTERVAL_S), _LONGEST_INTERVAL_S)
        yield Sleep(interval_s)
        left_s -= interval_s
        try:
            return (yield from get_tokens(occasion, server, client, asked, scopes))
        except GrantRefused as error:
            if error.error == SLOW_DOWN:
                interval_s += _DEVICE_INTERVAL_S
            elif error.error not in PASSING:
                raise
        except SignInFailed:
            raise
        except TransportError as error:
            logger.info("%s, while somebody types a code; asked again in a while", error)
            interval_s *= 2  # RFC 8628, 3.5
    raise occasion.failure("nobody has typed the code in time")


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
        SignInFailed: There are none, or their authorization server is away, and the server names another one by now.
    """
    server, client, tokens = before.server, before.client, before.tokens
    asked = {"grant_type": "refresh_token", "refresh_token": tokens.refresh}
    try:
        found = yield from get_tokens(occasion, server, client, asked, tokens.requested, tokens)
    except SignInFailed:
        raise
    except TransportError as error:
        issuer = yield from find_issuer(occasion)
        if not issuer or issuer.rstrip("/") == server.issuer.rstrip("/"):
            raise
        reason = f"its authorization server is {shorten(issuer)} by now, and the old one is away: {error.reason}"
        raise occasion.failure(reason) from None
    return SignedIn(server, client, found)


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
    redirect_uri, own, known = "", _own_part(occasion, server), before.redirect_uri if before else ""
    if grant == "authorization_code":
        redirect_uri = yield Listen(known, own)
    try:
        client = yield from find_client(occasion, server, before, redirect_uri, " ".join(scopes))
    except UnregisteredError:
        if not own or not redirect_uri.endswith(own):
            raise
        redirect_uri = yield Listen(known, "")  # it may take certain addresses alone
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


def _own_part(occasion: Occasion, server: AuthorizationServer) -> str:
    """Return what the page has in its address that people come back to from this authorization server alone.

    Another one could send them on to it, as if we had, and would get the code that they bring (RFC 9700, 4.4). Whoever
    says who it is when they come back is known by that; whom somebody has registered for us has one address.
    """
    if server.names_itself or not registers(occasion, server):
        return ""
    return "/" + hashlib.sha256(server.issuer.encode()).hexdigest()[:16]


def _check_binding(occasion: Occasion, server: AuthorizationServer, kept: Mapping[str, OAuthClient]) -> None:
    """2026-07-28, Authorization Server Binding: who we are somewhere is nobody's business elsewhere."""
    ours = occasion.settings.client_id
    others = [issuer for issuer, client in kept.items() if client.id == ours and issuer != server.issuer]
    if ours is not None and others and server.issuer not in kept:
        raise occasion.failure(
            f"its authorization server was {shorten(others[0])} and is now {shorten(server.issuer)}, and the client id "
            "belongs to the old one; if that is right, `dragoman logout URL` forgets the old one"
        )
