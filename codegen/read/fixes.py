"""Known defects of upstream schemas, patched before anything reads them.

A fix is a `[[fix]]` table in `codegen/overlays/<revision>.toml`: a JSON pointer into the canonical schema, the value
expected there, its replacement, and the reason. In its own revision the old value is asserted, so a fix that upstream
made obsolete stops regen instead of lingering. It holds on in later revisions wherever the same value stands in the
same place, until one of them has an entry of its own for that place: a release that keeps a defect keeps its repair.
Must not live here: any other kind of decision. Called by `normalise` and the tests.
"""

from __future__ import annotations

import contextlib
import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codegen.errors import UnusedDecision
from codegen.names import unescaped
from codegen.read.overlay import Tables, check_kind, overlay_path, read_until

KEYS = frozenset({"name", "pointer", "expect", "replace", "reason"})


@dataclass(frozen=True, slots=True)
class Fix:
    """One patch: what stands at `pointer` (RFC 6901, into the canonical schema) and what must stand there instead."""

    name: str
    pointer: str
    expect: Any
    replace: Any
    reason: str


def read_fixes(revision: str, tables: Tables) -> tuple[Fix, ...]:
    """Read the `[[fix]]` tables of an overlay, in order.

    Raises:
        UnusedDecision: A table has other keys than the five, or gives no reason.
    """
    for table in tables.get("fix", ()):
        for key in {"name", "pointer", "reason"} & table.keys():
            check_kind(overlay_path(revision), "fix", repr(key), table[key], "str")
        if table.keys() != KEYS or not table["reason"].strip():
            said = f"expected the keys {', '.join(sorted(KEYS))}, found {', '.join(sorted(table))}"
            raise UnusedDecision(overlay_path(revision), "fix", said)
        if not table["pointer"].startswith("/"):
            said = f"a pointer begins with a slash, as /$defs/Tool does, and {table['pointer']!r} does not"
            raise UnusedDecision(overlay_path(revision), "fix", said)
    return tuple(Fix(**table) for table in tables.get("fix", ()))


def apply_fixes(schema: dict[str, Any], overlay: Path) -> dict[str, Any]:
    """Return a patched copy of a canonical schema.

    Args:
        schema: The schema of the revision that the overlay is named after.
        overlay: Its overlay; those of earlier revisions, whose fixes may still hold, stand beside it.

    Raises:
        UnusedDecision: The pointer of one of the revision's own fixes leads nowhere, or the value there is not the
            expected one.
    """
    fixed = copy.deepcopy(schema)
    ruled = set[str]()
    for revision, tables in reversed(read_until(overlay)):
        fixes = [fix for fix in read_fixes(revision, tables) if fix.pointer not in ruled]
        obsolete = () if revision == overlay.stem else (UnusedDecision,)
        for fix in fixes:
            with contextlib.suppress(*obsolete):  # one of another era says nothing of what its own value is not
                _apply(fixed, fix, overlay_path(revision))
                ruled.add(fix.pointer)
    return fixed


def _apply(schema: dict[str, Any], fix: Fix, overlay: str) -> None:
    *path, last = map(unescaped, fix.pointer.split("/")[1:])
    try:
        node: Any = schema
        for part in path:
            node = node[int(part) if isinstance(node, list) else part]
        key: Any = int(last) if isinstance(node, list) else last
        found = node[key]
    except (KeyError, IndexError, ValueError, TypeError):
        raise UnusedDecision(overlay, f"fix {fix.pointer}", "the pointer leads nowhere in this schema") from None
    if found != fix.expect:
        raise UnusedDecision(overlay, f"fix {fix.pointer}", f"expected {fix.expect!r}, found {found!r}")
    node[key] = copy.deepcopy(fix.replace)
