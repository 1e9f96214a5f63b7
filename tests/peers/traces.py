"""What left the proxy on a visit, as its own trace has it (`--trace`, docs/trace.md), judged once the visit is over.

Lives here: reading a trace as the records of the peers, and the revision that each of them speaks. Not here: what makes
a frame valid (`validity`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.peers.matching import REVISIONS
from tests.peers.validity import NEWER, Side, complaints

SPOKEN: Final = {**REVISIONS, "E": NEWER, "T": NEWER}
"""The revision of each peer; the first letter of its name says which it is."""

_LABELS: Final = {"sent": "got", "received": "sent"}
"""What the proxy has sent, the peer got."""


@dataclass(slots=True)
class Traced:
    """A connection of the proxy.

    Attributes:
        record: What its peer got and sent, in that order, as peers record it.
        revision: What the proxy has agreed on with the peer, by a handshake; None if there was none.
    """

    record: list[dict[str, Any]] = field(default_factory=list)
    revision: str | None = None


Trace = dict[Side, list[Traced]]
"""The connections of each side."""


def read_trace(path: Path) -> Trace:
    """Give what passed on each connection; of several processes, if they wrote to one file."""
    found: dict[tuple[Any, ...], Traced] = {}
    for line in path.read_text("utf-8").splitlines():
        entry = json.loads(line)
        assert entry["direction"] != "dropped", entry
        label = _LABELS.get(entry["direction"])
        if label is not None and "frame" in entry:
            traced = found.setdefault((entry["side"], entry["process"], entry["connection"]), Traced())
            traced.record.append({label: entry["frame"]})
            traced.revision = entry["revision"] or traced.revision
    sides: tuple[Side, Side] = ("client", "server")
    return {side: [traced for key, traced in found.items() if key[0] == side] for side in sides}


def invalid_frames(trace: Trace, client: str, server: str) -> Iterator[str]:
    """Hold every frame that left the proxy against the revision of the peer that got it."""
    peers: dict[Side, str] = {"client": client, "server": server}
    for side, peer in peers.items():
        connections = trace[side]
        assert any("got" in entry for traced in connections for entry in traced.record), f"the {side} got nothing"
        for traced in connections:
            yield from complaints(traced.record, side, SPOKEN[peer[0]])
