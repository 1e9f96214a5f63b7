"""Where `derive` is, and what it has collected there so far. Must not live here: any decision. Called by `derive`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from codegen.names import escaped
from codegen.plan.nodes import Action, Member
from codegen.read.model import Field, Json, Ref, Type


@dataclass(frozen=True, slots=True)
class Site:
    """Where a type stands: a path from a definition, and the pointer, in both revisions."""

    at: str
    target_at: str
    source_pointer: str
    target_pointer: str

    def below(self, path: str, pointer: str) -> Site:
        """The site one step further down, by the same step in both."""
        source, target = self.source_pointer + pointer, self.target_pointer + pointer
        return Site(self.at + path, self.target_at + path, source, target)

    def into(self, source: str, target: str) -> Site:
        """The site of an arm of what stands here, by the way to it in each revision: its path is the same."""
        return replace(self, source_pointer=self.source_pointer + source, target_pointer=self.target_pointer + target)

    def along(self, old: Sequence[str], new: Sequence[str]) -> Site:
        """The site of a member, by the way to it in the source and to what may be the same in the target."""
        ways = [("." + ".".join(way), "".join(f"/properties/{escaped(name)}" for name in way)) for way in (old, new)]
        (path, pointer), (target_path, target_pointer) = ways
        return Site(
            self.at + path,
            self.target_at + target_path,
            self.source_pointer + pointer,
            self.target_pointer + target_pointer,
        )

    def of(self, definition: str, target: Field | None) -> Site:
        """The site as a place in a definition of the source, where the object that stands here is one of its."""
        name = target.type.name if target is not None and isinstance(target.type, Ref) else self.target_at
        return replace(self, at=definition, target_at=name)


@dataclass(slots=True)
class Parts:
    """The parts of an object node, while they are collected."""

    drops: list[str] = field(default_factory=list)
    silent: dict[str, Json] = field(default_factory=dict)
    forgotten: list[str] = field(default_factory=list)
    guards: dict[str, Type] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    fills: dict[str, Json] = field(default_factory=dict)
    computed: dict[str, Action] = field(default_factory=dict)
    facts: dict[str, Json] = field(default_factory=dict)
    named_in: list[str] = field(default_factory=list)
    demands: list[str] = field(default_factory=list)
    entries: dict[str, str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    """Fields of which it has been asked already whether they have moved."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """The definitions of members that moves write anew, by field."""
