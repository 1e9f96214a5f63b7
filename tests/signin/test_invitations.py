"""Signing in by a link, from far away: whose link it is, and what a page does with whoever comes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.pool import Scope
from dragoman.signin.grants import sign_in
from dragoman.signin.settings import SignInSettings
from tests.signin.far import ABLE, Browser, Client, far, find_link, form_of
from tests.signin.web import occasion, whole
from tests.transports.http.stage import within
from tests.transports.upstream.stage import on_loop

TWO = {"ann": "secret-of-ann", "ben": "secret-of-ben"}


@on_loop
async def test_the_client_is_asked_and_the_call_goes_on_when_somebody_has_come_back(folder: Path) -> None:
    async with far(folder) as place:
        client = await place.enter()
        link = await client.call_and_get_link()
        assert link.startswith(f"http://127.0.0.1:{place.port}/oauth/back?token=")
        seen = await Browser().sign_in(link)
        assert "You are signed in" in seen.text
        assert (await client.answer())["result"] == {"sent": "Bearer token-secret-1"}
    assert [path for path, _ in place.home.asked] == ["/register", "/authorize", "/token"]
    registered, authorized, traded = [said for _, said in place.home.asked]
    back = f"http://127.0.0.1:{place.port}/oauth/back"
    assert (registered["redirect_uris"], authorized["redirect_uri"], traded["redirect_uri"]) == ([back], back, back)


@on_loop
async def test_the_page_says_for_whom_it_is_and_wants_their_secret(folder: Path) -> None:
    async with far(folder, TWO) as place:
        ann = await place.enter("secret-of-ann")
        link = await ann.call_and_get_link()
        page = await Browser().go(link)
        server = place.home.base.removeprefix("http://")
        assert f"Sign in to {server}?" in page.text
        assert "A call of session 1 of ann needs this" in page.text
        assert "The secret of ann" in page.text
        for wrong in ("", "secret-of-ben", "nobody's"):
            refused = await Browser().sign_in(link, wrong)
            assert (refused.status, "set-cookie" in refused.headers) == (403, False)
        assert "You are signed in" in (await Browser().sign_in(link, "secret-of-ann")).text
        assert "result" in await ann.answer()


@on_loop
async def test_who_cannot_be_asked_gets_the_link_in_an_error_and_calls_again(folder: Path) -> None:
    async with far(folder) as place:
        client = await place.enter(capabilities={})
        await client.call()
        error = (await client.answer())["error"]
        assert (error["data"], "and then try again" in error["message"]) == ({"askedInVain": True}, True)
        assert "You are signed in" in (await Browser().sign_in(find_link(error["message"]))).text
        await client.call()
        assert (await client.answer())["result"] == {"sent": "Bearer token-secret-1"}


@on_loop
async def test_a_server_that_wants_a_sign_in_before_anything_else_tells_so_in_the_answer_to_initialize(
    folder: Path,
) -> None:
    async with far(folder) as place:
        place.home.wants = lambda request: ""
        client = Client(place.port)
        link = find_link((await client.open(ABLE))["error"]["message"])
        assert "You are signed in" in (await Browser().sign_in(link)).text
        again = await place.enter()
        await again.call()
        assert (await again.answer())["result"] == {"sent": "Bearer token-secret-1"}
        assert place.home.count("/authorize") == 1


@pytest.mark.parametrize("scope", list(Scope))
@on_loop
async def test_each_principal_has_a_link_of_its_own_and_one_sign_in_is_for_all(folder: Path, scope: Scope) -> None:
    async with far(folder, TWO, scope) as place:
        ann, ben = [await place.enter(f"secret-of-{name}") for name in TWO]
        links = [await client.call_and_get_link() for client in (ann, ben)]
        assert links[0] != links[1]
        assert (await Browser().sign_in(links[0], "secret-of-ben")).status == 403
        assert "You are signed in" in (await Browser().sign_in(links[1], "secret-of-ben")).text
        for client in (ann, ben):
            assert (await client.answer())["result"] == {"sent": "Bearer token-secret-1"}
        assert (await Browser().go(links[0])).status == 404


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("scope", [Scope.SHARED, Scope.CLIENT])
@on_loop
async def test_each_principal_has_a_link_of_its_own_where_the_first_request_wants_one(
    folder: Path, scope: Scope, together: bool
) -> None:
    async with far(folder, TWO, scope) as place:
        place.home.wants = lambda request: ""
        clients = [Client(place.port, secret) for secret in TWO.values()]
        if together:
            said = await asyncio.gather(*(client.open(ABLE) for client in clients))
        else:
            said = [await client.open(ABLE) for client in clients]
        links = [find_link(one["error"]["message"]) for one in said]
        for link, name in zip(links, TWO, strict=True):
            page = (await Browser().go(link)).text
            assert f"The secret of {name}" in page
            assert f"of {name} needs this" in page
        assert (await Browser().sign_in(links[1], "secret-of-ann")).status == 403
        assert "You are signed in" in (await Browser().sign_in(links[1], "secret-of-ben")).text


@on_loop
async def test_each_principal_without_a_session_has_a_link_of_its_own(folder: Path) -> None:
    async with far(folder, TWO, Scope.SHARED) as place:
        place.home.wants = lambda request: ""
        clients = [Client(place.port, secret) for secret in TWO.values()]
        said = await asyncio.gather(*(client.ask_alone() for client in clients))
        links = [find_link(json.dumps(one)) for one in said]
        for link, name in zip(links, TWO, strict=True):
            assert f"The secret of {name}" in (await Browser().go(link)).text


@on_loop
async def test_a_session_is_asked_once_for_all_its_calls(folder: Path) -> None:
    async with far(folder) as place:
        one = await place.enter()
        more = [Client(place.port, session=one.session, asked=number) for number in (10, 20)]
        await one.call()
        for client in more:
            client.calling = asyncio.ensure_future(client.call())
        link = await one.hear_link()
        await Browser().sign_in(link)
        for client in more:
            await client.calling
        heard = [await client.answer() for client in (one, *more)]
        assert [answer["result"]["sent"] for answer in heard] == ["Bearer token-secret-1"] * 3
        assert [client.questions for client in (one, *more)] == [1, 0, 0]


@on_loop
async def test_who_declines_fails_and_others_are_not_held_up(folder: Path) -> None:
    async with far(folder, TWO) as place:
        ann, ben = [await place.enter(f"secret-of-{name}") for name in TWO]
        await ann.call()
        await ann.hear_link("decline")
        assert "did not want to" in (await ann.answer())["error"]["message"]
        await Browser().sign_in(await ben.call_and_get_link(), "secret-of-ben")
        assert "result" in await ben.answer()


@pytest.mark.parametrize("scope", list(Scope))
@on_loop
async def test_clients_without_a_session_are_asked_in_rounds_of_their_own_calls(folder: Path, scope: Scope) -> None:
    async with far(folder, TWO, scope) as place:
        place.home.pages["/mcp"] = place.home.serve_sessions
        asked_for = {}
        for name, secret in TWO.items():  # over one connection to the server, which was idle before the second
            client = Client(place.port, secret)
            answer = (await within(client.ask_alone()))["result"]
            ((key, question),) = answer["inputRequests"].items()
            asked_for[name] = client, question["params"]["url"], key, answer["requestState"]
            assert f"{name}. Everybody" in question["params"]["message"]
            page = (await Browser().go(question["params"]["url"])).text
            assert f"The secret of {name}" in page
            assert f"{name} needs this" in page
        client, link, key, state = asked_for["ben"]
        assert "You are signed in" in (await Browser().sign_in(link, "secret-of-ben")).text
        said = {"requestState": state, "inputResponses": {key: {"action": "accept"}}}
        assert (await client.ask_alone(**said))["result"]["sent"] == "Bearer token-secret-1"


@pytest.mark.parametrize("scope", list(Scope))
@on_loop
async def test_a_server_without_sessions_does_not_see_the_round_in_which_its_client_is_asked(
    folder: Path, scope: Scope
) -> None:
    async with far(folder, TWO, scope) as place:
        place.home.pages["/mcp"] = place.home.serve_rounds
        place.home.wants = lambda request: "" if request.frame["params"].get("inputResponses") else None
        ann = Client(place.port, "secret-of-ann")
        first = (await ann.ask_alone())["result"]
        assert list(first["inputRequests"]) == ["mine"]
        answer = {"mine": {"action": "accept", "content": {}}}
        second = (await ann.ask_alone(inputResponses=answer, requestState=first["requestState"]))["result"]
        ((name, question),) = second["inputRequests"].items()
        assert "You are signed in" in (await Browser().sign_in(question["params"]["url"], "secret-of-ann")).text
        said = {"inputResponses": {name: {"action": "accept"}}, "requestState": second["requestState"]}
        third = (await ann.ask_alone(**said))["result"]
        text = third["content"][0]["text"]
        assert json.loads(text) == [answer, "kept", "Bearer token-secret-1"]
        assert "dragoman-visit" not in json.dumps(place.home.rounds)


@on_loop
async def test_who_declines_in_a_round_is_not_asked_again_for_that_call(folder: Path) -> None:
    async with far(folder) as place:
        place.home.pages["/mcp"] = place.home.serve_rounds
        place.home.wants = lambda request: ""
        client = Client(place.port)
        asked_for = (await client.ask_alone())["result"]
        (name,) = asked_for["inputRequests"]
        said = {"inputResponses": {name: {"action": "decline"}}, "requestState": asked_for["requestState"]}
        assert "did not want to" in (await client.ask_alone(**said))["error"]["message"]


@on_loop
async def test_a_client_with_a_session_is_asked_for_a_server_without(folder: Path) -> None:
    async with far(folder) as place:
        place.home.pages["/mcp"] = place.home.serve_rounds
        place.home.wants = lambda request: "" if request.rpc == "tools/call" else None
        client = await place.enter()
        link = await client.call_and_get_link()
        assert "You are signed in" in (await Browser().sign_in(link)).text


@on_loop
async def test_where_only_loopback_is_registered_the_address_is_pasted(folder: Path) -> None:
    async with far(folder, redirect_port=1) as place:
        client = await place.enter()
        link = await client.call_and_get_link()
        browser = Browser(unreachable=1)
        last = await browser.sign_in(link)
        assert last.text.startswith("http://127.0.0.1:1/callback?code=")
        assert "paste its address" in (await browser.go(link)).text
        seen = await browser.go(link.partition("?")[0], form_of(link, address=f" {last.text}\n"))
        assert "You are signed in" in seen.text
        assert "result" in await client.answer()


def test_a_redirect_url_is_a_page_and_goes_with_codes() -> None:
    for url in (
        "https://proxy.example",
        "https://proxy.example/",
        "https://proxy.example/a?b",
        "http://proxy.example/a",
    ):
        assert SignInSettings(redirect_url=url).find_fault()
    assert not SignInSettings(redirect_url="https://proxy.example/oauth/callback").find_fault()
    assert "device_code" in SignInSettings(redirect_url="https://p.example/a", grant="device_code").find_fault()


def test_who_comes_back_to_a_host_of_the_network_is_no_native_application() -> None:
    web = whole()
    web.redirect = "https://proxy.example/oauth/callback"
    web.run(sign_in(occasion(), {}))
    (asked,) = [fetch for fetch in web.asked if fetch.url.endswith("/register")]
    assert json.loads(asked.body or b"")["application_type"] == "web"
