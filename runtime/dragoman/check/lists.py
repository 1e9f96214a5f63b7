"""What a server lists: every page of every list, and whether the lists themselves are in order.

Lives here: walking pages. Must not: judge what is listed (`offered`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from dragoman.check.talk import CheckedAnswer, Talk
from dragoman.core.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.core.declared import declares
from dragoman.core.exact_json import encode
from dragoman.core.paging import Paging

PAGES_MOST: Final = 200
LIST_S: Final = 30.0
_PAGE_ITEMS: Final = 1 << 32
NO_CURSOR: Final = "dragoman-check:no-such-cursor"


class Listed(NamedTuple):
    """One kind of list.

    Attributes:
        member: Of the result, which holds it.
        name: The member that tells one from another.
        rule: That no two are the same.
        is_certain: Whether whoever declares the capability has the list.
    """

    member: str
    name: str
    rule: str
    is_certain: bool = True


LISTS: Final[Mapping[str, Listed]] = MappingProxyType(
    {
        "tools/list": Listed("tools", "name", "tool-unique"),
        "resources/list": Listed("resources", "uri", "resource-unique"),
        "resources/templates/list": Listed("resourceTemplates", "uriTemplate", "template-unique", False),
        "prompts/list": Listed("prompts", "name", "prompt-unique"),
    }
)


class ListedItem(NamedTuple):
    """Something that is listed.

    Attributes:
        value: It.
        about: The message that it came in.
        pointer: To it, in there.
        method: The request that was answered.
    """

    value: dict[str, Any]
    about: str
    pointer: str
    method: str


TakeItem = Callable[[str, ListedItem], None]
"""Is given each item and the member of the result that lists it; most it must not keep, for lists may be long."""


async def read_lists(talk: Talk, take: TakeItem) -> frozenset[str]:
    """Read every list that the server has.

    Args:
        talk: In which it is asked.
        take: Is given what is listed.

    Returns:
        The members of results of the lists that there are.
    """
    found = set()
    for method, listed in LISTS.items():
        if method not in talk.methods:
            continue
        needed = talk.methods[method].capability
        is_declared = declares(talk.capabilities, needed)
        first = await talk.request(method, quietly=not is_declared)
        if not is_declared:
            if first.result is not None and isinstance(first.result.get(listed.member), list):
                talk.findings.note(
                    "answers-declared", f"the request {method}", f"the capability {needed}", "a list without it"
                )
            continue
        if first.result is None:
            if first.error is not None and (listed.is_certain or first.code != METHOD_NOT_FOUND):
                talk.note("declared-answers", first, f"a list, because {needed} is declared")
            continue
        found.add(listed.member)
        walk = _PageWalk(talk, method, listed, take)
        cursor, names = walk.take_page(first), _digest(first.result, listed)
        del first  # a page is not kept while the next one is read
        await walk.go_on(cursor)
        await _try_again(talk, method, listed, names)
    return frozenset(found)


class _PageWalk:
    """The pages of one list, one after another, and what is listed twice."""

    def __init__(self, talk: Talk, method: str, listed: Listed, take: TakeItem) -> None:
        self._talk = talk
        self._method = method
        self._listed = listed
        self._take = take
        # Names as hashes, places as numbers: each name that is kept would keep what was decoded beside it in memory.
        self._names: dict[int, int] = {}
        self._page = 1
        self._paging = Paging(PAGES_MOST)

    async def go_on(self, cursor: str | None) -> None:
        """Read the pages after the first."""
        clock = asyncio.get_running_loop()
        until_s = clock.time() + LIST_S
        while cursor is not None and clock.time() < until_s:
            self._page += 1
            about = self._name(self._page)
            cursor = self.take_page(await self._talk.request(self._method, {"cursor": cursor}, about=about))
        if self._paging.is_repeated:
            about, at = f"the answer to {self._name(self._page)}", "/result/nextCursor"
            self._talk.findings.note("cursor-new", about, "a new cursor", self._paging.cut, pointer=at)
        elif self._paging.cut or cursor is not None:
            about, cut = f"the request {self._method}", self._paging.cut or f"its pages take longer than {LIST_S:g} s"
            self._talk.findings.note("pages-end", about, "a list that ends", cut)

    def _name(self, page: int) -> str:
        return f"{self._method}, page {page}" if page > 1 else self._method

    def take_page(self, reply: CheckedAnswer) -> str | None:
        """Hand on what is on a page; give the cursor of the next one."""
        if reply.result is None:
            return None
        member, about = self._listed.member, f"the answer to {reply.about}"
        items = reply.result.get(member)
        for index, one in enumerate(items if isinstance(items, list) else []):
            if isinstance(one, dict):
                item = ListedItem(one, about, f"/result/{member}/{index}", self._method)
                self._take(member, item)
                self._look_for_repeated(item, index)
        return self._paging.follow(reply.result)

    def _look_for_repeated(self, item: ListedItem, index: int) -> None:
        listed, name = self._listed, item.value.get(self._listed.name)
        if not isinstance(name, str):
            return
        here = self._page * _PAGE_ITEMS + index
        first = self._names.setdefault(hash(name), here)
        if first != here:
            page, number = divmod(first, _PAGE_ITEMS)
            place = f"/result/{listed.member}/{number} of the answer to {self._name(page)}"
            expected, at = f"another {listed.name}", f"{item.pointer}/{listed.name}"
            found = f"{name[:80]!r} again, as at {place}"
            self._talk.findings.note(listed.rule, item.about, expected, found, pointer=at)


async def _try_again(talk: Talk, method: str, listed: Listed, names: bytes) -> None:
    """Ask once more for the first page, which had these names, and for one that does not exist."""
    again = await talk.request(method, about=f"{method}, again", repeats=True)
    if again.result is not None and _digest(again.result, listed) != names:
        talk.findings.note("list-order", f"the answer to {again.about}", "the same list as before", "another")
    del again
    refused = await talk.request(
        method, {"cursor": NO_CURSOR}, about=f"{method} with a cursor that does not exist", repeats=True
    )
    talk.expect_error("cursor-checked", refused, INVALID_PARAMS)


def _digest(result: Mapping[str, Any], listed: Listed) -> bytes:
    """Return what is the same for two pages that name the same in the same order."""
    items = result.get(listed.member)
    names = [one.get(listed.name) for one in items if isinstance(one, dict)] if isinstance(items, list) else []
    return blake2b(encode(names)).digest()
