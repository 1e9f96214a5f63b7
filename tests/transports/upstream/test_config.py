"""URLs and headers: what is accepted, what is said about the rest, and that no secret is."""

from __future__ import annotations

import pytest

from dragoman.transports.upstream.config import UpstreamConfig, check_url, origin_of, parse_header


@pytest.mark.parametrize("url", ["http://h/mcp", "https://h:8443", "ws://127.0.0.1:1/ws", "wss://[::1]/x?y=z"])
def test_urls_of_servers_are_accepted(url: str) -> None:
    assert check_url(url) == url


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("h/mcp", "found none of them: put http:// or https:// before it"),
        ("localhost:8080/mcp", "found none of them: put http:// or https:// before it"),
        ("ftp://h/", "found 'ftp'"),
        ("http:///mcp", "names a host"),
        ("http://h/#part", "without fragment"),
        ("http://h:port/", "something that cannot be one"),
        ("http://[", "something that cannot be one"),
    ],
)
def test_other_urls_are_refused_by_name(url: str, named: str) -> None:
    with pytest.raises(ValueError, match=named.replace("[", r"\[")):
        check_url(url)


def test_secrets_of_a_url_are_shown_nowhere() -> None:
    config = UpstreamConfig("https://user:secret@h:1/mcp?token=secret", headers=(("A", "secret"),))
    assert config.peer == "https://h:1/mcp"
    assert "secret" not in repr(config)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://h/a", "http://h:80/b", True),
        ("https://H/a", "https://h.:443/b", True),
        ("http://h/", "https://h/", False),
        ("http://h:1/", "http://h:2/", False),
        ("http://h/", "http://i/", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(one: str, other: str, same: bool) -> None:
    assert (origin_of(one) == origin_of(other)) is same


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("X-Key=v", ("X-Key", "v")),
        ("X-Key=a=b", ("X-Key", "a=b")),
        ("X-Key=", ("X-Key", "")),
        ("X-Key: v", ("X-Key", "v")),
        ("X-Key:a=b:c", ("X-Key", "a=b:c")),
        ("X-Key=a: b", ("X-Key", "a: b")),
        ("Authorization: Bearer $TOKEN", ("Authorization", "Bearer t0p")),
        ("Authorization=Bearer $TOKEN", ("Authorization", "Bearer t0p")),
        ("Authorization=Bearer ${TOKEN}s", ("Authorization", "Bearer t0ps")),
        ("X-Price=$$5", ("X-Price", "$5")),
        ("X-Price=5 $", ("X-Price", "5 $")),
    ],
)
def test_headers_take_values_from_the_environment(text: str, header: tuple[str, str]) -> None:
    assert parse_header(text, {"TOKEN": "t0p"}) == header


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("X-Key", "expected NAME=VALUE"),
        ("X Key=v", "expected NAME=VALUE"),
        ("=v", "expected NAME=VALUE"),
        ("X-Key=$MISSING", "no variable MISSING"),
        ("Mcp-Session-Id=s", "written by the transport itself"),
        ("Sec-WebSocket-Protocol=x", "written by the transport itself"),
        ("content-TYPE=s", "written by the transport itself"),
        ("X-Key=$INJECTED", "control character"),
        ("X-Key=a\r\nX-Other: b", "control character"),
        ("X-Key=\ud800", "a character that HTTP headers cannot"),
    ],
)
def test_what_is_no_header_is_refused_without_its_value(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        parse_header(text, {"INJECTED": "top\r\nsecret"})
    assert "secret" not in str(caught.value)
