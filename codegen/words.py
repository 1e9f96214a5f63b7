"""What definitions, fields and methods mean, in our words, and the order in which a reader meets fields.

The words are in `data/words.toml`, the order in `data/order.toml`; both are kept once for all revisions. Here lives
looking them up: what a definition says of its field first, then what every field of that name says; and of one place
the newest wording that is not newer than the revision that asks. Must not live here: where words are shown (`bindings`,
`registry`), or any words. Called by `regen`, `bindings` and `registry`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codegen.errors import UnusedDecision
from codegen.normalise import Normalised

DATA = Path(__file__).parent / "data"
DEFINITION = "is"
REVISION = re.compile(r"\d{4}-\d\d-\d\d")

Entry = Mapping[str, str | Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Words:
    """The entries of `words.toml` and `order.toml`.

    An entry has a sentence for each field, one called `is` for the definition itself, and for each revision since which
    something means something else, a table of such sentences.
    """

    definitions: Mapping[str, Entry]
    fields: Entry
    methods: Entry
    order: Mapping[str, Sequence[str]]

    def definition(self, name: str, schema: Normalised) -> str | None:
        """What a definition is; for frames and their params, from what the method does."""
        said = _said(self.definitions.get(name, {}), DEFINITION, schema.revision)
        return said or self._derived(name, schema)

    def field(self, definition: str, field: str, revision: str) -> str | None:
        """What a field of a definition means."""
        own = _said(self.definitions.get(definition, {}), field, revision)
        return own or _said(self.fields, field, revision)

    def method(self, name: str, revision: str) -> str | None:
        """What a method does."""
        return _said(self.methods, name, revision)

    def arrange(self, definition: str, fields: Sequence[str], required: Sequence[str]) -> list[str]:
        """The fields of a definition as a reader expects them: the required ones first, then as the order says."""
        place = {name: index for index, name in enumerate(self.order.get(definition, ()))}
        return sorted(fields, key=lambda name: (name not in required, place.get(name, len(place)), name))

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


NO_WORDS = Words({}, {}, {}, {})


def read_words(folder: Path = DATA) -> Words:
    """Read both tables."""
    table = tomllib.loads((folder / "words.toml").read_text(encoding="utf-8"))
    order = tomllib.loads((folder / "order.toml").read_text(encoding="utf-8"))
    return Words(table["definition"], table["field"], table["method"], order)


def check_words(words: Words, schemas: Sequence[Normalised]) -> None:
    """Make sure that every entry is used.

    Raises:
        UnusedDecision: A sentence or an order is for a definition, field or method that no revision has.
    """
    fields: dict[str, set[str]] = {}
    for schema in schemas:
        for name, node in schema.definitions.items():
            fields.setdefault(name, set()).update(node.get("properties", {}))
    everywhere = {field for names in fields.values() for field in names}
    methods = {method for schema in schemas for _, method, _ in _frames(schema)}
    unknown = [f"method {name}" for name in _keys(words.methods) - methods]
    unknown += [f"field {name}" for name in _keys(words.fields) - everywhere]
    for name, entry in words.definitions.items():
        known = fields.get(name, set()) | {DEFINITION} if name in fields else set()
        unknown += [f"definition {name}.{key}" for key in _keys(entry) - known]
    for name, names in words.order.items():
        unknown += [f"order {name}.{key}" for key in set(names) - fields.get(name, set())]
    for place in sorted(unknown):
        raise UnusedDecision("words.toml", place, "no revision has it")


def words_of_fields(words: Words) -> dict[str, dict[str, str | dict[str, str]]]:
    """What fields mean, by definition and wire name, those of every definition under `*`.

    Where that changed, it is by the revision since which; what held before that is under the empty string.
    """
    tables = {"*": words.fields, **dict(sorted(words.definitions.items()))}
    found = {name: _by_field(entry) for name, entry in tables.items()}
    return {name: fields for name, fields in found.items() if fields or name == "*"}


def _by_field(entry: Entry) -> dict[str, str | dict[str, str]]:
    fields: dict[str, str | dict[str, str]] = {}
    for key in sorted(_keys(entry) - {DEFINITION}):
        first = entry.get(key)
        since = {"": first} if isinstance(first, str) else {}
        since |= {name: said[key] for name, said in sorted(entry.items()) if isinstance(said, Mapping) and key in said}
        fields[key] = since[""] if since.keys() == {""} else since
    return fields


def missing_words(words: Words, schemas: Sequence[Normalised]) -> list[str]:
    """What of the revisions nobody has found words for yet, as `2025-06-18 Tool.title`."""
    return [f"{schema.revision} {place}" for schema in schemas for place in _missing(words, schema)]


def _missing(words: Words, schema: Normalised) -> Iterator[str]:
    for method in sorted({method for _, method, _ in _frames(schema)}):
        if not words.method(method, schema.revision):
            yield method
    for name, node in schema.definitions.items():
        if not words.definition(name, schema):
            yield name
        for field in node.get("properties", {}):
            if not words.field(name, field, schema.revision):
                yield f"{name}.{field}"


def _frames(schema: Normalised) -> Iterator[tuple[str, str, str]]:
    """Each definition of a request or notification: its name, its method, and the definition of its params, if any."""
    for name, node in schema.definitions.items():
        properties = node.get("properties", {})
        if "const" in properties.get("method", {}):
            params = properties.get("params", {}).get("$ref", "").rpartition("/")[2]
            yield name, properties["method"]["const"], params


def _said(entry: Entry, key: str, revision: str) -> str | None:
    """The newest wording that is not newer than the revision."""
    found = None if isinstance(said := entry.get(key), Mapping) else said
    for since in sorted(name for name in entry if REVISION.fullmatch(name) and name <= revision):
        changed = entry[since]
        found = changed.get(key, found) if isinstance(changed, Mapping) else found
    return found


def _keys(entry: Entry) -> set[str]:
    keys = {key for key in entry if not REVISION.fullmatch(key)}
    return keys.union(*(value for value in entry.values() if isinstance(value, Mapping)))
