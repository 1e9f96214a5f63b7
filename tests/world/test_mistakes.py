"""Mistakes made on purpose: what a page says of them, and what a run of some of them changes there."""

from __future__ import annotations

import pytest

from tests.world import hunt, mistakes
from tests.world.mistakes import Noticed, is_broken_anyway, known, merged, page_of, told_by

FOUND = Noticed("books", "http 21: books: two are counted, and one is there", 1.5)


def test_a_page_says_again_what_it_was_made_of() -> None:
    first, second, *_ = known()
    page = page_of([(first, FOUND), (second, None)], 30.0)
    assert told_by(page) == {first.what: Noticed("books", "http 21", 1.5)}


def test_what_was_not_run_stays_as_it_was() -> None:
    first, second, third, *_ = known()
    page = page_of([(first, FOUND), (second, FOUND)], 30.0)
    found = {one.what: by for one, by in merged([(second, None), (third, FOUND)], page)}
    assert len(found) == len(known())
    assert (found[first.what], found[second.what], found[third.what]) == (told_by(page)[first.what], None, FOUND)


def test_a_world_in_which_all_is_well_is_not_broken_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    by = Noticed("books", "direct 1: books: something", 1.0)
    assert by.world == "direct 1"
    assert not is_broken_anyway(by)
    assert not is_broken_anyway(Noticed("ends", "a world has no end", 30.0))
    monkeypatch.setattr(mistakes, "sort_out", lambda outcome: (["something"], []))
    assert is_broken_anyway(by)


def test_the_world_that_is_named_is_run_first() -> None:
    worlds = hunt.worlds("http 21", ["direct", "direct", "shared"])
    assert [next(worlds) for _ in range(4)] == [("http", 21), ("direct", 1), ("direct", 2), ("shared", 1)]
    assert next(hunt.worlds("", ["row"])) == ("row", 1)
