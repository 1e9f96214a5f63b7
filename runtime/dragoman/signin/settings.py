"""What a user can decide about signing in. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

Grant = Literal["authorization_code", "device_code", "client_credentials", "identity_assertion"]
GRANTS: Final[tuple[Grant, ...]] = get_args(Grant)

Host = Literal["127.0.0.1", "localhost"]
HOSTS: Final[tuple[Host, ...]] = get_args(Host)


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
        opens_browser: Whether a person may be asked by opening a page.
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
    opens_browser: bool = True

    @property
    def profile(self) -> tuple[str, ...]:
        """What tells the tokens of two uses of one server apart."""
        return self.grant, self.client_id or "", self.client_metadata_url or "", self.assertion_file or ""


DEFAULT: Final = SignInSettings()
