"""Which tokens are taken: whose, for whom, until when, and signed by what; and what attackers make of them."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from joserfc import jwk

from dragoman.guard.claims import name_principal
from tests.guard.issuer import OURS, Issuer, guarded, issuer
from tests.transports.http.stage import initialize, on_loop
from tests.transports.http.wire import request, send_raw

Make = Callable[[Issuer], str]


def b64(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def unsigned(one: Issuer, algorithm: str) -> str:
    _, claims, _ = one.give().split(".")
    return f"{b64({'alg': algorithm})}.{claims}."


def by_public_key(one: Issuer) -> str:
    """Sign with the public key, as if it were a secret."""
    _, claims, _ = one.give().split(".")
    signed = f"{b64({'alg': 'HS256', 'kid': one.keys[0].kid})}.{claims}"
    return f"{signed}.{b64(hmac.digest(one.keys[0].as_pem(private=False), signed.encode(), 'sha256'))}"


def by_own_key(one: Issuer, **head: Any) -> str:
    """Sign with a key of the attacker, which the token brings or names."""
    own = jwk.ECKey.generate_key("P-256", {"kid": "own"})
    said = {name: own.as_dict(private=False) if value is ... else value for name, value in head.items()}
    return one.give(own, {"kid": one.keys[0].kid, **said})


NOW = int(time.time())
ATTACKS: dict[str, Make] = {
    "alg none": lambda one: unsigned(one, "none"),
    "alg None": lambda one: unsigned(one, "None"),
    "no alg": lambda one: f"{b64({})}.{one.give().split('.')[1]}.",
    "HS256 with the public key": by_public_key,
    "a key that it brings": lambda one: by_own_key(one, jwk=...),
    "a key that it leads to": lambda one: by_own_key(one, jku="http://127.0.0.1:9/keys", x5u="http://127.0.0.1:9/x"),
    "a key by file name": lambda one: by_own_key(one, kid="../../../../dev/null"),
    "another issuer": lambda one: one.give(iss="https://evil.example"),
    "no issuer": lambda one: one.give(iss=None),
    "an issuer that begins the same": lambda one: one.give(iss=f"{one.url}.evil.example"),
    "for somebody else": lambda one: one.give(aud="https://other.example"),
    "for nobody": lambda one: one.give(aud=None),
    "for an object": lambda one: one.give(aud={OURS: True}),
    "for what begins the same": lambda one: one.give(aud=f"{OURS}.evil.example"),
    "expired": lambda one: one.give(exp=NOW - 60),
    "without end": lambda one: one.give(exp=None),
    "an end that is text": lambda one: one.give(exp=str(NOW + 60)),
    "an end that is true": lambda one: one.give(exp=True),
    "not yet": lambda one: one.give(nbf=NOW + 36_000),
    "bound to a key": lambda one: one.give(cnf={"jkt": "x"}),
    "an id token's kind": lambda one: one.give(head={"typ": "logout+jwt"}),
    "a critical header": lambda one: one.give(head={"crit": ["b64"], "b64": True}),
    "nobody's": lambda one: one.give(sub=None, client_id=None),
    "a subject that is a list": lambda one: one.give(sub=["ada"]),
    "a subject that is an object": lambda one: one.give(sub={"id": 5}),
    "a subject that is true": lambda one: one.give(sub=True),
    "a subject that is no whole number": lambda one: one.give(sub=5.5),
    "a subject of very many digits": lambda one: one.give(sub=2**128),
    "a client that is a list": lambda one: one.give(client_id=["editor"]),
    "another client that is an object": lambda one: one.give(client_id=None, azp={"id": "editor"}),
    "encrypted": lambda one: "a.b.c.d.e",
    "one part": lambda one: "opaque",
    "empty parts": lambda one: "..",
    "a head that is a list": lambda one: f"{b64([])}.{b64({})}.x",
    "a deep head": lambda one: f"{b64(b'[' * 9000)}.{b64({})}.x",
    "very long": lambda one: one.give(more="x" * 20_000),
    "another signature": lambda one: one.give()[:-8] + "AAAAAAAA",
    "other claims": lambda one: ".".join([(t := one.give().split("."))[0], b64({"sub": "root"}), t[2]]),
    "not ASCII": lambda one: "\xe9.\xe9.\xe9",
}


@pytest.mark.parametrize("name", ATTACKS)
@on_loop
async def test_a_token_that_does_not_count_is_refused(name: str) -> None:
    async with issuer() as one, guarded(one) as stage:
        token = ATTACKS[name](one)
        given = f"Authorization: Bearer {token}".encode("latin-1")
        body = json.dumps(initialize()).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{stage.port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n"
        )
        reply = await send_raw(stage.port, head.encode() + given + b"\r\n\r\n" + body)
        assert reply.status == 401
        assert 'error="invalid_token"' in reply.headers["www-authenticate"]
        assert not stage.servers, "nobody has opened a server"
        assert all(path in ("/.well-known/oauth-authorization-server", "/keys") for path in one.asked)


@pytest.mark.parametrize("kind", ["EC", "RSA", "OKP"])
@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"aud": [OURS, "https://other.example"]},
        {"aud": OURS + "/"},
        {"sub": None},
        {"sub": 0, "client_id": None},
        {"sub": "", "client_id": 5},
        {"client_id": None, "azp": "editor"},
        {"exp": NOW + 36_000.5, "nbf": NOW - 5},
    ],
)
@on_loop
async def test_a_token_that_counts_lets_in(kind: str, claims: dict[str, Any]) -> None:
    async with issuer(kind) as one, guarded(one) as stage:
        reply = await stage.open(authorization=f"Bearer {one.give(**claims)}")
        assert reply.status == 200


@on_loop
async def test_the_old_name_of_ed25519_counts() -> None:
    async with issuer("OKP") as one, guarded(one) as stage:
        await stage.open(authorization=f"Bearer {one.give(head={'alg': 'EdDSA', 'typ': 'JWT', 'kid': None})}")


@on_loop
async def test_a_token_without_our_audience_counts_for_a_named_client() -> None:
    async with issuer() as one, guarded(one, clients=("editor",)) as stage:
        await stage.open(authorization=f"Bearer {one.give(aud='account', client_id=None, azp='editor')}")
        other = await stage.post(
            initialize(), mcp_session_id="", authorization=f"Bearer {one.give(aud='account', client_id='x')}"
        )
        assert other.status == 401


@on_loop
async def test_two_authorization_headers_are_refused() -> None:
    async with issuer() as one, guarded(one) as stage:
        token = one.give()
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{stage.port}\r\n"
        twice = f"Authorization: Bearer {token}\r\nAuthorization: Bearer {token}\r\nContent-Length: 0\r\n\r\n"
        assert (await send_raw(stage.port, (head + twice).encode())).status == 400


@on_loop
async def test_a_session_is_of_client_issuer_and_subject_together() -> None:
    async with issuer() as one, guarded(one) as stage:
        await stage.open(authorization=f"Bearer {one.give()}")
        for other in ({"sub": "bob"}, {"sub": 5}, {"client_id": "viewer"}, {"sub": "ada by editor", "client_id": None}):
            reply = await stage.post(
                {"jsonrpc": "2.0", "id": 2, "method": "ping"}, authorization=f"Bearer {one.give(**other)}"
            )
            assert reply.status == 404, other
        same = stage.post(
            {"jsonrpc": "2.0", "method": "notifications/x"}, authorization=f"Bearer {one.give(jti='another')}"
        )
        assert (await same).status == 202


@on_loop
async def test_a_token_ends_on_a_connection_that_stays() -> None:
    """The head of a request that is known by its bytes is looked at again, once its token may have ended."""
    late = 0.0
    async with issuer() as one, guarded(one, now_s=lambda: time.time() + late) as stage:
        token = one.give(exp=int(time.time()) + 40)
        await stage.open(authorization=f"Bearer {token}")
        ping = {"jsonrpc": "2.0", "method": "notifications/x"}
        assert (await stage.post(ping, authorization=f"Bearer {token}")).status == 202
        late = 100.0
        assert (await stage.post(ping, authorization=f"Bearer {token}")).status == 401


@on_loop
async def test_secrets_of_a_file_count_beside_tokens() -> None:
    async with issuer() as one, guarded(one, {"robot": "secret-of-robot"}) as stage:
        lost = {"jsonrpc": "2.0", "method": "notifications/x"}  # let in, it is told that it has no session
        assert (await stage.post(lost, authorization="Bearer secret-of-robot")).status == 400
        assert (await stage.post(lost, x_api_key="secret-of-robot")).status == 400
        assert (await stage.post(lost, x_api_key="wrong")).status == 401
        assert not one.asked
        assert (await stage.post(lost, authorization=f"Bearer {one.give()}")).status == 400


@on_loop
async def test_optional_lets_in_who_has_no_token_and_refuses_a_wrong_one() -> None:
    async with issuer() as one, guarded(one, is_optional=True) as stage:
        assert (await stage.open()).status == 200
        wrong = await stage.post(initialize(), authorization=f"Bearer {one.give(exp=1)}")
        assert wrong.status == 401
        other = await request(
            stage.port,
            "POST",
            "/mcp",
            stage.headers({"authorization": f"Bearer {one.give()}"}),
            {"jsonrpc": "2.0", "method": "x"},
        )
        assert other.status == 404, "a session of nobody is not that of somebody"


@on_loop
async def test_two_numbers_are_two_subjects() -> None:
    async with issuer() as one, guarded(one) as stage:
        await stage.open(authorization=f"Bearer {one.give(sub=5)}")
        for subject, status in {5: 202, 6: 404, "5": 404, None: 404}.items():
            frame = {"jsonrpc": "2.0", "method": "notifications/x"}
            assert (await stage.post(frame, authorization=f"Bearer {one.give(sub=subject)}")).status == status


NOBODY_TWICE: list[tuple[str | int, str, str | int]] = [
    ("editor", "https://login.example", "ada"),
    ("editor", "https://login.example", ""),
    ("editor", "https://login.example", "-"),
    ("editor", "https://login.example", "(none)"),
    ("", "https://login.example", "ada by editor"),
    ("a of b", "https://login.example", "ada"),
    ("editor", "https://login.example", "x" * 300),
    ("editor", "https://login.example", f"sha256={sha256(b'x' * 300).hexdigest()}"),
    ("editor", "https://login.example", "ada%20"),
    ("editor", "https://login.example", "ada "),
    ("editor", "https://login.example", "ada\n"),
    ("editor", "https://login.example", "\ud800"),
    ("editor", "https://login.example", 5),
    ("editor", "https://login.example", 0),
    ("editor", "https://login.example", "5"),
    ("editor", "https://login.example", "number=5"),
    (5, "https://login.example", "editor"),
]


def test_no_two_have_the_name_of_one() -> None:
    names = [name_principal(*one) for one in NOBODY_TWICE]
    assert len(set(names)) == len(NOBODY_TWICE)
    assert all(name.isascii() and name.isprintable() and name.count(" ") == 4 for name in names)
    assert max(map(len, names)) < 300
