"""Draw what each step loses into `docs/images/losses.svg`, from the steps' plans: `python -m tests.docs.figures`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from codegen.docs import WayFacts, facts_of_way
from codegen.regen import plan_steps, read_tree
from website.drawing import Group, Row, bars

ROOT: Final = Path(__file__).resolve().parents[2]
PICTURE: Final = ROOT / "docs" / "images" / "losses.svg"
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


def draw() -> str:
    """Give the picture."""
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


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
