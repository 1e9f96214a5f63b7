"""Whole sign-ins: who we are, what is asked for, and what comes of it."""

from __future__ import annotations

import base64
import hashlib
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from dragoman.errors import SignInFailed, TransportError
from dragoman.signin.discovery import OAuthClient
from dragoman.signin.grants import SignedIn, renew, revoke, sign_in
from dragoman.signin.wishes import Fetch
from dragoman_spec import REVISIONS, facts
from tests.signin.web import BACK, ISSUER, REDIRECT, SERVER, Web, form, metadata, occasion, resource, token, whole

TOKEN = f"{ISSUER}/token"
REGISTER = f"{ISSUER}/register"
SAID = f"{ISSUER}/.well-known/oauth-authorization-server"
RESOURCE = "https://mcp.example/.well-known/oauth-protected-resource/team/mcp"
ECHO = object()


def signed_in(web: Web, kept: dict[str, OAuthClient] | None = None, **about: Any) -> SignedIn:
    return web.run(sign_in(occasion(**about), kept or {}))


def refused(web: Web, kept: dict[str, OAuthClient] | None = None, **about: Any) -> str:
    with pytest.raises(SignInFailed) as failed:
        signed_in(web, kept, **about)
    return str(failed.value)


def basic(fetch: Fetch) -> str:
    return base64.b64decode(fetch.headers["Authorization"].removeprefix("Basic ")).decode()


