"""Which arm of the target's union a value of the source's goes to, and how the arms of one union are told apart.

By their tag, by their name, by their shape, in this order. And which types of two revisions are the same, for questions
about what may only have another name or place. Must not live here: what is done to the value (`derive`).
Called by `derive`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from codegen.model import Anything, Array, Field, Literal, Object, Ref, Scalar, Spec, Type
from codegen.type_facts import accepts, fits, same_kind, words


@dataclass(frozen=True, slots=True)
class Arms:
    """The arms of unions of two revisions, and what definitions of the one are called in the other."""

    source: Spec
    target: Spec
    new_name: Callable[[str], str]

    def match(self, arm: Type, arms: Iterable[Type], others: Iterable[Type]) -> Type | None:
        """The target's arm for this arm's values: by its tag where only one has it, by name, or by its shape."""
        tag = self.source.tag(arm)
        if tag is not None and sum(self.source.tag(a) == tag for a in arms) == 1:
            same = [other for other in others if self.target.tag(other) == tag]
            if len(same) == 1:
                return same[0]
        for other in others:
            if isinstance(arm, Ref) and isinstance(other, Ref) and self.new_name(arm.name) == other.name:
                return other
        kind = self.source.resolve(arm)
        if isinstance(kind, Object):
            fitting = [other for other in others if self._takes(kind, tag, other)]
            return max(fitting, key=lambda other: self._shared(kind, other), default=None)
        if isinstance(kind, Array):
            return next((other for other in others if isinstance(self.target.resolve(other), Array)), None)
        return next((other for other in others if fits(kind, self.target.resolve(other))), None)

    def is_near(self, kind: Type, other: Type) -> bool:
        """Whether some values of a scalar type are of another, so that which ones has to be looked at."""
        return isinstance(kind, Scalar | Literal) and isinstance(other, Scalar | Literal) and same_kind(kind, other)

    def same_type(self, one: Type, two: Type) -> bool:
        """Whether two types, of source and target, are the same: references by name, all else by what they say."""
        if isinstance(one, Ref) and isinstance(two, Ref):
            return self.new_name(one.name) == two.name
        one, two = self.source.resolve(one), self.target.resolve(two)
        if isinstance(one, Array) and isinstance(two, Array):
            return self.same_type(one.item, two.item)
        return one == two and not isinstance(one, Anything)

    def new_method(self, methods: Mapping[str, str], name: str, source: Field, target: Field) -> str | None:
        """The new name of a method, where a field is the name of one that has a new one."""
        old, new = self.source.resolve(source.type), self.target.resolve(target.type)
        if name != "method" or not isinstance(old, Literal) or not isinstance(new, Literal):
            return None
        renamed = methods.get(str(old.values[0])) if len(old.values) == 1 else None
        return renamed if new.values == (renamed,) else None

    def becomes(self, source: Type, target: Type) -> str:
        """What becomes of a type, in a few words; of a list of constants, which of them there are no more."""
        one, two = self.source.resolve(source), self.target.resolve(target)
        if isinstance(one, Literal) and isinstance(two, Literal) and len(one.values) > 1:
            gone = [str(value) for value in one.values if not accepts(two, value)]
            return f"{', '.join(gone)} {'is' if len(gone) == 1 else 'are'} not there any more"
        return f"{words(source)} becomes {words(target)}"

    def _takes(self, kind: Object, tag: tuple[str, str] | None, other: Type) -> bool:
        shape = self.target.resolve(other)
        if not isinstance(shape, Object) or self.target.tag(other) != tag:
            return False
        needed = {name for name, member in kind.fields.items() if member.required}
        asked = {name for name, member in shape.fields.items() if member.required}
        return needed <= shape.fields.keys() and asked <= needed

    def _shared(self, kind: Object, other: Type) -> int:
        shape = self.target.resolve(other)
        return len(kind.fields.keys() & shape.fields.keys()) if isinstance(shape, Object) else 0

    def tag_key(self, arms: Iterable[Type]) -> str | None:
        """The field whose constants tell the arms apart; none where they have theirs in different fields."""
        tagged = [(arm, tag[0]) for arm in arms if (tag := self.source.tag(arm))]
        return next((key for _, key in tagged if all(self.source.tags(arm, key) for arm, _ in tagged)), None)

    def needs(self, arm: Type, arms: list[Type]) -> dict[str, Type]:
        """Required fields that tell an arm from the others: its tag, where not all have theirs in one field; and from
        those with the same tag, what none of them requires.
        """
        tag = self.source.tag(arm)
        told: dict[str, Type] = {tag[0]: Literal((tag[1],))} if tag and self.tag_key(arms) is None else {}
        shape = self.source.resolve(arm)
        rivals = [
            r
            for a in arms
            if a != arm and self.source.tag(a) == tag and isinstance(r := self.source.resolve(a), Object)
        ]
        if not rivals or not isinstance(shape, Object):
            return told
        taken = {name for rival in rivals for name, member in rival.fields.items() if member.required}
        own = {name: member.type for name, member in shape.fields.items() if member.required and name not in taken}
        return told | (
            own or {name: m.type for name, m in shape.fields.items() if m.required and (tag is None or name != tag[0])}
        )
