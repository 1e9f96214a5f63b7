"""Names that a person gives: to a definition that cannot keep its own in Python, and to an object that has none.

A naming is a `[[name]]` table in `codegen/overlays/<revision>.toml`: what it is `of`, a definition or the path of an
object that stands in one (`CallToolRequest.params`); what it is `called` in Python, in entries, in questions and in the
documentation; and the reason. It holds on in later revisions that have the same thing, until one of them says something
else of it. On the wire nothing has another name for it. Must not live here: names of fields, which all get an attribute
by themselves (`bindings`), or changes of names between revisions (`[[rename]]`). Called by `normalise`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from codegen.errors import UnusedDecision
from codegen.names import unescaped
from codegen.read.overlay import overlay_path, read_lineage

PREFIX = "#/$defs/"
KEYS = frozenset({"of", "called", "reason"})


@dataclass(frozen=True, slots=True)
class Naming:
    """One entry, and the overlay that has it; `own` says whether it is the revision's own, not an earlier one's."""

    of: str
    called: str
    reason: str
    overlay: str
    own: bool


@dataclass(frozen=True, slots=True)
class Named:
    """A canonical schema whose definitions are called as they should be.

    `upstream` has what the official file calls them, where that is something else; `places` the entries on objects
    without a name, by path.
    """

    schema: dict[str, Any]
    upstream: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Naming] = field(default_factory=dict)


def read_namings(overlay: Path) -> list[Naming]:
    """The entries that hold for the revision of an overlay: its own, and those of the revisions that it comes from.

    Raises:
        UnusedDecision: An entry has other keys than the three, or gives no reason.
    """
    found: dict[str, Naming] = {}
    for revision, tables in read_lineage(overlay):
        for table in tables.get("name", ()):
            if table.keys() != KEYS or not all(isinstance(said, str) and said.strip() for said in table.values()):
                said = f"expected a string for each of {', '.join(sorted(KEYS))}, found {table}"
                raise UnusedDecision(overlay_path(revision), "name", said)
            found[table["of"]] = Naming(**table, overlay=overlay_path(revision), own=revision == overlay.stem)
    return list(found.values())


def name_definitions(schema: dict[str, Any], overlay: Path) -> Named:
    """Give the definitions of a canonical schema the names that entries say.

    Raises:
        UnusedDecision: An entry of the revision's own gives a name that another definition has.
    """
    names: dict[str, str] = {}
    places: dict[str, Naming] = {}
    definitions = schema["$defs"]
    for naming in read_namings(overlay):
        if naming.of not in definitions:
            if naming.own or naming.called not in definitions:
                places[naming.of] = naming
        elif naming.called not in definitions and naming.called not in names.values():
            names[naming.of] = naming.called
        elif naming.own:
            raise UnusedDecision(naming.overlay, naming.of, f"another definition is called {naming.called}")
    if not names:
        return Named(schema, {}, places)
    renamed = {names.get(name, name): _renamed(node, names) for name, node in definitions.items()}
    return Named({**schema, "$defs": renamed}, {new: old for old, new in names.items()}, places)


def check_places(named: Named, paths: Mapping[str, str]) -> None:
    """Make sure that each entry of the revision's own has given something its name.

    Args:
        named: As `name_definitions` gave it.
        paths: The path of each object that got a name, by that name.

    Raises:
        UnusedDecision: An entry is of nothing.
    """
    for naming in named.places.values():
        if naming.own and paths.get(naming.called) != naming.of:
            said = "the revision has neither a definition nor an object without a name there"
            raise UnusedDecision(naming.overlay, f"name {naming.of}", said)


def definition_of(reference: str) -> tuple[str, str]:
    """The definition that a reference leads to or into, and the rest of the way: `#/$defs/A%3CB%3E/items`."""
    name, _, path = reference.removeprefix(PREFIX).partition("/")
    return unescaped(unquote(name)), path


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    """A schema whose references are to the new names; a member that is called `$ref` is none."""
    if isinstance(node, list):
        return [_renamed(item, names) for item in node]
    if not isinstance(node, dict):
        return node
    result = {key: _renamed(value, names) for key, value in node.items()}
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith(PREFIX):
        name, path = definition_of(reference)
        if name in names:
            result["$ref"] = "/".join(filter(None, (PREFIX + names[name], path)))
    return result
