"""Who must not sign in by a link: strangers, other principals, other pages, and whoever comes too late or too often."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from dragoman.pool import Scope
from dragoman.trace.redact import redact_text
from dragoman.transports.http.config import Admission
from tests.signin.far import ABLE, Browser, Client, Far, far, find_link, form_of
from tests.support.effort import effort
from tests.support.waiting import until
from tests.transports.http.wire import request
from tests.transports.upstream.stage import Reply, Request, on_loop

TWO = {"ann": "secret-of-ann", "ben": "secret-of-ben"}


class Stuck(Browser):
    """A browser that stays at the authorization server."""

    async def go(self, url: str, form: dict[str, str] | None = None, **headers: str) -> object:  # type: ignore[override]
        if "/authorize?" in url:
            self.at = url
            return None
        return await super().go(url, form, **headers)


async def stuck_at(link: str, secret: str = "") -> Stuck:
    """Open a link, and go no further than the authorization server."""
    browser = Stuck()
    assert await browser.go(link.partition("?")[0], form_of(link, secret=secret)) is None
    return browser


def back_from(browser: Stuck, **more: str) -> str:
    """Where the authorization server sends a browser."""
    said = {name: values[0] for name, values in parse_qs(urlsplit(browser.at).query).items()}
    return f"{said['redirect_uri']}?{urlencode({'code': 'code-secret', 'state': said['state'], **more})}"


async def finish(place: Far, client: Client, browser: Browser, back: str) -> None:
    """Whatever happened, the person whose sign-in it is can finish it."""
    assert "You are signed in" in (await Browser(dict(browser.cookies)).go(back)).text
    assert (await client.answer())["result"] == {"sent": "Bearer token-secret-1"}


@on_loop
async def test_who_comes_with_another_state_or_none_or_without_the_cookie_is_sent_away(folder: Path) -> None:
    async with far(folder, TWO) as place:
        ann = await place.enter("secret-of-ann")
        browser = await stuck_at(await ann.call_and_get_link(), "secret-of-ann")
        back = back_from(browser)
        page = back.partition("?")[0]
        for wrong in (
            page,
            f"{page}?code=x",
            f"{page}?state=&code=x",
            f"{page}?state=forged&code=x",
            f"{page}?%ff=%ff",
        ):
            assert (await Browser(dict(browser.cookies)).go(wrong)).status == 404
        for cookies in ({}, dict.fromkeys(browser.cookies, "guessed"), dict.fromkeys(browser.cookies, "")):
            seen = await Browser(cookies).go(back)
            assert (seen.status, "Another browser began this sign-in" in seen.text) == (403, True)
        await finish(place, ann, browser, back)


@on_loop
async def test_an_address_of_the_authorization_server_that_is_handed_on_is_worth_nothing(folder: Path) -> None:
    async with far(folder, TWO) as place:
        ann, ben = [await place.enter(f"secret-of-{name}") for name in TWO]
        mallory = await stuck_at(await ann.call_and_get_link(), "secret-of-ann")
        assert (await Browser().go(mallory.at)).status == 403
        assert "You are signed in" in (await Browser().sign_in(await ben.call_and_get_link(), "secret-of-ben")).text
        assert "result" in await ann.answer()


@on_loop
async def test_a_link_is_good_for_one_browser(folder: Path) -> None:
    async with far(folder) as place:
        client = await place.enter()
        link = await client.call_and_get_link()
        first = await stuck_at(link)
        assert (await Browser().sign_in(link)).status == 403
        assert await first.go(link.partition("?")[0], form_of(link)) is None, "it may begin again"
        await finish(place, client, first, back_from(first))


@on_loop
async def test_many_who_ask_take_no_link_from_who_is_signing_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.signin.invitations._MOST", 10)
    async with far(folder) as place:
        client = await place.enter()
        browser = await stuck_at(await client.call_and_get_link())
        links = set()
        for _ in range(25):
            other = await place.enter(capabilities={})
            await other.call()
            links.add(find_link((await other.answer())["error"]["message"]))
            (await request(place.port, "DELETE", "/mcp", {"mcp-session-id": other.session})).leave()
        assert len(links) == 25
        (page,) = place.invitations.pages
        assert max(len(page.invitations), len(page.said), len(page.asking)) <= 10
        await finish(place, client, browser, back_from(browser))


@on_loop
async def test_sessions_without_end_take_no_link_from_another_principal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.signin.invitations._MOST", 10)
    async with far(folder, TWO) as place:
        ann = await place.enter("secret-of-ann")
        link = await ann.call_and_get_link()
        for _ in range(15):
            ben = await place.enter("secret-of-ben", capabilities={})
            await ben.call()
            find_link((await ben.answer())["error"]["message"])
            (await request(place.port, "DELETE", "/mcp", {"mcp-session-id": ben.session})).leave()
        (page,) = place.invitations.pages
        assert len(page.invitations) <= 10
        assert "You are signed in" in (await Browser().sign_in(link, "secret-of-ann")).text


@on_loop
async def test_links_in_a_long_answer_are_found_at_once(folder: Path) -> None:
    async with far(folder) as place:
        await (await place.enter()).call_and_get_link()
        (page,) = place.invitations.pages
        links = [page.invite("", f"session {number}").url for number in range(1000)]
        data = b"x" * 2_000_000 + b" ".join(map(str.encode, links[:2])) + b"?token=" + b"x" * 2_000_000
        assert effort(lambda: place.invitations.address(data, "")) < 2
        told = place.invitations.address(data, "somebody")
        assert told.count(b"?token=") == 3
        assert not any(link.encode() in told for link in links)


@on_loop
async def test_a_sign_in_counts_once(folder: Path) -> None:
    async with far(folder, TWO) as place:
        ann, ben = [await place.enter(f"secret-of-{name}") for name in TWO]
        one = await stuck_at(await ann.call_and_get_link(), "secret-of-ann")
        two = await stuck_at(await ben.call_and_get_link(), "secret-of-ben")
        goes_on = asyncio.Event()

        async def slowly(request: Request, reply: Reply) -> None:
            await goes_on.wait()
            del place.home.pages["/token"]
            await place.home.serve(request, reply)

        place.home.pages["/token"] = slowly
        came = asyncio.ensure_future(Browser(dict(one.cookies)).go(back_from(one)))
        await until(lambda: "/token" in place.home.reached)
        for browser in (one, two):
            assert (await Browser(dict(browser.cookies)).go(back_from(browser))).status == 409
        goes_on.set()
        assert "You are signed in" in (await came).text
        for browser in (one, two):
            assert (await Browser(dict(browser.cookies)).go(back_from(browser))).status == 404
        assert place.home.count("/token") == 1


@pytest.mark.parametrize("origin", ["", "null", "https://evil.example", "http://127.0.0.1:1", "http://[", "x" * 9000])
@on_loop
async def test_a_form_of_another_page_is_not_taken(folder: Path, origin: str) -> None:
    async with far(folder) as place:
        client = await place.enter()
        link = await client.call_and_get_link()
        seen = await Browser().go(link.partition("?")[0], form_of(link), origin=origin)
        assert (seen.status in (400, 403), "set-cookie" in seen.headers) == (True, False)
        await Browser().sign_in(link)


@on_loop
async def test_secrets_cannot_be_tried_out(folder: Path) -> None:
    async with far(folder, TWO) as place:
        ann = await place.enter("secret-of-ann")
        link = await ann.call_and_get_link()
        seen = [await Browser().go(link.partition("?")[0], form_of(link, secret=f"guess-{n}")) for n in range(6)]
        assert [one.status for one in seen] == [403] * 5 + [404]
        again = Client(place.port, "secret-of-ann")
        await again.open({})
        await again.call()
        await Browser().sign_in(find_link((await again.answer())["error"]["message"]), "secret-of-ann")
        assert "result" in await ann.answer()


@on_loop
async def test_a_secret_that_is_gone_opens_nothing(folder: Path) -> None:
    async with far(folder, TWO) as place:
        ann = await place.enter("secret-of-ann")
        link = await ann.call_and_get_link()
        place.front.admit(Admission(tokens={"ann": "another-secret", "ben": "secret-of-ben"}))
        assert (await Browser().sign_in(link, "secret-of-ann")).status == 403


@on_loop
async def test_a_link_ends_after_ten_minutes(folder: Path) -> None:
    async with far(folder) as place:
        client = await place.enter()
        link = await client.call_and_get_link()
        browser = await stuck_at(link)
        asyncio.get_running_loop().skip(601)  # type: ignore[attr-defined]
        assert "nobody has signed in within 10 minutes" in (await client.answer())["error"]["message"]
        assert (await Browser().go(link)).status == 404
        assert (await Browser(dict(browser.cookies)).go(back_from(browser))).status == 404


@on_loop
async def test_megabytes_and_other_methods_are_refused(folder: Path) -> None:
    async with far(folder) as place:
        client = await place.enter()
        link = await client.call_and_get_link()
        parts = urlsplit(link)
        form = {"content-type": "application/x-www-form-urlencoded", "origin": f"http://{parts.netloc}"}
        large = await request(place.port, "POST", parts.path, form, b"token=" + b"x" * 2**20)
        assert large.status == 413
        many = await request(place.port, "POST", parts.path, form, b"&".join([b"a"] * 8000))
        assert many.status == 404
        assert (await request(place.port, "GET", f"{parts.path}?{'x' * 100_000}")).status == 400
        for method in ("PUT", "HEAD", "DELETE", "OPTIONS"):
            assert (await request(place.port, method, parts.path)).status == 405
        assert "You are signed in" in (await Browser().sign_in(link)).text


@on_loop
async def test_nothing_that_anybody_says_becomes_a_part_of_a_page(folder: Path) -> None:
    async with far(folder) as place:
        client = await place.enter()
        browser = await stuck_at(await client.call_and_get_link())
        script = "<script>alert(1)</script>"
        said = {"error": "access_denied", "error_description": script, "iss": place.home.base}
        seen = await Browser(dict(browser.cookies)).go(back_from(browser, **said))
        assert "Sign-in failed" in seen.text
        assert script not in seen.text
        assert "frame-ancestors 'none'" in seen.headers["content-security-policy"]
        assert seen.headers["cache-control"] == "no-store"
        assert "access_denied" in (await client.answer())["error"]["message"]


@pytest.mark.parametrize("scope", list(Scope))
@on_loop
async def test_no_secret_is_in_the_log(folder: Path, scope: Scope, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with far(folder, TWO, scope) as place:
        ann = await place.enter("secret-of-ann")
        link = await ann.call_and_get_link()
        browser = Browser()
        await browser.sign_in(link, "secret-of-ben")
        await browser.sign_in(link, "secret-of-ann")
        assert "result" in await ann.answer()
        verifier = next(said["code_verifier"] for path, said in place.home.asked if path == "/token")
        cookies = list(browser.cookies.values())
        secret = [*TWO.values(), *cookies, verifier, "code-secret", "token-secret-1", link.partition("=")[2]]
        assert cookies
        assert [one for one in secret if one in caplog.text] == []


@on_loop
async def test_a_trace_does_not_have_the_link(folder: Path) -> None:
    async with far(folder) as place:
        link = await (await place.enter()).call_and_get_link()
        assert link.partition("=")[2] not in redact_text(link)
        assert link.partition("?")[0] in redact_text(f"open {link} in a browser")


@on_loop
async def test_a_deleted_session_does_not_wait_for_a_person(folder: Path) -> None:
    async with far(folder) as place:
        client = await place.enter()
        link = await client.call_and_get_link()
        began_at = asyncio.get_running_loop().time()
        assert (await request(place.port, "DELETE", "/mcp", {"mcp-session-id": client.session})).status == 204
        await until(lambda: not len(place.front.sessions))
        assert asyncio.get_running_loop().time() - began_at < 5
        assert "You are signed in" in (await Browser().sign_in(link)).text


@on_loop
async def test_readiness_does_not_sign_anybody_in(folder: Path) -> None:
    async with far(folder, TWO) as place:
        place.home.wants = lambda request: ""
        client = Client(place.port, "secret-of-ann")
        assert "token=" in (await client.open(ABLE))["error"]["message"]
        assert place.home.count("/authorize") == 0
