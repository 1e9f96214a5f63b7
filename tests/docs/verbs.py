"""Write `docs/internals/verbs.md`, what the entries of an overlay may say: `python -m tests.docs.verbs`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codegen.plan.verbs import table_of_kinds, table_of_verbs
from codegen.read.fact_entries import TABLES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "internals" / "verbs.md"

HEAD = """\
# What entries of an overlay may say

<!-- Written by `python -m tests.docs.verbs` from `codegen`: do not edit. -->

For whoever writes [an overlay](../../CONTRIBUTING.md#what-an-overlay-says).

## What a decision may do

"""
FACTS = """\
## Facts

The first key says what an entry is about, with `carries` of a header; keys in brackets may be left out. Each entry has
a `reason`, and may have an `era`.

| table | says | keys |
|---|---|---|
"""


def facts() -> str:
    """Give the table of facts."""
    rows = []
    for name, table in TABLES.items():
        keys = [f"`{key}`{_of(table.choices.get(key, ()))}" for key in table.required]
        keys += [f"(`{key}`)" for key in table.optional]
        rows.append(f"| `[[{name}]]` | {table.says} | {', '.join(keys)} |\n")
    return FACTS + "".join(rows)


def _of(choices: Sequence[str]) -> str:
    return f" ({', '.join(f'`{one}`' for one in choices)})" if choices else ""


def text() -> str:
    """Give the whole page."""
    verbs = f"{table_of_kinds()}\n\n## What each does, and which losses tell of it\n\n{table_of_verbs()}\n"
    return f"{HEAD}{verbs}\n{facts()}"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
