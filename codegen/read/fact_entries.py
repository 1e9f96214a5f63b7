"""What overlays say of a revision that no schema shows: what may stand in each table, and for which revisions it holds.

An entry holds from the revision of its overlay on. A newer one about the same thing takes its place, a `[[gone]]` ends
it, and a `[[rename]]` of a method or of a capability makes it be about the new name. What follows from the entries is
in `protocol` and `facts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from codegen.errors import UnusedDecision
from codegen.read.pins import ERAS

CAPABILITIES = {"client": "ClientCapabilities", "server": "ServerCapabilities"}
"""What each side can do: a member says so by being there, even an empty one."""


@dataclass(frozen=True, slots=True)
class Table:
    """What an entry of one table `says`; `key` says what it is about, and is empty where a revision has one at most.

    Where `key` names a list, the entry is about each of its members.
    """

    says: str
    key: str
    required: Mapping[str, type]
    optional: Mapping[str, type]
    choices: Mapping[str, Sequence[str]]


def _table(says: str, key: str, required: str, optional: str = "", **choices: Sequence[str]) -> Table:
    kinds = {"text": str, "list": list, "number": int, "truth": bool, "table": dict, "any": object}
    wanted, others = (
        {name: kinds[kind] for name, _, kind in (part.partition(":") for part in names.split())}
        for names in (required, optional)
    )
    return Table(says, key, wanted, others, choices)


TABLES: Mapping[str, Table] = {
    "capability": _table(
        "which capability a method needs, if its name does not show it", "method", "method:text capability:text"
    ),
    "error_code": _table("a JSON-RPC error code that no schema lists", "code", "code:number name:text"),
    "fill": _table("what constructors of models fill in", "at", "at:text value:any"),
    "transport": _table(
        "which transports there are", "name", "name:text", name=("stdio", "http+sse", "streamable-http")
    ),
    "http_method": _table("which HTTP methods Streamable HTTP has", "name", "name:text"),
    "authorization": _table(
        "what the page on authorization demands of a client",
        "name",
        "name:text",
        name=("default-endpoints", "resource-indicator", "announced-pkce"),
    ),
    "header": _table(
        "a header of Streamable HTTP, and which member it repeats",
        "carries",
        "name:text carries:text",
        "members:table annotation:text is_encoded:truth",
        carries=("session", "revision", "event", "method", "name", "argument"),
    ),
    "trait": _table("a property that the protocol has or does not have", "name", "name:text", name=("polls",)),
    "lifecycle": _table(
        "the methods that open a session, or ask a server for its revisions",
        "part",
        "part:text method:text",
        part=("open", "opened", "discover"),
    ),
    "local": _table("methods that each peer answers on its own", "methods", "methods:list"),
    "log_levels": _table("their order", "", "order:list"),
    "quiet": _table("client requests during which no server sends a request", "methods", "methods:list"),
    "impersonal": _table("server requests that need no particular person", "methods", "methods:list"),
    "unshared": _table(
        "a client capability that cannot be declared for several clients", "capability", "capability:text"
    ),
    "part": _table(
        "which part of a client capability a request needs",
        "capability",
        "capability:text method:text member:text",
        "value:text is_default:truth",
    ),
    "meta": _table(
        "a key of `_meta` that no schema shows", "key", "key:text on:list", on=("request", "result", "notification")
    ),
    "http_status": _table("the HTTP status of an error", "code", "code:number status:number"),
    "meta_refusal": _table("the error for a request whose `_meta` lacks something", "", "code:number status:number"),
    "subscription": _table(
        "what a member of the subscription filter asks for, if its name does not show it",
        "member",
        "member:text method:text",
    ),
}
GONE = "gone"
RENAME = "rename"
"""Of methods and capabilities, a decision on the step is a fact as well: each new name, and the first that it had."""
NAMES = {"method": ("method", "methods", "members"), "field": ("capability",)}
"""Where entries name what was renamed, by what that is."""
ALWAYS = {"era": str, "reason": str}

Said: TypeAlias = Mapping[str, Mapping[Any, Mapping[str, Any]]]
"""What holds for one revision: what an entry says, by its table and by what it is about."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: the overlay it stands in, its revision, its table, and what it says."""

    overlay: str
    revision: str
    table: str
    says: Mapping[str, Any]

    @property
    def about(self) -> list[Any]:
        """What it is about; two entries of a revision are not about the same."""
        found = self.says.get(TABLES[self.table].key, "")
        return found if isinstance(found, list) else [found]

    def refused(self, reason: str) -> UnusedDecision:
        """The error that tells whoever wrote the entry what is wrong with it."""
        found = self.says.get(next(iter(TABLES[self.table].required)), "") if self.table != GONE else ""
        label = f"{self.table} {', '.join(map(str, found)) if isinstance(found, list) else found}"
        return UnusedDecision(self.overlay, label.strip(), reason)


