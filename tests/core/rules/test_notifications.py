"""What a subscription covers, and notices that wait."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.rules.notifications import UPDATED, Backlog, covers

TOOLS = "notifications/tools/list_changed"


@pytest.mark.parametrize(
    ("subscribed", "uri", "covered"),
    [
        ("file:///a", "file:///a", True),
        ("file:///a", "file:///a/b/c", True),
        ("file:///a/", "file:///a/b", True),
        ("file:///a", "file:///ab", False),
        ("file:///a/b", "file:///a", False),
        ("urn:x", "urn:x:y", False),
        ("/", "/a", True),
    ],
)
def test_a_subscription_covers_what_is_below_it(subscribed: str, uri: str, covered: bool) -> None:
    assert covers([subscribed], uri) is covered


def test_notices_wait_once_each_in_order() -> None:
    backlog = Backlog()
    backlog.put(TOOLS, None)
    backlog.put(UPDATED, {"uri": "a"})
    backlog.put(UPDATED, {"uri": "b"})
    backlog.put(UPDATED, {"uri": "a", "_meta": {"x": 1}})
    backlog.put(TOOLS, {})
    assert backlog.take_all() == [(UPDATED, {"uri": "b"}), (UPDATED, {"uri": "a", "_meta": {"x": 1}}), (TOOLS, {})]
    assert backlog.take_all() == []


def test_only_so_many_wait() -> None:
    backlog = Backlog(most=2)
    for uri in "abc":
        backlog.put(UPDATED, {"uri": uri})
    assert backlog.take_all() == [(UPDATED, {"uri": "b"}), (UPDATED, {"uri": "c"})]


def test_of_a_long_notice_that_waits_it_is_kept_what_has_changed() -> None:
    backlog = Backlog()
    short = {"uri": "x:1", "_meta": {"a": "b"}}
    deep: list[Any] = []
    for _ in range(600):
        deep = [deep]
    backlog.put(UPDATED, short)
    backlog.put(UPDATED, {"uri": "x:2", "_meta": {"a": "b" * 100_000}})
    backlog.put(UPDATED, {"uri": "x:3", "_meta": {"a": deep}})
    backlog.put("notifications/tools/list_changed", {"_meta": {"a": "b" * 100_000}})
    kept = [(UPDATED, short), (UPDATED, {"uri": "x:2"}), (UPDATED, {"uri": "x:3"})]
    assert backlog.take_all() == [*kept, ("notifications/tools/list_changed", {})]
