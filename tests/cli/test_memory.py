"""Giving memory back."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from dragoman.cli.memory import COLLECT_AFTER, give_back, set_apart


class Node:
    """Holds on to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def collector_as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


@pytest.mark.parametrize("platform", [sys.platform, "elsewhere"])
def test_what_is_in_circles_is_gone(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    found = weakref.ref(Node())
    give_back()
    assert found() is None


def test_what_is_there_at_the_start_is_not_looked_at_again() -> None:
    node = Node()
    set_apart()
    assert gc.get_freeze_count() > 1000
    assert not [one for one in gc.get_objects() if one is node]


def test_cycles_are_looked_for_less_often_than_by_default() -> None:
    set_apart()
    assert gc.get_threshold() == COLLECT_AFTER
