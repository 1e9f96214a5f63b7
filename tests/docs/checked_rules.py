"""Write `docs/check-rules.md`, the rules that servers are checked against: `python -m tests.docs.checked_rules`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dragoman.check.rules import RULES

PAGE: Final = Path(__file__).parents[2] / "docs" / "check-rules.md"
WHERE: Final = {(True, True): "", (True, False): "with a handshake", (False, True): "without a handshake"}
HEAD: Final = """\
# The rules of a check

<!-- Written by `python -m tests.docs.checked_rules` from `dragoman.check.rules`: do not edit. -->

What [`dragoman check`](check.md) holds a server against. A rule is a *must* if the specification says MUST or the
schema says it, and a *should* otherwise. Each finding names the page of the specification that its rule comes from.

| rule | | what a server does |
|---|---|---|
"""


def text() -> str:
    """Give the whole page."""
    rows = []
    for rule in RULES.values():
        handshake, per_request = rule.pages
        notes = [WHERE[handshake is not None, per_request is not None]]
        notes.append({"any": "", "stdio": "over stdio", "http": "over HTTP"}[rule.over])
        told = ", ".join(filter(None, notes))
        says = rule.says.replace("|", "\\|")
        rows.append(f"| `{rule.name}` | {rule.level} | {says}{f' ({told})' if told else ''} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(text(), "utf-8")
