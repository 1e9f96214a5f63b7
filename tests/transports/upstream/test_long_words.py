"""Words of a server that are made to take long: a search that takes the square of their length would stop everybody."""

from __future__ import annotations

import time

import pytest

from dragoman.core.rules.notifications import UPDATED, covering, covers
from dragoman.trace.redact import _CHALLENGED
from dragoman.transports.upstream.failures import tells_of_session


@pytest.mark.parametrize(
    ("words", "tells"),
    [
        ("No valid session ID provided", True),
        ("the Session\nis GONE", True),
        ("Server not initialized", True),
        ("no such tool", False),
        ("session is fine", False),
        ("a " * 100_000, False),
        ("session " * 100_000, False),
    ],
)
def test_whether_a_server_speaks_of_a_lost_session_is_seen_in_one_go(words: str, tells: bool) -> None:
    began = time.process_time()
    assert tells_of_session(words) is tells
    assert time.process_time() - began < 2


def test_a_resource_with_very_many_parts_is_a_part_of_nothing() -> None:
    uri = "x:" + "/a" * 200_000
    assert len(list(covering(UPDATED, uri))) == 1
    assert (covers([uri], uri), covers(["x:/a"], uri), covers(["x:/a"], "x:/a/a")) == (True, False, True)


def test_a_long_word_in_a_challenge_is_looked_at_once() -> None:
    began = time.process_time()
    assert _CHALLENGED.findall("a" * 200_000) == []
    assert _CHALLENGED.findall('Bearer realm="x", error=no') == ["realm", "error"]
    assert time.process_time() - began < 2
