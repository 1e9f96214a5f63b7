"""Who wants to be told what of one server."""

from __future__ import annotations

import pytest

from dragoman.core.rules.notifications import RESOURCE_FILTER, UPDATED
from dragoman.core.serving.subscriptions import Subscriptions

NOTE = (RESOURCE_FILTER, "file:///notes")
TOOLS = ("toolsListChanged", "")
CHANGED = "notifications/tools/list_changed"


def test_the_server_has_agreed_for_whoever_comes_next() -> None:
    subscriptions = Subscriptions[str]()
    assert (subscriptions.add("ann", NOTE), subscriptions.add("ben", NOTE)) == (False, False)
    assert subscriptions.settle("ann", NOTE, True)
    assert (subscriptions.is_settled("ann"), subscriptions.is_settled("ben")) == (True, False)
    assert subscriptions.add("cleo", NOTE)


def test_a_refusal_takes_nothing_from_who_was_agreed_with() -> None:
    subscriptions = Subscriptions[str]()
    for name in ("ann", "ben"):
        subscriptions.add(name, NOTE)
    subscriptions.settle("ann", NOTE, True)
    assert subscriptions.settle("ben", NOTE, False)
    assert subscriptions.settle("ann", NOTE, False)
    assert list(subscriptions.listeners(UPDATED, NOTE[1])) == ["ann"]


def test_who_has_gone_is_not_settled_with() -> None:
    subscriptions = Subscriptions[str]()
    subscriptions.add("ann", NOTE)
    assert subscriptions.remove_all("ann") == [NOTE]
    assert not subscriptions.settle("ann", NOTE, True)
    assert (len(subscriptions), list(subscriptions.listeners(UPDATED, NOTE[1]))) == (0, [])


def test_what_others_want_stays() -> None:
    subscriptions = Subscriptions[str]()
    for name, item in (("ann", NOTE), ("ann", TOOLS), ("ben", NOTE)):
        subscriptions.add(name, item)
    assert subscriptions.remove("ann", NOTE)
    assert subscriptions.remove_all("ann") == [TOOLS]
    assert not subscriptions.remove("ben", NOTE)
    assert subscriptions.wanted == frozenset()


@pytest.mark.parametrize(
    ("method", "uri", "heard"),
    [
        (UPDATED, "file:///notes/a/b", ["ann"]),
        (UPDATED, "file:///notes", ["ann"]),
        (UPDATED, "file:///notebook", []),
        (UPDATED, ["file:///notes"], []),
        (CHANGED, None, ["ben"]),
        ("notifications/prompts/list_changed", None, []),
    ],
)
def test_a_change_is_for_who_wants_it_or_what_it_is_a_part_of(method: str, uri: object, heard: list[str]) -> None:
    subscriptions = Subscriptions[str]()
    subscriptions.add("ann", NOTE)
    subscriptions.add("ann", (RESOURCE_FILTER, "file:///"))
    subscriptions.remove("ann", (RESOURCE_FILTER, "file:///"))
    subscriptions.add("ben", TOOLS)
    assert list(subscriptions.listeners(method, uri)) == heard
