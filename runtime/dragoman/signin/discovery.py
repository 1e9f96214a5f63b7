"""Where a server's tokens come from, and who we are there.

Lives here: what the server says in `WWW-Authenticate`, the protected resource's metadata, its authorization server's,
and our registration there. Sources: RFC 9110, 11.6.1; RFC 6750, 3; RFC 9728; RFC 8414; OpenID Connect Discovery 1.0;
RFC 7591; and the pages on authorization of each revision (2026-07-28/basic/authorization/client-registration for the
order). What a server publishes is looked for in the way of every revision, the newest first; what is refused depends on
the revision (`Occasion.demands`).
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from dragoman.errors import SignInFailed, TransportError
from dragoman.signin.settings import is_loopback, is_safe
from dragoman.signin.wishes import Fetch, Fetched, Occasion, Routine, text, words
from dragoman_spec import REVISIONS, facts

_RESOURCE: Final = "/.well-known/oauth-protected-resource"
_SERVER: Final = "/.well-known/oauth-authorization-server"
_OPENID: Final = "/.well-known/openid-configuration"
_JSON: Final = {"Accept": "application/json"}
_PKCE: Final = "S256"

BEFORE_METADATA: Final = next(
    demands for demands in (facts(revision).authorization for revision in REVISIONS) if "default-endpoints" in demands
)
"""What is demanded where no metadata says which authorization server a server has."""


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """What is known of an authorization server, and of the resource that it is asked for.

    Attributes:
        issuer: Its name: what it was asked by, and who we are to it is kept by.
        authorization_endpoint: Where people sign in.
        token_endpoint: Where tokens are given.
        registration_endpoint: Where clients register; empty if they cannot.
        device_endpoint: Where devices ask for a code; empty if they cannot.
        revocation_endpoint: Where tokens are given back; empty if they cannot.
        methods: How clients may say who they are; empty if that is not said.
        algorithms: By which they may sign that.
        scopes: What it knows to give.
        reads_documents: Whether a URL may be a client's id.
        names_itself: Whether it says who it is when a person comes back (RFC 9207).
        answers_as: What it says then; empty if that is its name.
        resource: What a token is for, as the resource calls itself; None where that is not said to it.
        resource_scopes: What the resource says that it needs.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    device_endpoint: str = ""
    revocation_endpoint: str = ""
    methods: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    reads_documents: bool = False
    names_itself: bool = False
    answers_as: str = ""
    resource: str | None = None
    resource_scopes: tuple[str, ...] = ()


def discover(occasion: Occasion) -> Routine[AuthorizationServer]:
    """Find the authorization server of a server.

    Raises:
        SignInFailed: There is none, or it must not be used.
    """
    settings = occasion.settings
    published = yield from _find_resource(occasion)
    resource, resource_scopes = None, words(published.get("scopes_supported"))
    if published:
        issuer = words(published["authorization_servers"])[0]
    else:
        issuer = origin(occasion.url)
        occasion = replace(occasion, demands=BEFORE_METADATA)
    if settings.names_resource and "resource-indicator" in occasion.demands:
        resource = text(published.get("resource")) or occasion.url
    if settings.authorization_endpoint and settings.token_endpoint:
        found = AuthorizationServer(issuer, settings.authorization_endpoint, settings.token_endpoint)
    else:
        found = yield from _find_server(occasion, issuer, is_named=bool(published))
    for endpoint in (
        found.authorization_endpoint,
        found.token_endpoint,
        found.registration_endpoint,
        found.device_endpoint,
    ):
        check_endpoint(occasion, endpoint)
    return replace(found, resource=resource, resource_scopes=resource_scopes)


def find_issuer(occasion: Occasion) -> Routine[str]:
    """Find out which authorization server a server names; empty where it names none, or cannot be asked."""
    with contextlib.suppress(TransportError):
        return next(iter(words((yield from _find_resource(occasion)).get("authorization_servers"))), "")
    return ""


