"""Log levels of requests, at a server that has one for its whole session."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.bridge.levels import RequestLevels


def test_the_server_is_told_what_the_first_request_wants() -> None:
    levels = RequestLevels()
    assert levels.start("a", "info") == "info"
    assert levels.start("b", "info") is None
    assert levels.start("c", "error") is None


def test_a_request_that_wants_nothing_changes_nothing() -> None:
    levels = RequestLevels()
    assert levels.start("a", None) is None
    levels.end("a", 0.0)
    assert levels.next_s is None
    assert not levels.wants("a", "emergency")


def test_more_is_told_at_once_and_less_after_a_while() -> None:
    levels = RequestLevels(pause_s=5)
    levels.start("a", "error")
    assert levels.start("b", "debug") == "debug"
    levels.end("b", 10.0)
    assert levels.next_s == 15.0
    assert levels.settle(14.9) is None
    assert levels.settle(15.0) == "error"
    assert levels.settle(16.0) is None
    assert levels.start("c", "debug") == "debug"


def test_a_level_that_is_wanted_again_stays() -> None:
    levels = RequestLevels(pause_s=5)
    levels.start("a", "error")
    levels.start("b", "debug")
    levels.end("b", 10.0)
    assert levels.start("c", "debug") is None
    assert levels.settle(15.0) is None


def test_the_pause_begins_with_the_first_that_ends() -> None:
    levels = RequestLevels(pause_s=5)
    for request, level in (("a", "error"), ("b", "debug"), ("c", "info")):
        levels.start(request, level)
    levels.end("b", 10.0)
    assert levels.next_s == 15.0
    levels.end("c", 12.0)
    assert levels.next_s == 15.0
    assert levels.settle(15.0) == "error"


def test_a_server_whose_messages_nobody_wants_is_told_to_say_the_least() -> None:
    levels = RequestLevels(pause_s=5)
    levels.start("a", "debug")
    levels.end("a", 10.0)
    assert levels.next_s == 15.0
    assert levels.start("b", "info") is None
    assert levels.settle(15.0) == "info"
    levels.end("b", 20.0)
    assert levels.next_s == 25.0
    assert levels.settle(25.0) == "emergency"
    levels.end("other", 26.0)
    assert levels.next_s is None


@pytest.mark.parametrize(
    ("level", "wanted"),
    [("debug", False), ("info", True), ("emergency", True), ("loud", False), (None, False), (["info"], False)],
)
def test_a_request_gets_its_level_and_above(level: Any, wanted: bool) -> None:
    levels = RequestLevels()
    levels.start("a", "info")
    levels.start("b", "debug")
    assert levels.wants("a", level) is wanted
    assert not levels.wants("other", level)