def test_a_person_signs_in() -> None:
    web = whole()
    found = signed_in(web, challenge={"scope": "read"})
    (visit,), (trade,) = web.visits, web.sent_to(TOKEN)
    digest = hashlib.sha256(trade["code_verifier"].encode()).digest()
    assert visit["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    named = {"redirect_uri": REDIRECT, "client_id": "client-1", "resource": SERVER}
    assert named.items() <= visit.items()
    assert (visit["response_type"], visit["code_challenge_method"], visit["scope"]) == ("code", "S256", "read")
    assert {**named, "grant_type": "authorization_code", "code": "code-1"}.items() <= trade.items()
    assert (found.tokens.access, found.tokens.scope) == ("access-1", "read")
    assert found.tokens.expires_at is not None


def test_no_two_sign_ins_have_one_state_or_verifier() -> None:
    web = whole()
    for _ in range(2):
        signed_in(web)
    assert len({visit["state"] for visit in web.visits}) == 2
    assert len({trade["code_verifier"] for trade in web.sent_to(TOKEN)}) == 2


# What a person brings back


@pytest.mark.parametrize("announced", [True, None])
@pytest.mark.parametrize("issuer", [ISSUER, f"{ISSUER}/", "https://evil.example", None])
@pytest.mark.parametrize("brought", ["code", "error"])
def test_who_answers_is_checked_before_anything_else(announced: bool | None, issuer: str | None, brought: str) -> None:
    web = whole(**{SAID: metadata(authorization_response_iss_parameter_supported=announced)})
    said = {} if issuer is None else {"iss": issuer}
    web.bring = lambda asked: {brought: "access_denied", "state": asked["state"], **said}
    is_trusted = issuer == ISSUER or (issuer is None and not announced)
    if is_trusted and brought == "code":
        assert signed_in(web).tokens.access == "access-1"
    else:
        said_why = refused(web)
        assert ("access_denied" in said_why) is is_trusted
        assert web.sent_to(TOKEN) == []


@pytest.mark.parametrize("state", ["", "other"])
def test_the_answer_to_another_sign_in_is_not_used(state: str) -> None:
    web = whole()
    web.bring = lambda asked: {"code": "x", "state": state}
    assert "another sign-in" in refused(web)


# Who we are


def test_who_we_are_is_found_in_the_order_of_the_page() -> None:
    web = whole(**{SAID: metadata(client_id_metadata_document_supported=True)})
    document = {"client_metadata_url": "https://me.example/c.json"}
    kept = {ISSUER: OAuthClient("kept", redirect_uri=REDIRECT, is_registered=True)}
    for about, kept_now, expected in (
        ({"client_id": "given", **document}, kept, "given"),
        (document, kept, "https://me.example/c.json"),
        ({}, kept, "kept"),
        ({}, {}, "client-1"),
    ):
        assert signed_in(web, kept_now, **about).client.id == expected
    assert len(web.sent_to(REGISTER)) == 1


def test_a_document_is_no_client_where_nobody_reads_it() -> None:
    assert signed_in(whole(), client_metadata_url="https://me.example/c.json").client.id == "client-1"


def test_we_register_as_a_program_on_this_machine() -> None:
    web = whole()
    signed_in(web, challenge={"scope": "read"})
    (asked,) = (json.loads(fetch.body or b"") for fetch in web.asked if fetch.url == REGISTER)
    assert asked == {
        "client_name": "Dragoman",
        "application_type": "native",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "none",
        "scope": "read",
    }


@pytest.mark.parametrize(
    "kept",
    [
        {"https://old.example": OAuthClient("old", redirect_uri=REDIRECT, is_registered=True)},
        {ISSUER: OAuthClient("old", redirect_uri="http://127.0.0.1:1/callback", is_registered=True)},
    ],
)
def test_we_register_again_elsewhere_and_for_another_page(kept: dict[str, OAuthClient]) -> None:
    web = whole()
    assert signed_in(web, kept).client.id == "client-1"
    assert {visit["client_id"] for visit in web.visits} == {"client-1"}


def registered(web: Web) -> list[str]:
    """The addresses to come back to that were registered, in their order."""
    return [json.loads(fetch.body or b"")["redirect_uris"][0] for fetch in web.asked if fetch.url == REGISTER]


def test_who_does_not_say_who_it_is_has_an_address_to_come_back_to_of_its_own() -> None:
    other, web = "https://other.example", whole()
    signed_in(web)
    assert registered(web) == [REDIRECT] != [BACK]
    assert [visit["redirect_uri"] for visit in web.visits] == [REDIRECT]
    assert [form["redirect_uri"] for form in web.sent_to(TOKEN)] == [REDIRECT]
    web = whole(**{f"{other}/.well-known/oauth-authorization-server": metadata(other), RESOURCE: resource(other)})
    web.pages |= {f"{other}/register": (201, {"client_id": "client-2"}), f"{other}/token": token()}
    assert signed_in(web).client.redirect_uri not in (BACK, REDIRECT)


@pytest.mark.parametrize("about", [{"client_id": "given"}, {"names_itself": True}])
def test_who_is_known_in_another_way_has_the_usual_address(about: dict[str, Any]) -> None:
    names_itself = about.pop("names_itself", False)
    web = whole(**{SAID: metadata(authorization_response_iss_parameter_supported=names_itself)})
    web.bring = lambda asked: {"code": "code-1", "state": asked["state"], "iss": ISSUER}
    signed_in(web, **about)
    assert [visit["redirect_uri"] for visit in web.visits] == [BACK]


def test_who_takes_certain_addresses_alone_gets_the_usual_one() -> None:
    def register(fetch: Fetch) -> Any:
        (address,) = json.loads(fetch.body or b"")["redirect_uris"]
        return (201, {"client_id": "client-1"}) if address == BACK else (400, {"error": "invalid_redirect_uri"})

    web = whole(**{REGISTER: register})
    assert signed_in(web).client.redirect_uri == BACK
    assert [visit["redirect_uri"] for visit in web.visits] == [BACK]


@pytest.mark.parametrize(("before", "client"), [("a b", "old"), ("b", "client-1"), ("", "client-1")])
def test_we_register_again_to_ask_for_more_than_we_said_then(before: str, client: str) -> None:
    kept = {ISSUER: OAuthClient("old", redirect_uri=REDIRECT, is_registered=True, scope=before)}
    found = signed_in(whole(), kept, challenge={"scope": "a"}).client
    assert (found.id, found.scope) == (client, before if client == "old" else "a")


def test_a_client_that_was_given_is_not_used_elsewhere() -> None:
    assert "belongs to the old one" in refused(
        whole(), {"https://old.example": OAuthClient("given")}, client_id="given"
    )


def test_a_client_that_is_forgotten_registers_again() -> None:
    answers = iter([(401, {"error": "invalid_client"}), token()])
    web = whole(**{TOKEN: lambda _: next(answers)})
    kept = {ISSUER: OAuthClient("old", redirect_uri=REDIRECT, is_registered=True)}
    assert signed_in(web, kept).client.id == "client-1"
    assert [visit["client_id"] for visit in web.visits] == ["old", "client-1"]


def test_who_cannot_register_is_told_what_to_say() -> None:
    assert "--oauth-client-id" in refused(whole(**{SAID: metadata(registration_endpoint=None)}))
    web = whole(**{REGISTER: (400, {"error": "invalid_redirect_uri", "error_description": "not\nthere"})})
    assert "(invalid_redirect_uri)" in refused(web)


@pytest.mark.parametrize(
    ("supported", "given", "expected"),
    [
        (["client_secret_basic"], None, "basic"),
        (["client_secret_post"], None, "post"),
        (["client_secret_post", "client_secret_basic"], None, "post"),
        (["client_secret_basic", "client_secret_post"], None, "post"),
        (["none"], None, "none"),
        (None, None, "basic"),
        (["client_secret_basic"], "client_secret_post", "post"),
        (["client_secret_basic"], "none", "none"),
    ],
)
def test_a_secret_is_shown_as_the_server_wants_it(supported: Any, given: str | None, expected: str) -> None:
    registered = {"client_id": "a b", "client_secret": "s:+", "token_endpoint_auth_method": given}
    web = whole(
        **{
            SAID: metadata(token_endpoint_auth_methods_supported=supported),
            REGISTER: (201, {key: value for key, value in registered.items() if value is not None}),
        }
    )
    signed_in(web)
    asked = web.asked[-1]
    shown = {
        "basic": basic(asked) == "a%20b:s%3A%2B" if "Authorization" in asked.headers else False,
        "post": form(asked).get("client_secret") == "s:+",
        "none": form(asked).get("client_id") == "a b" and "client_secret" not in form(asked),
    }
    assert [name for name, is_so in shown.items() if is_so] == [expected]


# What is asked for


@pytest.mark.parametrize(
    ("challenge", "supported", "requested", "given", "expected"),
    [
        ({"scope": "a"}, ["b"], (), None, "a"),
        ({}, ["b", "c"], (), None, "b c"),
        ({}, None, (), None, None),
        ({"scope": "a"}, ["b"], (), "z", "z"),
        ({"scope": "w", "error": "insufficient_scope"}, ["b"], ("r",), None, "r w"),
        ({"scope": "w", "error": "insufficient_scope"}, ["b"], ("r",), "z", "r w z"),
    ],
)
def test_scopes_are_chosen_as_the_page_says(
    challenge: dict[str, str], supported: Any, requested: tuple[str, ...], given: str | None, expected: str | None
) -> None:
    published = {"resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": supported}
    web = whole(**{RESOURCE: published})
    signed_in(web, challenge=challenge, requested=requested, scope=given)
    assert web.visits[0].get("scope") == expected


@pytest.mark.parametrize(("challenge", "expected"), [({"scope": "a"}, "a offline_access"), ({}, None)])
def test_access_in_our_absence_is_asked_for_where_it_is_listed(challenge: dict[str, str], expected: str | None) -> None:
    web = whole(**{SAID: metadata(scopes_supported=["a", "offline_access"])})
    signed_in(web, challenge=challenge)
    assert web.visits[0].get("scope") == expected
    assert web.visits[0].get("prompt") == (None if expected is None else "consent")


def test_users_say_what_else_their_provider_wants() -> None:
    web = whole()
    signed_in(web, authorize_params=(("prompt", "consent"), ("audience", "x")))
    assert {"prompt": "consent", "audience": "x"}.items() <= web.visits[0].items()


@pytest.mark.parametrize("revision", [revision for revision in REVISIONS if facts(revision).authorization])
def test_both_requests_name_the_resource_where_the_revision_says_so(revision: str) -> None:
    web = whole()
    signed_in(web, revision=revision)
    named = "resource-indicator" in facts(revision).authorization
    assert [one.get("resource") for one in (*web.visits, *web.sent_to(TOKEN))] == [SERVER if named else None] * 2


# Tokens


@pytest.mark.parametrize(
    "said",
    [
        {"access_token": ""},
        {"access_token": "a\r\nX: y"},
        {"access_token": None},
        {"token_type": "DPoP"},
        {"token_type": "N_A"},
    ],
)
def test_a_token_of_no_use_is_refused(said: dict[str, Any]) -> None:
    assert "token of a kind that is not known" in refused(whole(**{TOKEN: token(**said)}))


def test_an_error_is_told_by_its_name() -> None:
    web = whole(**{TOKEN: (400, {"error": "invalid_\x1b[31mgrant", "error_description": "too old"})})
    assert refused(web).endswith("gives no token (invalid_[31mgrant)")


@pytest.mark.parametrize("error", [["x"], {"a": 1}, 5, None])
def test_an_error_that_is_no_name_is_told_as_well(error: Any) -> None:
    known = ["client_secret_basic", "client_secret_post"]
    given = {"client_id": "c", "client_secret": "s", "token_endpoint_auth_method": "client_secret_basic"}
    said = metadata(token_endpoint_auth_methods_supported=known)
    web = whole(**{SAID: said, REGISTER: (201, given), TOKEN: (400, {"error": error, "error_description": [1]})})
    assert "gives no token (" in refused(web)


@pytest.mark.parametrize("lasts", ["3600", 3600, 0, 3e9])
def test_the_end_of_a_token_is_kept(lasts: Any) -> None:
    ends_at = signed_in(whole(**{TOKEN: token(expires_in=lasts)})).tokens.expires_at
    assert ends_at is not None
    assert ends_at == pytest.approx(time.time() + float(lasts), abs=60)


@pytest.mark.parametrize("lasts", [None, "soon", -1, 1e300, 10**400, float("inf"), float("nan"), [], True])
def test_a_life_that_cannot_be_right_is_not_known(lasts: Any) -> None:
    tokens = signed_in(whole(**{TOKEN: token(expires_in=lasts)})).tokens
    assert (tokens.access, tokens.expires_at) == ("access-1", None)


def test_half_a_character_is_nothing() -> None:
    said = token(refresh_token="\ud800", scope="\udfff")
    tokens = signed_in(whole(**{TOKEN: said}), challenge={"scope": "read"}).tokens
    assert (tokens.refresh, tokens.scope) == ("", "read")


def test_a_client_shows_itself_only_by_what_it_has() -> None:
    given = {"client_id": "client-1", "client_secret": "s", "token_endpoint_auth_method": "private_key_jwt"}
    assert signed_in(whole(**{REGISTER: (201, given)})).client.method == "client_secret_basic"


def test_tokens_are_renewed_and_what_is_not_said_again_stays() -> None:
    web = whole(**{TOKEN: token(refresh_token="r-1", scope="a b")})
    before = signed_in(web, challenge={"scope": "a"})
    web.pages[TOKEN] = token(access_token="access-2")
    after = web.run(renew(occasion(), before)).tokens
    asked = web.sent_to(TOKEN)[-1]
    assert asked == {
        "grant_type": "refresh_token", "refresh_token": "r-1", "resource": SERVER, "client_id": "client-1"
    }  # fmt: skip
    assert (after.access, after.refresh, after.scope) == ("access-2", "r-1", "a b")


REVOKE = f"{ISSUER}/revoke"


def test_tokens_are_given_back() -> None:
    web = whole(**{SAID: metadata(revocation_endpoint=REVOKE), TOKEN: token(refresh_token="r-1"), REVOKE: {}})
    assert web.run(revoke(occasion(), signed_in(web)))
    assert web.sent_to(REVOKE) == [
        {"token": "r-1", "token_type_hint": "refresh_token", "client_id": "client-1"},
        {"token": "access-1", "token_type_hint": "access_token", "client_id": "client-1"},
    ]


def test_tokens_stay_where_nobody_takes_them_back() -> None:
    web = whole()
    assert not web.run(revoke(occasion(), signed_in(web)))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((503, {}), r"does not revoke it \(status 503\)"),
        ((400, {"error": "invalid_client"}), r"does not revoke it \(invalid_client\)"),
    ],
)
def test_tokens_that_are_not_taken_back_are_an_error(answer: Any, reason: str) -> None:
    web = whole(**{SAID: metadata(revocation_endpoint=REVOKE), REVOKE: answer})
    with pytest.raises(SignInFailed, match=reason):
        web.run(revoke(occasion(), signed_in(web)))