def origin(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _find_resource(occasion: Occasion) -> Routine[Mapping[str, Any]]:
    """Return what the server publishes of itself; nothing where it does not."""
    path = urlsplit(occasion.url).path.rstrip("/")
    base = f"{origin(occasion.url)}{_RESOURCE}"
    for url in dict.fromkeys([occasion.challenge.get("resource_metadata", ""), base + path, base]):
        if not url:
            continue
        check_endpoint(occasion, url)
        fetched: Fetched = yield Fetch("GET", url, _JSON)
        found = fetched.json if fetched.status == 200 else {}
        if words(found.get("authorization_servers")):
            _check_resource(occasion, text(found.get("resource")))
            return found
    return {}


def _check_resource(occasion: Occasion, resource: str) -> None:
    """RFC 9728, 3.3: metadata of another resource must not be used. One may stand for all that is below its path."""
    ours, theirs = urlsplit(occasion.url), urlsplit(resource or occasion.url)
    same = (ours.scheme, _authority(occasion.url)) == (theirs.scheme.lower(), _authority(resource or occasion.url))
    if not same or not f"{ours.path.rstrip('/')}/".startswith(f"{theirs.path.rstrip('/')}/"):
        raise occasion.failure(f"its metadata is that of another resource, {shorten(resource)}, and is not used")


def _authority(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url)
    return (parts.hostname or "").rstrip("."), parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _find_server(occasion: Occasion, issuer: str, is_named: bool) -> Routine[AuthorizationServer]:
    check_endpoint(occasion, issuer)
    for url in list_places(issuer):
        fetched: Fetched = yield Fetch("GET", url, _JSON)
        found = fetched.json if fetched.status == 200 else {}
        if text(found.get("token_endpoint")):
            return _read_server(occasion, issuer, found, is_named)
    if "default-endpoints" in occasion.demands:
        return AuthorizationServer(issuer, f"{issuer}/authorize", f"{issuer}/token", f"{issuer}/register")
    raise occasion.failure(f"its authorization server {shorten(issuer)} publishes no metadata")


def list_places(issuer: str) -> list[str]:
    """Return where the metadata of an authorization server may be, in the order to look."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    start = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    if not path:
        return [start + _SERVER, start + _OPENID]
    return [start + _SERVER + path, start + _OPENID + path, start + path + _OPENID]


def _read_server(occasion: Occasion, issuer: str, found: Mapping[str, Any], is_named: bool) -> AuthorizationServer:
    """Read the metadata of an authorization server.

    RFC 8414, 3.3: what names another issuer than the one asked "MUST NOT be used". Where only the origin of the server
    could be asked, it may pass on the words of somebody else; that does not make it somebody whom we know already.
    """
    named = text(found.get("issuer"))
    # A slash at the end is what libraries of URLs add and take away; it cannot make it somebody else.
    is_same = named.rstrip("/") == issuer.rstrip("/")
    if is_named and not is_same:
        raise occasion.failure(
            f"the metadata of its authorization server {shorten(issuer)} names another issuer, {shorten(named)}, "
            "and is not used"
        )
    needs_pkce = "announced-pkce" in occasion.demands and occasion.settings.grant == "authorization_code"
    if needs_pkce and _PKCE not in words(found.get("code_challenge_methods_supported")):
        raise occasion.failure(
            f"its authorization server {shorten(issuer)} does not say that it knows PKCE with {_PKCE}; if it does, "
            "--oauth-authorization-endpoint and --oauth-token-endpoint name it all the same"
        )
    return AuthorizationServer(
        issuer=named if is_same else issuer,
        answers_as="" if is_same else named,
        authorization_endpoint=text(found.get("authorization_endpoint")),
        token_endpoint=text(found.get("token_endpoint")),
        registration_endpoint=text(found.get("registration_endpoint")),
        device_endpoint=text(found.get("device_authorization_endpoint")),
        revocation_endpoint=text(found.get("revocation_endpoint")),
        methods=words(found.get("token_endpoint_auth_methods_supported")),
        algorithms=words(found.get("token_endpoint_auth_signing_alg_values_supported")),
        scopes=words(found.get("scopes_supported")),
        reads_documents=found.get("client_id_metadata_document_supported") is True,
        names_itself=found.get("authorization_response_iss_parameter_supported") is True,
    )


def check_endpoint(occasion: Occasion, url: str) -> None:
    """2025-11-25, Communication Security: "All authorization server endpoints MUST be served over HTTPS".

    Raises:
        SignInFailed: This one is not.
    """
    if url and not (
        is_safe(url) and (not is_loopback(url) or is_loopback(occasion.url)) and not urlsplit(url).username
    ):
        raise occasion.failure(f"it leads to {shorten(url)} to sign in, which is not an https URL")


def shorten(url: str) -> str:
    """Return a URL that somebody else wrote, for a person: without query, in what can be printed, not long."""
    said = url[:1000].partition("?")[0]
    return "".join(char for char in said if char.isprintable() and char != " ")[:120] or "(nothing)"


_PART: Final = re.compile(
    r"""(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s,"]*)))?"""
)  # what stands between parts is not in it: a search for where it ends would begin anew at each comma


def read_bearer(header: str) -> dict[str, str] | None:
    """Return the parameters of the challenge that asks for a bearer token; None where there is no such challenge.

    A header that is not there asks for a token, too: it "MAY" say where one is got.
    """
    if not header.strip():
        return {}
    found: dict[str, str] | None = None
    is_ours = False
    for part in _PART.finditer(header):
        name, value = part["name"].lower(), part["quoted"] if part["quoted"] is not None else part["plain"]
        if value is None:
            is_ours = name == "bearer" and found is None
            found = {} if is_ours else found
        elif is_ours and found is not None:
            found.setdefault(name, re.sub(r"\\(.)", r"\1", value))
    return found


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


class UnregisteredError(SignInFailed):
    """An authorization server does not take us as we are."""


def registers(occasion: Occasion, server: AuthorizationServer) -> bool:
    """Whether we are to an authorization server what it makes of us, and nobody has said who we are."""
    settings = occasion.settings
    return settings.client_id is None and not (settings.client_metadata_url is not None and server.reads_documents)


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
        raise UnregisteredError(
            occasion.peer,
            f"its authorization server {shorten(server.issuer)} does not let us register ({fetched.why}): register a "
            "client there, and say --oauth-client-id; or send credentials of another kind with --header",
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
