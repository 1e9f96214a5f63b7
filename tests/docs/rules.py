"""Write `docs/repair-rules.md`, the named repairs of real peers: `python -m tests.docs.rules`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dragoman_spec import RULES

PAGE: Final = Path(__file__).parents[2] / "docs" / "repair-rules.md"
HEAD: Final = """\
# Repair rules

<!-- Written by `python -m tests.docs.rules` from the overlays: do not edit. -->

Some defects of real peers are repaired by named rules. `--no-rule NAME` turns one off, `--rule NAME` turns one on; in
Python, `rules=` of a [translator](python-api.md#translating-frames) names those that are on.

| rule | by default | what it does |
|---|---|---|
"""


def text() -> str:
    """Give the whole page."""
    rows = []
    for rule in RULES.values():
        says = rule.summary.replace("; the proxy's.", ".").replace("|", "\\|")
        rows.append(f"| `{rule.name}` | {'on' if rule.default else 'off'} | {says} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(text(), "utf-8")
