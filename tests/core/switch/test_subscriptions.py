"""Who wants to be told what of one server."""

from __future__ import annotations

from dragoman.core.rules.notifications import RESOURCE_FILTER, UPDATED
from dragoman.core.serving.subscriptions import Subscriptions

NOTE = (RESOURCE_FILTER, "file:///notes")
TOOLS = ("toolsListChanged", "")


def test_the_server_has_agreed_for_whoever_comes_next() -> None:
    subscriptions = Subscriptions[str]()
    assert (subscriptions.add("ann", NOTE), subscriptions.add("ben", NOTE)) == (False, False)
    assert subscriptions.settle("ann", NOTE, True)
    assert (subscriptions.is_settled("ann"), subscriptions.is_settled("ben")) == (True, False)
    assert subscriptions.add("cleo", NOTE)


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