def test_a_server_need_not_revoke_access_tokens() -> None:
    unsupported = (400, {"error": "unsupported_token_type"})
    web = whole(**{SAID: metadata(revocation_endpoint=REVOKE), REVOKE: unsupported})
    assert web.run(revoke(occasion(), signed_in(web)))


def test_tokens_are_not_given_back_without_tls_or_without_the_key() -> None:
    plain = whole(**{SAID: metadata(revocation_endpoint="http://auth.example/revoke")})
    with pytest.raises(SignInFailed, match="not an https URL"):
        plain.run(revoke(occasion(), signed_in(plain)))
    web = whole(**{SAID: metadata(revocation_endpoint=REVOKE)})
    before = replace(signed_in(web), client=OAuthClient("me", method="private_key_jwt"))
    with pytest.raises(SignInFailed, match="--oauth-private-key-file is not given"):
        web.run(revoke(occasion(), before))


def test_no_secret_is_shown_of_what_is_passed_around() -> None:
    web = whole(
        **{TOKEN: token(refresh_token="refresh-1"), REGISTER: (201, {"client_id": "i", "client_secret": "hush"})}
    )
    shown = repr((signed_in(web), web.asked))
    assert not [secret for secret in ("access-1", "refresh-1", "hush", "code-1", "verifier") if secret in shown]


