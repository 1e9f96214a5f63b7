"""Where in the official file stands what the plain form of a schema says in one place.

The types of a revision are read as if what a reference leads to, the parts of an `allOf` and the arms of unions inside
unions stood where they are used. A pointer through them is *logical*; here it becomes one that can be looked up in the
file, under the names that the file has. Must not live here: the reading of keywords (`plain`). Called by `normalise`
and, through `Spec.written`, by `derive`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codegen.names import escaped, unescaped
from codegen.read.naming import definition_of
from codegen.read.plain import Schema, merged_places, plain_arms

UNIONS = ("anyOf", "oneOf")
TABLES = frozenset({"$defs", "allOf", "properties", *UNIONS})
Found = tuple[int, tuple[str, ...]]
"""How many parts of a logical pointer are left over where it leads to nothing more, and the way to there."""


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one schema: as it is read, with its fixes and names, and as the file has it."""

    revision: str
    schema: Schema
    upstream: Mapping[str, str] = field(default_factory=dict)
    """What the file calls definitions that have another name here."""
    file: Schema | None = None
    """The file, if a fix changed something that is read."""

    def written(self, pointer: str) -> str:
        """The place in the file that a logical pointer leads to; where it has none, the last one on the way."""
        _, _, name, *steps = map(unescaped, pointer.split("/"))
        if name not in self.schema["$defs"]:
            return "/$defs"
        way = self._walk(("$defs", name), steps, frozenset())[1]
        return self.named("/".join(("", *map(escaped, way))))

    def named(self, pointer: str) -> str:
        """A pointer into the schema as one into the file, as far as the file goes."""
        root, name, *rest = map(unescaped, pointer.split("/")[1:])
        parts = [root, self.upstream.get(name, name), *rest]
        there = _along(self.schema, [root, name, *rest]) if self.file is None else _along(self.file, parts)
        found = len(list(there)) - 1
        whole = max((end for end in _ends(parts) if end <= found), default=1)
        return "/".join(("", *map(escaped, parts[:whole])))

    def _walk(self, way: tuple[str, ...], steps: Sequence[str], passed: frozenset[tuple[str, ...]]) -> Found:
        *_, node = _along(self.schema, way)
        if not steps or not isinstance(node, dict) or way in passed:
            return len(steps), way
        ways = self._ways(node, way, steps)
        found = (self._walk(on, rest, passed | {way} if rest == steps else frozenset()) for on, rest in ways)
        best = min(found, key=lambda one: one[0], default=(len(steps), way))
        return best if best[0] < len(steps) or "$ref" in node else (len(steps), way)

    def _ways(self, node: Schema, way: tuple[str, ...], steps: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Where the next part of a logical pointer may be: each way on, and what of the pointer is left there."""
        keyword, *rest = steps
        if "$ref" in node:
            name, path = definition_of(str(node["$ref"]))
            yield ("$defs", name, *map(unescaped, path.split("/") if path else ())), steps
            return
        if "allOf" in node and keyword == "properties":
            there = merged_places(self.revision, self.schema, node, "/".join(("", *map(escaped, way))))
            if rest[0] in there:
                yield tuple(map(unescaped, there[rest[0]].split("/")[1:])), rest[1:]
        elif keyword != "anyOf" and (unions := [one for one in UNIONS if one in node]):
            for index, _ in enumerate(node[unions[0]]):  # all of them are the same
                yield (*way, unions[0], str(index)), steps
        elif keyword == "anyOf":
            yield from self._arm(node, way, int(rest[0]), rest[1:])
        elif keyword == "properties":
            if rest[0] in node.get("properties", {}):
                yield (*way, keyword, rest[0]), rest[1:]
        elif keyword in node:
            yield (*way, keyword), rest

    def _arm(
        self, node: Schema, way: tuple[str, ...], index: int, rest: Sequence[str]
    ) -> Iterator[tuple[tuple[str, ...], Any]]:
        """The arm of a union that is the n-th when arms that are unions themselves are written out."""
        unions = [keyword for keyword in UNIONS if keyword in node]
        if not unions:
            yield way, rest  # a list of types or of constants, in one node
            return
        known: set[str] = set()
        for number, arm in enumerate(node[unions[0]]):
            plain = [json.dumps(one, sort_keys=True) for one in plain_arms(self.revision, self.schema, arm)]
            new = [inner for inner, spelled in enumerate(plain) if spelled not in known]
            if index < len(known) + len(new):
                inside = ["anyOf", str(new[index - len(known)])] if len(plain) > 1 else []
                yield (*way, unions[0], str(number)), [*inside, *rest]
                return
            known |= set(plain)


def _along(node: Any, way: Sequence[str]) -> Iterator[Any]:
    """The nodes on a way, the first included, as far as it leads."""
    yield node
    for part in way:
        try:
            node = node[int(part) if isinstance(node, list) else part]
        except (LookupError, TypeError, ValueError):
            return
        yield node


def _ends(way: Sequence[str]) -> Iterator[int]:
    """How many parts of a way lead to a schema, and not to a table or list of schemas."""
    end = 0
    while end < len(way):
        end += 2 if way[end] in TABLES else 1
        yield end
