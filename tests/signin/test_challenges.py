"""Reading `WWW-Authenticate`."""

from __future__ import annotations

import pytest

from dragoman.signin.discovery import read_bearer
from tests.support.effort import effort


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", {}),
        ("Bearer", {}),
        ("Basic realm=x", None),
        ("Negotiate YII==, Basic realm=x", None),
        ('Bearer scope="a b", error=insufficient_scope', {"scope": "a b", "error": "insufficient_scope"}),
        ('bearer Resource_Metadata="https://h/p?a=b,c"', {"resource_metadata": "https://h/p?a=b,c"}),
        ('Basic realm="Bearer x=1", Bearer a = "1"', {"a": "1"}),
        ('Bearer a="1", Digest a="2", b="3"', {"a": "1"}),
        (r'Bearer error_description="say \"x\"\\"', {"error_description": r'say "x"\\'[:-1]}),
        ('Bearer a="open', {"a": ""}),
        ("Bearer , ,a=1,,b=2", {"a": "1", "b": "2"}),
    ],
)
def test_the_parameters_of_the_challenge_for_a_bearer_token(header: str, expected: dict[str, str] | None) -> None:
    found = read_bearer(header)
    assert found == expected


@pytest.mark.parametrize("said", [",", ", ", " ", 'a="', 'a="\\"', "a ", "a=,", '"', "Bearer ", "="])
def test_however_long_it_is_each_character_is_read_once_or_twice(said: str) -> None:
    assert effort(lambda: read_bearer("Bearer " + said * (60_000 // len(said)))) < 10
