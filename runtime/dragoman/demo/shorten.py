"""JSON that is short enough to read, with the differences between two frames still in it.

Lives here: which parts of a value are shown, and which of them only one of two values has. Must not: know terminals or
colours (`demo.ink`) or where lines end. Called by `demo.narrate`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

ELLIPSIS: Final = "…"
TELLING: Final = frozenset({"id", "method", "name", "type", "uri", "role", "code", "message"})
"""Members that are shown although they did not change: they say what it is that changed."""

ENCODED: Final = frozenset({"data", "blob"})
"""Members that nobody reads."""

UNSAID: Final = frozenset({"jsonrpc"})
"""Members that are never shown, for every frame has them."""

_EVERY_LEVEL: Final = 64
_LONG_TEXT: Final = 48
_SHORT_TEXT: Final = 30
_ENCODED_TEXT: Final = 20
_LEAST_TEXT: Final = 12
_LONG_MEMBER: Final = 44


class Tone(Enum):
    """What a piece of text is, seen from the other frame."""

    SAME = "in both"
    GONE = "in the frame before only"
    NEW = "in the frame after only"


class Span(NamedTuple):
    """A piece of text of one tone."""

    text: str
    tone: Tone = Tone.SAME


def shorten(value: Any, room: int) -> str:
    """Spell as much of a value as there is room for, from its beginning."""
    whole = _brief(value, _EVERY_LEVEL, max(room - len('""'), _LEAST_TEXT))
    if len(whole) <= room:
        return whole
    match value:
        case dict():
            return "{" + ",".join(_fit([pair for pair in value.items() if pair[0] not in UNSAID], room)) + "}"
        case list():
            return "[" + ",".join(_fit([("", item) for item in value], room)) + "]"
    return whole


def _fit(members: list[tuple[str, Any]], room: int) -> Iterator[str]:
    left = room - len("{…}")
    for name, member in members:
        label = json.dumps(name, ensure_ascii=False) + ":" if name else ""
        spelt = label + shorten(member, left - len(label) - len(","))
        left -= len(spelt) + len(",")
        if left < 0:
            yield ELLIPSIS
            return
        yield spelt


def compare(value: Any, other: Any, tone: Tone) -> list[Span]:
    """Spell what differs in a value, and as little of the rest as one needs to know where that is.

    Args:
        value: The value to spell.
        other: The value to compare it with.
        tone: What to call the parts that only the first value has.

    Returns:
        The text in pieces.
    """
    return list(_compare(value, other, tone))


def _compare(value: Any, other: Any, tone: Tone) -> Iterator[Span]:
    if value == other:
        yield Span(_brief(value, 1, _SHORT_TEXT))
    elif isinstance(value, dict) and isinstance(other, dict) and value.get("type") == other.get("type"):
        yield from _compare_objects(value, other, tone)
    elif isinstance(value, list) and isinstance(other, list):
        yield from _compare_lists(value, other, tone)
    else:
        yield Span(_whole(value, tone), tone)


def _compare_objects(value: dict[str, Any], other: dict[str, Any], tone: Tone) -> Iterator[Span]:
    members: list[list[Span]] = []
    for name, member in value.items():
        label = json.dumps(name, ensure_ascii=False) + ":"
        if name in UNSAID:
            continue
        if name not in other:
            members.append([Span(label + _glimpse(member), tone)])
        elif member != other[name] or name in TELLING:
            members.append([Span(label), *_compare(member, other[name], tone)])
        elif not members or members[-1] != [Span(ELLIPSIS)]:
            members.append([Span(ELLIPSIS)])
    yield from _enclose("{", members, "}")


def _compare_lists(value: list[Any], other: list[Any], tone: Tone) -> Iterator[Span]:
    counterparts = _pair_items(value, other)
    members = [
        [Span(_whole(item, tone), tone)] if index is None else list(_compare(item, other[index], tone))
        for item, index in zip(value, counterparts, strict=True)
    ]
    yield from _enclose("[", members, "]")


def _pair_items(value: list[Any], other: list[Any]) -> list[int | None]:
    """Find for each item the index of its counterpart: by name if some came or went and all have one, else by place."""
    names = [[item.get("name") if isinstance(item, dict) else None for item in items] for items in (value, other)]
    if len(value) == len(other) or None in names[0] + names[1]:
        return [index if index < len(other) else None for index in range(len(value))]
    return [names[1].index(name) if name in names[1] else None for name in names[0]]


def _enclose(opening: str, members: list[list[Span]], closing: str) -> Iterator[Span]:
    yield Span(opening)
    for number, member in enumerate(members):
        if number:
            yield Span(",")
        yield from member
    yield Span(closing)


def _whole(value: Any, tone: Tone) -> str:
    """Spell what is lost a little shorter than what came in its place."""
    return _brief(value, 2, _LONG_TEXT if tone is Tone.NEW else _SHORT_TEXT)


def _glimpse(value: Any) -> str:
    """Spell a member that the other value does not have at all."""
    texts = (_brief(value, depth, _SHORT_TEXT) for depth in (2, 1))
    return next((text for text in texts if len(text) <= _LONG_MEMBER), _brief(value, 0, _SHORT_TEXT))


def _brief(value: Any, depth: int, longest: int) -> str:
    """Spell a value with only so many levels of containers, and no text longer than told."""
    match value:
        case str():
            cut = value if len(value) <= longest else value[: longest - 1] + ELLIPSIS
            return json.dumps(cut, ensure_ascii=False)
        case dict() if value:
            members = (
                f"{json.dumps(name, ensure_ascii=False)}:"
                + _brief(member, depth - 1, min(longest, _ENCODED_TEXT) if name in ENCODED else longest)
                for name, member in value.items()
                if name not in UNSAID
            )
            return "{" + (",".join(members) if depth else ELLIPSIS) + "}"
        case list() if value:
            return "[" + (",".join(_brief(item, depth - 1, longest) for item in value) if depth else ELLIPSIS) + "]"
        case _:
            return json.dumps(value)
