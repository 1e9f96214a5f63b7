"""A client before the proxy, and a server behind it that wants tokens."""

from __future__ import annotations

import asyncio
import errno
import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.signin.house import house
from tests.support.waiting import pass_time, until
from tests.transports.upstream.stage import Reply, Request, on_loop


@on_loop
async def test_a_client_that_knows_nothing_of_it_is_signed_in(folder: Path) -> None:
    async with house(folder) as home, home.client() as peer:
        assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-1"}
        await until(lambda: home.person.read)
    assert [path for path, _ in home.asked] == ["/register", "/authorize", "/token"]
    assert "You are signed in" in home.person.read[0]
    assert "is not used" not in home.person.read[0]


@on_loop
async def test_a_token_is_used_from_the_first_request_of_the_next_start(folder: Path) -> None:
    async with house(folder) as home:
        for _ in range(2):
            async with home.client() as peer:
                await peer.ask("tools/list")
        assert len(home.person.pages) == 1
        (opening,) = [index for index, one in enumerate(home.seen) if one[0] == "initialize"][2:]
        assert home.seen[opening][1] == "Bearer token-secret-1"
    (kept,) = (folder / "dragoman" / "tokens").glob("*.json")
    assert kept.stat().st_mode & 0o777 == 0o600


@on_loop
async def test_a_sign_in_may_be_wanted_in_the_middle_and_others_go_on_meanwhile(folder: Path) -> None:
    async with house(folder) as home:
        home.wants = lambda request: "" if request.rpc == "tools/call" else None
        home.person.says_yes.clear()
        async with home.client() as peer:
            call = peer.start("tools/call")
            await until(lambda: home.person.pages)
            assert (await peer.ask("tools/list"))["result"] == {"sent": ""}
            home.person.says_yes.set()
            assert (await peer.answer(call))["result"] == {"sent": "Bearer token-secret-1"}


@on_loop
async def test_a_person_takes_longer_than_a_server_may(folder: Path) -> None:
    async with house(folder) as home:
        home.person.says_yes.clear()
        async with home.client(opened=False) as peer:
            asked = peer.start(
                "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "c", "version": "0"}
            )
            await until(lambda: home.person.pages)
            asyncio.get_running_loop().skip(90)  # type: ignore[attr-defined]
            await pass_time(0.1)
            home.person.says_yes.set()
            assert "result" in await peer.answer(asked)
        assert len(home.person.pages) == 1


@on_loop
async def test_many_requests_open_one_page(folder: Path) -> None:
    async with house(folder) as home:
        home.wants = lambda request: None if request.rpc in ("initialize", "notifications/initialized") else ""
        home.person.says_yes.clear()
        async with home.client() as peer:
            calls = [peer.start("tools/call") for _ in range(20)]
            await until(lambda: home.person.pages)
            home.person.says_yes.set()
            for call in calls:
                assert "result" in await peer.answer(call)
        assert len(home.person.pages) == 1


@on_loop
async def test_more_scopes_are_asked_for_beside_those_that_there_are(folder: Path) -> None:
    async with house(folder) as home:
        home.wants = lambda request: "write" if request.rpc == "tools/call" else "read"
        async with home.client() as peer:
            assert "result" in await peer.ask("tools/list")
            home.good["token-secret-2"] = "write read"
            assert (await peer.ask("tools/call"))["result"] == {"sent": "Bearer token-secret-2"}
            scopes = [said["scope"] for path, said in home.asked if path == "/authorize"]
            assert scopes == ["read", "read write"]


@on_loop
async def test_scopes_that_were_asked_for_are_not_asked_for_again(folder: Path) -> None:
    async with house(folder) as home:
        home.wants = lambda request: None if request.rpc in ("initialize", "notifications/initialized") else "admin"
        home.token = {"access_token": "weak"}
        home.good["weak"] = "none"
        async with home.client() as peer:
            assert (await peer.ask("tools/list"))["error"]["data"] == {"httpStatus": 403}
            assert "error" in await peer.ask("tools/list")
        assert len(home.person.pages) == 1


