"""Draw into `docs/images` what each step loses, from their plans, and how a call crosses, from a demo that is run.

`python -m tests.docs.figures` writes both.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final

from codegen.maintain.regen import plan_steps, read_tree
from codegen.write.docs import WayFacts, facts_of_way
from dragoman.core.commands import Side
from dragoman.demo.stage import perform
from website.drawing import Arrow, Group, Row, bars, sequence

ROOT: Final = Path(__file__).resolve().parents[2]
IMAGES: Final = ROOT / "docs" / "images"
CLIENT, SERVER = "2026-07-28", "2025-06-18"
SERIES: Final = {
    "fields left out": "a",
    "cosmetic fields left out": "b",
    "values replaced": "c",
    "methods not carried": "d",
}


def counts(way: WayFacts) -> dict[str, int]:
    """Give what one direction of a step loses, by series."""
    cosmetic = sum(
        1 for label, fields in way.dropped.items() for field in fields if field in way.cosmetic.get(label, {})
    )
    dropped = sum(map(len, way.dropped.values()))
    lost = (dropped - cosmetic, cosmetic, len(way.decisions) + len(way.hooks), len(way.refused) + len(way.swallowed))
    return dict(zip(SERIES, lost, strict=True))


def draw_call() -> str:
    """Give the picture of the calls that the demo makes."""
    record = asyncio.run(perform(CLIENT, SERVER, lambda watcher: watcher))
    places = {Side.CLIENT: 0, Side.SERVER: 2}
    asked: dict[tuple[Side, bool, str], str] = {}
    arrows = []
    for line in record.lines:
        frame = json.loads(line.data)
        key = json.dumps(frame.get("id"))
        if "method" in frame:
            asked[line.side, line.sent, key] = says = frame["method"]
        else:
            method = asked[line.side, not line.sent, key]
            kind = frame.get("result", {}).get("resultType", "complete")
            outcome = "error" if "error" in frame else "result" if kind == "complete" else kind
            says = f"{outcome} of {method}"
        ends = (places[line.side], 1) if line.sent else (1, places[line.side])
        arrows.append(Arrow(*ends, says, "method" not in frame))
    names = (f"client, {CLIENT}", "Dragoman", f"server, {SERVER}")
    return sequence("A client without a handshake at a server that needs one, and what each says", names, arrows)


def draw_losses() -> str:
    """Give the picture of what the steps lose."""
    tree = read_tree(ROOT)
    specs = {source.spec.revision: source.spec for source in tree.sources}
    pairs = [(specs[older], specs[newer]) for newer, older in tree.before.items()]
    plans, _ = plan_steps(ROOT, pairs, accept_defaults=False)
    groups = []
    for plan in plans:
        ways = {direction: facts_of_way(plan, direction) for direction in ("down", "up")}
        rows = [
            Row(f"{direction}, to {way.target}", counts(way), f"({way.untouched} methods pass as they are)")
            for direction, way in ways.items()
        ]
        groups.append(Group(f"{plan.older.revision} and {plan.newer.revision}", rows))
    return bars("What each step loses, in both directions: fields, values and methods", SERIES, groups)


PICTURES: Final = {"call.svg": draw_call, "losses.svg": draw_losses}


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8")
