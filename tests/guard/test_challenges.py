"""What clients without a token that is good enough are told, and what the proxy says of itself."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from dragoman.transports.http.bearer import TokenRefused
from tests.guard.issuer import OURS, Issuer, guard_of, guarded, issuer
from tests.transports.http.stage import initialize, on_loop, within
from tests.transports.http.wire import request
from tests.transports.upstream.stage import Reply, Request


async def document(port: int, path: str, host: str = "") -> Any:
    reply = await request(port, "GET", f"/.well-known/oauth-protected-resource{path}", {"host": host} if host else {})
    return await reply.frame() if reply.status == 200 else reply.status


@on_loop
async def test_without_a_token_the_challenge_leads_to_the_metadata() -> None:
    async with issuer() as one, guarded(one, scopes=("files:read", "offline_access")) as stage:
        reply = await stage.post(initialize())
        base = f"http://127.0.0.1:{stage.port}"
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == (
            f'Bearer realm="mcp", scope="files:read", '
            f'resource_metadata="{base}/.well-known/oauth-protected-resource/mcp"'
        )
        expected = {
            "resource": f"{base}/mcp",
            "authorization_servers": [one.url],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["files:read"],
        }
        assert await document(stage.port, "/mcp") == expected
        assert await document(stage.port, "") == expected
        assert await document(stage.port, "/sse") == {**expected, "resource": f"{base}/sse"}
        assert await document(stage.port, "/other") == 401
        assert not one.asked


@pytest.mark.parametrize(
    ("url", "at", "resource"),
    [
        (OURS, "/mcp", OURS),
        (OURS, "", OURS),
        (OURS, "/sse", "https://tools.example/sse"),
        ("https://tools.example/team/mcp", "/mcp", "https://tools.example/team/mcp"),
        ("https://tools.example/team/mcp", "/sse", "https://tools.example/team/sse"),
        ("https://tools.example", "/mcp", "https://tools.example"),
    ],
)
@on_loop
async def test_behind_a_reverse_proxy_the_public_url_is_named(url: str, at: str, resource: str) -> None:
    async with issuer() as one, guarded(one, url=url, audiences=()) as stage:
        assert (await document(stage.port, at, "tools.example"))["resource"] == resource
        reply = await stage.post(initialize())
        path = url.removeprefix("https://tools.example")
        assert (
            f'"https://tools.example/.well-known/oauth-protected-resource{path}"' in reply.headers["www-authenticate"]
        )
        good = await stage.post({"jsonrpc": "2.0", "method": "x"}, authorization=f"Bearer {one.give(aud=url)}")
        assert good.status == 400, "let in, without a session"


@on_loop
async def test_metadata_is_told_to_nobody_who_takes_us_for_somebody_else() -> None:
    async with issuer() as one, guarded(one) as stage:
        assert await document(stage.port, "/mcp", "evil.example") == 421


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"scope": "files:read files:write"}, 400),
        ({"scope": "admin"}, 400),
        ({"scope": "root"}, 400),
        ({"scp": ["files:read", "files:write"]}, 400),
        ({"scp": "files:write files:read"}, 400),
        ({"scope": "files:read"}, 403),
        ({"scope": "files:reads files:write"}, 403),
        ({"scope": {"files:read": True}}, 403),
        ({}, 403),
    ],
)
@on_loop
async def test_a_token_has_to_be_good_for_enough(said: dict[str, Any], status: int) -> None:
    implied = (("admin", ("files:write", "files:read")), ("root", ("admin", "root")))
    async with issuer() as one, guarded(one, scopes=("files:read", "files:write"), implied=implied) as stage:
        reply = await stage.post({"jsonrpc": "2.0", "method": "x"}, authorization=f"Bearer {one.give(**said)}")
        assert reply.status == status
        if status == 403:
            challenge = reply.headers["www-authenticate"]
            assert 'error="insufficient_scope", scope="files:read files:write", resource_metadata=' in challenge


@on_loop
async def test_a_token_is_asked_about_where_that_is_chosen() -> None:
    settings = {"client_id": "us", "client_secret": "our-secret"}
    async with issuer() as one, guarded(one, introspection=f"{one.url}/introspect", **settings) as stage:
        one.about["opaque-token"] = {"active": True, "sub": "ada", "client_id": "editor", "aud": OURS, "scope": "a"}
        one.about["for-another"] = {"active": True, "sub": "ada", "aud": "https://other.example"}
        one.about["of-another"] = {"active": True, "sub": "ada", "aud": OURS, "iss": "https://evil.example"}
        said = {"active": True, "sub": "bob", "aud": OURS}
        one.about["of-nulls"] = {**said, "exp": None, "nbf": None, "iss": None, "client_id": None}
        for token, status in {
            "opaque-token": 400,
            "for-another": 401,
            "of-another": 401,
            "of-nulls": 400,
            "?": 401,
        }.items():
            for _ in range(2):
                reply = await stage.post({"jsonrpc": "2.0", "method": "x"}, authorization=f"Bearer {token}")
                assert reply.status == status, token
        asked = [form["token"] for _, form in one.forms]
        assert asked == ["opaque-token", "for-another", "of-another", "of-nulls", "?"]
        assert one.forms[0][0] == "Basic dXM6b3VyLXNlY3JldA=="


async def away(request: Any, reply: Any) -> None:
    await reply.status("503 Service Unavailable")


async def redirects(request: Any, reply: Any) -> None:
    await reply.status("302 Found", "Location: http://127.0.0.1:9/")


async def huge(request: Any, reply: Any) -> None:
    await reply.status("200 OK", "Content-Type: application/json", body=b'{"keys": [' + b" " * 600_000 + b"]}")


async def nonsense(request: Any, reply: Any) -> None:
    await reply.status("200 OK", "Content-Type: application/json", body=b"[" * 100_000)


@pytest.mark.parametrize(
    "said", [b"<html>", b"", b"[]", b"{}", b'{"active": "true"}', b'{"active": 1}', b'{"active": null}']
)
@on_loop
async def test_what_is_no_answer_about_a_token_does_not_throw_it_away(said: bytes) -> None:
    async def no_answer(request: Any, reply: Any) -> None:
        await reply.status("200 OK", "Content-Type: application/json", body=said)

    late_s, frame = 0.0, {"jsonrpc": "2.0", "method": "x"}
    async with (
        issuer() as one,
        guarded(one, now_s=lambda: time.time() + late_s, introspection=f"{one.url}/introspect") as stage,
    ):
        one.about["opaque"] = {"active": True, "sub": "ada", "client_id": "editor", "aud": OURS}
        statuses = []
        for manner in (None, no_answer, None):
            one.misbehave = manner
            statuses.append((await stage.post(frame, authorization="Bearer opaque")).status)
            late_s = 100.0  # it is asked about again
        assert statuses == [400, 503, 400]


@pytest.mark.parametrize("manner", [away, redirects, huge, nonsense])
@pytest.mark.parametrize("introspects", [False, True])
@on_loop
async def test_while_nobody_can_tell_clients_are_asked_to_come_back(manner: Any, introspects: bool) -> None:
    async with issuer() as one:
        one.misbehave = manner
        asked = {"introspection": f"{one.url}/introspect"} if introspects else {}
        async with guarded(one, **asked) as stage:
            reply = await stage.post(initialize(), authorization=f"Bearer {one.give()}")
            assert (reply.status, reply.headers["retry-after"]) == (503, "5")


def metadata_of(one: Issuer, **said: Any) -> None:
    one.metadata = said


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://evil.example"},
        {"jwks_uri": "http://keys.example/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": ["x"]},
        {"jwks_uri": None},
    ],
)
@on_loop
async def test_keys_are_not_taken_from_anywhere(said: dict[str, Any]) -> None:
    async with issuer() as one, guarded(one) as stage:
        metadata_of(one, **said)
        reply = await stage.post(initialize(), authorization=f"Bearer {one.give()}")
        assert reply.status == 503
        assert "/keys" not in one.asked


@on_loop
async def test_who_has_no_token_keeps_nobody_out_while_the_issuer_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    may_answer, junk, late_s = asyncio.Event(), [f"junk-{number}" for number in range(100)], 0.0

    async def answer(asked: Request, reply: Reply) -> None:
        if b"junk" in asked.body:
            await may_answer.wait()
        about = {"active": b"good" in asked.body, "sub": "ada", "client_id": "editor", "aud": OURS}
        await reply.json(about)

    async with issuer() as one:
        one.misbehave = answer
        guard = guard_of(one, lambda: time.time() + late_s, introspection=f"{one.url}/introspect")
        await guard.examine("good-1")
        late_s = 100.0
        assert guard.recall("good-1") is None
        strangers = [asyncio.ensure_future(guard.examine(token)) for token in junk]
        assert (await within(guard.examine("good-1"))).principal == f"ada by editor of {one.url}"
        with monkeypatch.context() as hurried:
            hurried.setattr("dragoman.guard.guard._TURN_S", 0.01)
            with pytest.raises(TokenRefused) as refused:
                await within(guard.examine("good-2"))
        assert refused.value.is_away
        newcomer = asyncio.ensure_future(guard.examine("good-3"))
        may_answer.set()
        assert (await within(newcomer)).principal == f"ada by editor of {one.url}"
        ended = await within(asyncio.gather(*strangers, return_exceptions=True))
        assert all(isinstance(end, TokenRefused) and not end.is_away for end in ended)


@on_loop
async def test_a_page_for_people_takes_the_token_of_a_client_for_its_secret() -> None:
    settings = {"scopes": ("mcp",), "tokens": {"bob": "secret-of-bob"}}
    async with issuer() as one, guarded(one, introspection=f"{one.url}/introspect", **settings) as stage:
        about = {"active": True, "client_id": "editor", "aud": OURS}
        one.about["opaque-token"] = {**about, "sub": "ada", "scope": "mcp"}
        one.about["little-token"] = {**about, "sub": "eve", "scope": "low"}
        recognise = stage.front.gate.recognise
        for token in ("opaque-token", "little-token", "unknown-token"):
            assert recognise(token) is None
            await stage.post({"jsonrpc": "2.0", "method": "x"}, authorization=f"Bearer {token}")
        assert recognise("opaque-token") == f"ada by editor of {one.url}"
        assert recognise("secret-of-bob") == "bob"
        for nobody in ("little-token", "unknown-token", ""):
            assert recognise(nobody) is None


@on_loop
async def test_a_token_of_the_issuer_is_no_api_key() -> None:
    async with issuer() as one, guarded(one, tokens={"bob": "secret-of-bob"}, scopes=("mcp",)) as stage:
        frame = {"jsonrpc": "2.0", "method": "x"}
        for scope, status in {"low": 403, "mcp": 400}.items():
            token = one.give(scope=scope)
            assert (await stage.post(frame, authorization=f"Bearer {token}")).status == status
            assert (await stage.post(frame, **{"x-api-key": token})).status == 401
        assert (await stage.post(frame, **{"x-api-key": "secret-of-bob"})).status == 400, "let in, without a session"
