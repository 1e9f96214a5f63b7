"""What a trace leaves out, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.trace.redact import REDACTED, TOO_DEEP, redact
from tests.support.nesting import deep


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "Authorization",
        "proxy-authorization",
        "password",
        "db_password",
        "token",
        "access_token",
        "refreshToken",
        "apiKey",
        "api_key",
        "X-API-Key",
        "clientSecret",
        "cookie",
        "Set-Cookie",
        "credentials",
        "privateKey",
    ],
)
def test_a_value_whose_name_looks_like_a_secret_is_left_out(name: str) -> None:
    assert redact({"a": [{name: "value"}]}) == {"a": [{name: REDACTED}]}


@pytest.mark.parametrize(
    "name", ["progressToken", "maxTokens", "nextCursor", "key", "keys", "author", "taskId", "tokens", "name", "_meta"]
)
def test_other_names_are_not(name: str) -> None:
    assert redact({name: "value"}) == {name: "value"}


def test_all_that_stands_under_a_secret_name_is_left_out() -> None:
    value = {"credentials": {"user": "ada", "keys": ["k", 1, None, True]}}
    assert redact(value) == {"credentials": {"user": REDACTED, "keys": [REDACTED, REDACTED, None, True]}}


@pytest.mark.parametrize(
    ("headers", "left"),
    [({"X-Plain": "v"}, {"X-Plain": REDACTED}), ([["X-Plain", "v"]], [[REDACTED, REDACTED]])],
)
def test_values_of_headers_are_left_out_whatever_they_are_called(headers: Any, left: Any) -> None:
    assert redact({"headers": headers}) == {"headers": left}


def test_the_schema_of_a_secret_is_none() -> None:
    schema = {"properties": {"password": {"type": "string", "description": "the password"}}}
    assert redact({"inputSchema": schema}) == {"inputSchema": schema}


def test_a_secret_among_values_that_are_called_properties_is_left_out() -> None:
    assert redact({"properties": {"password": "hunter2"}}) == {"properties": {"password": REDACTED}}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abcdefgh", f"Authorization: Bearer {REDACTED}"),
        ('Bearer error="invalid_token", scope="a"', 'Bearer error="invalid_token", scope="a"'),
        ("Bearer error=abcdefgh", f"Bearer {REDACTED}"),
        ("password=hunter2 and more", f"password={REDACTED} and more"),
        ('{"apiKey": "abc\\"d", "n": 1}', f'{{"apiKey": "{REDACTED}", "n": 1}}'),
        ("https://ada:hunter2@example.com/x", f"https://ada:{REDACTED}@example.com/x"),
        ("https://example.com/?access_token=abc&n=1", f"https://example.com/?access_token={REDACTED}&n=1"),
        ("the progressToken: 5", "the progressToken: 5"),
        ("maxTokens=5", "maxTokens=5"),
        ("GITHUB_TOKEN=abc", f"GITHUB_TOKEN={REDACTED}"),
        ("no secrets here, only a token of gratitude", "no secrets here, only a token of gratitude"),
    ],
)
def test_secrets_in_texts_are_left_out(text: str, left: str) -> None:
    assert redact({"text": text}) == {"text": left}


@pytest.mark.parametrize("filling", ["x" * 16_300, "a-" * 200_000, '{"n": 1}, ' * 20_000, "token-" * 50_000])
def test_secrets_in_long_texts_are_left_out(filling: str) -> None:
    text = f'{filling}, "password": "hunter2", {filling}'
    assert redact(text) == text.replace("hunter2", REDACTED)


def test_what_is_given_is_not_changed() -> None:
    given = {"a": {"password": "p"}}
    redact(given)
    assert given == {"a": {"password": "p"}}


@pytest.mark.parametrize("kind", ["list", "x", "properties", "headers", "password"])
def test_of_what_is_too_deep_to_be_looked_through_nothing_is_shown(kind: str) -> None:
    assert redact(deep(2000, kind)) == TOO_DEEP
