"""What a person says of a revision: `codegen/overlays/<revision>.toml`, the one file for a new one.

Here are the reading of the file, and of its rulings on the step INTO the revision, with the bookkeeping (*unused means
broken*: an entry that matches nothing is an error, and so is a change that two entries match). What it says of facts
and words is for `fact_entries` and `words`. What entries mean is said in CONTRIBUTING.md.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from codegen.errors import UnusedDecision
from codegen.read.fact_entries import GONE
from codegen.read.fact_entries import TABLES as FACTS
from codegen.read.limits import DEPTH, fault_of
from codegen.read.pins import PINS_NAME, SCHEMA_DIR, ancestors, predecessors, read_pins

BOTH_PROFILES = ("strict", "minimal")
STEP = frozenset({"decision", "hook", "rule", "rename", "refuse", "error", "cosmetic", "fix", "move", "name"})
LISTS = STEP | FACTS.keys() | {GONE}
ANY = "*"
SAID: Mapping[str, Any] = {
    "words": {"method": {ANY: "str"}, "field": {ANY: "str"}, "definition": {ANY: {ANY: "str"}}},
    "order": {ANY: "tuple[str, ...]"},
}
"""Tables that are no lists of entries, and the shape of each."""
KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a text", lambda value: type(value) is str),
    "bool": ("true or false", lambda value: type(value) is bool),
    "int": ("a whole number", lambda value: type(value) is int),
    "tuple[str, ...]": ("a list of names", lambda value: _are(value, str)),
    "tuple[int, int]": ("a list of two whole numbers", lambda value: _are(value, int) and len(value) == 2),
    "Mapping[str, Any]": ("a table", lambda value: isinstance(value, dict)),
    "Mapping[str, str]": ("a table of texts", lambda value: isinstance(value, dict) and _are([*value.values()], str)),
    "rows": ("a list of tables", lambda value: _are(value, dict)),
}
"""What a value of an entry may be, by the type of its field: how that is called, and the test."""
LONG_KEY = re.compile(rf"""(?<![\w"'.-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{DEPTH}}}""", re.ASCII)
"""Such a key takes a time that grows as the square of its parts."""
Tables: TypeAlias = Mapping[str, Any]
"""What a file says, by table."""

Instead: TypeAlias = tuple[str, Mapping[str, object]]
"""An entry that may be written in the place of a decision: its table, and what it says."""
NO_INSTEAD: Instead = ("", {})


@dataclass(frozen=True, slots=True)
class Change:
    """Something in the target revision that a value of the source revision may not satisfy.

    `at` is a path from a definition of the source (`Tool.inputSchema.properties{}`, `CallToolResult.content[]`),
    `kind` one of `verbs.KINDS`; the pointers lead into both canonical schemas, `target_way`
    through the types of the target.
    """

    direction: str
    kind: str
    at: str
    detail: str
    source_pointer: str
    target_pointer: str
    arm: str = ""
    instead: Instead = field(default=NO_INSTEAD, compare=False)
    target_way: str = field(default="", compare=False)

    def __str__(self) -> str:
        arm = f" {self.arm}" if self.arm else ""
        pointers = f"{self.source_pointer} -> {self.target_pointer}"
        return f"{self.direction} {self.kind} {self.at}{arm}: {self.detail} ({pointers})"


@dataclass(frozen=True, slots=True)
class Decision:
    """One ruling: for which change (`direction`, `change`, `at`, `arm`), what to do (`do`, `with`), and why."""

    name: str
    direction: str
    change: str
    at: tuple[str, ...]
    do: str
    reason: str
    arm: tuple[str, ...] = ("",)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    profiles: tuple[str, ...] = BOTH_PROFILES
    reviewed: bool = True

    def rules_on(self, change: Change, pattern: str) -> bool:
        """Whether the entry, by one of its `at` patterns, is about this change."""
        same = (self.direction, self.change) == (change.direction, change.kind)
        return same and change.arm in self.arm and matches(change.at, pattern)


@dataclass(frozen=True, slots=True)
class Hook:
    """A call that no schema asks for: on values of a definition (`at`), or on frames (`method`, `kind`).

    With `when`, only objects that have this field are handed to it. With a `rule`, the call is a named repair rule
    that users can switch off, and may be in both directions (no `direction`).
    """

    name: str
    do: str
    reason: str
    direction: str = ""
    at: str = ""
    method: str = ""
    kind: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    profiles: tuple[str, ...] = ("strict",)
    when: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A named repair rule: a switch over hooks, over what the other fields name, or one of the proxy's."""

    name: str
    summary: str
    default: bool
    aliases: Mapping[str, str] = field(default_factory=dict)
    strict_methods: tuple[str, ...] = ()
    nulls: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """A definition, field (`at`) or method whose name changed: `old` in the older revision, `new` in the newer."""

    name: str
    what: str
    old: str
    new: str
    reason: str
    at: tuple[str, ...] = ("",)
    factor: int = 1
    """For numbers whose unit changed with the name: what the older number is multiplied by."""
    negated: bool = False
    """For a boolean whose new name says the opposite."""


@dataclass(frozen=True, slots=True)
class Move:
    """A field of objects (`at`) that stands in another object in the newer revision: the way to it in each."""

    name: str
    at: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason shown when a method that the target lacks is refused, and the JSON-RPC code."""

    name: str
    direction: str
    methods: tuple[str, ...]
    reason: str
    code: int = -32601


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A call on error responses with one of the codes (inclusive range)."""

    name: str
    direction: str
    codes: tuple[int, int]
    do: str
    reason: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def rules_on(self, direction: str, code: object) -> bool:
        """Whether the entry is about a code."""
        return self.direction == direction and isinstance(code, int) and self.codes[0] <= code <= self.codes[1]


@dataclass(frozen=True, slots=True)
class Cosmetic:
    """Fields (`at`) whose loss does not change what is said; both ways, unless a `direction` is given.

    With a `value`, only where they hold it: their absence says the same.
    """

    name: str
    at: tuple[str, ...]
    reason: str
    direction: str = ""
    value: Any = None


@dataclass(slots=True)
class Overlay:
    """All rulings for one step, and which of them have been used."""

    revision: str
    path: str
    decisions: tuple[Decision, ...] = ()
    hooks: tuple[Hook, ...] = ()
    rules: tuple[Rule, ...] = ()
    renames: tuple[Rename, ...] = ()
    moves: tuple[Move, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    errors: tuple[ErrorCode, ...] = ()
    cosmetics: tuple[Cosmetic, ...] = ()
    used: set[tuple[str, str]] = field(default_factory=set)
    ruled: dict[tuple[str, str, str, str], str] = field(default_factory=dict)

    def rule_on(self, change: Change) -> Decision | None:
        """The decision on a change, if there is one.

        Raises:
            UnusedDecision: Two decisions rule on this change.
        """
        found = [(d, p) for d in self.decisions for p in d.at if d.rules_on(change, p)]
        names = {d.name for d, _ in found}
        if len(names) > 1:
            raise UnusedDecision(self.path, sorted(names)[1], f"rules on {change} as {sorted(names)[0]!r} does already")
        for decision, pattern in found:
            self.used |= {(decision.name, pattern), (decision.name, f"arm {change.arm}")}
        return found[0][0] if found and found[0][0].do else None

    def find_cosmetic(self, direction: str, at: str, *, only_values: bool = False) -> Cosmetic | None:
        """The entry that says that the loss of the field at this path is cosmetic, or that its loss with a value is.

        Raises:
            UnusedDecision: Two entries say so.
        """
        asked = [entry for entry in self.cosmetics if entry.direction in ("", direction)]
        found = [(entry, pattern) for entry in asked for pattern in entry.at if matches(at, pattern)]
        names = sorted({entry.name for entry, _ in found})
        if len(names) > 1:
            raise UnusedDecision(self.path, names[1], f"calls {at} cosmetic as {names[0]!r} does already")
        found = [(entry, pattern) for entry, pattern in found if entry.value is not None or not only_values]
        self.used.update((entry.name, pattern) for entry, pattern in found)
        return found[0][0] if found else None

    def use(self, name: str, pattern: str = "") -> None:
        """Say that an entry has been used."""
        self.used.add((name, pattern))

    def check_used(self) -> None:
        """Fail on the first entry that matched nothing.

        Raises:
            UnusedDecision: With the entry's name and the pattern that matches nothing.
        """
        for decision in self.decisions:
            for at, arm in product(decision.at, decision.arm):
                of = f" of {arm!r}" if arm else ""
                if not {(decision.name, at), (decision.name, f"arm {arm}")} <= self.used:
                    raise UnusedDecision(self.path, decision.name, f"no {decision.change} change{of} matches at {at!r}")
        entries = [
            *((h.name, h.at or h.method) for h in self.hooks),
            *((r.what + r.old, at) for r in self.renames for at in r.at),
        ]
        entries += [("move" + ".".join(m.old), at) for m in self.moves for at in m.at]
        entries += [(method, r.direction) for r in self.refusals for method in r.methods]
        entries += [(c.name, pattern) for c in self.cosmetics for pattern in c.at]
        for name, pattern in entries:
            if (name, pattern) not in self.used:
                raise UnusedDecision(self.path, name, f"it matches nothing at {pattern!r}")


TABLE: Mapping[type[Any], str] = {
    Decision: "decision",
    Rename: "rename",
    Refusal: "refuse",
    ErrorCode: "error",
    Cosmetic: "cosmetic",
}


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list | tuple) and all(type(one) is kind for one in values)


def matches(path: str, pattern: str) -> bool:
    """Whether a path is the pattern, in which `*` stands for anything and all else for itself."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), path) is not None


def read_overlay(root: Path, revision: str) -> Overlay:
    """Read the overlay of the step into *revision*; a missing file is an overlay with no entries.

    Raises:
        UnusedDecision: The file has a table or key that means nothing.
    """
    return parse_overlay(revision, read_text(root / overlay_path(revision)))


def read_text(file: Path) -> str:
    """The text of an overlay, empty where there is none.

    Raises:
        UnusedDecision: It is not UTF-8.
    """
    try:
        return file.read_text(encoding="utf-8") if file.is_file() else ""
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UnusedDecision(overlay_path(file.stem), f"line {line}", "it is not UTF-8: save it as that") from None


def overlay_path(revision: str) -> str:
    """Where the overlay of the step into a revision is, below the root."""
    return f"codegen/overlays/{revision}.toml"


def parse_overlay(revision: str, text: str) -> Overlay:
    """Read the text of an overlay.

    Raises:
        UnusedDecision: It is not TOML, or has a table or key that means nothing.
    """
    path = overlay_path(revision)
    return Overlay(revision, path, **_entries(path, _tables(path, text)))


def _entries(path: str, tables: Tables) -> dict[str, Any]:
    """The entries that are rulings on the step, as an `Overlay` has them."""
    kinds = (
        ("decisions", Decision),
        ("renames", Rename),
        ("refusals", Refusal),
        ("errors", ErrorCode),
        ("cosmetics", Cosmetic),
    )
    return {
        **{name: tuple(_entry(path, kind, row) for row in tables.get(TABLE[kind], [])) for name, kind in kinds},
        "rules": tuple(_rule(path, row) for row in tables.get("rule", [])),
        "hooks": tuple(_hooks(path, tables)),
        "moves": tuple(_move(path, row) for row in tables.get("move", [])),
    }


def _move(path: str, row: Mapping[str, Any]) -> Move:
    move: Move = _entry(path, Move, row)
    for way in (move.old, move.new):
        if not way:
            raise UnusedDecision(path, "move", f'a way is a list of names, as in ["annotations", "title"], not {way!r}')
    return move


def read_until(overlay: Path) -> list[tuple[str, Tables]]:
    """Read an overlay and those of earlier revisions beside it, which may hold on: the tables of each, oldest first.

    Raises:
        UnusedDecision: A file is not TOML, or has a table that means nothing.
    """
    files = [file for file in sorted(overlay.parent.glob("*.toml")) if file.stem <= overlay.stem]
    return [(file.stem, _tables(overlay_path(file.stem), read_text(file))) for file in files]


def read_lineage(overlay: Path) -> list[tuple[str, Tables]]:
    """Read an overlay and those of the revisions that its steps come from, oldest first.

    A revision that came between, of the other era, is not among them: what it calls things holds for its own line.
    Where nothing is pinned yet, all earlier ones are.
    """
    read, before = read_until(overlay), predecessors(read_pins(overlay.parents[2] / SCHEMA_DIR.name / PINS_NAME))
    line = {overlay.stem, *ancestors(overlay.stem, before)} if overlay.stem in before else {one for one, _ in read}
    return [(revision, tables) for revision, tables in read if revision in line]


@lru_cache(maxsize=64)
def _tables(path: str, text: str) -> Tables:
    if long := LONG_KEY.search(text):
        line = text.count("\n", 0, long.start()) + 1
        raise UnusedDecision(path, f"line {line}", f"a key of more than {DEPTH} parts")
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise UnusedDecision(path, "the file", f"it has more than {DEPTH} levels of tables and lists") from None
    except ValueError as error:
        raise UnusedDecision(path, "the file", f"it is not TOML: {error}") from None
    if fault := fault_of(tables):
        raise UnusedDecision(path, *fault)
    for name, rows in tables.items():
        if name in SAID:
            _check_shape(path, name, rows, SAID[name])
            continue
        if name not in LISTS:
            raise UnusedDecision(path, name, f"no such table; there are {', '.join(sorted(LISTS | SAID.keys()))}")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise UnusedDecision(path, name, f"entries are written as [[{name}]], with two brackets")
    _entries(path, tables)
    return tables


def _check_shape(path: str, place: str, said: Any, shape: Any) -> None:
    """Refuse the first of what is said, in tables by name, that has another shape: a table of shapes, or a kind."""
    if isinstance(shape, str):
        check_kind(path, place, "it", said, shape)
        return
    check_kind(path, place, "it", said, "Mapping[str, Any]")
    for name, one in said.items():
        if name in shape or ANY in shape:
            _check_shape(path, f"{place} {name}", one, shape.get(name, shape.get(ANY)))


def check_kind(path: str, place: str, key: str, value: Any, kind: str) -> None:
    """Refuse a value that is not of the kind wanted, which is one of `KINDS`, or anything.

    Raises:
        UnusedDecision: It is of another.
    """
    called, fits = KINDS.get(kind, ("", lambda _: True))
    if not fits(value):
        raise UnusedDecision(path, place, f"{key} is {called}, not {str(value)[:200]!r}")


def _rule(path: str, row: Mapping[str, Any]) -> Rule:
    rule: Rule = _entry(
        path, Rule, {key: value for key, value in row.items() if key != "hook"} | {"reason": row.get("summary")}
    )
    return rule


def _hooks(path: str, tables: Mapping[str, Any]) -> list[Hook]:
    hooks: list[Hook] = [_entry(path, Hook, row) for row in tables.get("hook", [])]
    for hook in hooks:
        if not hook.at and not (hook.method and hook.kind):
            needs = "a hook needs `at`, or `method` and `kind`; what is done about an error code is an [[error]]"
            raise UnusedDecision(path, hook.name, needs)
    for rule in tables.get("rule", []):
        check_kind(path, str(rule.get("name", "rule")), "'hook'", rule.get("hook", []), "rows")
        for row in rule.get("hook", []):
            named = {
                "name": f"{rule.get('name')}-{row.get('direction', 'both')}",
                "reason": rule.get("summary"),
                "rule": rule.get("name"),
                **row,
            }
            hooks.append(_entry(path, Hook, named))
    return hooks


def _entry(path: str, kind: type[Any], row: Mapping[str, Any]) -> Any:
    """Build an entry from its table; lists become tuples, `with` becomes `arguments`, and reasons are not optional."""
    values = {("arguments" if key == "with" else key): tuple(v) if isinstance(v, list) else v for key, v in row.items()}
    name = str(row.get("name", kind.__name__.lower()))
    for key in ("at", "arm") if kind in (Decision, Cosmetic, Rename, Move) else ():
        if isinstance(values.get(key), str):
            values[key] = (values[key],)
    if not row.get("reason") and row.get("do") != "":
        raise UnusedDecision(path, name, "an entry needs a reason")
    if row.get("name") == "":
        raise UnusedDecision(path, kind.__name__.lower(), "an entry needs a name")
    if kind is Rule:
        del values["reason"]
    for one in fields(kind):
        if one.name in values:
            key = "with" if one.name == "arguments" else one.name
            check_kind(path, name, repr(key), values[one.name], str(one.type))
    try:
        return kind(**values)
    except TypeError as error:
        raise UnusedDecision(path, name, str(error).replace("__init__() ", "")) from None