@on_loop
async def test_a_server_that_always_says_no_opens_one_page(folder: Path) -> None:
    async with house(folder) as home:
        home.wants = lambda request: None if request.rpc in ("initialize", "notifications/initialized") else ""
        home.token = {"access_token": "never-good-secret"}
        home.pages["/token"] = lambda request, reply: reply.json({"access_token": "bad", "token_type": "Bearer"})
        async with home.client() as peer:
            for _ in range(3):
                error = (await peer.ask("tools/list"))["error"]
                assert "refuses the token that its authorization server gave" in error["message"]
        assert len(home.person.pages) == 1


@on_loop
async def test_a_token_that_has_ended_is_refreshed_and_nobody_is_asked(folder: Path) -> None:
    async with house(folder) as home, home.client() as peer:
        await peer.ask("tools/list")
        home.good.clear()
        assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-2"}
        assert len(home.person.pages) == 1
        assert home.asked[-1][1]["refresh_token"] == "refresh-secret-1"


def put_clock_forward(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + seconds)


@on_loop
async def test_a_token_that_should_have_ended_is_refreshed_before_the_server_sees_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FastMCP's authorization server takes the refresh token away when it sees an access token that has ended."""
    async with house(folder) as home:
        home.token = {"expires_in": 3600}
        async with home.client() as peer:
            await peer.ask("tools/list")
            put_clock_forward(monkeypatch, 3601)
            asked = [peer.start("tools/list") for _ in range(3)]  # at once, and over connections that are there
            for one in asked:
                assert (await peer.answer(one))["result"] == {"sent": "Bearer token-secret-2"}
        put_clock_forward(monkeypatch, 3601)
        async with home.client() as peer:  # and after a start
            assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-3"}
        sent = [token for method, token in home.seen if method == "tools/list"]
        assert sent.count("Bearer token-secret-1") == 1
        assert len(home.person.pages) == 1


