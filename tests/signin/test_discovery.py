"""Where the authorization server of a server is found, and which one is refused, by revision."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import SignInFailed
from dragoman.signin.discovery import AuthorizationServer, discover
from dragoman_spec import REVISIONS, facts
from tests.signin.web import ISSUER, SERVER, Web, metadata, occasion, resource

WELL_KNOWN = "https://mcp.example/.well-known/oauth-protected-resource"
RFC_8414 = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
DATED = [revision for revision in REVISIONS if facts(revision).authorization]


def found_in(web: Web, revision: str = REVISIONS[-1], **more: Any) -> AuthorizationServer:
    return web.run(discover(occasion(revision, **more)))


def refused_in(web: Web, revision: str = REVISIONS[-1], **more: Any) -> str:
    with pytest.raises(SignInFailed) as failed:
        found_in(web, revision, **more)
    return str(failed.value)


@pytest.mark.parametrize(
    ("header", "place"),
    [("https://mcp.example/there", "https://mcp.example/there"), ("", f"{WELL_KNOWN}/team/mcp"), ("", WELL_KNOWN)],
)
def test_the_resource_says_where_its_authorization_server_is(header: str, place: str) -> None:
    web = Web({place: resource(resource="https://mcp.example"), ISSUER + RFC_8414: metadata()})
    found = found_in(web, challenge={"resource_metadata": header} if header else {})
    assert found.token_endpoint == f"{ISSUER}/token"
    wanted = [place] if header else [f"{WELL_KNOWN}/team/mcp", WELL_KNOWN][: web.urls.index(place) + 1]
    assert web.urls == [*wanted, ISSUER + RFC_8414]


@pytest.mark.parametrize(
    ("issuer", "places"),
    [
        (ISSUER, [ISSUER + RFC_8414, ISSUER + OPENID]),
        (f"{ISSUER}/", [ISSUER + RFC_8414, ISSUER + OPENID]),
        (f"{ISSUER}/t", [f"{ISSUER}{RFC_8414}/t", f"{ISSUER}{OPENID}/t", f"{ISSUER}/t{OPENID}"]),
    ],
)
def test_the_metadata_of_an_authorization_server_is_looked_for_in_order(issuer: str, places: list[str]) -> None:
    web = Web({WELL_KNOWN: resource(issuer), places[-1]: metadata(issuer)})
    assert found_in(web).issuer == issuer
    assert web.urls[2:] == places


@pytest.mark.parametrize("revision", DATED)
def test_without_any_metadata_the_origin_is_the_authorization_server(revision: str) -> None:
    found = found_in(Web(), revision)
    ends = found.authorization_endpoint, found.token_endpoint, found.registration_endpoint
    assert ends == tuple(f"https://mcp.example/{name}" for name in ("authorize", "token", "register"))
    assert found.resource is None


def test_metadata_at_the_origin_may_name_another_issuer_where_the_origin_is_all_there_is() -> None:
    web = Web({f"https://mcp.example{RFC_8414}": metadata("https://other.example", registration_endpoint=None)})
    found = found_in(web)
    assert found.token_endpoint == "https://other.example/token"
    assert (found.issuer, found.answers_as) == ("https://mcp.example", "https://other.example"), "it is nobody we know"


@pytest.mark.parametrize("revision", DATED)
def test_the_resource_is_named_byte_for_byte_as_published(revision: str) -> None:
    published = "https://MCP.example:443/team/"
    web = Web({WELL_KNOWN: resource(resource=published), ISSUER + RFC_8414: metadata()})
    wanted = published if "resource-indicator" in facts(revision).authorization else None
    assert found_in(web, revision).resource == wanted
    assert found_in(web, revision, names_resource=False).resource is None


@pytest.mark.parametrize("revision", DATED)
@pytest.mark.parametrize("named", ["https://honest.example", "", None])
def test_metadata_of_another_issuer_is_refused_in_every_revision(revision: str, named: str | None) -> None:
    web = Web({WELL_KNOWN: resource(), ISSUER + RFC_8414: {**metadata(), "issuer": named}})
    assert f"names another issuer, {named or '(nothing)'}" in refused_in(web, revision)


@pytest.mark.parametrize("revision", DATED)
@pytest.mark.parametrize("methods", [None, ["plain"], "S256"])
def test_an_authorization_server_without_pkce_is_refused_where_the_revision_says_so(
    revision: str, methods: Any
) -> None:
    web = Web({WELL_KNOWN: resource(), ISSUER + RFC_8414: metadata(code_challenge_methods_supported=methods)})
    if "announced-pkce" in facts(revision).authorization:
        assert "PKCE" in refused_in(web, revision)
        assert found_in(web, revision, grant="client_credentials").issuer == ISSUER
    else:
        assert found_in(web, revision).issuer == ISSUER


@pytest.mark.parametrize(
    "other", ["https://evil.example/team/mcp", "https://mcp.example/other", "http://mcp.example/team/mcp", "nonsense"]
)
def test_metadata_of_another_resource_is_refused(other: str) -> None:
    assert "another resource" in refused_in(Web({WELL_KNOWN: resource(resource=other)}))


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://auth.example/x",
        "http://127.0.0.1/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "https://user@auth.example/",
        "https://[",
        "https://auth.example/\x1b]0;title\x07",
        "https://auth.example/ x",
    ],
)
@pytest.mark.parametrize(
    "name", ["authorization_endpoint", "token_endpoint", "registration_endpoint", "device_authorization_endpoint"]
)
def test_endpoints_without_tls_are_refused(endpoint: str, name: str) -> None:
    web = Web({WELL_KNOWN: resource(), ISSUER + RFC_8414: metadata(**{name: endpoint})})
    assert "not an https URL" in refused_in(web)


def test_an_issuer_or_metadata_without_tls_is_refused() -> None:
    assert "not an https URL" in refused_in(Web({WELL_KNOWN: resource("http://auth.example")}))
    assert "not an https URL" in refused_in(Web(), challenge={"resource_metadata": "http://mcp.example/x"})


def test_everything_may_be_on_this_machine() -> None:
    here = "http://localhost:3000"
    web = Web({f"{here}/.well-known/oauth-protected-resource": {"resource": here, "authorization_servers": [here]}})
    web.pages[here + RFC_8414] = metadata(here)
    assert found_in(web, url=f"{here}/mcp").issuer == here


def test_endpoints_can_be_given() -> None:
    web = Web({WELL_KNOWN: resource()})
    found = found_in(web, authorization_endpoint="https://a.example/x", token_endpoint="https://a.example/y")
    assert (found.authorization_endpoint, found.token_endpoint) == ("https://a.example/x", "https://a.example/y")
    assert found.resource == SERVER


def test_an_authorization_server_that_publishes_nothing_is_named() -> None:
    assert f"{ISSUER} publishes no metadata" in refused_in(Web({WELL_KNOWN: resource()}))


@pytest.mark.parametrize("page", [b"<html>", b"[]", b"{", b'{"authorization_servers": {}}', b"[" * 100_000])
def test_what_is_no_metadata_is_passed_over(page: bytes) -> None:
    web = Web({f"{WELL_KNOWN}/team/mcp": page, WELL_KNOWN: resource(), ISSUER + RFC_8414: metadata()})
    assert found_in(web).issuer == ISSUER
