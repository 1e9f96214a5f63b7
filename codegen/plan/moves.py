"""Fields that stand in another object in the other revision: taken into an object beside them, or out of it.

A `[[move]]` says so once for both ways. For the rest of the derivation the source then looks as if the field stood in
its new place already, so that its value is converted, asked about and guarded there like any other. Must not live here:
fields that only have another name (`[[rename]]`). Called by `derive`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from codegen.compare.type_facts import words
from codegen.plan.nodes import Moved
from codegen.read.model import Field, Object, Ref, Spec, Type
from codegen.read.overlay import Overlay

Path = tuple[str, ...]
RESEMBLANCE = 0.6
"""How alike two names have to be for a question: of fields in different places, of methods of another shape."""
SameType = Callable[[Type, Type], bool]


@dataclass(frozen=True, slots=True)
class Arranged:
    """An object of the source as if its fields stood where they go.

    `moves` has each way that a field goes; `owners` the definitions of members that the ways lead through, which are
    written anew here.
    """

    shape: Object
    moves: tuple[Moved, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)


def arranged(overlay: Overlay, direction: str, at: str, spec: Spec, source: Object) -> Arranged:
    """What the entries for an object make of it."""
    shape, moves = source, list[Moved]()
    for move in overlay.moves:
        old, new = (move.old, move.new) if direction == "up" else (move.new, move.old)
        if at in move.at and (member := _field(spec, source, old)) is not None:
            overlay.use("move" + ".".join(move.old), at)
            prune = len(old) > 1 and not source.fields[old[0]].required
            moves.append(Moved(old, new, _may_make(spec, source, new), prune))
            shape = _with(spec, _without(spec, shape, old), new, replace(member, required=_always(spec, source, old)))
    owners = {
        name: member.type.name
        for name, member in source.fields.items()
        if isinstance(member.type, Ref) and name in shape.fields and shape.fields[name].type != member.type
    }
    return Arranged(shape, tuple(moves), owners)


@dataclass(frozen=True, slots=True)
class Like:
    """A new field that may be one that is gone, and what speaks for it or against it, for a person."""

    name: str
    hint: str


def most_like(old: str, gone: Field, new: Mapping[str, Field], same: SameType) -> Like | None:
    """Which of the new fields of an object may be one that is gone: the nearest by type, then by name, if one came."""
    ranked = sorted(new, key=lambda name: (-resemblance(old, name), name))
    alike = [name for name in ranked if same(gone.type, new[name].type)]
    if not ranked:
        return None
    if alike:
        return Like(alike[0], f"{', '.join(alike)} is of the same type: {words(gone.type)}")
    first = ranked[0]
    others = f" (so are {', '.join(ranked[1:])})" if ranked[1:] else ""
    return Like(
        first, f"{first} is new here{others}, of another type: {words(gone.type)} became {words(new[first].type)}"
    )


def left_and_come(
    source: Spec, target: Spec, one: Object, two: Object, same: SameType
) -> Iterator[tuple[Path, Path, str]]:
    """Ways that a field may have gone: it is gone from one place, and one like it came in another, with a hint.

    Like it is what has its name, whatever its type, or a similar one.

    Args:
        source: The revision of *one*.
        target: The revision of *two*.
        one: An object.
        two: What it is in the target.
        same: Whether two types, of source and target, are the same.
    """
    before, after = dict(_places(source, one)), dict(_places(target, two))
    for old in (path for path in before if path not in after):
        for new in (path for path in after if path not in before):
            beside = old[:-1] == new[:-1]
            renamed = len(old) == len(new) == 2 and old[:1] not in after and new[:1] not in before
            if resemblance(old[-1], new[-1]) >= RESEMBLANCE and not beside and not renamed:
                name = "the same name" if old[-1] == new[-1] else "a similar name"
                types = before[old].type, after[new].type
                kind = "type" if same(*types) else f"another type: {words(types[0])} became {words(types[1])}"
                yield old, new, f"{'.'.join(new)} has {name} and {kind}"


def resemblance(one: str, other: str) -> float:
    """How alike two names are, from 0 to 1: `taskHint` and `task` are, by what they begin with."""
    return SequenceMatcher(None, one.lower(), other.lower(), autojunk=False).ratio()


def _may_make(spec: Spec, shape: Object, path: Path) -> bool:
    """Whether an object on the way to a field may be made if it is absent: it asks for nothing else."""
    known = shape.fields.get(path[0])
    if len(path) == 1 or known is None:
        return True
    inner = spec.resolve(known.type)
    if not isinstance(inner, Object) or any(member.required for member in inner.fields.values()):
        return False
    return _may_make(spec, inner, path[1:])


def _always(spec: Spec, shape: Object, path: Path) -> bool:
    """Whether a field is always there, and every object on the way to it."""
    member = shape.fields[path[0]]
    inner = spec.resolve(member.type)
    return member.required and (len(path) == 1 or (isinstance(inner, Object) and _always(spec, inner, path[1:])))


def _places(spec: Spec, shape: Object) -> Iterator[tuple[Path, Field]]:
    """The fields of an object, and those of the objects that it holds."""
    for name, member in shape.fields.items():
        yield (name,), member
        inner = spec.resolve(member.type)
        if isinstance(inner, Object):
            yield from (((name, key), below) for key, below in inner.fields.items())


def _field(spec: Spec, shape: Object, path: Path) -> Field | None:
    for name in path[:-1]:
        inner = spec.resolve(shape.fields[name].type) if name in shape.fields else None
        if not isinstance(inner, Object):
            return None
        shape = inner
    return shape.fields.get(path[-1])


def _without(spec: Spec, shape: Object, path: Path) -> Object:
    name, *rest = path
    if not rest:
        return replace(shape, fields={key: member for key, member in shape.fields.items() if key != name})
    inner = spec.resolve(shape.fields[name].type)
    assert isinstance(inner, Object)
    return _put(shape, name, _without(spec, inner, tuple(rest)), shape.fields[name].required)


def _with(spec: Spec, shape: Object, path: Path, member: Field) -> Object:
    name, *rest = path
    if not rest:
        return replace(shape, fields={**shape.fields, name: member})
    known = shape.fields.get(name)
    inner = spec.resolve(known.type) if known is not None else Object()
    assert isinstance(inner, Object)
    required = member.required or (known is not None and known.required)
    return _put(shape, name, _with(spec, inner, tuple(rest), member), required)


def _put(shape: Object, name: str, inner: Object, required: bool) -> Object:
    return replace(shape, fields={**shape.fields, name: Field(inner, required)})
