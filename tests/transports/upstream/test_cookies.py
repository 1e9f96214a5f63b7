"""Cookies that keep a session on one machine of many."""

from __future__ import annotations

import pytest

from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.cookies import Cookies
from tests.transports.upstream.raw import OK, Line, ask, on_both_loops, raw_server, wire_to

URL = "https://a.example.org/x/mcp"


def after(*lines: str, url: str = URL, asked: str = URL, headers: tuple[tuple[str, str], ...] = ()) -> str:
    cookies = Cookies(UpstreamConfig(url, headers=headers))
    for line in lines:
        cookies.take(line, url)
    return cookies.give(asked)


@pytest.mark.parametrize(
    ("lines", "given"),
    [
        (["a=b"], "a=b"),
        (["a=b; Path=/; HttpOnly; Secure; SameSite=Lax", "c=d"], "a=b; c=d"),
        (["a=b\nc=d"], "a=b; c=d"),
        (["a=b", "a=c"], "a=c"),
        ([' a = "b c" ;x'], 'a="b c"'),
        (["a="], "a="),
        (["a=b; Max-Age=100"], "a=b"),
        (["a=b; Expires=Wed, 01 Jan 2200 00:00:00 GMT"], "a=b"),
        (["a=b; Expires=nonsense; Max-Age=soon"], "a=b"),
        (["a=b", "a=; Max-Age=0"], ""),
        (["a=b", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], ""),
        (["a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9"], "a=b"),
        (["a=b; Domain=example.org"], "a=b"),
        (["a=b; Domain=.EXAMPLE.org"], "a=b"),
        (["a=b; Domain=other.org"], ""),
        (["a=b; Domain=ample.org"], ""),
        (["a=b; Path=/x"], "a=b"),
        (["a=b; Path=/x/mcp"], "a=b"),
        (["a=b; Path=/x/m"], ""),
        (["a=b; Path=/elsewhere"], ""),
        (["a=b; Path=relative"], "a=b"),
        (["nothing", "=b", ""], ""),
        (["a=b\x01c", "a=\x7f", "a=" + "b" * 5000], ""),
    ],
)
def test_what_is_set_is_given_back_where_it_belongs(lines: list[str], given: str) -> None:
    assert after(*lines) == given


def test_a_cookie_for_tls_is_not_kept_without_it() -> None:
    assert after("a=b; Secure", url="http://h/", asked="http://h/") == ""


def test_a_cookie_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    cookies = Cookies(UpstreamConfig(URL))
    cookies.take("a=b; Max-Age=100", URL)
    monkeypatch.setattr("dragoman.transports.upstream.cookies.time.time", lambda: 2.0**33)
    assert cookies.give(URL) == ""


def test_the_users_own_cookies_come_first() -> None:
    assert after("a=b", headers=(("Cookie", "x=y"),)) == "x=y; a=b"


def test_no_more_are_kept_than_a_server_needs() -> None:
    assert after(*(f"a{number}=b" for number in range(1000))).count("=") == 50


@on_both_loops
async def test_a_server_gets_back_what_it_set() -> None:
    heads: list[bytes] = []

    async def handle(line: Line) -> None:
        while head := await line.request():
            heads.append(head)
            await line.say(OK.replace(b"OK", b"OK\r\nSet-Cookie: a=b; Path=/\r\nX: y\r\nset-cookie: c=d"))

    async with raw_server(handle) as url, wire_to(url) as wire:
        await ask(wire)
        await ask(wire)
    assert b"Cookie" not in heads[0]
    assert b"\r\nCookie: a=b; c=d\r\n" in heads[1]
