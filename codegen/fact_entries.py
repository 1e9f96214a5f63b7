"""The entries of `data/protocol.toml` that `facts` needs: what may stand in each table, and for which revisions.

Lives here: reading them, and refusing what no table has room for. Must not live here: what follows from them (`facts`),
or the tables that `methods.py` and the models are made from (`protocol`). Called by `facts`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codegen.errors import UnusedDecision
from codegen.pins import ERAS
from codegen.protocol import DATA

REVISION = re.compile(r"\d{4}-\d\d-\d\d")
ELSEWHERE = frozenset({"roles", "capability", "error_code", "fill"})
"""The tables of `protocol`."""


@dataclass(frozen=True, slots=True)
class Table:
    """What an entry of one table says.

    `one` is the key by which a revision has no more than one entry; empty, where it has no more than one at all, and
    None, where it may have any number.
    """

    required: Mapping[str, type]
    optional: Mapping[str, type]
    choices: Mapping[str, Sequence[str]]
    one: str | None = None


def _table(required: str, optional: str = "", one: str | None = None, **choices: Sequence[str]) -> Table:
    kinds = {"text": str, "list": list, "number": int, "truth": bool, "table": dict}
    wanted, others = (
        {key: kinds[kind] for key, _, kind in (part.partition(":") for part in keys.split())}
        for keys in (required, optional)
    )
    return Table(wanted, others, choices, one)


TABLES: Mapping[str, Table] = {
    "transport": _table("name:text", one="name", name=("stdio", "http+sse", "streamable-http")),
    "http_method": _table("name:text", one="name"),
    "authorization": _table(
        "name:text", one="name", name=("default-endpoints", "resource-indicator", "announced-pkce", "same-issuer")
    ),
    "header": _table(
        "name:text carries:text",
        "members:table annotation:text is_encoded:truth",
        one="carries",
        carries=("session", "revision", "event", "method", "name", "argument"),
    ),
    "trait": _table("name:text", one="name", name=("polls",)),
    "lifecycle": _table("part:text method:text", one="part", part=("open", "opened", "discover")),
    "local": _table("methods:list"),
    "log_levels": _table("order:list", one=""),
    "quiet": _table("methods:list"),
    "impersonal": _table("methods:list"),
    "unshared": _table("capability:text", one="capability"),
    "part": _table("capability:text method:text member:text", "value:text is_default:truth", one="capability"),
    "meta": _table("key:text on:list", one="key", on=("request", "result", "notification")),
    "http_status": _table("code:number status:number", one="code"),
    "meta_refusal": _table("code:number status:number", one=""),
    "subscription": _table("member:text method:text", one="member"),
}
BOUNDS = {"since": str, "until": str, "era": str}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its table, its place there from 1, and what it says."""

    table: str
    place: int
    says: Mapping[str, Any]

    @property
    def label(self) -> str:
        """How an error calls it: by the first thing that it says."""
        said = self.says.get(next(iter(TABLES[self.table].required)), "")
        return f"{self.table} {', '.join(map(str, said)) if isinstance(said, list) else said}"

    def applies(self, revision: str, era: str) -> bool:
        """Whether it is for a revision."""
        says = self.says
        dated = bool(says.get("since", revision) <= revision <= says.get("until", revision))
        return dated and says.get("era", era) == era

    def refused(self, reason: str) -> UnusedDecision:
        """The error that tells whoever wrote the entry what is wrong with it."""
        return UnusedDecision(f"codegen/data/{DATA.name}", self.label, reason)


def read_entries(path: Path = DATA) -> tuple[Entry, ...]:
    """Read and check the entries.

    Raises:
        UnusedDecision: The file has a table that is nobody's, or an entry says too little, too much, or nonsense.
    """
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    unknown = sorted(tables.keys() - TABLES.keys() - ELSEWHERE)
    if unknown:
        known = ", ".join(sorted({*TABLES, *ELSEWHERE}))
        raise UnusedDecision(f"codegen/data/{path.name}", unknown[0], f"no such table; there are {known}")
    return entries_of(tables)


def entries_of(tables: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Check the entries of tables that are read already.

    Raises:
        UnusedDecision: One says too little, too much, or nonsense.
    """
    entries = tuple(
        Entry(table, place, says) for table in TABLES for place, says in enumerate(tables.get(table, ()), 1)
    )
    for entry in entries:
        for reason in _faults(entry):
            raise entry.refused(reason)
    return entries


def chosen(entries: Sequence[Entry], table: str, revision: str, era: str) -> list[Entry]:
    """The entries of a table that are for a revision.

    Raises:
        UnusedDecision: Two of them say the same thing differently.
    """
    found = [entry for entry in entries if entry.table == table and entry.applies(revision, era)]
    one = TABLES[table].one
    seen: dict[Any, Entry] = {}
    for entry in found if one is not None else ():
        key = entry.says[one] if one else ""
        if key in seen:
            raise entry.refused(f"number {seen[key].place} of the table is for {revision} too; bound one of them")
        seen[key] = entry
    return found


def _faults(entry: Entry) -> Iterator[str]:
    table, says = TABLES[entry.table], entry.says
    kinds = {**table.required, **table.optional, **BOUNDS, "reason": str}
    for key in sorted(table.required.keys() - says.keys()):
        yield f"it has no {key!r}"
    for key, value in says.items():
        if key not in kinds:
            yield f"{key!r} is no key of it; there are {', '.join(sorted(kinds))}"
        elif type(value) is not kinds[key]:
            yield f"{key!r} is {value!r}, which is not of the type {kinds[key].__name__}"
        elif key in ("since", "until") and not REVISION.fullmatch(str(value)):
            yield f"{key!r} is {value!r}, which is not the name of a revision"
        else:
            for one in value if isinstance(value, list) else (value,):
                choices = ERAS if key == "era" else table.choices.get(key)
                if choices is not None and one not in choices:
                    yield f"{key!r} is {one!r}; there are {', '.join(choices)}"
    if not str(says.get("reason", "")).strip():
        yield "an entry needs a reason"