# Without a person


def test_a_program_signs_in_with_a_secret(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    about: dict[str, Any] = {
        "grant": "client_credentials",
        "client_id": "me",
        "client_secret_file": str(tmp_path / "secret"),
    }
    web = whole(**{SAID: metadata(token_endpoint_auth_methods_supported=["client_secret_basic"])})
    assert signed_in(web, challenge={"scope": "a"}, **about).tokens.access == "access-1"
    assert web.sent_to(TOKEN) == [{"grant_type": "client_credentials", "scope": "a", "resource": SERVER}]
    assert basic(web.asked[-1]) == "me:s3cret"
    assert "cannot be read" in refused(web, **{**about, "client_secret_file": str(tmp_path / "none")})


def keys() -> dict[str, Any]:
    return {
        "ES256": ec.generate_private_key(ec.SECP256R1()),
        "ES384": ec.generate_private_key(ec.SECP384R1()),
        "PS256": rsa.generate_private_key(65537, 2048),
        "Ed25519": ed25519.Ed25519PrivateKey.generate(),
    }


def test_a_program_signs_in_with_a_key(tmp_path: Path) -> None:
    from joserfc import jwk, jwt

    for algorithm, key in keys().items():
        path = tmp_path / algorithm
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        web = whole(**{SAID: metadata(token_endpoint_auth_signing_alg_values_supported=["none", "PS256", "ES256"])})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            signed_in(web, grant="client_credentials", client_id="me", private_key_file=str(path))
        asked = web.sent_to(TOKEN)[0]
        kind = {"E": "EC", "P": "RSA"}.get(algorithm[0] if algorithm[1] != "d" else "", "OKP")
        decoded = jwt.decode(asked["client_assertion"], jwk.import_key(path.read_text(), kind), algorithms=[algorithm])  # type: ignore[call-overload]
        assert decoded.header["alg"] == algorithm
        assert {"iss": "me", "sub": "me", "aud": ISSUER}.items() <= decoded.claims.items()
        assert decoded.claims["exp"] - decoded.claims["iat"] <= 300


@pytest.mark.parametrize("written", ["no key", '{"kty": "oct", "k": "c2VjcmV0"}', "{}", "{"])
def test_a_key_of_no_use_is_named_and_not_shown(tmp_path: Path, written: str) -> None:
    (tmp_path / "key").write_text(written)
    about = {"grant": "client_credentials", "client_id": "me", "private_key_file": str(tmp_path / "key")}
    said = refused(whole(), **about)
    assert f"the private key in {tmp_path / 'key'} cannot sign" in said
    assert "c2VjcmV0" not in said


def test_an_identity_provider_vouches_for_the_user(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("id-token")
    provider = "https://idp.example/token"
    about: dict[str, Any] = {
        "grant": "identity_assertion",
        "client_id": "me",
        "assertion_file": str(tmp_path / "id"),
        "idp_token_endpoint": provider,
        "idp_client_id": "me-there",
    }
    web = whole(**{provider: {"access_token": "grant-1", "token_type": "N_A"}})
    assert signed_in(web, **about).tokens.access == "access-1"
    (exchange,), (asked,) = web.sent_to(provider), web.sent_to(TOKEN)
    assert exchange == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "subject_token": "id-token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "audience": ISSUER,
        "resource": SERVER,
        "client_id": "me-there",
    }
    assert (asked["grant_type"], asked["assertion"]) == ("urn:ietf:params:oauth:grant-type:jwt-bearer", "grant-1")
    web.pages[provider] = (400, {"error": "invalid_grant", "error_description": "not for you"})
    assert "the identity provider gives nothing for it (invalid_grant)" in refused(web, **about)


def test_an_assertion_may_be_what_the_server_takes(tmp_path: Path) -> None:
    (tmp_path / "jwt").write_text("workload-jwt")
    web = whole()
    signed_in(web, grant="identity_assertion", client_id="me", assertion_file=str(tmp_path / "jwt"))
    assert web.sent_to(TOKEN)[0]["assertion"] == "workload-jwt"


# On another device


def test_a_person_types_a_code_elsewhere() -> None:
    waits = [(400, {"error": "authorization_pending"}), (400, {"error": "slow_down"}), token()]
    said = {
        "device_code": "d-1",
        "user_code": "AB-CD",
        "verification_uri": "https://auth.example/device",
        "interval": 2,
    }
    device = f"{ISSUER}/device"
    answers = iter(waits)
    web = whole(**{SAID: metadata(device_authorization_endpoint=device), device: said, TOKEN: lambda _: next(answers)})
    assert signed_in(web, grant="device_code").tokens.access == "access-1"
    assert [(one.url, one.code) for one in web.shown] == [(device, "AB-CD")]
    assert web.slept == [2, 2, 7]
    assert web.sent_to(TOKEN)[0]["device_code"] == "d-1"


def test_who_types_a_code_is_not_asked_for_a_thousand_times_a_second() -> None:
    said = {
        "device_code": "d-1",
        "user_code": "AB-CD",
        "verification_uri": "https://auth.example/device",
        "interval": 1e-9,
    }
    answers = iter([(400, {"error": "authorization_pending"}), token()])
    device = f"{ISSUER}/device"
    web = whole(**{SAID: metadata(device_authorization_endpoint=device), device: said, TOKEN: lambda _: next(answers)})
    assert signed_in(web, grant="device_code").tokens.access == "access-1"
    assert web.slept == [1, 1]


def test_what_passes_does_not_end_a_sign_in_elsewhere() -> None:
    def fail(_: Fetch) -> Any:
        match len(web.sent_to(TOKEN)):
            case 1:
                return 429, {"error": "too_many_requests"}
            case 2:
                return 503, b"<html>"
            case 3:
                raise TransportError("auth.example", "it closed the connection")
            case _:
                return token()

    device = f"{ISSUER}/device"
    said = {
        "device_code": "d-1",
        "user_code": "AB-CD",
        "verification_uri": "https://auth.example/device",
        "interval": 2,
    }
    web = whole(**{SAID: metadata(device_authorization_endpoint=device), device: said, TOKEN: fail})
    assert signed_in(web, grant="device_code").tokens.access == "access-1"
    assert web.slept == [2, 7, 12, 24]


def test_who_types_a_code_comes_back_to_no_page_and_brings_nothing() -> None:
    device = f"{ISSUER}/device"
    said = {"device_code": "d-1", "user_code": "AB-CD", "verification_uri": "https://auth.example/device"}
    web = whole(**{SAID: metadata(device_authorization_endpoint=device), device: said})
    signed_in(web, grant="device_code")
    (asked,) = (json.loads(fetch.body or b"") for fetch in web.asked if fetch.url == REGISTER)
    assert (asked["redirect_uris"], asked["response_types"]) == ([], [])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ((400, {"error": "invalid_scope"}), "invalid_scope"),
        ({"user_code": "x"}, "no device code"),
        (
            {"device_code": "d", "user_code": "x", "verification_uri": "https://a.example", "expires_in": 9},
            "nobody has typed the code in time",
        ),
        ({"device_code": "d", "user_code": "x", "verification_uri": "http://a.example"}, "not an https URL"),
    ],
)
def test_a_code_that_nobody_gets_or_types(said: Any, reason: str) -> None:
    device = f"{ISSUER}/device"
    pending = (400, {"error": "authorization_pending"})
    web = whole(**{SAID: metadata(device_authorization_endpoint=device), device: said, TOKEN: pending})
    assert reason in refused(web, grant="device_code")


def test_a_server_that_knows_no_device_code_is_named() -> None:
    assert "knows no sign-in by device code" in refused(whole(), grant="device_code", client_id="me")
