"""Servers that mean ill: each is refused in one line, and nothing secret has gone anywhere."""

from __future__ import annotations

import asyncio
import json
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest

from dragoman.errors import SignInFailed
from dragoman.signin import driver as driving
from dragoman.signin.driver import Driver
from dragoman.signin.settings import SignInSettings
from dragoman.signin.wishes import Fetch, Fetched, post_form, quoted
from dragoman.transports.upstream import connector
from dragoman.transports.upstream.config import UpstreamConfig
from tests.signin.house import House, Person, house
from tests.support.effort import effort
from tests.support.waiting import until
from tests.transports.upstream.stage import Reply, Request, on_loop

Page = Callable[[Request, Reply], Awaitable[None]]
RESOURCE = "/.well-known/oauth-protected-resource/mcp"
SERVER = "/.well-known/oauth-authorization-server"
SECRETS = ("token-secret", "refresh-secret", "code-secret")


async def refused(home: House) -> str:
    """Give the error that a call ends with."""
    home.wants = lambda request: "" if request.rpc == "tools/call" else None
    async with home.client() as peer:
        error = (await peer.ask("tools/call"))["error"]
        assert "result" in await peer.ask("ping"), "the session goes on"
    assert "\n" not in error["message"]
    return str(error["message"])


async def endless(request: Request, reply: Reply) -> None:
    await reply.head("200 OK", "Content-Type: application/json", "Connection: close")
    while True:
        await reply.raw(b" " * 65536)


async def redirected(request: Request, reply: Reply) -> None:
    await reply.status("302 Found", "Location: https://evil.example/")


async def nothing(request: Request, reply: Reply) -> None:
    await reply.status("404 Not Found")


@pytest.mark.parametrize(
    ("path", "page", "reason"),
    [
        (RESOURCE, endless, "a frame is larger than the limit of 524288 bytes"),
        (SERVER, endless, "a frame is larger than the limit"),
        ("/token", endless, "a frame is larger than the limit"),
        ("/token", redirected, "gives no token (status 302)"),
        ("/register", redirected, "does not let us register (status 302)"),
        (SERVER, redirected, "publishes no metadata"),
        ("/register", nothing, "--oauth-client-id"),
    ],
)
def test_answers_that_are_of_no_use_end_it(folder: Path, path: str, page: Page, reason: str) -> None:
    @on_loop
    async def check() -> None:
        async with house(folder) as home:
            home.pages[path] = page
            assert reason in await refused(home)

    check()


@on_loop
async def test_metadata_that_never_comes_ends_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driving, "_ANSWER_S", 0.2)

    async def silent(request: Request, reply: Reply) -> None:
        await asyncio.Event().wait()

    async with house(folder) as home:
        home.pages[SERVER] = silent
        assert "it did not answer within" in await refused(home)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"token_endpoint": "http://10.0.0.1/token"}, "not an https URL"),
        ({"authorization_endpoint": "file:///etc/passwd"}, "not an https URL"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"authorization_response_iss_parameter_supported": True}, "gives no token"),
    ],
)
def test_metadata_that_lies_is_refused(folder: Path, metadata: dict[str, Any], reason: str) -> None:
    @on_loop
    async def check() -> None:
        async with house(folder) as home:
            home.metadata = metadata
            if reason == "gives no token":  # who answers is right: the token endpoint is not
                home.pages["/token"] = nothing
            assert reason in await refused(home)
            assert not any("code_verifier" in said for _, said in home.asked)

    check()


@on_loop
async def test_a_url_that_is_none_is_refused(folder: Path) -> None:
    async def resource(request: Request, reply: Reply) -> None:
        await reply.json({"authorization_servers": ["https://127.0.0.1:99999/"]})

    async with house(folder) as home:
        home.pages[RESOURCE] = resource
        assert "what it is told of the sign-in is of no use" in await refused(home)


