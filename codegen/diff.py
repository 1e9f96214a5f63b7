"""Two revisions in, what changed between them out: for people, in words; the steps are derived from the types
themselves.

`diff_specs` compares definition by definition and says where (a pointer into the newer schema, or into the older for
what is gone). Called by `regen` (which writes `changes.py` for `dragoman diff`), `docs` and the docstrings of the
models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pprint import pformat

from codegen.model import Array, Literal, Object, Ref, Scalar, Spec, Type, Union
from codegen.names import escaped, module_name
from codegen.registry import NOTICE
from codegen.type_facts import limits, words


@dataclass(frozen=True, slots=True)
class SpecChange:
    """One difference: in which definition, where in it (a JSON pointer; empty for the whole of it), of what kind, and
    in words.

    `change` is one of `added`, `removed`, `became required`, `became optional`, `type changed`, `limit changed`.
    """

    definition: str
    pointer: str
    change: str
    detail: str


def diff_specs(older: Spec, newer: Spec) -> list[SpecChange]:
    """Everything that differs between two revisions, definition by definition, by name."""
    changes: list[SpecChange] = []
    for name in sorted(older.definitions.keys() | newer.definitions.keys()):
        if name not in older.definitions:
            changes.append(SpecChange(name, "", "added", words(newer.definitions[name])))
        elif name not in newer.definitions:
            changes.append(SpecChange(name, "", "removed", words(older.definitions[name])))
        else:
            changes += _Pair(older, newer, name).compare(older.definitions[name], newer.definitions[name], "")
    return changes


def render_changes(pairs: Sequence[tuple[Spec, Spec]], digests: Mapping[str, str]) -> dict[str, str]:
    """Render `changes.py` of every revision but the first, unformatted, by path below `generated/`."""
    output = {}
    for older, newer in pairs:
        rows = tuple(asdict(change) for change in diff_specs(older, newer))
        title = f"What changed from {older.revision} to {newer.revision}, as `dragoman diff` prints it."
        lines = [
            f"# {NOTICE}",
            *(f"# Source: schema/{r}/schema.json, sha256 {digests[r]}" for r in (older.revision, newer.revision)),
            f'"""{title} Imports no pydantic."""\n',
            "from __future__ import annotations\n",
            "from collections.abc import Mapping\n",
            f"CHANGES: tuple[Mapping[str, str], ...] = {pformat(rows, width=110, sort_dicts=False)}",
        ]
        output[f"dragoman_spec/{module_name(newer.revision)}/changes.py"] = "\n".join(lines) + "\n"
    return output


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
                    self._say(pointer, "added", f"the value {value!r}") for value in others if value not in values
                )
                yield from (
                    self._say(pointer, "removed", f"the value {value!r}") for value in values if value not in others
                )
            case _ if isinstance(one, Union) or isinstance(two, Union):
                yield from self._unions(one, two, pointer)
            case Scalar(types), Scalar(others) if types == others:
                yield from self._limits(one, two, pointer)
            case _ if one != two:
                yield self._say(pointer, "type changed", f"{words(one)} became {words(two)}")

    def _objects(self, one: Object, two: Object, pointer: str) -> Iterator[SpecChange]:
        for name in sorted(one.fields.keys() | two.fields.keys()):
            here = f"{pointer}/properties/{escaped(name)}"
            if name not in one.fields:
                need = "required" if two.fields[name].required else "optional"
                yield self._say(here, "added", f"{need} {words(two.fields[name].type)}")
            elif name not in two.fields:
                yield self._say(here, "removed", words(one.fields[name].type))
            else:
                old, new = one.fields[name], two.fields[name]
                if old.required != new.required:
                    yield self._say(here, "became required" if new.required else "became optional", words(new.type))
                yield from self.compare(old.type, new.type, here)
        yield from self.compare(one.extra, two.extra, f"{pointer}/additionalProperties")

    def _unions(self, one: Type, two: Type, pointer: str) -> Iterator[SpecChange]:
        old = {words(arm): arm for arm in self.older.arms(one)}
        new = {words(arm): arm for arm in self.newer.arms(two)}
        yield from (self._say(pointer, "added", f"or {name}") for name in new if name not in old)
        yield from (self._say(pointer, "removed", f"or {name}") for name in old if name not in new)
        for name in sorted(old.keys() & new.keys()):
            if not isinstance(old[name], Ref):
                yield from self.compare(old[name], new[name], pointer)

    def _limits(self, one: Scalar | Array, two: Scalar | Array, pointer: str) -> Iterator[SpecChange]:
        if limits(one) != limits(two):
            yield self._say(pointer, "limit changed", limits(two))

    def _say(self, pointer: str, change: str, detail: str) -> SpecChange:
        return SpecChange(self.definition, pointer, change, detail)
