"""Through the proxy of a company's network: by which variables, with what credentials, and what it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import TransportError
from dragoman.transports.upstream.proxies import find_proxy
from tests.support.company_proxy import company_proxy
from tests.transports.upstream.raw import OK, Line, ask, on_both_loops, raw_server, wire_to
from tests.transports.upstream.stage import Reply, Request, client, server, shake_hands
from tests.transports.upstream.test_tls import certificate, context  # noqa: F401
from tests.transports.upstream.test_upgrade import YES, accept_of, opened

NAMES = {"mcp.example.com": "127.0.0.1"}
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def serve(request: Request, reply: Reply) -> None:
    if not await shake_hands(request, reply):
        await reply.result(request, {})


async def answer_all(line: Line) -> None:
    while await line.request():
        await line.say(OK)


def abroad(url: str) -> str:
    """Give a URL by a name that only the proxy knows."""
    return url.replace("127.0.0.1", "mcp.example.com")


def port_of(url: str) -> str:
    found = re.search(r":(\d+)", url)
    assert found
    return found[1]


@pytest.mark.parametrize(
    ("url", "environment", "found"),
    [
        ("https://example.com/mcp", {"HTTPS_PROXY": "http://secret@p:1"}, "the proxy p:1 (HTTPS_PROXY)"),
        ("wss://example.com/mcp", {"https_proxy": "p:1"}, "the proxy p:1 (https_proxy)"),
        ("https://example.com/mcp", {"https_proxy": "p:1", "HTTPS_PROXY": "q:1"}, "the proxy p:1 (https_proxy)"),
        ("http://example.com/mcp", {"HTTPS_PROXY": "http://p:1"}, None),
        ("http://example.com/mcp", {"ALL_PROXY": "http://p"}, "the proxy p:80 (ALL_PROXY)"),
        ("http://example.com/mcp", {"HTTP_PROXY": " http://p:1\n"}, "the proxy p:1 (HTTP_PROXY)"),
        ("http://example.com/mcp", {"HTTP_PROXY": ""}, None),
        ("http://example.com/mcp", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "x, .Example.com"}, None),
        ("http://a.example.com/mcp", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "*.example.com"}, None),
        ("http://example.com/mcp", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("http://example.com/mcp", {"HTTP_PROXY": "http://p:1", "no_proxy": "ample.com"}, "the proxy p:1 (HTTP_PROXY)"),
        ("http://a:81/mcp", {"HTTP_PROXY": "http://p:1", "no_proxy": "a:82"}, "the proxy p:1 (HTTP_PROXY)"),
        ("http://a:82/mcp", {"HTTP_PROXY": "http://p:1", "no_proxy": "a:82"}, None),
        ("http://10.1.2.3/mcp", {"HTTP_PROXY": "http://p:1", "no_proxy": "10.0.0.0/8"}, None),
        ("http://11.1.2.3/mcp", {"HTTP_PROXY": "http://p:1", "no_proxy": "10.0.0.0/8"}, "the proxy p:1 (HTTP_PROXY)"),
        ("http://localhost:8080/mcp", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://127.0.0.1/mcp", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://[::1]/mcp", {"HTTP_PROXY": "http://p:1"}, None),
    ],
)
def test_the_environment_names_the_proxy_as_for_other_programs(
    url: str, environment: dict[str, str], found: str | None
) -> None:
    proxy = find_proxy(url, None, environment)
    assert (None if proxy is None else str(proxy)) == found


@pytest.mark.parametrize(
    ("exempt", "without", "through"),
    [
        ("*", "a.example b.example:81 10.0.0.1 [2001:db8::1]", ""),
        ("a.example", "a.example x.a.example A.Example a.example. a.example:81", "ba.example a.example.org 10.0.0.1"),
        (".a.example", "a.example x.a.example", "ba.example"),
        ("*.a.example", "a.example x.a.example", "ba.example"),
        ("a.example.", "a.example", "example"),
        ("a.example:81", "a.example:81 x.a.example:81", "a.example a.example:8181"),
        ("https://a.example", "a.example", "b.example"),
        ("https://a.example/", "a.example", "b.example"),
        ("http://a.example:81/", "a.example:81", "a.example"),
        ("b.example,a.example", "a.example b.example", "c.example"),
        (" b.example ,\ta.example ", "a.example b.example", "c.example"),
        ("b.example a.example", "a.example b.example", "c.example"),
        (",,", "", "a.example"),
        ("10.0.0.1", "10.0.0.1 10.0.0.1:81", "10.0.0.10 210.0.0.1"),
        ("10.0.0.1:81", "10.0.0.1:81", "10.0.0.1"),
        ("10.1.0.0/16", "10.1.2.3", "10.2.1.1 a10.1.0.0"),
        ("10.1.2.3/16", "10.1.9.9", "10.2.1.1"),
        ("2001:db8::1", "[2001:db8::1] [2001:db8:0::1]:81", "[2001:db8::2] 10.0.0.1"),
        ("[2001:db8::1]", "[2001:db8::1] [2001:db8::1]:81", "[2001:db8::2]"),
        ("[2001:db8::1]:81", "[2001:db8::1]:81", "[2001:db8::1]"),
        ("2001:db8::/32", "[2001:db8:5::1]", "[2001:db9::1] 10.0.0.1"),
        ("[2001:db8::]/32", "[2001:db8:5::1]", "[2001:db9::1]"),
        ("xn--bcher-kva.example", "bücher.example xn--bcher-kva.example", "bucher.example"),
        ("bücher.example", "bücher.example x.xn--bcher-kva.example", "bucher.example"),
        ("BÜCHER.example", "bücher.example", "bucher.example"),
        ("10.0.0.0/99", "", "10.0.0.1 a.example"),
        ("[a", "", "a.example [2001:db8::1]"),
        ("a.example/path", "", "a.example"),
    ],
)
def test_whom_no_proxy_leaves_out(exempt: str, without: str, through: str) -> None:
    environment = {"HTTPS_PROXY": "http://p:1", "NO_PROXY": exempt}
    found = {
        where: find_proxy(f"https://{where}/mcp", None, environment) for where in (without + " " + through).split()
    }
    assert {where for where, proxy in found.items() if proxy is None} == set(without.split())


@on_both_loops
async def test_a_proxy_that_is_not_there_is_named_without_tls_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:1")
    async with wire_to("http://mcp.example.com/mcp") as wire:
        with pytest.raises(TransportError, match=r"the proxy 127\.0\.0\.1:1 \(HTTP_PROXY\)") as caught:
            await ask(wire)
    assert "secret" not in str(caught.value)


def test_a_proxy_that_is_asked_for_leads_to_loopback_too() -> None:
    assert find_proxy("http://127.0.0.1/mcp", "http://p:1", {}) is not None
    assert find_proxy("https://example.com/mcp", "none", {"HTTPS_PROXY": "http://p:1"}) is None


@on_both_loops
async def test_a_socks_proxy_is_passed_over_with_a_word(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://user:secret@p:1")
    async with wire_to("http://nowhere.invalid/mcp") as wire:
        with pytest.raises(TransportError, match=r"the name nowhere\.invalid is not known"):
            await ask(wire)
    assert "ALL_PROXY is ignored: it names a SOCKS proxy" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    "text", ["http://", "ftp://secret:1", "http://secret:x", "http://[secret", "socks5://secret:1"]
)
def test_what_is_no_url_of_a_proxy_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"^as configured: expected http://HOST:PORT") as caught:
        find_proxy("https://example.com/", text, {})
    assert "secret" not in str(caught.value)


@on_both_loops
async def test_requests_without_tls_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(serve) as url, company_proxy(NAMES) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://{proxy.address}")
        async with client(abroad(url)) as peer:
            assert "result" in await peer.ask("ping")
        assert f"POST {abroad(url)}" in proxy.asked


@on_both_loops
async def test_tls_goes_through_a_tunnel_that_the_proxy_cannot_look_into(
    certificate: Path,  # noqa: F811
) -> None:
    async with (
        server(serve, tls=context(certificate)) as url,
        company_proxy(user="ann:pass word") as proxy,
        client(url, proxy=f"http://ann:pass%20word@{proxy.address}", ca_file=str(certificate)) as peer,
    ):
        assert "result" in await peer.ask("ping")
        assert set(proxy.asked) == {f"CONNECT 127.0.0.1:{port_of(url)}"}


@on_both_loops
async def test_a_proxy_may_be_spoken_to_by_tls_itself(certificate: Path) -> None:  # noqa: F811
    tls = context(certificate)
    async with server(serve, tls=tls) as url, company_proxy(tls=tls) as proxy:
        async with client(url, proxy=f"https://{proxy.address}", ca_file=str(certificate)) as peer:
            assert "result" in await peer.ask("ping")
        assert set(proxy.asked) == {f"CONNECT 127.0.0.1:{port_of(url)}"}


@on_both_loops
async def test_a_websocket_goes_through_a_tunnel_without_tls_too() -> None:
    async def handle(line: Line) -> None:
        head = await line.reader.readuntil(b"\r\n\r\n")
        await line.say(YES.replace(b"%s", accept_of(head)) + b"\r\n")
        await line.ended()

    async with raw_server(handle) as url, company_proxy(NAMES) as proxy:
        where = abroad(url).replace("http", "ws", 1)
        async with opened(where, proxy=f"http://{proxy.address}"):
            pass
        assert proxy.asked == [f"CONNECT mcp.example.com:{port_of(url)}"]


@on_both_loops
async def test_a_tunnel_is_used_again(certificate: Path) -> None:  # noqa: F811
    async with raw_server(answer_all, ssl=context(certificate)) as url, company_proxy() as proxy:
        async with wire_to(url, proxy=f"http://{proxy.address}", ca_file=str(certificate)) as wire:
            for _ in range(3):
                assert await ask(wire) == (200, b"ok")
        assert len(proxy.asked) == 1


@on_both_loops
async def test_a_connection_on_which_requests_are_handed_on_is_not() -> None:
    """Tinyproxy closes it after the first answer, in which it does not say so: the next POST would be lost."""
    async with raw_server(answer_all) as url, company_proxy(NAMES) as proxy:
        async with wire_to(abroad(url), proxy=f"http://{proxy.address}") as wire:
            for _ in range(3):
                assert await ask(wire) == (200, b"ok")
        assert len(proxy.asked) == 3


REFUSED = b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n"
OTHER = "it wants credentials of a kind that is not spoken here"
WANTS = b"HTTP/1.1 407 No\r\n%bContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("user", "answer", "said"),
    [
        ("", REFUSED % b"502 Bad", "it does not lead to mcp.example.com:443: it answered 502 Bad Gateway"),
        ("", REFUSED % b"403 No", "it does not lead to mcp.example.com:443: it answered 403 Forbidden"),
        ("", WANTS % b"", "it wants credentials: write its URL as http://USER:PASSWORD@HOST:PORT"),
        ("", WANTS % b"Proxy-Authenticate: NTLM\r\n", f"{OTHER} (NTLM; Basic is)"),
        ("", WANTS % b"Proxy-Authenticate: X,\tNTLM a==\r\n", f"{OTHER} (NTLM, X; Basic is)"),
        ("", WANTS % b'Proxy-Authenticate: Digest realm="a, b", c="=="\r\n', f"{OTHER} (Digest; Basic is)"),
        ("", WANTS % b"Proxy-Authenticate: Basic,NTLM\r\n", "it wants credentials: write its URL as"),
        ("ann:secret@", WANTS % b"", "it does not accept the user and password that its URL has"),
        ("ann:secret@", b"SSH-2.0-x\r\n\r\n", "its answer is not HTTP"),
    ],
)
@on_both_loops
async def test_a_refusal_names_the_proxy_and_never_the_password(user: str, answer: bytes, said: str) -> None:
    async with company_proxy(answer=answer) as proxy:
        config = {"proxy": f"http://{user}{proxy.address}"}
        async with wire_to("https://mcp.example.com/mcp", **config) as wire:
            with pytest.raises(TransportError) as caught:
                await ask(wire)
    found = str(caught.value)
    assert f"the proxy {proxy.address} (as configured): {said}" in found
    assert "secret" not in found


@on_both_loops
async def test_what_goes_wrong_in_a_tunnel_names_the_proxy_too() -> None:
    async with company_proxy(answer=b"HTTP/1.1 200 OK\r\n\r\n<html>blocked</html>") as proxy:
        config = {"proxy": f"http://{proxy.address}"}
        async with wire_to("https://mcp.example.com/mcp", **config) as wire:
            with pytest.raises(TransportError) as caught:
                await ask(wire)
    assert f"/mcp: through the proxy {proxy.address} (as configured): no " in str(caught.value)


@on_both_loops
async def test_a_proxy_that_is_not_there_is_named() -> None:
    async with wire_to("https://mcp.example.com/mcp", proxy="http://ann:secret@127.0.0.1:1") as wire:
        with pytest.raises(
            TransportError, match=r"the proxy 127\.0\.0\.1:1 \(as configured\): no connection"
        ) as caught:
            await ask(wire)
    assert "secret" not in str(caught.value)


@on_both_loops
async def test_a_proxy_that_hangs_up_is_named() -> None:
    async def handle(line: Line) -> None:
        await line.reader.readuntil(b"\r\n\r\n")

    async with raw_server(handle) as url, wire_to("https://a.example.com/", proxy=url.removesuffix("/mcp")) as wire:
        with pytest.raises(TransportError, match="it closed the connection"):
            await ask(wire)


@on_both_loops
async def test_a_proxy_that_says_nothing_is_given_up() -> None:
    async def handle(line: Line) -> None:
        await line.reader.read()

    config: dict[str, Any] = {"connect_timeout_s": 0.2}
    async with raw_server(handle) as url:
        config["proxy"] = url.removesuffix("/mcp")
        async with wire_to("https://a.example.com/", **config) as wire:
            with pytest.raises(TransportError, match=r"the proxy .*: no connection in time"):
                await ask(wire)


REFUSED = b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("answer", "hangs_up"),
    [
        (REFUSED + b"\r\nProxy Authentication Required", True),  # as proxy.py says it: with no length
        (REFUSED + b"\r\nProxy Authentication Required", False),
        (REFUSED + b"Content-Length: 99\r\n\r\nPro", True),
        (b"HTTP/1.1 200 Connection established\r\n\r\n", True),
        (b"HTTP/1.1 200 Connection established\r\n\r\n", False),
        (b"HTTP/1.1 200", False),
        (b"", True),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
@on_both_loops
async def test_no_socket_is_left_when_a_proxy_ends_badly_or_late(scheme: str, answer: bytes, hangs_up: bool) -> None:
    ended = asyncio.Event()

    async def refuse(line: Line) -> None:
        await line.request()
        await line.say(answer)
        if hangs_up and line.writer.can_write_eof():
            line.writer.write_eof()
        while not await line.ended():
            pass
        ended.set()

    async with raw_server(refuse) as url:
        config: dict[str, Any] = {"proxy": url.removesuffix("/mcp"), "connect_timeout_s": 0.2}
        async with wire_to(f"{scheme}://mcp.example.com/mcp", **config) as wire:
            with contextlib.suppress(TransportError, TimeoutError):  # one that ends in a body has been an answer
                async with asyncio.timeout(0.5):
                    await ask(wire)
        await asyncio.wait_for(ended.wait(), 15)


@on_both_loops
async def test_a_server_whose_client_left_is_closed_although_no_proxy_tells_it(certificate: Path) -> None:  # noqa: F811
    """The end of TLS comes from the client, and proxy.py may pass it on late."""
    left, gone = asyncio.Event(), asyncio.Event()

    async def lead(line: Line) -> None:
        head = await line.request()
        there, back = await asyncio.open_connection("127.0.0.1", int(head.split(b" ")[1].rpartition(b":")[2]))
        await line.say(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def bring() -> None:
            with contextlib.suppress(ConnectionError):
                while data := await there.read(65_536):
                    line.writer.write(data)
            gone.set()

        bringing = asyncio.create_task(bring())
        try:
            while data := await line.reader.read(65_536):
                back.write(data)
            left.set()
            await bringing
        finally:
            back.transport.abort()

    async with raw_server(lead) as proxy:
        async with raw_server(answer_all, ssl=context(certificate)) as url:
            async with wire_to(url, proxy=proxy.removesuffix("/mcp"), ca_file=str(certificate)) as wire:
                assert await ask(wire) == (200, b"ok")
            await asyncio.wait_for(left.wait(), 15)
        await asyncio.wait_for(gone.wait(), 15)
