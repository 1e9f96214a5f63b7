"""Who gives a place to somebody else, where all are taken."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.places import find_giver

ONE, TWO, THREE = ("::1", 1), ("::1", 2), ("::1", 3)


@pytest.mark.parametrize(
    ("taken", "wants", "gives"),
    [
        ({"ann": 3}, "ben", "ann"),
        ({ONE: 1, TWO: 2}, THREE, TWO),
        ({ONE: 1, TWO: 3}, ONE, TWO),
        ({ONE: 1, TWO: 2}, ONE, ONE),
        ({ONE: 3}, ONE, ONE),
        ({ONE: 1, TWO: 1}, TWO, TWO),
        ({ONE: 1, TWO: 1}, THREE, THREE),
        ({"": 256}, "", ""),
        ({}, ONE, ONE),
    ],
)
def test_whoever_would_have_most_gives_a_place(taken: Any, wants: Any, gives: Any) -> None:
    assert find_giver(wants, taken) == gives
