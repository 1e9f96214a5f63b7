"""Roots that are used again for a while."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.rules.roots import RootsCache

ROOTS = [{"uri": "file:///a"}]


def test_roots_are_used_again_until_their_time_is_over() -> None:
    cache = RootsCache(ttl_s=10)
    cache.put("alice", {"roots": ROOTS}, 100.0)
    assert cache.get("alice", 109.9) == ROOTS
    assert cache.get("alice", 110.0) is None


def test_roots_are_nobody_elses() -> None:
    cache = RootsCache(ttl_s=10)
    cache.put("alice", {"roots": ROOTS}, 0.0)
    assert cache.get("bob", 0.0) is None


def test_roots_are_not_kept_unless_the_user_says_so() -> None:
    cache = RootsCache()
    cache.put("alice", {"roots": ROOTS}, 0.0)
    assert cache.get("alice", 0.0) is None


@pytest.mark.parametrize("broken", [None, {}, {"roots": 5}])
def test_what_is_no_list_of_roots_replaces_it(broken: Any) -> None:
    cache = RootsCache(ttl_s=10)
    cache.put("alice", {"roots": ROOTS}, 0.0)
    cache.put("alice", broken, 1.0)
    assert cache.get("alice", 1.0) is None


def test_only_so_many_principals_are_kept() -> None:
    cache = RootsCache(ttl_s=10, most=2)
    for name in ("a", "b", "a", "c"):
        cache.put(name, {"roots": ROOTS}, 0.0)
    assert [cache.get(name, 0.0) for name in "abc"] == [ROOTS, None, ROOTS]
