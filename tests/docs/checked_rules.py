"""The table of rules in docs/check.md: `python -m tests.docs.checked_rules` writes it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dragoman.check.rules import RULES

PAGE: Final = Path(__file__).parents[2] / "docs" / "check.md"
BEGIN: Final = "| rule | | what a server does |\n"
WHERE: Final = {(True, True): "", (True, False): "with a handshake", (False, True): "without a handshake"}


def table() -> str:
    """Give the table."""
    rows = []
    for rule in RULES.values():
        handshake, per_request = rule.pages
        notes = [WHERE[handshake is not None, per_request is not None]]
        notes.append({"any": "", "stdio": "over stdio", "http": "over HTTP"}[rule.over])
        told = ", ".join(filter(None, notes))
        says = rule.says.replace("|", "\\|")
        rows.append(f"| `{rule.name}` | {rule.level} | {says}{f' ({told})' if told else ''} |\n")
    return BEGIN + "|---|---|---|\n" + "".join(rows)


def page(text: str) -> str:
    """Give the page with the table as it should be."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition("\n\n")
    return before + table() + end[1:] + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