def entries_of(overlay: str, revision: str, tables: Mapping[str, Any]) -> list[Entry]:
    """Check the entries of one overlay's tables.

    Raises:
        UnusedDecision: One says too little, too much, or nonsense, or two say something about the same.
    """
    entries = [Entry(overlay, revision, table, says) for table in (GONE, *TABLES) for says in tables.get(table, ())]
    seen: set[tuple[str, str, Any]] = set()
    for entry in entries:
        for reason in _faults_of_gone(entry) if entry.table == GONE else _faults(entry):
            raise entry.refused(reason)
        for one in ended_by(entry) if entry.table == GONE else [(entry.table, about) for about in entry.about]:
            eras = {(*one, entry.says.get("era", era)) for era in ERAS}
            if eras & seen:
                raise entry.refused(f"another entry of this overlay is about {one[1] or 'the same'}, too")
            seen |= eras
    renames = [Entry(overlay, revision, RENAME, says) for says in tables.get(RENAME, ()) if _is_of_facts(says)]
    return renames + entries


def said_of(entries: Sequence[Entry], revision: str, era: str) -> Said:
    """What holds for a revision; entries come oldest first."""
    said: dict[str, dict[Any, Mapping[str, Any]]] = {table: {} for table in (RENAME, *TABLES)}
    for entry in entries:
        if entry.revision > revision or entry.says.get("era", era) != era:
            continue
        if entry.table == RENAME:
            _rename(said, entry.says)
            continue
        for table, about in ended_by(entry) if entry.table == GONE else ():
            said[table].pop(about, None)
        for about in entry.about if entry.table != GONE else ():
            said[entry.table][about] = entry.says
    return said


def _is_of_facts(says: Mapping[str, Any]) -> bool:
    """Whether a `[[rename]]` is about something that facts name: a method, or a capability."""
    at = says.get("at", ())
    owners = {at} if isinstance(at, str) else set(at)
    is_capability = not owners.isdisjoint(CAPABILITIES.values())
    return says.get("what") == "method" or (says.get("what") == "field" and is_capability)


def _rename(said: dict[str, dict[Any, Mapping[str, Any]]], rename: Mapping[str, Any]) -> None:
    """Let what was said under an old name be said under the new one."""
    old, new, keys = rename["old"], rename["new"], NAMES[rename["what"]]
    for table, shape in TABLES.items():
        is_named = shape.key in keys
        said[table] = {
            _renamed(about, old, new) if is_named else about: {
                key: _renamed(value, old, new) if key in keys else value for key, value in says.items()
            }
            for about, says in said[table].items()
        }
    said[RENAME][rename["what"], new] = said[RENAME].pop((rename["what"], old), {"old": old})


def first_name(said: Said, method: str) -> str:
    """The first name that a method had; its own where it was never renamed."""
    return str(said[RENAME].get(("method", method), {"old": method})["old"])


def capability_now(said: Said, capability: str) -> str:
    """The name of a capability, by the first that it had."""
    now = [new for (what, new), says in said[RENAME].items() if what == "field" and says["old"] == capability]
    return str(now[0]) if now else capability


def _renamed(value: Any, old: str, new: str) -> Any:
    """A name, or the names in a list or a table, under the new name; of a capability, its parts too."""
    if isinstance(value, list):
        return [_renamed(one, old, new) for one in value]
    if isinstance(value, Mapping):
        return {_renamed(name, old, new): one for name, one in value.items()}
    head, dot, rest = value.partition(".")
    return f"{new}{dot}{rest}" if head == old else value


def ended_by(entry: Entry) -> list[tuple[str, Any]]:
    """What a `[[gone]]` ends: the table, and what the entry there is about."""
    said = [(table, says) for table, says in entry.says.items() if table in TABLES]
    return [(table, about) for table, says in said for about in (says if isinstance(says, list) else [says])]


def _inner(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else []


def _faults_of_gone(entry: Entry) -> Iterator[str]:
    others = entry.says.keys() - {"reason", *TABLES}
    if others or not ended_by(entry):
        yield f"it says of a table what of it is gone, and the reason; there are {', '.join(sorted(TABLES))}"
    for table, about in ended_by(entry):
        if type(about) not in (str, int):
            yield f"{table!r} is {about!r}, which is neither a text nor a number, nor a list of such"
    if not str(entry.says.get("reason", "")).strip():
        yield "an entry needs a reason"


def _faults(entry: Entry) -> Iterator[str]:
    table, says = TABLES[entry.table], entry.says
    kinds = {**table.required, **table.optional, **ALWAYS}
    for key in sorted(table.required.keys() - says.keys()):
        yield f"it has no {key!r}"
    for key, value in says.items():
        if key not in kinds:
            yield f"{key!r} is no key of it; there are {', '.join(sorted(kinds))}"
        elif kinds[key] not in (object, type(value)):
            yield f"{key!r} is {value!r}, which is not of the type {kinds[key].__name__}"
        elif kinds[key] in (list, dict) and not all(type(one) is str for one in [*value, *_inner(value)]):
            yield f"{key!r} is {value!r}, in which something is no text"
        else:
            for one in value if isinstance(value, list) else (value,):
                choices = ERAS if key == "era" else table.choices.get(key)
                if choices is not None and one not in choices:
                    yield f"{key!r} is {one!r}; there are {', '.join(choices)}"
    if not str(says.get("reason", "")).strip():
        yield "an entry needs a reason"
