"""Losses: what a conversion could not carry, as values. Also where a value stands in a frame, while steps walk it.

A place (`At`) is a linked pair (parent, key), so that walking down costs one tuple; the JSON pointer is spelled only
for a loss that somebody looks at. Notes of the steps become losses in three parts, each done when first asked for:
`settle` says what is lost over the whole chain, `spell` and `group` say it in words, one by one or together. Called by
the steps and the translator. Nothing here imports pydantic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

At: TypeAlias = "tuple[At, str | int] | None"
"""A place in a frame: the parent's place and the key in it; `None` is the frame itself."""

Note: TypeAlias = "tuple[At, str, Any]"
"""A loss that is not spelled: place, kind, value."""

Kind: TypeAlias = Literal["dropped", "replaced", "added", "hidden", "swallowed", "truncated", "rewritten"]

KINDS: tuple[Kind, ...] = ("dropped", "replaced", "added", "hidden", "swallowed", "truncated", "rewritten")
"""What can happen to a value: see the docs page on losses for what each says."""

REORDERED = "#"
"""Kind of a note, not of a loss: the items of this list came from these indexes."""


class Loss:
    """What a conversion could not carry.

    Args:
        pointer: JSON pointer (RFC 6901) into the frame as it was given, such as `/result/tools/0/title`. For kind
            `added`, into the frame that came out: there the conversion put something that the other side did not say.
        kind: One of `KINDS`.
        value: What was lost; for `added`, what was put there.
    """

    __slots__ = ("_bytes", "kind", "pointer", "value")

    def __init__(self, pointer: str, kind: str, value: Any) -> None:
        self.pointer = pointer
        self.kind: Kind = kind  # type: ignore[assignment]
        self.value = value
        self._bytes = -1

    @property
    def bytes(self) -> int:
        """Size of the compact JSON (UTF-8) of the value; measured when first asked for."""
        if self._bytes < 0:
            self._bytes = size(self.value)
        return self._bytes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loss) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Loss(pointer={self.pointer!r}, kind={self.kind!r}, bytes={self.bytes})"

    def _key(self) -> tuple[str, str, int]:
        return self.pointer, self.kind, self.bytes


class LossGroup(NamedTuple):
    """Losses that differ only in where in a list they stand.

    Attributes:
        pointer: As a loss has it; where there are several, each index in it is `*`.
        kind: One of `KINDS`.
        values: What was lost, in the order in which it was met.
    """

    pointer: str
    kind: Kind
    values: list[Any]

    @property
    def bytes(self) -> int:
        """Size of the compact JSON (UTF-8) of all the values together."""
        return size(self.values) - len(self.values) - 1


class Swallowed(Exception):
    """Raised in a step: this frame must not reach the other side, and nobody waits for an answer to it."""


class Losses:
    """Collects the losses of one step, as places and values; spelled out at the end.

    The values are not copied: steps never change what they are given.

    Attributes:
        target: Revision where the whole chain of steps leads, where that is known: what goes again on the way need not
            be put there.
        notes: The losses, in the order in which they were met.
    """

    __slots__ = ("notes", "target")

    def __init__(self, target: str = "") -> None:
        self.target = target
        self.notes: list[Note] = []

    def add(self, at: At, kind: str, value: Any) -> None:
        """Note a loss at a place; *value* is what was lost."""
        self.notes.append((at, kind, value))

    def reorder(self, at: At, origins: list[int]) -> None:
        """Note that the items of the list at a place came from these indexes of the list given."""
        self.notes.append((at, REORDERED, origins))


def pointer(at: At, known: dict[int, str] | None = None) -> str:
    """Spell a place as a JSON pointer.

    *known* keeps those of parents, by identity, for the next place beside this one.
    """
    if at is None:
        return ""
    parent, key = at
    known = {} if known is None else known
    above = known.get(id(parent))
    if above is None:
        above = known[id(parent)] = pointer(parent, known)
    if type(key) is str and ("~" in key or "/" in key):
        key = key.replace("~", "~0").replace("/", "~1")
    return f"{above}/{key}"


# Kept: `json.dumps` with options makes an encoder each time.
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def size(value: Any) -> int:
    """Size of a value's compact JSON, in bytes of UTF-8."""
    try:
        return len(_compact(value).encode("utf-8", "surrogatepass"))
    except RecursionError:
        return _deep_size(value)


