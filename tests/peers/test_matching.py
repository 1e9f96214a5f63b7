"""The comparisons must be able to say no."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.peers.matching import ABSENT, Has, Row, Says, look, matches
from tests.peers.visits import check, environment

REPORT = {"calls": {"echo": {"content": [{"text": "hello"}]}}, "nothing": None}
ROWS = (("echo", "calls/echo/content/0/text", "hello"), ("other", "calls/other", {}), ("nothing", "nothing", 1))


@pytest.mark.parametrize(
    ("at", "found"),
    [
        ("calls/echo/content/0/text", "hello"),
        ("calls/echo/content/1", ABSENT),
        ("calls/other/content", ABSENT),
        ("nothing", None),
        ("nothing/more", ABSENT),
    ],
)
def test_look_returns_the_value_or_absent(at: str, found: Any) -> None:
    assert look(REPORT, at) == found


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        ({"a": 1, "b": 2}, Has({"a": 1, "c": ABSENT})),
        ([{"a": 1}], [Has({})]),
        ("visit https://example.com", Says("https://")),
        (1.0, 1),
    ],
)
def test_matching_values_match(found: Any, expected: Any) -> None:
    assert matches(found, expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1}),
        ({}, {"a": ABSENT}),
        ({"a": 1}, Has({"a": ABSENT})),
        ([], [1]),
        ("visit", Says("https://")),
        (None, Says("")),
        (True, 1),
        (None, ABSENT),
        ("1", 1),
    ],
)
def test_other_values_do_not(found: Any, expected: Any) -> None:
    assert not matches(found, expected)


@pytest.mark.parametrize(
    ("client", "server", "route", "covered"),
    [("A", "C", "proxy", True), ("C", "A", "proxy", False), ("A", "C", "direct", False)],
)
def test_row_covers_its_pairs_and_route(client: str, server: str, route: str, covered: bool) -> None:
    assert Row("topic", "AB", "CD", "place", 1, "reason", "proxy").covers(client, server, route) is covered


def test_every_row_that_does_not_hold_is_named() -> None:
    rows = [Row(topic, "A", "A", at, said, "so it is") for topic, at, said in ROWS]
    check(REPORT, rows[:1])
    with pytest.raises(pytest.fail.Exception) as failed:
        check({**REPORT, "log": "words of the proxy"}, rows)
    assert all(word in str(failed.value) for word in ("other:", "nothing:", "2 of 3 rows", "words of the proxy"))
    assert "echo:" not in str(failed.value)
    with pytest.raises(AssertionError, match="says nothing"):
        check(REPORT, [])


class Changing(dict[str, str]):
    """An environment that loses a variable when its names have been listed."""

    def keys(self) -> Any:
        return ["GONE", *super().keys()]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())


def test_an_environment_is_copied_while_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", Changing(STAYS="1"))
    assert environment(MORE="2") == {"STAYS": "1", "MORE": "2"}