@on_loop
async def test_where_a_token_cannot_be_refreshed_the_server_decides(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of this machine may be wrong, and the authorization server away."""

    async def busy(request: Request, reply: Reply) -> None:
        tried.append(request.path)
        await reply.status("503 Service Unavailable")

    tried: list[str] = []
    async with house(folder) as home:
        home.token = {"expires_in": 3600}
        async with home.client() as peer:
            await peer.ask("tools/list")
            home.pages["/token"] = busy
            put_clock_forward(monkeypatch, 3601)
            for _ in range(3):
                assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-1"}
        assert len(tried) == 1, "once for each token"


@on_loop
async def test_a_token_that_ends_as_soon_as_it_is_given_is_used(folder: Path) -> None:
    """`expires_in` 0 means for ever, at some."""
    async with house(folder) as home:
        home.token = {"expires_in": 0}
        async with home.client() as peer:
            for _ in range(3):
                assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-1"}
        assert [path for path, _ in home.asked].count("/token") == 1


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("503 Service Unavailable", {}),
        ("429 Too Many Requests", {"error": "invalid_request"}),
        ("400 Bad Request", {"error": "temporarily_unavailable"}),
        ("400 Bad Request", {"error": "server_error"}),
    ],
)
@on_loop
async def test_a_refresh_that_fails_for_now_loses_nothing(folder: Path, status: str, said: Any) -> None:
    async with house(folder) as home, home.client() as peer:
        await peer.ask("tools/list")
        home.good.clear()
        home.pages["/token"] = lambda request, reply: reply.json(said, status=status)
        why = said.get("error", f"status {status[:3]}")
        error = (await peer.ask("tools/list"))["error"]["message"]
        assert f"gives no token ({why}); if that stays so, `dragoman login {home.url}` signs in anew" in error
        del home.pages["/token"]
        assert "result" in await peer.ask("tools/list")
        assert len(home.person.pages) == 1


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("400 Bad Request", {"error": "invalid_grant"}),
        ("400 Bad Request", {"error": "invalid_request", "error_description": "unknown refresh token"}),
        ("400 Bad Request", {"error": "expired_token"}),
        ("401 Unauthorized", ""),
        ("403 Forbidden", {"error": "access_denied"}),
        ("404 Not Found", "<html>"),
        ("302 Found", ""),
        ("200 OK", "<html>"),
        ("200 OK", {"access_token": 5}),
        ("200 OK", {"access_token": "abc", "token_type": "DPoP"}),
        ("200 OK", "x" * 600_000),
    ],
    ids=str,
)
@on_loop
async def test_a_refresh_token_that_is_over_leads_to_another_sign_in(folder: Path, status: str, said: Any) -> None:
    async def over(request: Request, reply: Reply) -> None:
        if b"refresh_token" in request.body:
            await reply.status(status, body=said.encode() if isinstance(said, str) else json.dumps(said).encode())
        else:
            home.good["fresh"] = ""
            await reply.json({"access_token": "fresh", "token_type": "bearer"})

    async with house(folder) as home, home.client() as peer:
        await peer.ask("tools/list")
        home.good.clear()
        home.pages["/token"] = over
        assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer fresh"}
        assert len(home.person.pages) == 2


@on_loop
async def test_where_an_authorization_server_is_away_another_one_that_the_server_names_is_gone_to(folder: Path) -> None:
    async with house(folder) as home, house(folder) as new:
        home.wants = lambda request: "" if request.rpc == "tools/list" else None
        named = ""
        where = "/.well-known/oauth-protected-resource/mcp"
        home.pages[where] = lambda request, reply: reply.json({"resource": home.url, "authorization_servers": [named]})
        async with home.client() as peer:
            async with house(folder) as old:
                named, home.good = old.base, old.good
                assert "result" in await peer.ask("tools/list")
            home.good = new.good
            assert f"`dragoman login {home.url}`" in (await peer.ask("tools/list"))["error"]["message"]
            assert len(home.person.pages) == 1, "it may come back"
            named = new.base
            assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-1"}
        assert new.count("/token") == 1


@on_loop
async def test_nobody_is_asked_because_of_a_ping_or_a_stream(folder: Path) -> None:
    async def over(request: Request, reply: Reply) -> None:
        await reply.json({"error": "invalid_grant"}, status="400 Bad Request")

    async with house(folder) as home:
        home.wants = lambda request: None if request.rpc in ("initialize", "notifications/initialized") else ""
        async with home.client() as peer:
            assert "somebody has to sign in" in (await peer.ask("ping"))["error"]["message"]
            assert home.person.pages == []
            assert "result" in await peer.ask("tools/list")
            await until(lambda: ("GET", "Bearer token-secret-1") in home.seen)
            home.good.clear()
            assert "result" in await peer.ask("ping"), "it is refreshed without anybody"
            home.good.clear()
            home.pages["/token"] = over
            assert "somebody has to sign in" in (await peer.ask("ping"))["error"]["message"]
        assert len(home.person.pages) == 1


@on_loop
async def test_where_nobody_can_be_asked_the_error_says_what_to_do(folder: Path) -> None:
    async with house(folder) as home:
        home.person.is_there = False
        home.wants = lambda request: "" if request.rpc == "tools/call" else None
        async with home.client() as peer:
            assert "run `dragoman login" in (await peer.ask("tools/call"))["error"]["message"]
        assert home.asked == []


@pytest.mark.parametrize("fault", ["nobody", "another resource", "no answer"])
def test_who_knows_a_server_by_name_is_not_told_its_url(
    fault: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = "/s/q9Zt4LmX7cKp2RvB8wNd/mcp"

    @on_loop
    async def check() -> None:
        async def serve_metadata(request: Request, reply: Reply) -> None:
            if fault == "no answer":
                reply.cut()
            else:
                resource = home.url + "/x" * (fault == "another resource")
                await reply.json({"resource": resource, "authorization_servers": [home.metadata["issuer"]]})

        async with house(folder) as home:
            home.metadata["issuer"], home.url = home.base, f"{home.base}{path}"
            home.person.is_there = fault != "nobody"
            home.pages[path] = lambda request, reply: reply.status("401 Unauthorized")
            home.pages[f"/.well-known/oauth-protected-resource{path}"] = serve_metadata
            async with home.client(opened=False, name="the server") as peer:
                message = (await peer.initialize())["error"]["message"]
        said = {"nobody": "run `dragoman login URL`", "another resource": "/***", "no answer": "/***"}[fault]
        assert said in message
        assert "q9Zt4LmX" not in message + caplog.text

    check()


@on_loop
async def test_several_proxies_open_one_page_and_all_go_on(folder: Path) -> None:
    async with house(folder) as home:
        home.person.says_yes.clear()

        async def start() -> None:
            async with home.client() as peer:
                assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-1"}

        tasks = [asyncio.ensure_future(start()) for _ in range(5)]
        await until(lambda: home.person.pages)
        await pass_time(0.3)
        home.person.says_yes.set()
        await asyncio.gather(*tasks)
        assert len(home.person.pages) == 1


@on_loop
async def test_what_one_proxy_has_refreshed_another_uses(folder: Path) -> None:
    async with house(folder) as home, home.client() as one, home.client() as other:
        await one.ask("tools/list")
        home.good.clear()
        answers = await asyncio.gather(one.ask("tools/list"), other.ask("tools/list"))
        assert {answer["result"]["sent"] for answer in answers} == {"Bearer token-secret-2"}
        assert home.count("/token") == 2


@on_loop
async def test_what_another_has_refreshed_may_have_ended_too_and_nobody_is_asked(folder: Path) -> None:
    async with house(folder) as home, home.client() as one, home.client() as other:
        await one.ask("tools/list")
        await other.ask("tools/list")
        home.good.clear()
        await one.ask("tools/list")
        home.good.clear()
        assert (await other.ask("tools/list"))["result"]["sent"] == "Bearer token-secret-3"
        assert len(home.person.pages) == 1


@on_loop
async def test_tokens_that_cannot_be_kept_are_refreshed_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    async with house(folder) as home, home.client() as peer:
        await peer.ask("tools/list")
        monkeypatch.setattr(os, "fsync", full)
        for number in (2, 3):
            home.good.clear()
            assert (await peer.ask("tools/list"))["result"]["sent"] == f"Bearer token-secret-{number}"
        assert [said.get("refresh_token") for path, said in home.asked if path == "/token"] == [
            None,
            "refresh-secret-1",
            "refresh-secret-2",
        ]
    assert [said for said in caplog.messages if "cannot be kept" in said] == [caplog.messages[0]]
    assert caplog.messages[0].endswith(".json: full")


@on_loop
async def test_when_a_person_says_no_those_who_waited_do_not_ask_again(folder: Path) -> None:
    async def deny(request: Request, reply: Reply) -> None:
        from urllib.parse import parse_qsl, urlsplit

        said = dict(parse_qsl(urlsplit(request.path).query))
        await reply.status("302 Found", f"Location: {said['redirect_uri']}?error=access_denied&state={said['state']}")

    async with house(folder) as home:
        home.pages["/authorize"] = deny
        home.person.says_yes.clear()

        async def start() -> str:
            async with home.client(opened=False) as peer:
                return str((await peer.initialize())["error"]["message"])

        tasks = [asyncio.ensure_future(start()) for _ in range(3)]
        await until(lambda: home.person.pages)
        await pass_time(0.3)
        home.person.says_yes.set()
        assert all("the sign-in was refused (access_denied)" in said for said in await asyncio.gather(*tasks))
        assert len(home.person.pages) == 1
        assert "Sign-in failed" in home.person.read[0]


@on_loop
async def test_headers_of_the_user_are_not_replaced(folder: Path) -> None:
    from dragoman.signin.authority import sign_in_for

    assert sign_in_for("https://s.example/mcp", ["authorization"]) is None
    assert sign_in_for("https://u:p@s.example/mcp", []) is None
    assert sign_in_for("wss://u:p@s.example/mcp", []) is None
    assert sign_in_for("https://s.example/mcp", [], None) is None
    assert sign_in_for("https://s.example/mcp", ["X-Key"]) is not None


@on_loop
async def test_a_server_that_wants_ever_more_scopes_is_told_no_after_a_while(folder: Path) -> None:
    async with house(folder) as home:
        asked = itertools.count()
        home.wants = lambda request: f"more-{next(asked)}" if request.rpc == "tools/call" else None
        async with home.client() as peer:
            errors = [(await peer.ask("tools/call"))["error"] for _ in range(6)]
            opened = len(home.person.pages)
            assert opened == 6, "one for the first token, and five for more scopes"
            assert "it has asked for more scopes 5 times in 10 minutes" in errors[-1]["message"]
            asyncio.get_running_loop().skip(601)  # type: ignore[attr-defined]
            await peer.ask("tools/call")
            assert len(home.person.pages) > opened
