"""Write `docs/known-defects.md` from the changelog: `python -m tests.docs.defects`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "known-defects.md"

HEAD = """\
# Known defects

<!-- Written by `python -m tests.docs.defects` from CHANGELOG.md: do not edit. -->

What is known to be wrong in each version, and not mended there. `dragoman --version --verbose` names this page.
"""

VERSION = re.compile(r"^## \[(.+?)\].*$", re.MULTILINE)


def text() -> str:
    """Give the whole page."""
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    found = list(VERSION.finditer(changelog))
    ends = [*(one.start() for one in found), len(changelog)][1:]
    parts = [HEAD]
    for one, end in zip(found, ends, strict=True):
        section = changelog[one.end() : end]
        _, mark, defects = section.partition("### Known defects\n")
        if mark:
            listed = re.split(r"^##", defects, maxsplit=1, flags=re.MULTILINE)[0].strip()
            parts.append(f"## {'Not released yet' if one[1] == 'Unreleased' else one[1]}\n\n{listed}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text(), "utf-8")
