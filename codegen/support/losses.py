"""Losses: what a conversion could not carry, as values. Also where a value stands in a frame, while steps walk it.

A place (`At`) is a linked pair (parent, key), so that walking down costs one tuple; the JSON pointer is spelled only
for a loss that somebody looks at. Notes of the steps become losses in three parts, each done when first asked for:
`settle` says what is lost over the whole chain, `spell` and `group` say it in words, one by one or together. Called by
the steps and the translator. Nothing here imports pydantic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ._json import size

At: TypeAlias = "tuple[At, str | int] | None"
"""A place in a frame: the parent's place and the key in it; `None` is the frame itself."""

Part: TypeAlias = "str | tuple[str, Any]"
"""A field that may be lost, or one that may where it holds this value."""

Note: TypeAlias = "tuple[At, str, Any, bool | tuple[Part, ...]]"
"""A loss that is not spelled: place, kind, value, and whether it is cosmetic; for an object of which only some parts
are, those."""

Kind: TypeAlias = Literal["dropped", "replaced", "added", "hidden", "swallowed", "truncated", "rewritten"]

KINDS: tuple[Kind, ...] = ("dropped", "replaced", "added", "hidden", "swallowed", "truncated", "rewritten")
"""What can happen to a value: see the docs page on losses for what each says."""

MOVED = "#"
"""Kind of a note, not of a loss: which places below this one were which before; what has no other place is new."""


class Loss:
    """What a conversion could not carry.

    Args:
        pointer: JSON pointer (RFC 6901) into the frame as it was given, such as `/result/tools/0/title`. For kind
            `added`, into the frame that came out: there the conversion put something that the other side did not say.
        kind: One of `KINDS`.
        value: What was lost; for `added`, what was put there.
        cosmetic: Whether the message says the same without it, to a person, a model or a program: a title where the
            name stays, an icon.
    """

    __slots__ = ("_bytes", "cosmetic", "kind", "pointer", "value")

    def __init__(self, pointer: str, kind: str, value: Any, cosmetic: bool = False) -> None:
        self.pointer = pointer
        self.kind: Kind = kind  # type: ignore[assignment]
        self.value = value
        self.cosmetic = cosmetic
        self._bytes = -1

    @property
    def bytes(self) -> int:
        """Size of the compact JSON (UTF-8) of the value, 0 if it is not JSON; measured when first asked for."""
        if self._bytes < 0:
            self._bytes = size(self.value)
        return self._bytes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loss) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        cosmetic = ", cosmetic=True" if self.cosmetic else ""
        return f"Loss(pointer={self.pointer!r}, kind={self.kind!r}, bytes={self.bytes}{cosmetic})"

    def _key(self) -> tuple[str, str, int, bool]:
        return self.pointer, self.kind, self.bytes, self.cosmetic


class LossGroup(NamedTuple):
    """Losses that differ only in where in a list they stand.

    Attributes:
        pointer: As a loss has it; where there are several, each index in it is `*`.
        kind: One of `KINDS`.
        values: What was lost, in the order in which it was met.
        cosmetic: Whether these losses are cosmetic, as for `Loss`.
    """

    pointer: str
    kind: Kind
    values: list[Any]
    cosmetic: bool = False

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

    def add(self, at: At, kind: str, value: Any, cosmetic: bool = False) -> None:
        """Note a loss at a place; *value* is what was lost, *cosmetic* whether what is said stays the same."""
        self.notes.append((at, kind, value, cosmetic))

    def reorder(self, at: At, origins: list[int]) -> None:
        """Note that the items of the list at a place came from these indexes of the list given."""
        self.notes.append((at, MOVED, {(at, index): (at, origin) for index, origin in enumerate(origins)}, False))

    def move(self, at: At, origins: Mapping[At, At]) -> None:
        """Note where the values at places at or below *at* were before, by the places that they have now."""
        self.notes.append((at, MOVED, origins, False))


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


