"""What a user can decide about signing in. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

Grant = Literal["authorization_code", "device_code", "client_credentials", "identity_assertion"]
GRANTS: Final[tuple[Grant, ...]] = get_args(Grant)

Host = Literal["127.0.0.1", "localhost"]
HOSTS: Final[tuple[Host, ...]] = get_args(Host)


_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine."""
    return urlsplit(url).hostname in _LOOPBACK


def is_safe(url: str) -> bool:
    """Whether what is sent to a URL is read by nobody else: it is one of TLS, or of this machine, and names a host.

    A URL that a terminal would obey, or take for two words, is not one.
    """
    try:
        parts = urlsplit(url)
        is_private = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(url))
        return is_private and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
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
        names_resource: Whether requests name the server that the token is for.
        authorization_endpoint: Where a person signs in, if that is not to be found out.
        token_endpoint: Where tokens are given; both or neither.
        assertion_file: Holds what says who the user is, for `identity_assertion`.
        idp_token_endpoint: Where that is exchanged for what the server takes; None if it takes it as it is.
        idp_client_id: Who we are there.
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
    names_resource: bool = True
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    assertion_file: str | None = None
    idp_token_endpoint: str | None = None
    idp_client_id: str | None = None

    def find_fault(self) -> str:
        """Say which of these do not go together; empty if all do."""
        for option in OPTIONS:
            url = getattr(self, option.field)
            if option.kind == "url" and url is not None and not is_safe(url):
                return f"expected an https URL, found {url!r}"
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
        return ""

    @property
    def profile(self) -> tuple[str, ...]:
        """What tells the tokens of two uses of one server apart."""
        return self.grant, self.client_id or "", self.client_metadata_url or "", self.assertion_file or ""


DEFAULT: Final = SignInSettings()

Kind = Literal["text", "url", "file", "port", "pairs"] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingOption:
    """How one setting is written.

    Attributes:
        field: Of `SignInSettings`; the flag and the key of a configuration file are named after it.
        kind: What its value is, or the words that it may be.
        about: What it says.
        placeholder: What stands for it in the help.
    """

    field: str
    kind: Kind
    about: str
    placeholder: str = ""

    @property
    def key(self) -> str:
        """Its name in a configuration file."""
        first, *rest = self.field.split("_")
        return first + "".join(word.title() for word in rest)


OPTIONS: Final = (
    SettingOption("grant", GRANTS, "by which way tokens are got (default: authorization_code, in a browser)"),
    SettingOption("client_id", "text", "who we are there, if somebody has registered us", "ID"),
    SettingOption("client_secret_file", "file", "the secret that goes with it", "FILE"),
    SettingOption("private_key_file", "file", "a private key in its place, as PEM or JWK", "FILE"),
    SettingOption("client_metadata_url", "url", "the document that says who we are, where such are read", "URL"),
    SettingOption("scope", "text", "what to ask for, in place of what the server says", "SCOPES"),
    SettingOption("authorize_params", "pairs", "what else its sign-in page wants to be told", "NAME=VALUE"),
    SettingOption("redirect_host", HOSTS, "how the page is called that people come back to (default: 127.0.0.1)"),
    SettingOption("redirect_port", "port", "its port, if only one is allowed (default: any)", "PORT"),
    SettingOption("authorization_endpoint", "url", "where people sign in, if that cannot be found out", "URL"),
    SettingOption("token_endpoint", "url", "where tokens are given, the same", "URL"),
    SettingOption("assertion_file", "file", "what says who the user is, for identity_assertion", "FILE"),
    SettingOption("idp_token_endpoint", "url", "the identity provider that exchanges it first", "URL"),
    SettingOption("idp_client_id", "text", "who we are there", "ID"),
)
"""All that a command line or a configuration file may say, but for `names_resource`."""