def _deep_size(value: Any) -> int:
    """As `size`, for values nested more deeply than the encoder goes."""
    total, left = 0, [value]
    while left:
        item = left.pop()
        if isinstance(item, (dict, list)):
            total += 2 + max(len(item) - 1, 0)
            left += item.values() if isinstance(item, dict) else item
            total += sum(size(key) + 1 for key in item) if isinstance(item, dict) else 0
        else:
            total += size(item)
    return total


def settle(steps: list[Losses]) -> list[Note]:
    """The losses of a chain of steps, their places led back to the frame that the chain was given, those of what was
    added led on to the frame that comes out.

    What one step added and a later one dropped again is no loss, and neither is noted.
    """
    notes = [note for losses in steps for note in losses.notes]
    if REORDERED not in _kinds(steps) and "added" not in _kinds(steps[:-1]):
        return notes
    found: list[Note] = []
    added: dict[At, int] = {}
    ends: dict[int, At] = {}
    moves: list[tuple[At, Mapping[int, int]]] = []
    gone: set[int] = set()
    for at, kind, value in notes:
        if kind == REORDERED:
            moves.append((at, dict(enumerate(value))))
            went = {origin: index for index, origin in reversed([*enumerate(value)])} if ends else {}
            ends = {number: _move(place, at, went) for number, place in ends.items()}
            continue
        here = at
        if moves:
            for where, origins in reversed(moves):
                here = _move(here, where, origins)
        if kind == "added":
            added[here] = len(found)
            ends[len(found)] = at
        elif kind == "dropped" and added and here in added:
            gone |= {added[here], len(found)}
        found.append((here, kind, value))
    gone |= {number for number, place in ends.items() if place is _NOWHERE}
    gone |= _dropped_with_more(found, ends.keys() - gone)
    if not moves and not gone:
        return found
    return [(ends.get(index, at), kind, value) for index, (at, kind, value) in enumerate(found) if index not in gone]


def _kinds(steps: list[Losses]) -> set[str]:
    return {kind for losses in steps for _, kind, _ in losses.notes}


_NOWHERE: Final[At] = (None, -1)
"""The place of what is not in the frame any more."""


def _move(place: At, where: At, to: Mapping[int, int]) -> At:
    """*place*, its index right below *where* replaced by the one that *to* gives, or `_NOWHERE` if it gives none."""
    if place is None or place is _NOWHERE:
        return place
    parent, key = place
    if parent == where:
        return (parent, to[key]) if key in to else _NOWHERE  # type: ignore[index]
    above = _move(parent, where, to)
    if above is parent:
        return place
    return _NOWHERE if above is _NOWHERE else (above, key)


def _dropped_with_more(found: list[Note], added: Iterable[int]) -> set[int]:
    """Which of the notes *added* are of something in a place that was dropped later."""
    dropped = {at: number for number, (at, kind, _) in enumerate(found) if kind == "dropped" and at}
    keys = {at[1] for at in dropped}  # most places are told apart by a key that was not dropped anywhere
    gone = set()
    for number in added:
        place = found[number][0]
        while place is not None:
            if place[1] in keys and dropped.get(place, -1) > number:
                gone.add(number)
            place = place[0]
    return gone


def spell(notes: Iterable[Note]) -> tuple[Loss, ...]:
    """The losses that notes stand for, in their order."""
    known: dict[int, str] = {}
    return tuple(Loss(pointer(at, known), kind, value) for at, kind, value in notes)


def group(notes: Iterable[Note]) -> list[LossGroup]:
    """The losses that notes stand for, those that differ only in where in a list they stand together."""
    groups: dict[tuple[At, str], list[Note]] = {}
    known: dict[int, At] = {}
    for note in notes:
        groups.setdefault((_pattern(note[0], known), note[1]), []).append(note)
    return [
        LossGroup(
            pointer(alike[0][0] if len(alike) == 1 else pattern),
            kind,  # type: ignore[arg-type]
            [value for _, _, value in alike],
        )
        for (pattern, kind), alike in groups.items()
    ]


def _pattern(place: At, known: dict[int, At]) -> At:
    """*place* with `*` for every index of a list; *known* keeps those of parents, as for `pointer`."""
    if place is None:
        return None
    parent, key = place
    above = known.get(id(parent))
    if above is None:
        above = known[id(parent)] = _pattern(parent, known)
    return above, "*" if type(key) is int else key
