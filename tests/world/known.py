"""What worlds find and what is not mended yet, or is so by decision: named here, it is counted, and fails no run.

An entry goes when what it is about is mended: a run of every cell says which entries nothing has matched any more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tests.world.rules import Finding


@dataclass(frozen=True)
class Known:
    """Findings that are explained.

    Attributes:
        rule: Whose they are.
        pattern: What their text has in it.
        why: What it is.
    """

    rule: str
    pattern: str
    why: str

    def matches(self, finding: Finding) -> bool:
        return finding.rule == self.rule and re.search(self.pattern, finding.text) is not None


KNOWN: Final = (
    Known(
        "no-rows",
        r"suspects\._by_key has",
        "a request that waited for a server to be started again counts as one that the server may speak of",
    ),
    Known(
        "progress",
        r"heard progress of what is answered",
        "a shared server's progress of a call whose time was over is passed on",
    ),
)


def explain(finding: Finding) -> Known | None:
    """Give the entry that explains a finding, if any does."""
    return next((entry for entry in KNOWN if entry.matches(finding)), None)
