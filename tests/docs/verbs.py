"""Write the tables of CONTRIBUTING.md that say what a decision may do: `python -m tests.docs.verbs`."""

from __future__ import annotations

from pathlib import Path

from codegen.plan.verbs import table_of_kinds, table_of_verbs

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
TABLES = {"changes": table_of_kinds, "verbs": table_of_verbs}
BEGIN = "<!-- The table of {}, written by `python -m tests.docs.verbs` from `codegen`: do not edit. -->\n\n"


def text(page: str) -> str:
    """Give the page with its tables anew."""
    for name, table in TABLES.items():
        before, _, rest = page.partition(BEGIN.format(name))
        _, end, after = rest.partition("\n\n")
        page = before + BEGIN.format(name) + table() + end + after
    return page


if __name__ == "__main__":
    PAGE.write_text(text(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
