"""What a step's functions do, as data: the nodes that `derive` builds and `bodies` writes as Python.

*Theory of operation.* A step is a set of functions over JSON values, one for each pair of types that differ in more
than words. `derive` walks source and target type together and makes a node for each such pair; a node says which keys
go, which are checked, which are filled in, and which other node converts what lies below. Nodes refer to each other by
key, since definitions refer to each other in circles. `prune` then finds the nodes that in the end do nothing (the
greatest fixed point: assume all do nothing, strike those that do) and cuts every reference to them, so that what
remains is the work and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, assert_never

from codegen.read.model import Anything, Literal, Type

ANYTHING = Anything()
Key: TypeAlias = str
"""A node's name within one direction and profile: `tool`, `tool_input_schema`."""


@dataclass(frozen=True, slots=True)
class Action:
    """A call of a function in `dragoman_spec.actions` with constant arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    when: str = ""
    """For hooks: the field without which there is nothing to do."""
    vain_towards: tuple[str, ...] = ()
    """For hooks: the target revisions on the way to which the next step takes away what this puts there."""
    entry: str = ""
    """The overlay entry that asks for it, by name; empty where the schemas do."""


@dataclass(frozen=True, slots=True)
class Work:
    """What to do with a value: an action, then a node, then another action; each may be absent."""

    node: Key | None = None
    before: Action | None = None
    again: bool = False
    """After `before`, hand the value to the node that asked (it is now another arm of the same union)."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return self.node is None and self.before is None


@dataclass(frozen=True, slots=True)
class Member:
    """Work on the value of one key; what to do when it is absent; whether to remove it when the work has emptied it."""

    work: Work
    ensure: bool = False
    prune: bool = False
    optional: bool = False
    null_passes: bool = True
    """Whether `null` is let through unseen: it is common where a field is optional, and means absent."""
    made: Work | None = None
    """What makes the value from an empty object where it is absent and has to be there, if not `work`."""
    needed: bool = False
    """Whether both revisions require it: work that would leave it out refuses the frame instead."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A field that goes elsewhere below an object: the way to it before and after.

    Where `make`, an object on the way that is absent is made; where `prune`, one that is left with nothing goes.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    make: bool = True
    prune: bool = True


Part: TypeAlias = "str | tuple[str, Any]"
"""A field whose loss is cosmetic, or one whose loss is where it holds this value."""


@dataclass(frozen=True, slots=True)
class ObjectNode:
    """Work on a JSON object, in the order of the fields below."""

    label: str
    hooks_before: tuple[Action, ...] = ()
    moves: tuple[Moved, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    computed: Mapping[str, Action] = field(default_factory=dict)
    """Fields that are made of others, which may be dropped after that."""
    drops: tuple[str, ...] = ()
    silent: Mapping[str, Any] = field(default_factory=dict)
    """Dropped values that are no loss, since the way back puts them there again."""
    forgotten: tuple[str, ...] = ()
    """Fields, dropped, that say which revision the frame is of, which is never a loss."""
    presence_matters: bool = False
    """Whether an empty value that is dropped is a loss too (capabilities say by their presence what is possible)."""
    guards: Mapping[str, Type] = field(default_factory=dict)
    cosmetic: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    """Dropped or guarded fields whose loss is cosmetic: always, or where they hold nothing but these parts."""
    implied: Mapping[str, Any] = field(default_factory=dict)
    """Values that say what their absence says: the loss of such a field is cosmetic where it holds this."""
    members: Mapping[str, Member] = field(default_factory=dict)
    extra: Work = Work()
    extra_except: tuple[str, ...] = ()
    extra_null_passes: bool = True
    """As `null_passes` of a member, for the values of other keys."""
    fills: Mapping[str, Any] = field(default_factory=dict)
    entries: Mapping[str, str] = field(default_factory=dict)
    """The overlay entries that fill fields in, by field."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the target always says here, whatever the source said: a method's new name."""
    named_in: tuple[str, ...] = ()
    """Fields that say which revision the frame is of: always the one where the whole chain of steps leads."""
    demands: tuple[str, ...] = ()
    hooks_after: tuple[Action, ...] = ()

    def works(self) -> Iterator[Work]:
        """The work on what lies below."""
        yield from (member.work for member in self.members.values())
        yield from (member.made for member in self.members.values() if member.made is not None)
        yield self.extra

    def touches(self) -> tuple[str, ...] | None:
        """The keys of which an object must have one to be changed or refused; `None` where others can be too."""
        always = (self.renames, self.fills, self.computed, self.facts, self.named_in, self.demands, self.hooks_after)
        hooks = [action.when for action in self.hooks_before]
        needed = [member for member in self.members.values() if member.ensure or not member.optional]
        if any(always) or self.moves or not self.extra.idle or needed or not all(hooks):
            return None
        return tuple(dict.fromkeys((*hooks, *self.drops, *self.forgotten, *self.guards, *self.members)))

    @property
    def own(self) -> bool:
        """Whether the node does something itself, whatever lies below."""
        ensures = any(member.ensure for member in self.members.values())
        parts = (
            self.hooks_before,
            self.moves,
            self.renames,
            self.drops,
            self.forgotten,
            self.guards,
            self.fills,
            self.computed,
            self.facts,
            self.named_in,
            self.demands,
            self.hooks_after,
        )
        return ensures or any(parts)


