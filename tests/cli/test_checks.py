"""What the network options of `dragoman proxy` may say; what they may not is in `test_listen` and `test_upstream`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman import values
from dragoman.cli import checks
from dragoman.transports.http.config import Paths


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("http://127.0.0.1:0", ("127.0.0.1", 0, "http")),
        ("https://[::1]:8443/", ("::1", 8443, "https")),
        ("http://localhost:80", ("localhost", 80, "http")),
    ],
)
def test_an_address_is_host_port_and_scheme(text: str, found: tuple[str, int, str]) -> None:
    assert values.address(text) == found


@pytest.mark.parametrize("text", ["http://[::1", "http://:80", "http://h:80?x", "http://h:80#x", "http://h:99999"])
def test_what_is_more_or_less_than_an_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected http://HOST:PORT"):
        values.address(text)


@pytest.mark.parametrize("text", ["*", "example.com", "example.com:8080", "[::1]:80", "EXAMPLE.com"])
def test_what_a_host_header_can_say_is_taken_as_it_is(text: str) -> None:
    assert values.host(text) == text


@pytest.mark.parametrize(
    "text", ["*", "null", "https://a.example", "http://localhost:*", "http://[::1]:80", "chrome-extension://abc"]
)
def test_what_an_origin_header_can_say_is_taken_as_it_is(text: str) -> None:
    assert values.origin(text) == text


@pytest.mark.parametrize("text", ["a.example", "https://a.example/page", "https://", "https://*.a.example", ""])
def test_what_no_origin_header_can_say_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected SCHEME"):
        values.origin(text)


def test_a_file_may_be_a_pipe_and_is_not_read_before_its_time(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert values.readable_file(str(pipe)) == str(pipe)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_of_somebody_else_is_named(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o000)
    with pytest.raises(ValueError, match="may not be read by this user"):
        values.readable_file(str(secret))


def test_the_path_of_messages_is_the_one_that_is_served() -> None:
    assert Paths().messages == checks.MESSAGES_PATH
