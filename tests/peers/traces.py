"""What left the proxy on a visit, as its own trace has it (`--trace`, docs/trace.md), judged once the visit is over.

Lives here: reading a trace as the records of the peers, and the revision that each of them speaks. Not here: what makes
a frame valid (`validity`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.peers.matching import REVISIONS
from tests.peers.validity import NEWER, complaints

SPOKEN: Final = {**REVISIONS, "E": NEWER, "T": NEWER}
"""The revision of each peer; the first letter of its name says which it is."""

_LABELS: Final = {"sent": "got", "received": "sent"}
"""What the proxy has sent, the peer got."""

Trace = dict[str, dict[str, list[dict[str, Any]]]]
"""The records of each side's connections, by their numbers."""


def read_trace(path: Path) -> Trace:
    """Give what each side got of the proxy and sent to it, as peers record it, a record for each connection."""
    trace: Trace = {"client": {}, "server": {}}
    for line in path.read_text("utf-8").splitlines():
        entry = json.loads(line)
        assert entry["direction"] != "dropped", entry
        label = _LABELS.get(entry["direction"])
        if label is not None and "frame" in entry:
            trace[entry["side"]].setdefault(str(entry["connection"]), []).append({label: entry["frame"]})
    return trace


def invalid_frames(trace: Trace, client: str, server: str) -> Iterator[str]:
    """Hold every frame that left the proxy against the revision of the peer that got it."""
    assert any("got" in entry for record in trace["client"].values() for entry in record), "the client got nothing"
    assert any("got" in entry for record in trace["server"].values() for entry in record), "the server got nothing"
    for record in trace["client"].values():
        yield from complaints(record, "client", SPOKEN[client[0]])
    for record in trace["server"].values():
        yield from complaints(record, "server", SPOKEN[server[0]])
