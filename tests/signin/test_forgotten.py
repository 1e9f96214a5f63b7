"""Clients that an authorization server does not know any more, or does not find where we name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import SignInFailed, TransportError
from dragoman.signin.discovery import OAuthClient
from dragoman.signin.grants import revoke, sign_in
from dragoman.signin.wishes import Fetch, Fetched
from tests.signin.web import ISSUER, REDIRECT, Web, form, metadata, occasion, token, whole

TOKEN, REGISTER, REVOKE = f"{ISSUER}/token", f"{ISSUER}/register", f"{ISSUER}/revoke"
SAID = f"{ISSUER}/.well-known/oauth-authorization-server"
KEPT = {ISSUER: OAuthClient("old", redirect_uri=REDIRECT, is_registered=True)}
BOTH = ["client_secret_post", "client_secret_basic"]


class Browsed(Web):
    """A web whose authorization endpoint answers to what we ask of it ourselves."""

    front: Fetched | TransportError = Fetched(302)

    def grant(self, wish: Any) -> Any:
        if isinstance(wish, Fetch) and wish.url.startswith(f"{ISSUER}/authorize?"):
            self.asked.append(wish)
            if isinstance(self.front, TransportError):
                raise self.front
            return self.front
        return super().grant(wish)


@pytest.mark.parametrize(
    ("front", "client"),
    [
        (Fetched(200, b"<h1>Sign in</h1>"), "old"),
        (Fetched(302, location="https://auth.example/login?next=/"), "old"),
        (Fetched(302, location=f"{REDIRECT}?error=login_required"), "old"),
        (Fetched(403), "old"),  # programs are not let in there
        (Fetched(503), "old"),
        (TransportError("auth.example", "it cannot be reached"), "old"),
        (Fetched(400, b'{"error": "invalid_request", "error_description": "Client ID not found"}'), "client-1"),
        (Fetched(401), "client-1"),
        (Fetched(302, location="https://auth.example/error?error=invalid_client"), "client-1"),
    ],
)
def test_no_person_is_sent_to_a_page_that_knows_nobody(front: Fetched | TransportError, client: str) -> None:
    web = Browsed(whole().pages)
    web.front = front
    found = web.run(sign_in(occasion(), KEPT))
    assert found.client.id == client
    (visit,) = web.visits
    assert visit["client_id"] == client


def test_who_has_just_registered_is_not_asked_for() -> None:
    web = Browsed(whole().pages)
    web.front = Fetched(400)
    assert web.run(sign_in(occasion(), {})).client.id == "client-1"
    assert web.urls[-2:] == [REGISTER, TOKEN]


def test_a_client_that_is_forgotten_registers_again_for_a_device_code() -> None:
    def device(asked: Fetch) -> Any:
        if form(asked)["client_id"] == "old":
            return 401, {"error": "invalid_client"}
        return {"device_code": "d", "user_code": "u", "verification_uri": f"{ISSUER}/device"}

    at = f"{ISSUER}/device_authorization"
    web = whole(**{SAID: metadata(device_authorization_endpoint=at), at: device})
    kept = {ISSUER: OAuthClient("old", is_registered=True)}
    assert web.run(sign_in(occasion(grant="device_code"), kept)).client.id == "client-1"


def in_the_body_alone(asked: Fetch) -> Any:
    """What servers of the official Python SDK say."""
    if form(asked).get("client_id"):
        return token(refresh_token="refresh-1")
    return 401, {"error": "invalid_client", "error_description": "Missing client_id"}


def test_a_client_that_somebody_registered_is_shown_in_the_body_if_it_is_not_found_in_the_header(
    tmp_path: Path,
) -> None:
    (tmp_path / "secret").write_text("s3cret")
    methods = {"token_endpoint_auth_methods_supported": BOTH, "revocation_endpoint": REVOKE}
    web = whole(**{SAID: metadata(**methods), TOKEN: in_the_body_alone, REVOKE: in_the_body_alone})
    about: Any = {
        "grant": "client_credentials",
        "client_id": "me",
        "client_secret_file": str(tmp_path / "secret"),
    }
    found = web.run(sign_in(occasion(**about), {}))
    assert found.tokens.access == "access-1"
    header, body = [asked for asked in web.asked if asked.url == TOKEN]
    assert ("Authorization" in header.headers, "client_secret" in form(header)) == (True, False)
    assert ("Authorization" in body.headers, form(body)["client_secret"]) == (False, "s3cret")
    assert web.run(revoke(occasion(**about), found))


def test_where_the_body_is_not_offered_the_secret_is_not_put_there(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    said = metadata(token_endpoint_auth_methods_supported=["client_secret_basic"])
    web = whole(**{SAID: said, TOKEN: in_the_body_alone})
    about: Any = {
        "grant": "client_credentials",
        "client_id": "me",
        "client_secret_file": str(tmp_path / "secret"),
    }
    with pytest.raises(SignInFailed):
        web.run(sign_in(occasion(**about), {}))
    assert "s3cret" not in str([asked.body for asked in web.asked])
