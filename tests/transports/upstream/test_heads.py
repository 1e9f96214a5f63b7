"""The bytes before a body: what they are, and that nothing in a header can end it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import TransportError
from dragoman.transports.upstream.config import UpstreamConfig, parse_header
from dragoman.transports.upstream.heads import Heads, host_of
from tests.transports.upstream.raw import Line, on_both_loops, raw_server, wire_to


def write(url: str, *headers: tuple[str, str], method: str = "GET", asked: dict[str, str] | None = None) -> list[str]:
    """Give the lines of the head of a request."""
    head = Heads(UpstreamConfig(url, headers=headers)).write(method, url, asked or {}, False)
    assert head.endswith(b"\r\n\r\n")
    return head.decode().split("\r\n")[:-2]


def test_a_post_says_what_it_carries_and_asks_for_no_compression() -> None:
    heads = Heads(UpstreamConfig("http://h/mcp", headers=(("X-Key", "k"),)))
    assert heads.write("POST", "http://h/mcp", {"Accept": "a/b"}, True) == (
        b"POST /mcp HTTP/1.1\r\nHost: h\r\nX-Key: k\r\nAccept-Encoding: identity\r\nAccept: a/b\r\n"
        b"Content-Type: application/json\r\nContent-Length: "
    )


def test_what_changes_between_requests_is_written_anew() -> None:
    heads = Heads(UpstreamConfig("http://h/mcp"))
    for number in range(100):
        head = heads.write("GET", f"http://h/{number}", {"Last-Event-ID": str(number)}, False, f"a={number}")
        assert head.startswith(b"GET /%d HTTP/1.1\r\n" % number)
        assert b"\r\nLast-Event-ID: %d\r\nCookie: a=%d\r\n\r\n" % (number, number) in head


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h", "/"),
        ("http://h/", "/"),
        ("http://h?a=b", "/?a=b"),
        ("http://h/a/b/?q=a%20b&c=/?", "/a/b/?q=a%20b&c=/?"),
        ("http://h/a b/é?q=ü d", "/a%20b/%C3%A9?q=%C3%BC%20d"),
        ("http://h/%7E/%zz/%", "/%7E/%25zz/%25"),
        ('http://h/"<>\\^`{|}\x7f\x01', "/%22%3C%3E%5C%5E%60%7B%7C%7D%7F%01"),
        ("http://h/a:b@c!$&'()*+,;=~", "/a:b@c!$&'()*+,;=~"),
        ("http://h/a\r\nX: y", "/aX:%20y"),
    ],
)
def test_a_target_is_what_may_be_in_a_request_line(url: str, target: str) -> None:
    assert write(url)[0] == f"GET {target} HTTP/1.1"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://h/", "h"),
        ("http://H:80/", "h"),
        ("https://h:443/", "h"),
        ("https://h:80/", "h:80"),
        ("http://h:8080/", "h:8080"),
        ("http://127.0.0.1:1/", "127.0.0.1:1"),
        ("http://[::1]:1/", "[::1]:1"),
        ("http://[fe80::1%25eth0]/", "[fe80::1]"),
        ("http://user:secret@h/", "h"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://a_b.example./", "a_b.example."),
    ],
)
def test_a_host_is_named_as_the_network_knows_it(url: str, host: str) -> None:
    assert f"Host: {host}" in write(url)


@pytest.mark.parametrize(
    "url", ["http://a b/", "http://a\x01b/", "http://a,b/", "http://straße.example/", "http://é..x/"]
)
def test_a_host_that_there_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - several say it, one of them the codec
        host_of(url)


@pytest.mark.parametrize(
    ("url", "credentials"),
    [
        ("http://user:pass@h/", "dXNlcjpwYXNz"),
        ("http://user@h/", "dXNlcjo="),
        ("http://us%40er:p%C3%A9@h/", "dXNAZXI6cMOp"),
    ],
)
def test_credentials_in_a_url_are_sent(url: str, credentials: str) -> None:
    assert f"Authorization: Basic {credentials}" in write(url)


def test_a_header_goes_before_credentials_in_a_url() -> None:
    lines = write("http://user:pass@h/", ("authorization", "Bearer x"))
    assert [line for line in lines if line.lower().startswith("authorization")] == ["authorization: Bearer x"]


def test_a_header_of_middleware_goes_before_a_configured_one_and_before_credentials_in_a_url() -> None:
    def give() -> dict[str, str]:
        return {"authorization": "Bearer x", "x-KEY": "new", "host": "other"}

    url = "http://user:pass@h/"
    for configured in ((), (("Authorization", "old"), ("X-Key", "old"), ("Cookie", "a=b"))):
        config = UpstreamConfig(url, headers=configured, header_middleware=(dict, give))
        lines = Heads(config).write("GET", url, {"Accept": "a/b"}, False).decode().split("\r\n")
        for name, value in give().items():
            assert [line for line in lines if line.lower().startswith(f"{name.lower()}:")] == [f"{name}: {value}"]
        assert ("Cookie: a=b" in lines) is bool(configured)


def test_a_host_of_the_users_is_sent_in_place_of_ours() -> None:
    assert [line for line in write("http://h/", ("Host", "other")) if "ost" in line] == ["Host: other"]


def test_cookies_of_the_users_are_one_header() -> None:
    assert write("http://h/", ("Cookie", "a=b"), ("cookie", "c=d"))[-1] == "Cookie: a=b; c=d"


def test_something_is_accepted_where_nobody_says_what() -> None:
    assert "Accept: */*" in write("http://h/", method="DELETE")
    assert "Content-Length: 0" in write("http://h/", method="DELETE")
    assert write("http://h/", asked={"accept": "a/b"})[-1] == "accept: a/b"


BAD = [
    ("X\r\nY", "z"),
    ("", "z"),
    ("X Y", "z"),
    ("X:", "z"),
    ("é", "z"),
    ("X", "y\r\nZ: z"),
    ("X", "y\n"),
    ("X", "y\0z"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_header_that_would_end_early_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"^(a header has a name that|the value of the header X holds)"):
        write("http://h/", (name, value))
    with pytest.raises(ValueError, match=r"^(a header has a name that|the value of the header X holds)"):
        write("http://h/", asked={name: value})


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "CONNECTION", "Mcp-Session-Id"])
def test_a_header_that_is_ours_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is written by the transport itself"):
        write("http://h/", (name, "1"))


@given(st.text(), st.text(), st.text(max_size=20))
def test_whatever_is_asked_for_a_head_has_one_line_for_each_header(name: str, value: str, path: str) -> None:
    try:
        lines = write(f"http://h/{path}", asked={name: value})
    except (ValueError, UnicodeError):
        return
    assert len(lines) == len(write("http://h/", asked={"X": "y"})) - (name.lower() == "accept")
    assert not any("\n" in line or "\r" in line or "\0" in line for line in lines)


@on_both_loops
async def test_nothing_is_sent_of_a_request_with_a_bad_header() -> None:
    connected = False

    async def handle(line: Line) -> None:
        nonlocal connected
        connected = True

    async with raw_server(handle) as url:
        for name, value in BAD:
            async with wire_to(url, headers=((name, value),)) as wire:
                with pytest.raises(TransportError, match="nothing can be sent to it"):
                    await wire.send("POST", url, {}, b"{}")
            async with wire_to(url) as wire:
                with pytest.raises(TransportError, match="nothing can be sent to it"):
                    await wire.send("POST", url, {name: value}, b"{}")
    assert not connected


@on_both_loops
async def test_a_configured_value_is_sent_as_it_was_checked() -> None:
    heads: list[bytes] = []
    values = {"EURO": "€", "NOT_UTF_8": b"caf\xe9".decode(errors="surrogateescape")}
    headers = tuple(parse_header(f"X-{name}=${name}", values) for name in values)

    async def handle(line: Line) -> None:
        heads.append(await line.request())
        await line.say(b"HTTP/1.1 204 No\r\n\r\n")

    async with raw_server(handle) as url, wire_to(url, headers=headers) as wire:
        (await wire.send("GET", url, {})).close()
    assert "X-EURO: €\r\n".encode() in heads[0]
    assert b"X-NOT_UTF_8: caf\xe9\r\n" in heads[0]


@on_both_loops
async def test_an_event_id_comes_back_byte_for_byte() -> None:
    heads: list[bytes] = []

    async def handle(line: Line) -> None:
        heads.append(await line.request())
        await line.say(b"HTTP/1.1 204 No\r\n\r\n")

    async with raw_server(handle) as url, wire_to(url) as wire:
        (await wire.send("GET", url, {"Last-Event-ID": "é\t✓"})).close()
    assert "Last-Event-ID: é\t✓\r\n".encode() in heads[0]
