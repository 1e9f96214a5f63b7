"""Where the collecting of pages ends, of lists that do not end by themselves."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from dragoman.core.paging import MOST_BYTES, MOST_PAGES, Paging
from dragoman.core.switch.listed_tools import ListedTools


def endless(number: int, text: str = "") -> dict[str, Any]:
    return {"tools": [{"name": f"x{number}", "description": text}], "nextCursor": str(number)}


def read_all(paging: Paging, text: str = "") -> int:
    pages = 0
    while paging.follow(endless(pages, text)) is not None:
        pages += 1
    return pages + 1


def test_a_list_ends_after_so_many_pages() -> None:
    paging = Paging()
    assert read_all(paging) == MOST_PAGES
    assert paging.cut == f"it has more than {MOST_PAGES} pages"


def test_a_list_ends_after_so_many_bytes() -> None:
    paging = Paging()
    assert read_all(paging, "x" * 5_000_000) == MOST_BYTES // 5_000_000 + 1
    assert paging.cut == "it has more than 32 MiB"


@pytest.mark.parametrize(("second", "is_repeated"), [("a", True), ("b", False)])
def test_a_cursor_that_comes_twice_ends_the_list(second: str, is_repeated: bool) -> None:
    paging = Paging()
    paging.follow({"tools": [], "nextCursor": "a"})
    following = paging.follow({"tools": [], "nextCursor": second})
    assert (following is None, paging.is_repeated, "twice" in paging.cut) == (is_repeated,) * 3


def test_a_list_that_ends_is_not_cut() -> None:
    paging = Paging()
    assert paging.follow({"tools": [], "nextCursor": "a"}) == "a"
    assert paging.follow({"tools": [], "nextCursor": None}) is None
    assert paging.cut == ""


@pytest.mark.parametrize("sizes", [(1, MOST_PAGES), (5_000_000, 7)])
def test_listing_before_a_call_ends(sizes: tuple[int, int]) -> None:
    size, most = sizes
    asked: list[Any] = []
    went_on: list[int] = []
    tools = ListedTools(sends=True, hears=True, remind=lambda after_s, then: None)
    tools.list(lambda params, take: asked.append(take), lambda: went_on.append(len(asked)))
    while not went_on:
        asked[-1](endless(len(asked), "x" * size), None)
    assert went_on == [most]


def test_listing_before_a_call_ends_when_its_time_is_over() -> None:
    asked: list[Any] = []
    due: list[Any] = []
    went_on: list[str] = []
    headers = ListedTools(sends=True, hears=True, remind=lambda after_s, then: due.append(then))
    for call in ("first", "second"):
        headers.list(lambda params, take: asked.append(take), partial(went_on.append, call))
    asked[0](endless(0, ""), None)
    assert (len(asked), len(due), went_on) == (2, 1, [])
    due[0]()
    assert went_on == ["first", "second"]
    asked[1](endless(1, ""), None)
    assert (len(asked), len(went_on)) == (2, 2)
    assert not headers.needs_list("tools/call", {"name": "x"})
