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


KNOWN: Final[tuple[Known, ...]] = (
    Known(
        "no-rows",
        r"suspects\._by_key has",
        "what a server answered to a request that was given up did not arrive, so it counts until the server goes",
    ),
    Known(
        "progress",
        r"heard progress over HTTP of what is answered",
        "an answer in JSON may overtake progress, which comes on the stream of a GET",
    ),
)


def explain(finding: Finding) -> Known | None:
    """Give the entry that explains a finding, if any does."""
    return next((entry for entry in KNOWN if entry.matches(finding)), None)
