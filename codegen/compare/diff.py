"""Two revisions in, what changed between them out: for people, in words; the steps are derived from the types
themselves.

`diff_specs` compares definition by definition and says where (a pointer into the newer schema, or into the older for
what is gone). Called by `changes` and by the commands that compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from codegen.compare.type_facts import fits, limits, words
from codegen.names import escaped
from codegen.read.model import Anything, Array, Literal, Object, Ref, Scalar, Spec, Type, Union


@dataclass(frozen=True, slots=True)
class SpecChange:
    """One difference: in which definition, where in it (a JSON pointer; empty for the whole of it), of what kind, and
    in words.

    `change` is one of `added`, `removed`, `became required`, `became optional`, `type changed`, `limit changed`. `rule`
    says more exactly of what kind it is, for programs; which peers it breaks follows from that, and from who sends it.
    """

    definition: str
    pointer: str
    change: str
    detail: str
    rule: str = field(default="", compare=False)


def diff_specs(older: Spec, newer: Spec) -> list[SpecChange]:
    """Everything that differs between two revisions, definition by definition, by name."""
    changes: list[SpecChange] = []
    for name in sorted(older.definitions.keys() | newer.definitions.keys()):
        if name not in older.definitions:
            changes.append(SpecChange(name, "", "added", words(newer.definitions[name]), "definition-added"))
        elif name not in newer.definitions:
            changes.append(SpecChange(name, "", "removed", words(older.definitions[name]), "definition-removed"))
        else:
            changes += _Pair(older, newer, name).compare(older.definitions[name], newer.definitions[name], "")
    return changes


def find_senders(spec: Spec) -> dict[str, set[str]]:
    """Who sends what a definition describes, `client` or `server` or both: those who may send a method send what it
    carries, and the others its results. What no method leads to has no sender.
    """
    others = {"client": "server", "server": "client"}
    found: dict[str, set[str]] = {}
    for method in spec.methods.values():
        for sender in method.senders:
            _mark(spec, method.request, sender, found)
            for result in method.results:
                _mark(spec, result, others[sender], found)
    return found


def _mark(spec: Spec, definition: str, sender: str, found: dict[str, set[str]]) -> None:
    if sender in (known := found.setdefault(definition, set())):
        return
    known.add(sender)
    for name in _names_in(spec.definitions[definition]):
        _mark(spec, name, sender, found)


def _names_in(type_: Type) -> Iterator[str]:
    """The definitions that a type refers to."""
    match type_:
        case Ref():
            yield type_.name
        case Array():
            yield from _names_in(type_.item)
        case Union():
            for arm in type_.arms:
                yield from _names_in(arm)
        case Object():
            for one in type_.fields.values():
                yield from _names_in(one.type)
            yield from _names_in(type_.extra)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Compares the two forms of one definition."""

    older: Spec
    newer: Spec
    definition: str

    def compare(self, one: Type, two: Type, pointer: str) -> Iterator[SpecChange]:
        if one == two or (isinstance(one, Ref) and isinstance(two, Ref) and one.name == two.name):
            return
        one, two = self.older.resolve(one), self.newer.resolve(two)
        match one, two:
            case Object(), Object():
                yield from self._objects(one, two, pointer)
            case Array(), Array():
                yield from self.compare(one.item, two.item, f"{pointer}/items")
                yield from self._limits(one, two, pointer)
            case Literal(values), Literal(others):
                yield from (
                    self._say(pointer, "added", f"the value {value!r}", "value-added")
                    for value in others
                    if value not in values
                )
                yield from (
                    self._say(pointer, "removed", f"the value {value!r}", "value-removed")
                    for value in values
                    if value not in others
                )
            case _ if isinstance(one, Union) or isinstance(two, Union):
                yield from self._unions(one, two, pointer)
            case Scalar(types), Scalar(others) if types == others:
                yield from self._limits(one, two, pointer)
            case _ if one != two:
                rule = f"type-{_way(one, two)}"
                yield self._say(pointer, "type changed", f"{words(one)} became {words(two)}", rule)

    def _objects(self, one: Object, two: Object, pointer: str) -> Iterator[SpecChange]:
        for name in sorted(one.fields.keys() | two.fields.keys()):
            here = f"{pointer}/properties/{escaped(name)}"
            if name not in one.fields:
                need = "required" if two.fields[name].required else "optional"
                yield self._say(here, "added", f"{need} {words(two.fields[name].type)}", f"{need}-field-added")
            elif name not in two.fields:
                need = "required" if one.fields[name].required else "optional"
                yield self._say(here, "removed", words(one.fields[name].type), f"{need}-field-removed")
            else:
                old, new = one.fields[name], two.fields[name]
                if old.required != new.required:
                    became = "became required" if new.required else "became optional"
                    yield self._say(here, became, words(new.type), f"field-{became.replace(' ', '-')}")
                yield from self.compare(old.type, new.type, here)
        yield from self.compare(one.extra, two.extra, f"{pointer}/additionalProperties")

    def _unions(self, one: Type, two: Type, pointer: str) -> Iterator[SpecChange]:
        old = {words(arm): arm for arm in self.older.arms(one)}
        new = {words(arm): arm for arm in self.newer.arms(two)}
        for change, these, those in (("added", new, old), ("removed", old, new)):
            arms = (name for name in these if name not in those)
            yield from (self._say(pointer, change, f"or {name}", f"alternative-{change}") for name in arms)
        for name in sorted(old.keys() & new.keys()):
            if not isinstance(old[name], Ref):
                yield from self.compare(old[name], new[name], pointer)

    def _limits(self, one: Scalar | Array, two: Scalar | Array, pointer: str) -> Iterator[SpecChange]:
        if limits(one) != limits(two):
            yield self._say(pointer, "limit changed", limits(two), f"limit-{_way(one, two)}")

    def _say(self, pointer: str, change: str, detail: str, rule: str) -> SpecChange:
        return SpecChange(self.definition, pointer, change, detail, rule)


def _way(one: Type, two: Type) -> str:
    """Which of two types takes more: the second is `widened`, or `narrowed`; or neither, `changed`."""
    if isinstance(one, Array) and isinstance(two, Array):
        sizes = [Scalar(frozenset({"string"}), min_length=a.min_items, max_length=a.max_items) for a in (one, two)]
        one, two = sizes
    if isinstance(two, Anything) or fits(one, two):
        return "widened"
    return "narrowed" if isinstance(one, Anything) or fits(two, one) else "changed"
