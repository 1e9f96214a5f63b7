"""What a server lists: every page of every list, and whether the lists themselves are in order.

Lives here: walking pages. Must not: judge what is listed (`offered`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from dragoman.check.talk import CheckedAnswer, Talk
from dragoman.core.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.core.declared import declares

PAGES_MOST: Final = 200
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


@dataclass(slots=True)
class Listing:
    """What a server lists, each as it came, with the pointer to it and the message it came in."""

    items: dict[str, list[ListedItem]] = field(default_factory=dict)

    def of(self, member: str) -> list[ListedItem]:
        """Give those of one kind."""
        return self.items.get(member, [])


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


async def read_lists(talk: Talk) -> Listing:
    """Read every list that the server has."""
    offer = Listing()
    for method, listed in LISTS.items():
        needed = talk.methods[method].capability
        is_declared = declares(talk.capabilities, needed)
        first = await talk.ask(method, quietly=not is_declared)
        if not is_declared:
            if first.result is not None and isinstance(first.result.get(listed.member), list):
                talk.findings.note(
                    "answers-declared", f"the request {method}", f"the capability {needed}", "a list without it"
                )
            continue
        if first.result is None:
            _note_refused(talk, method, needed, listed, first)
            continue
        offer.items[listed.member] = await _read_pages(talk, method, listed, first)
        _find_repeated(talk, offer.items[listed.member], listed)
        await _try_again(talk, method, listed, first)
    return offer


def _note_refused(talk: Talk, method: str, needed: str, listed: Listed, first: CheckedAnswer) -> None:
    if first.error is not None and (listed.is_certain or first.code != METHOD_NOT_FOUND):
        expected = f"a list, because {needed} is declared"
        talk.findings.note("declared-answers", f"the answer to {method}", expected, first.told)


async def _read_pages(talk: Talk, method: str, listed: Listed, first: CheckedAnswer) -> list[ListedItem]:
    items: list[ListedItem] = []
    seen: set[str] = set()
    reply, page = first, 1
    while reply.result is not None:
        members = reply.result.get(listed.member)
        for index, one in enumerate(members if isinstance(members, list) else []):
            if isinstance(one, dict):
                items.append(
                    ListedItem(one, f"the answer to {reply.about}", f"/result/{listed.member}/{index}", method)
                )
        cursor = reply.result.get("nextCursor")
        if not isinstance(cursor, str):
            break
        if cursor in seen:
            found = f"{cursor[:60]!r} again"
            talk.findings.note(
                "cursor-new", f"the answer to {reply.about}", "a new cursor", found, pointer="/result/nextCursor"
            )
            break
        if page == PAGES_MOST:
            talk.findings.note("pages-end", f"the request {method}", f"at most {PAGES_MOST} pages", "another page")
            break
        seen.add(cursor)
        page += 1
        reply = await talk.ask(method, {"cursor": cursor}, about=f"{method}, page {page}")
    return items


def _find_repeated(talk: Talk, items: list[ListedItem], listed: Listed) -> None:
    seen: dict[str, ListedItem] = {}
    for item in items:
        name = item.value.get(listed.name)
        if not isinstance(name, str):
            continue
        if name in seen:
            first = f"{name[:80]!r} again, as at {seen[name].pointer} of {seen[name].about}"
            talk.findings.note(
                listed.rule, item.about, f"another {listed.name}", first, pointer=f"{item.pointer}/{listed.name}"
            )
        seen.setdefault(name, item)


async def _try_again(talk: Talk, method: str, listed: Listed, first: CheckedAnswer) -> None:
    """Ask once more for the first page, and for one that does not exist."""
    again = await talk.ask(method, about=f"{method}, again", repeats=True)
    if again.result is not None and first.result is not None and _differs(first.result, again.result, listed):
        talk.findings.note("list-order", f"the answer to {again.about}", "the same list as before", "another")
    refused = await talk.ask(
        method, {"cursor": NO_CURSOR}, about=f"{method} with a cursor that does not exist", repeats=True
    )
    if refused.body is not None and refused.code != INVALID_PARAMS:
        talk.findings.note(
            "cursor-checked", f"the answer to {refused.about}", f"the error {INVALID_PARAMS}", refused.told
        )


def _differs(one: Mapping[str, Any], other: Mapping[str, Any], listed: Listed) -> bool:
    return _names(one, listed) != _names(other, listed)


def _names(result: Mapping[str, Any], listed: Listed) -> list[Any]:
    members = result.get(listed.member)
    return [one.get(listed.name) for one in members if isinstance(one, dict)] if isinstance(members, list) else []
