"""What a user can decide about signing in. Values only."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from dragoman.options import Option
from dragoman_spec.record import record

if TYPE_CHECKING:
    from urllib.parse import SplitResult

Grant = Literal["authorization_code", "device_code", "client_credentials", "identity_assertion"]
GRANTS: Final[tuple[Grant, ...]] = get_args(Grant)

Store = Literal["file", "keyring"]
STORES: Final[tuple[Store, ...]] = get_args(Store)

Host = Literal["127.0.0.1", "localhost"]
HOSTS: Final[tuple[Host, ...]] = get_args(Host)


_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine."""
    return _split(url).hostname in _LOOPBACK


def is_safe(url: str) -> bool:
    """Whether what is sent to a URL is read by nobody else: it is one of TLS, or of this machine, and names a host.

    A URL that a terminal would obey, or take for two words, is not one.
    """
    try:
        parts = _split(url)
        is_private = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(url))
        return is_private and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        return False


def _split(url: str) -> SplitResult:
    from urllib.parse import urlsplit  # not before there is a URL: it is much to load at each start

    return urlsplit(url)


def as_resource(url: str) -> str:
    """Return the URL by which metadata and tokens name a server: RFC 9728, 1.2 knows none but those of HTTP."""
    return url.replace("ws", "http", 1) if url.startswith("ws") else url


@record
class SignInSettings:
    """How to sign in to one server. Files are read when they are needed.

    Attributes:
        grant: By which way.
        client_id: Who we are, if somebody has registered us; None to find out.
        client_secret_file: Holds the secret that goes with it.
        private_key_file: Holds a private key, as PEM or JWK, in the place of a secret.
        client_metadata_url: Where a document says who we are, for servers that read such.
        scope: What to ask for, with spaces between; None for what the server says.
        authorize_params: What else to say when a person is sent to sign in.
        redirect_host: How the page is called that a person comes back to.
        redirect_port: Its port; 0 for any that is free.
        redirect_url: A page of the proxy that people far away come to; None if who signs in sits here.
        names_resource: Whether requests name the server that the token is for.
        authorization_endpoint: Where a person signs in, if that is not to be found out.
        token_endpoint: Where tokens are given; both or neither.
        assertion_file: Holds what says who the user is, for `identity_assertion`.
        idp_token_endpoint: Where that is exchanged for what the server takes; None if it takes it as it is.
        idp_client_id: Who we are there.
        store: Where tokens are kept.
    """

    grant: Grant = "authorization_code"
    client_id: str | None = None
    client_secret_file: str | None = None
    private_key_file: str | None = None
    client_metadata_url: str | None = None
    scope: str | None = None
    authorize_params: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    redirect_host: Host = "127.0.0.1"
    redirect_port: int = 0
    redirect_url: str | None = None
    names_resource: bool = True
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    assertion_file: str | None = None
    idp_token_endpoint: str | None = None
    idp_client_id: str | None = None
    store: Store = "file"

    def find_fault(self) -> str:
        """Say which of these do not go together; empty if all do."""
        for option in OPTIONS:
            url = getattr(self, option.setting)
            if option.placeholder == "URL" and url is not None and not is_safe(url):
                return f"expected an https URL, found {url!r}"
        if self.redirect_url is not None:
            page = _split(self.redirect_url)
            if page.path in ("", "/") or page.query or page.fragment or page.username:
                return f"expected a URL with a path and nothing behind it, found {self.redirect_url!r}"
            if self.grant != "authorization_code":
                return f"the redirect URL means nothing to the grant {self.grant}"
        endpoints = self.authorization_endpoint, self.token_endpoint
        if any(endpoints) and not all(endpoints):
            return "the authorization endpoint and the token endpoint are given both or not at all"
        signs = self.private_key_file is not None and self.client_metadata_url is None
        if self.client_id is None and (self.client_secret_file or signs):
            return "a secret or a private key means nothing without a client id"
        if self.grant == "client_credentials" and not (self.client_secret_file or self.private_key_file):
            return "the grant client_credentials needs a client id, and its secret or private key"
        if self.grant == "identity_assertion" and not (self.client_id and self.assertion_file):
            return "the grant identity_assertion needs a client id and a file with the assertion"
        if self.store == "keyring":
            from importlib.util import find_spec

            if find_spec("keyring") is None:
                return "to keep tokens in the keyring takes a package: pip install 'dragoman[keyring]'"
        return ""

    @property
    def profile(self) -> tuple[str, ...]:
        """What tells the tokens of two uses of one server apart; not how a person was asked."""
        grant = "authorization_code" if self.grant == "device_code" else self.grant
        return grant, self.client_id or "", self.client_metadata_url or "", self.assertion_file or ""


DEFAULT: Final = SignInSettings()


def _option(
    field: str, kind: str | tuple[str, ...], about: str, placeholder: str = "", default: Any = None, note: str = ""
) -> Option:
    first, *rest = field.split("_")
    name = f"oauth-{field.removesuffix('s').replace('_', '-')}"
    key = first + "".join(word.title() for word in rest)
    return Option(name, kind, about, default, placeholder, note, dest=f"oauth_{field}", key=key, field=field)


OPTIONS: Final = (
    _option("grant", GRANTS, "how to get tokens", default=DEFAULT.grant, note="in a browser"),
    _option("client_id", "text", "our client id, if somebody has registered us there", "ID"),
    _option("client_secret_file", "file", "the secret that goes with it"),
    _option("private_key_file", "file", "a private key in its place, as PEM or JWK"),
    _option("client_metadata_url", "text", "our client metadata document, for servers that read such", "URL"),
    _option("scope", "text", "what to ask for, in place of what the server says", "SCOPES"),
    _option("authorize_params", "pairs", "a further parameter for its sign-in page", default=()),
    _option("redirect_host", HOSTS, "the host of the page that the browser returns to", default=DEFAULT.redirect_host),
    _option("redirect_port", "port", "its port, if only one is allowed (default: any)"),
    _option("redirect_url", "text", "a page of this proxy, for people far away: its public address and a path", "URL"),
    _option("authorization_endpoint", "text", "where people sign in, if the server does not say", "URL"),
    _option("token_endpoint", "text", "where tokens are issued, if the server does not say", "URL"),
    _option("assertion_file", "file", "the assertion that says who the user is, for identity_assertion"),
    _option("idp_token_endpoint", "text", "the identity provider that exchanges the assertion first", "URL"),
    _option("idp_client_id", "text", "our client id at the identity provider", "ID"),
    _option("store", STORES, "where tokens are kept", default=DEFAULT.store, note="which you alone can read"),
    Option(
        "no-oauth-resource",
        "switch",
        "do not say which server the token is for; some identity providers refuse that",
        False,
        key="resource",
        field="names_resource",
    ),
)
"""All that a command line or a configuration file may say; of the last, the key says the opposite of the flag."""