def settle(steps: list[Losses], source: Any) -> list[Note]:
    """The losses of a chain of steps: their places and values those of the frame that the chain was given, but for what
    was added, whose places are those in the frame that comes out.

    What one step added and a later one dropped again is no loss, and neither is noted. What is lost of something that
    an earlier step has written anew is part of that loss.

    Args:
        steps: The notes of each step, in order.
        source: The frame given.
    """
    settling = _Settling(source)
    last = len(steps) - 1
    is_plain = True
    for number, losses in enumerate(steps):
        kinds = {note[1] for note in losses.notes}
        is_plain = is_plain and kinds <= (_PLAIN_AT_THE_END if number == last else _PLAIN)
        if not is_plain:
            settling.settle(losses.notes)
        elif number == 0:
            settling.found += losses.notes  # as they are: the first step was given the source
        else:
            settling.take_plain(losses.notes)
    return settling.result()


_PLAIN: Final = frozenset({"dropped", "hidden"})
"""What leaves everything else where it was, and as it was."""

_PLAIN_AT_THE_END: Final = _PLAIN | {"added"}
"""What is added by the last step is neither moved nor dropped again."""


class _Settling:
    """The notes of a chain, one after another."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.moves: list[tuple[At, Mapping[At, At]]] = []
        self.found: list[Note | None] = []
        self.said: set[tuple[At, str]] = set()
        self.added: dict[At, int] = {}
        """What was added, by the place that it would have in the source; and by each place above that."""
        self.above: dict[At, list[At]] = {}
        self.ends: dict[int, At] = {}
        """Where what was added stands now, by the number of its note."""
        self.anew: list[At] = []
        self.known: dict[int, Any] = {}
        self.kept: list[At] = []  # places whose identity is a key of `known`

    def settle(self, notes: Iterable[Note]) -> None:
        """Take in the notes of one step."""
        for at, kind, value, cosmetic in notes:
            if kind == MOVED:
                self._move(at, value)
                continue
            here = at
            for where, origins in reversed(self.moves):
                here = _led(here, where, origins)
            if kind == "added":
                self._add(at, here, value, cosmetic)
            elif kind == "dropped" and self.added and here in self.added:
                self.found[self.added.pop(here)] = None
            else:
                self._lose(here, kind, value, cosmetic)

    def take_plain(self, notes: Iterable[Note]) -> None:
        """Take in the notes of a step where nothing has moved or been written anew so far: most stood in the source."""
        known: dict[int, Any] = {}  # by the identity of a place, which the notes keep
        for note in notes:
            at, kind, value, cosmetic = note
            stood: Any = _ABSENT
            if at is not None and kind != "added":
                above = known.get(id(at[0]))
                if above is None:
                    above = known[id(at[0])] = self._at(at[0])
                stood = above.get(at[1], _ABSENT) if type(above) is dict else self._at(at)
            if stood is value or kind == "added":
                self.found.append(note)
            else:
                self._lose(at, kind, value, cosmetic)

    def result(self) -> list[Note]:
        """The losses of all the steps."""
        places = self.ends
        if not places and not self.moves:
            return [note for note in self.found if note is not None]
        return [
            (places.get(number, note[0]), *note[1:])
            for number, note in enumerate(self.found)
            if note is not None and places.get(number) is not _NOWHERE
        ]

    def _move(self, at: At, origins: Mapping[At, At]) -> None:
        went: dict[At, At] = {}
        for new, old in origins.items():
            went.setdefault(old, new)
        self.moves.append((at, origins))
        self.ends = {number: _led(place, at, went) for number, place in self.ends.items()}

    def _add(self, at: At, here: At, value: Any, cosmetic: bool | tuple[Part, ...]) -> None:
        number = len(self.found)
        self.ends[number] = at
        self.added[here] = number
        self.found.append((here, "added", value, cosmetic))
        place = here
        while place is not None:
            self.above.setdefault(place, []).append(here)
            place = place[0]

    def _lose(self, here: At, kind: str, value: Any, cosmetic: bool | tuple[Part, ...]) -> None:
        """Note a loss, with what stood there in the source."""
        if kind in ("dropped", "hidden") and self.above:
            for place in self.above.get(here, ()):
                number = self.added.pop(place, -1)
                if number >= 0:
                    self.found[number] = None
        stood = self._at(here)
        if stood is _ABSENT:
            if any(_is_below(here, place) for place in (*self.anew, *self.added)):
                return
            while stood is _ABSENT and here is not None:
                here, kind = here[0], "rewritten"
                stood = self._at(here)
        elif kind == "truncated" and isinstance(stood, list) and isinstance(value, list):
            stood = stood[len(stood) - len(value) :]
        if kind in ("rewritten", "replaced"):
            self.anew.append(here)
        if self.moves or kind == "rewritten":
            if (here, kind) in self.said:
                return
            self.said.add((here, kind))
        self.found.append((here, kind, stood, cosmetic))

    def _at(self, place: At) -> Any:
        """What stands at a place in the source, or `_ABSENT`."""
        if place is None:
            return self.source
        parent, key = place
        above = self.known.get(id(parent), self) if parent is not None else self.source
        if above is self:
            above = self._at(parent)
            self.known[id(parent)] = above
            self.kept.append(parent)
        if isinstance(above, dict):
            return above.get(key, _ABSENT)
        within = isinstance(above, list) and type(key) is int and 0 <= key < len(above)
        return above[key] if within else _ABSENT


_ABSENT: Final = object()
"""What stands where nothing stands."""

_NOWHERE: Final[At] = (None, -1)
"""The place of what is not in the frame any more."""


def _led(place: At, where: At, to: Mapping[At, At]) -> At:
    """*place*, led by the nearest place above it that *to* knows; `_NOWHERE` if it is below *where* and none is."""
    rest: list[str | int] = []
    at = place
    while at is not None and at is not _NOWHERE:
        if at in to:
            led = to[at]
            for key in reversed(rest):
                led = (led, key)
            return led
        if at == where:
            return _NOWHERE if rest and type(rest[-1]) is int else place
        rest.append(at[1])
        at = at[0]
    return place


def _is_below(place: At, above: At) -> bool:
    """Whether a place is another one or below it."""
    while place is not None:
        if place == above:
            return True
        place = place[0]
    return above is None


def is_cosmetic(note: Note) -> bool:
    """Whether what is said stays the same without what the note is about."""
    _, _, value, cosmetic = note
    return _holds_only(value, cosmetic) if type(cosmetic) is tuple else cosmetic is True


def _holds_only(value: Any, parts: tuple[Part, ...]) -> bool:
    """Whether a value is an object with nothing but these parts."""
    return type(value) is dict and all(
        item is None or name in parts or (name, item) in parts for name, item in value.items()
    )


def spell(notes: Iterable[Note]) -> tuple[Loss, ...]:
    """The losses that notes stand for, in their order."""
    known: dict[int, str] = {}
    return tuple(Loss(pointer(note[0], known), note[1], note[2], is_cosmetic(note)) for note in notes)


def group(notes: Iterable[Note]) -> list[LossGroup]:
    """The losses that notes stand for, those that differ only in where in a list they stand together."""
    groups: dict[tuple[At, str, bool], list[Note]] = {}
    known: dict[int, At] = {}
    for note in notes:
        at, kind, value, cosmetic = note
        if type(cosmetic) is tuple:
            cosmetic = _holds_only(value, cosmetic)
        groups.setdefault((_pattern(at, known), kind, cosmetic is True), []).append(note)
    return [
        LossGroup(
            pointer(alike[0][0] if len(alike) == 1 else pattern),
            kind,  # type: ignore[arg-type]
            [note[2] for note in alike],
            cosmetic,
        )
        for (pattern, kind, cosmetic), alike in groups.items()
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
