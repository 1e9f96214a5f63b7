"""Who says no is not asked again for the same; when nobody waits any more, nobody is asked."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from dragoman.host.known import KnownServer
from tests.signin.house import House, house
from tests.support.waiting import pass_time, until
from tests.transports.upstream.stage import Client, Reply, Request, on_loop

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def deny(request: Request, reply: Reply) -> None:
    said = dict(parse_qsl(urlsplit(request.path).query))
    await reply.status("302 Found", f"Location: {said['redirect_uri']}?error=access_denied&state={said['state']}")


def up(folder: Path) -> KnownServer:
    """What is known of a server of which nothing is known, but that it runs."""
    return KnownServer(str(folder / "eras" / "one"), is_up=True)


@on_loop
async def test_who_says_no_sees_one_page_for_an_opening(folder: Path) -> None:
    async with house(folder) as home:
        home.pages["/authorize"] = deny
        async with home.client(opened=False, known=up(folder)) as peer:
            error = (await peer.initialize())["error"]
            assert error["message"].endswith("the sign-in was refused (access_denied)")
            assert error["data"] == {"askedInVain": True}
            assert len(home.person.pages) == 1
            assert len(home.seen) == 1
            del home.pages["/authorize"]
            assert "result" in await peer.initialize(), "the next request of the client may ask again"
        assert len(home.person.pages) == 2


@on_loop
async def test_who_says_no_sees_one_page_where_initialize_is_first(folder: Path) -> None:
    async with house(folder) as home:
        home.pages["/authorize"] = deny
        async with home.client(opened=False) as peer:
            assert "access_denied" in (await peer.initialize())["error"]["message"]
            assert len(home.person.pages) == 1
            del home.pages["/authorize"]
            assert "result" in await peer.initialize()


@on_loop
async def test_a_client_without_a_handshake_is_told_no_and_may_ask_again(folder: Path) -> None:
    async with house(folder) as home:
        home.pages["/authorize"] = deny
        async with home.client(opened=False, known=up(folder)) as peer:
            for pages in (1, 2):
                answer = await peer.ask("tools/list", _meta=META)
                assert answer["error"]["message"].endswith("the sign-in was refused (access_denied)")
                assert len(home.person.pages) == pages


@on_loop
async def test_a_person_who_does_not_come_is_not_asked_again_by_the_same_opening(folder: Path) -> None:
    async with house(folder) as home:
        home.person.says_yes.clear()
        async with home.client(opened=False, known=up(folder)) as peer:
            asked = await until_asked(home, peer, "initialize")
            asyncio.get_running_loop().skip(601)  # type: ignore[attr-defined]
            assert "nobody has signed in within 10 minutes" in (await peer.answer(asked))["error"]["message"]
        assert len(home.person.pages) == 1


@on_loop
async def test_where_nobody_could_be_asked_a_server_may_still_be_opened(folder: Path) -> None:
    async with house(folder) as home:
        home.person.is_there = False
        home.wants = lambda request: "" if request.rpc == "server/discover" else None
        async with home.client(known=up(folder)) as peer:
            assert "result" in await peer.ask("tools/list")


def is_listening(home: House) -> bool:
    """Whether the page is there that the person should come back to."""
    back = urlsplit(dict(parse_qsl(urlsplit(home.person.pages[-1]).query))["redirect_uri"])
    with socket.socket() as one:
        return one.connect_ex((str(back.hostname), int(back.port or 0))) == 0


async def until_asked(home: House, peer: Client, method: str) -> int:
    """Send a request, and wait until the person has been asked because of it."""
    info = {"name": "c", "version": "0"}
    asked = peer.start(method, protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
    await until(lambda: home.person.pages)
    await pass_time(0.1)
    return asked


@pytest.mark.parametrize("method", ["initialize", "tools/call"])
@on_loop
async def test_a_client_that_leaves_keeps_nobody(folder: Path, method: str) -> None:
    async with house(folder) as home:
        home.wants = lambda request: "" if request.rpc == method else None
        home.person.says_yes.clear()
        async with home.client(opened=method != "initialize") as peer:
            await until_asked(home, peer, method)
            began_s = time.monotonic()
        assert time.monotonic() - began_s < 10
        assert home.count("/token") == 0


@on_loop
async def test_who_is_next_waits_for_the_page_that_is_open(folder: Path) -> None:
    async with house(folder) as home:
        home.person.says_yes.clear()

        async def second() -> None:
            async with home.client() as peer:
                assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-1"}

        async with home.client(opened=False) as first:
            await until_asked(home, first, "initialize")
            other = asyncio.ensure_future(second())
            await pass_time(0.5)
        await pass_time(0.5)
        home.person.says_yes.set()
        await other
        assert len(home.person.pages) == 1
        assert home.count("/register") == 1
        assert "You are signed in" in home.person.read[0]


@on_loop
async def test_who_comes_later_shows_the_same_page_again(folder: Path) -> None:
    async with house(folder) as home:
        home.person.says_yes.clear()
        async with home.client(opened=False) as first:
            await until_asked(home, first, "initialize")
        home.person.says_yes.set()
        async with home.client() as peer:
            assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-1"}
        first_page, second_page = home.person.pages
        assert first_page == second_page


@on_loop
async def test_a_page_that_is_old_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with house(folder) as home:
        home.person.says_yes.clear()
        async with home.client(opened=False) as first:
            await until_asked(home, first, "initialize")
        monkeypatch.setattr("dragoman.signin.keeper.PERSON_S", 0.0)
        home.person.says_yes.set()
        async with home.client() as peer:
            assert "result" in await peer.ask("tools/list")
        first_page, second_page = home.person.pages
        assert first_page != second_page


@on_loop
async def test_one_that_leaves_does_not_end_the_sign_in_of_another(folder: Path) -> None:
    async with house(folder) as home:
        home.wants = lambda request: "" if request.rpc == "tools/call" else None
        home.person.says_yes.clear()
        authority = home.sign_in()
        async with home.client(authority=authority) as stays:
            call = stays.start("tools/call")
            await until(lambda: home.person.pages)
            async with home.client(authority=authority) as leaves:
                leaves.start("tools/call")
                await pass_time(0.2)
            home.person.says_yes.set()
            assert (await stays.answer(call))["result"] == {"sent": "Bearer token-secret-1"}
        assert len(home.person.pages) == 1


@on_loop
async def test_a_request_that_is_cancelled_ends_its_sign_in(folder: Path) -> None:
    async with house(folder) as home:
        home.wants = lambda request: "" if request.rpc == "tools/call" else None
        home.person.says_yes.clear()
        async with home.client() as peer:
            call = peer.start("tools/call")
            await until(lambda: home.person.pages)
            peer.notify("notifications/cancelled", requestId=call)
            await pass_time(0.2)
            asyncio.get_running_loop().skip(6)  # type: ignore[attr-defined]
            await until(lambda: not is_listening(home))
            assert peer.answers == {1: peer.answers[1]}, "nobody waits for its answer"


@on_loop
async def test_a_refresh_is_ended_before_the_proxy_is(folder: Path) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Request, reply: Reply) -> None:
        begun.set()
        await goes_on.wait()
        home.good["late"] = ""
        await reply.json({"access_token": "late", "token_type": "Bearer", "refresh_token": "refresh-secret-late"})

    async with house(folder) as home:
        async with home.client() as peer:
            await peer.ask("tools/list")
            home.good.clear()
            home.pages["/token"] = slow
            peer.start("ping")
            await begun.wait()
            asyncio.get_running_loop().call_later(1.2, goes_on.set)
        async with home.client() as peer:
            assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer late"}
        assert len(home.person.pages) == 1


@on_loop
async def test_a_request_without_a_handshake_that_is_cancelled_ends_the_sign_in_of_its_opening(folder: Path) -> None:
    async with house(folder) as home:
        home.person.says_yes.clear()
        async with home.client(opened=False, known=up(folder)) as peer:
            asked = [peer.start("tools/list", _meta=META) for _ in range(2)]
            await until(lambda: home.person.pages)
            peer.notify("notifications/cancelled", requestId=asked[0], _meta=META)
            await pass_time(0.3)
            assert is_listening(home), "the other one waits"
            peer.notify("notifications/cancelled", requestId=asked[1], _meta=META)
            await until(lambda: not is_listening(home))
            home.person.says_yes.set()
            await peer.ask("tools/list", _meta=META)
            assert home.seen[-1] == ("tools/list", "Bearer token-secret-1")
