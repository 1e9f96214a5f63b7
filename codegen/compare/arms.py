"""Which arm of the target's union a value of the source's goes to, and how the arms of one union are told apart.

By their tag, by their name, by their shape, in this order. And which types of two revisions are the same, for questions
about what may only have another name or place. Must not live here: what is done to the value (`derive`).
Called by `derive`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from codegen.compare.type_facts import accepts, fits, limits, same_kind, words
from codegen.read.model import Anything, Array, Field, Literal, Object, Ref, Scalar, Spec, Type


@dataclass(frozen=True, slots=True)
class Told:
    """How a value of an arm is known: by the types of keys that it needs, and of keys of which it shows one.

    Where `shared`, others may have all of that: it is looked for after them.
    """

    needs: Mapping[str, Type] = field(default_factory=dict)
    shows: Mapping[str, Type] = field(default_factory=dict)
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Arms:
    """The arms of unions of two revisions, and what definitions of the one are called in the other."""

    source: Spec
    target: Spec
    new_name: Callable[[str], str]

    def match(self, arm: Type, arms: Sequence[Type], others: Sequence[Type]) -> Type | None:
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
            # What is there under its own name, too, is no other thing that has no tag.
            namesakes = {Ref(self.new_name(a.name)) for a in arms if tag is None and isinstance(a, Ref)}
            fitting = [other for other in others if other not in namesakes and self._takes(kind, tag, other)]
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
        before, after = words(source), words(target)
        if before == after and isinstance(one, Scalar) and isinstance(two, Scalar):
            before, after = f"{before} ({limits(one)})", f"{after} ({limits(two)})"
        elif before == after:
            after += " within narrower limits"
        return f"{before} becomes {after}"

    def _takes(self, kind: Object, tag: tuple[str, str] | None, other: Type) -> bool:
        shape = self.target.resolve(other)
        if not isinstance(shape, Object) or self.target.tag(other) != tag:
            return False
        needed = {name for name, member in kind.fields.items() if member.required}
        return needed <= shape.fields.keys() and {n for n, m in shape.fields.items() if m.required} <= needed

    def _shared(self, kind: Object, other: Type) -> int:
        shape = self.target.resolve(other)
        return len(kind.fields.keys() & shape.fields.keys()) if isinstance(shape, Object) else 0

    def tag_key(self, arms: Iterable[Type]) -> str | None:
        """The field whose constants tell the arms apart; none where they have theirs in different fields."""
        tagged = [(arm, tag[0]) for arm in arms if (tag := self.source.tag(arm))]
        return next((key for _, key in tagged if all(self.source.tags(arm, key) for arm, _ in tagged)), None)

    def told(self, arm: Type, arms: list[Type]) -> Told:
        """What tells an arm from the others: its tag, where not all have theirs in one field; and from those with the
        same tag, what none of them requires. Of arms that require the same, the first is the one that is left; another
        shows itself by what none of them names.
        """
        tag = self.source.tag(arm)
        told: dict[str, Type] = {tag[0]: Literal((tag[1],))} if tag and self.tag_key(arms) is None else {}
        alike = [a for a in arms if self.source.tag(a) == tag and isinstance(self.source.resolve(a), Object)]
        if len(alike) == 1:
            return Told(told)
        if own := self._own(arm, alike):
            return Told(told | own)
        fields = self._shape(arm).fields
        asked = {name: m.type for name, m in fields.items() if m.required and (tag is None or name != tag[0])}
        first = next(a for a in alike if self._required(a) == self._required(arm))
        known = {name for a in alike if a != arm for name in self._shape(a).fields}
        shown = {} if first == arm else {name: m.type for name, m in fields.items() if name not in known}
        return Told(told | asked, shown, shared=True)

    def _required(self, arm: Type) -> set[str]:
        return {name for name, member in self._shape(arm).fields.items() if member.required}

    def _own(self, arm: Type, alike: list[Type]) -> dict[str, Type]:
        """The fields that an arm requires and none of the others does."""
        taken = set[str]().union(*(self._required(a) for a in alike if a != arm))
        fields = self._shape(arm).fields.items()
        return {name: member.type for name, member in fields if member.required and name not in taken}

    def _shape(self, arm: Type) -> Object:
        shape = self.source.resolve(arm)
        assert isinstance(shape, Object)
        return shape
