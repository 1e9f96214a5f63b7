"""Write `docs/internals/verbs.md`, what a decision may do: `python -m tests.docs.verbs`."""

from __future__ import annotations

from pathlib import Path

from codegen.plan.verbs import table_of_kinds, table_of_verbs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "internals" / "verbs.md"

HEAD = """\
# What a decision may do

<!-- Written by `python -m tests.docs.verbs` from `codegen`: do not edit. -->

For whoever writes the `[[decision]]` entries of [an overlay](../../CONTRIBUTING.md#what-an-overlay-says).

## By the kind of change

"""


def text() -> str:
    """Give the whole page."""
    return f"{HEAD}{table_of_kinds()}\n\n## What each does, and which losses tell of it\n\n{table_of_verbs()}\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
