"""Every frame that left the proxy while the suite was at it, held against the schema of the peer that got it.

Lives here: where proxies write their traces, and what in them is not the proxy's own. Not here: what makes a frame
valid (`tests.peers.validity`). What a peer of the suite gets wrong on purpose reaches the other side as it is, if both
are of one era.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.peers.traces import read_trace
from tests.peers.validity import NEWER, complaints

EXPECTED: Final = {
    "unknown/method: ": "the suite asks for a method that nobody has",
    "tools/call: wrong_key answers no question": "the suite answers under a wrong key",
    "tools/call: unknown_extra_key answers no question": "the suite answers more than it was asked",
    "tools/call: another_unexpected answers no question": "the suite answers more than it was asked",
    "tools/call at /params/inputResponses": "the suite answers with what is no answer",
    "answer to elicitation/create in tools/call at /: 12345": "the suite answers with what is no answer",
    "result of tools/call at /: 'resultType' is a required property": "the suite's server leaves it out",
    "result of tools/call: cannot be None": "the suite's server leaves it out",
    "result of tools/list: 2025-11-25 has no ": "a server of the suite opens a session, and answers in 2026-07-28",
    "result of elicitation/create at /content/score: 95.5": "the schema of 2025-11-25 knows no fractions in forms",
}
"""How complaints begin that are about no frame of the proxy's own, and why they are made."""


class Traces:
    """The traces of a run.

    Args:
        folder: Where they are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._titles: dict[Path, str] = {}

    def begin(self, title: str) -> tuple[str, str]:
        """Give the options of a proxy that is to write down what passes."""
        path = self._folder / f"trace-{len(self._titles)}"
        self._titles[path] = title
        return "--trace", str(path)

    def judge(self) -> Iterator[str]:
        """Yield what is wrong with frames of the proxy."""
        for path, title in self._titles.items():
            for side, connections in read_trace(path).items():
                for traced in connections:
                    for complaint in complaints(traced.record, side, traced.revision or NEWER):
                        if not complaint.startswith(tuple(EXPECTED)):
                            yield f"{title}: the {side} gets {complaint}"