@dataclass(frozen=True, slots=True)
class ArrayNode:
    """Work on each item of a list."""

    label: str
    item: Work
    least: int = 0
    """How many items must be left."""

    def works(self) -> Iterator[Work]:
        """The work on what lies below."""
        yield self.item

    own = False


@dataclass(frozen=True, slots=True)
class Case:
    """One arm of a union: how to know it, and the work on it.

    `json_type` is `dict`, `list`, `scalar`, or `object` for any; `tags` the constants that tell it from the others;
    `needs` types of keys that do so where no constant can; `scalar` the type of an arm that is one; `shows` types of
    keys of which it has one. Where `shared`, other arms may have all that it needs.
    """

    json_type: str
    work: Work
    tags: tuple[str, ...] = ()
    needs: Mapping[str, Type] = field(default_factory=dict)
    scalar: Type = ANYTHING
    shows: Mapping[str, Type] = field(default_factory=dict)
    shared: bool = False

    @property
    def rank(self) -> tuple[bool, bool, int, bool]:
        """In which order cases are tried: what has a tag, what is told for certain, what needs more, what is left."""
        tagged = bool(self.tags) or any(isinstance(type_, Literal) for type_ in self.needs.values())
        return not tagged, self.shared, -len(self.needs) if self.shared else not self.needs, not self.shows


@dataclass(frozen=True, slots=True)
class UnionNode:
    """Work that depends on which arm a value is."""

    label: str
    tag_key: str | None
    cases: tuple[Case, ...]

    def works(self) -> Iterator[Work]:
        """The work on each arm."""
        yield from (case.work for case in self.cases)

    own = False


Node: TypeAlias = ObjectNode | ArrayNode | UnionNode


def prune(nodes: Mapping[Key, Node]) -> dict[Key, Node]:
    """Strike the nodes that do nothing in the end, and every reference to them."""
    busy = {key for key, node in nodes.items() if node.own or any(work.before for work in node.works())}
    while True:
        more = {
            key for key, node in nodes.items() if key not in busy and any(work.node in busy for work in node.works())
        }
        if not more:
            return {key: _cut(node, busy) for key, node in nodes.items() if key in busy}
        busy |= more


def _cut(node: Node, busy: set[Key]) -> Node:
    def cut(work: Work) -> Work:
        return work if work.node is None or work.node in busy else replace(work, node=None)

    match node:
        case ArrayNode():
            return replace(node, item=cut(node.item))
        case UnionNode():
            cases = tuple(replace(case, work=cut(case.work)) for case in node.cases)
            return replace(node, cases=_needed(cases, node.tag_key))
        case ObjectNode():
            members = {
                name: replace(member, work=cut(member.work), made=member.made and cut(member.made))
                for name, member in node.members.items()
            }
            kept = {name: member for name, member in members.items() if not member.work.idle or member.ensure}
            extra = cut(node.extra)
            if extra.idle:
                return replace(node, members=kept, extra=extra, extra_except=(), extra_null_passes=True)
            return replace(node, members=kept, extra=extra)
    assert_never(node)


def _needed(cases: tuple[Case, ...], tag_key: str | None) -> tuple[Case, ...]:
    """Idle cases matter only where a later case of the same type and tag would catch their values, or where all that
    is left asks for a tag, which strings and numbers have none of.
    """
    return tuple(
        case
        for i, case in enumerate(cases)
        if not case.work.idle
        or (tag_key and (case.json_type != "dict" or not case.tags))
        or any(not later.work.idle and _catches(later, case) for later in cases[i + 1 :])
    )


def _catches(later: Case, case: Case) -> bool:
    """Whether a value of *case* would pass the test for *later*."""
    same_tag = not later.tags or not case.tags or bool(set(later.tags) & set(case.tags))
    return later.json_type == case.json_type and same_tag
