"""What definitions, fields and methods mean, in our words, and the order in which a reader meets fields.

Both stand in overlays, and hold from the revision of the overlay on. Words are looked up here: what a definition says
of its field first, then what every field of that name says; of each the newest that is not newer than the revision that
asks. Where words are shown is the business of `bindings` and `registry`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from codegen.errors import UnusedDecision
from codegen.read.normalise import Normalised
from codegen.read.overlay import overlay_path

DEFINITION = "is"
FIRST, LAST = ("jsonrpc", "id", "method", "params", "result", "error", "resultType"), ("_meta",)
History: TypeAlias = dict[str, str]
"""A sentence by the revision from which on it holds, oldest first; an empty one is still to be filled in."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of all overlays.

    A definition has a sentence for each of its fields, and one called `is` for itself.
    """

    definitions: Mapping[str, Mapping[str, History]] = field(default_factory=dict)
    fields: Mapping[str, History] = field(default_factory=dict)
    methods: Mapping[str, History] = field(default_factory=dict)
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def definition(self, name: str, schema: Normalised) -> str | None:
        """What a definition is; for frames and their params, from what the method does."""
        return _said(self.definitions.get(name, {}), DEFINITION, schema.revision) or self._derived(name, schema)

    def field(self, definition: str, field: str, revision: str) -> str | None:
        """What a field of a definition means."""
        own = _said(self.definitions.get(definition, {}), field, revision)
        return own or _said(self.fields, field, revision)

    def method(self, name: str, revision: str) -> str | None:
        """What a method does."""
        return _said(self.methods, name, revision)

    def arrange(self, definition: str, fields: Sequence[str], required: Sequence[str]) -> list[str]:
        """The fields of a definition as a reader expects them: the required ones first, then as the order says."""
        known = self.placed(definition)
        order = [name for name in known if name not in LAST] + sorted({*fields} - {*known}) + [*LAST]
        return sorted(fields, key=lambda name: (name not in required, order.index(name)))

    def placed(self, definition: str) -> list[str]:
        """The fields whose order is known: what every frame has stands first, and `_meta` last."""
        said = self.order.get(definition, ())
        return [name for name in FIRST if name not in said] + [*said, *LAST]

    def _derived(self, name: str, schema: Normalised) -> str | None:
        for frame, method, params in _frames(schema):
            does = self.method(method, schema.revision)
            if does and name in (frame, params):
                kind = "notification" if frame.endswith("Notification") else "request"
                return f"The {kind} `{method}`. {does}" if name == frame else f"The params of `{method}`. {does}"
        stem = name.removesuffix("Response")
        if stem != name and stem in schema.definitions:
            return f"The response that carries a `{stem}`, with the id of the request."
        return None


NO_WORDS = Words()


def words_of(overlays: Sequence[tuple[str, Mapping[str, Any]]]) -> Words:
    """Collect the words of overlays, whose revisions and tables come oldest first."""
    definitions: dict[str, dict[str, History]] = {}
    fields: dict[str, History] = {}
    methods: dict[str, History] = {}
    order: dict[str, list[str]] = {}
    for revision, tables in overlays:
        for row in tables.get("rename", ()):
            if row.get("what") == "method" and row.get("old") in methods:
                methods[row["new"]] = dict(methods[row["old"]])
        words = tables.get("words", {})
        said = [(fields, words.get("field", {})), (methods, words.get("method", {}))]
        said += [(definitions.setdefault(name, {}), own) for name, own in words.get("definition", {}).items()]
        for into, sentences in said:
            for key, sentence in sentences.items():
                into.setdefault(key, {})[revision] = sentence
        for name, names in tables.get("order", {}).items():
            order[name] = _merged(order.get(name, []), names)
    return Words(definitions, fields, methods, order)


def _merged(known: Sequence[str], said: Sequence[str]) -> list[str]:
    """Put each name that is new behind the one that is before it in what is said, or first."""
    merged = list(known)
    for before, name in pairwise(["", *said]):
        if name not in merged:
            merged.insert(merged.index(before) + 1 if before else 0, name)
    return merged


def check_words(tables: Mapping[str, Any], schema: Normalised) -> None:
    """Make sure that the words and the order of a revision's overlay are of something that the revision has.

    Raises:
        UnusedDecision: They are not, or are no sentences and lists of names.
    """
    fields = {name: node.get("properties", {}).keys() for name, node in schema.definitions.items()}
    everywhere = {field for names in fields.values() for field in names}
    words, order = tables.get("words", {}), tables.get("order", {})
    known = {"method": {method for _, method, _ in _frames(schema)}, "field": everywhere}
    unknown = [f"words.{kind}" for kind in words.keys() - {*known, "definition"}]
    unknown += [f"words.{kind} {name}" for kind, names in known.items() for name in words.get(kind, {}).keys() - names]
    for kind, entries in (("words.definition", words.get("definition", {})), ("order", order)):
        for name, said in entries.items():
            there = {*fields[name], DEFINITION} if name in fields else set()
            unknown += [f"{kind} {name}.{key}" for key in set(said) - there]
    for place in sorted(unknown):
        raise UnusedDecision(overlay_path(schema.revision), place, "the revision has no such thing")


def words_of_fields(words: Words, schemas: Sequence[Normalised]) -> dict[str, dict[str, str | History]]:
    """What fields mean, by definition and wire name, those of every definition under `*`.

    Where that changed, it is by the revision since which; what held from the beginning is under the empty string.
    """
    found: dict[str, dict[str, str | History]] = {"*": {}}
    for name, entry in {"*": words.fields, **dict(sorted(words.definitions.items()))}.items():
        for key, history in sorted(entry.items()):
            if key != DEFINITION and any(history.values()):
                since = {revision: said for revision, said in history.items() if said}
                first = next(iter(since))
                if not any(_has(schema, name, key) for schema in schemas if schema.revision < first):
                    since = {"": since.pop(first), **since}
                found.setdefault(name, {})[key] = since[""] if since.keys() == {""} else since
    return found


def _has(schema: Normalised, name: str, field: str) -> bool:
    """Whether a revision has a field of a definition, or of any."""
    owners = schema.definitions.values() if name == "*" else [schema.definitions.get(name, {})]
    return any(field in owner.get("properties", {}) for owner in owners)


def missing_words(words: Words, schema: Normalised) -> Iterator[tuple[str, ...]]:
    """What of a revision nobody has found words for yet, as the keys below `words` where they would stand.

    A field that several definitions have is asked about once; a frame and its params get the words of their method.
    """
    frames, without = list(_frames(schema)), list[str]()
    for method in sorted({method for _, method, _ in frames}):
        if not words.method(method, schema.revision):
            yield "method", method
    told = {name for frame, _, params in frames for name in (frame, params)}
    lacking: dict[str, list[str]] = {}
    for name, node in schema.definitions.items():
        without += [] if name in told or words.definition(name, schema) else [name]
        for key in node.get("properties", {}):
            if not words.field(name, key, schema.revision):
                lacking.setdefault(key, []).append(name)
    yield from (("field", key) for key, names in sorted(lacking.items()) if len(names) > 1)
    places = [(name, DEFINITION) for name in without]
    places += [(names[0], key) for key, names in lacking.items() if len(names) == 1]
    yield from (("definition", *place) for place in sorted(places))


def _frames(schema: Normalised) -> Iterator[tuple[str, str, str]]:
    """Each definition of a request or notification: its name, its method, and the definition of its params, if any."""
    for name, node in schema.definitions.items():
        properties = node.get("properties", {})
        if "const" in properties.get("method", {}):
            params = properties.get("params", {}).get("$ref", "").rpartition("/")[2]
            yield name, properties["method"]["const"], params


def _said(entry: Mapping[str, History], key: str, revision: str) -> str | None:
    """The newest wording that is not newer than the revision."""
    found = [said for since, said in entry.get(key, {}).items() if since <= revision and said]
    return found[-1] if found else None