@on_loop
async def test_metadata_of_another_issuer_is_refused_as_long_as_the_revision_is_not_known(folder: Path) -> None:
    async with house(folder) as home:
        home.metadata = {"issuer": "https://honest.example"}
        async with home.client(opened=False) as peer:
            assert "names another issuer, https://honest.example" in (await peer.initialize())["error"]["message"]


@on_loop
async def test_a_token_goes_to_its_server_alone(folder: Path) -> None:
    async with house(folder) as other, house(folder) as home:

        async def move(request: Request, reply: Reply) -> None:
            if request.headers.get("authorization") and request.rpc == "tools/call":
                await reply.status("307 Temporary Redirect", f"Location: {other.url}")
            else:
                await home._serve_mcp(request, reply)

        home.pages["/mcp"] = move
        async with home.client() as peer:
            error = (await peer.ask("tools/call"))["error"]["message"]
            assert "to another origin, which must not get our headers" in error
        assert other.seen == []


OURS = "client:secret of ours/1"


@pytest.mark.parametrize("where", ["error", "error_description"])
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_secrets_that_an_authorization_server_repeats_are_not_passed_on(
    folder: Path, method: str, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    repeated: list[str] = []

    async def register(request: Request, reply: Reply) -> None:
        said = {"client_id": "client-1", "client_secret": OURS, "token_endpoint_auth_method": method}
        await reply.json(said, status="201 Created")

    async def repeat(request: Request, reply: Reply) -> None:
        form = dict(parse_qsl(request.body.decode()))
        secrets = [form[name] for name in ("code", "refresh_token", "code_verifier") if name in form]
        header = request.headers.get("authorization", "")
        secrets += [*(secret[:12] for secret in secrets), OURS, quote(OURS, safe="")]
        secrets += [header.removeprefix("Basic ")] if header else []
        repeated.extend(secrets)
        said = {"error": "invalid_grant", where: f"it is of no use: {' '.join(secrets)} <{header}>"}
        await reply.json(said, status="400 Bad Request")

    @on_loop
    async def check() -> None:
        async with house(folder) as home:
            home.metadata["token_endpoint_auth_methods_supported"] = [method]
            home.pages["/register"] = register
            authority = home.sign_in()
            async with home.client(authority=authority) as peer:
                home.pages["/token"] = repeat
                home.good.clear()
                told = str(await peer.ask("tools/list"))
            file = authority.path.read_text()
        assert {"refresh-secret-1", OURS, *(["code-secret"] if where != "error" else [])} <= set(repeated)
        assert "it is of no use" in caplog.text, "whoever runs the proxy is told"
        shown = caplog.text + told + json.dumps(json.loads(file).get("failed"))
        assert [one for one in repeated if one in shown] == []
        assert "of no use" not in told or where == "error"

    check()


@pytest.mark.parametrize(
    "hide",
    [
        "\u200b".join,
        "\0".join,
        "\xad".join,
        "\ufe0f".join,
        lambda secret: " ".join(secret[at : at + 6] for at in range(0, len(secret), 6)),
        lambda secret: ",".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
        lambda secret: "".join(chr(ord(char) + 0xFEE0) for char in secret),
        lambda secret: "".join(f"%{ord(char):02x}" for char in secret),
        lambda secret: secret.encode().hex(),
        lambda secret: b64encode(secret.encode()).decode(),
        lambda secret: b64encode(f"me:{secret}".encode()).decode(),
        lambda secret: b64encode(f"i:{secret}".encode()).decode(),
        lambda secret: secret.upper(),
    ],
)
def test_secrets_that_are_repeated_in_another_spelling_are_not_passed_on(hide: Callable[[str], str]) -> None:
    secret = "Sup3r/S3cret+Cl1ent"
    said = json.dumps({"error": hide(secret), "error_description": f"it does not know {hide(secret)}"}).encode()
    asked = post_form("https://auth.example/token", {"client_secret": secret}, {})
    answer = Fetched(400, said, secrets=asked.secrets)
    assert answer.why == "***"
    assert answer.about in ("***", "it does not know ***")


@pytest.mark.parametrize("letter", ["\ufdfa", "x"])
def test_a_very_long_error_takes_nobody_long(letter: str) -> None:
    """Each of the first becomes 18 characters: half a megabyte of them took 2.5 s."""
    said = {"error": letter * 50_000, "error_description": letter * 120_000}
    body = json.dumps(said, ensure_ascii=False).encode()

    def look() -> None:
        fetched = Fetched(400, body, secrets=("refresh-secret-1",))
        assert all((fetched.about, fetched.why, quoted(fetched.json["error"])))

    assert effort(look) < 5


@on_loop
async def test_no_secret_is_logged_or_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with house(folder) as home, home.client() as peer:
        await peer.ask("tools/list")
        home.good.clear()
        await peer.ask("tools/list")
        home.good.clear()
        home.pages["/token"] = nothing
        said = str(await peer.ask("tools/list"))
        await until(lambda: home.person.read)
        shown = caplog.text + said + "".join(home.person.read) + repr(home.sign_in().keeper._current)
    assert home.count("/token") == 2
    assert [secret for secret in SECRETS if secret in shown] == []


@on_loop
async def test_a_token_that_the_server_repeats_in_an_error_is_told_nobody(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "dragoman")
    sent: list[str] = []

    async def repeat(request: Request, reply: Reply) -> None:
        sent.append(request.headers["authorization"].removeprefix("Bearer "))
        said = f"{sent[-1]} {b64encode(sent[-1].encode()).decode()}"
        await reply.status("403 Forbidden", f'WWW-Authenticate: Basic realm="{said}"', body=said.encode())

    async with house(folder) as home, home.client() as peer:
        await peer.ask("tools/list")
        home.pages["/mcp"] = repeat
        shown = caplog.text + str(await peer.ask("tools/list"))
    assert "403" in shown
    assert sent
    assert not any(token in shown for token in sent)


PUBLIC = "93.184.216.34"
PRIVATE = [
    *("10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "::1", "fd00::1", "fe80::1%eth0"),
    *("224.0.0.251", "239.255.255.250", "ff02::fb", "ff0e::1", "0.0.0.0", "::"),
    *("64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::5db8:d822", "::10.0.0.1", "::93.184.216.34"),
    *("::ffff:0:10.0.0.1", "fec0::2", "5f00::1"),
    *("2002:0a00:0001::1", "2002:5db8:d822::1", "2001:0:1::1", "::ffff:10.0.0.1", "::ffff:224.0.0.1"),
]


@pytest.mark.parametrize("where", PRIVATE)
def test_a_public_server_leads_to_no_private_address(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Any:
        asked.append(host)
        return [(0, (PUBLIC if host == "mcp.example" else where, port))]

    monkeypatch.setattr(driving, "resolve", resolve)

    @on_loop
    async def check() -> None:
        driver = Driver(UpstreamConfig("https://mcp.example/mcp"), SignInSettings(), Person())

        def routine() -> Any:
            yield Fetch("GET", "https://auth.example/x")

        with pytest.raises(SignInFailed, match="private network"):
            await driver.run(routine())

    check()
    assert asked == ["auth.example", "mcp.example"]


@pytest.mark.parametrize("where", [PUBLIC, "2606:2800:220:1::1", f"64:ff9b::{PUBLIC}", f"::ffff:{PUBLIC}"])
def test_public_addresses_are_public(where: str) -> None:
    assert driving._is_public((10 if ":" in where else 2, (where, 443)))


@on_loop
async def test_a_name_may_stand_for_no_private_address_either(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(*about: Any, **more: Any) -> Any:
        return [(2, 1, 6, "", ("10.1.2.3" if about[0] == "auth.example" else PUBLIC, about[1]))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", answer)
    assert await connector.resolve("auth.example", 443) == [(2, ("10.1.2.3", 443))]
    driver = Driver(UpstreamConfig("https://mcp.example/mcp"), SignInSettings(), Person())
    with pytest.raises(SignInFailed, match="private network"):
        await driver._resolve("https://auth.example/x")
