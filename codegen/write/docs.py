"""Plans in, `docs/steps/<revision>.md` out: what a step drops, replaces and refuses, with the reasons of the overlay.

Here lives the choice of facts; their layout is in `templates/docs/step.md.jinja`. Called by `regen`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codegen.plan.nodes import ObjectNode, Part
from codegen.plan.plan import DirectionPlan, StepPlan
from codegen.read.model import Json
from codegen.read.overlay import Cosmetic, Decision, Hook, Move, Refusal, Rename
from codegen.write.layout import environment

TEMPLATES = Path(__file__).parents[1] / "templates" / "docs"


@dataclass(frozen=True, slots=True)
class WayFacts:
    """What the page says of one direction."""

    source: str
    target: str
    direction: str
    dropped: Mapping[str, tuple[str, ...]]
    cosmetic: Mapping[str, Mapping[str, tuple[Part, ...]]]
    implied: Mapping[str, Mapping[str, Json]]
    filled: Mapping[str, Mapping[str, object]]
    guarded: Mapping[str, tuple[str, ...]]
    cosmetic_entries: tuple[Cosmetic, ...]
    decisions: tuple[Decision, ...]
    hooks: tuple[Hook, ...]
    moves: tuple[Move, ...]
    renames: tuple[Rename, ...]
    refused: Mapping[str, Refusal]
    swallowed: tuple[str, ...]
    untouched: int
    touched: tuple[str, ...]


def render_docs(plans: Sequence[StepPlan]) -> dict[str, str]:
    """Render a page a step and an index, by path below the root."""
    templates = environment(TEMPLATES)
    pages = {}
    for plan in plans:
        ways = [facts_of_way(plan, direction) for direction in ("up", "down")]
        older, newer = plan.older.definitions.keys(), plan.newer.definitions.keys()
        came, went = len(newer - older), len(older - newer)  # as `dragoman diff` has them, with + and - alone
        text = templates.get_template("step.md.jinja").render(plan=plan, ways=ways, came=came, went=went)
        pages[f"docs/steps/{plan.newer.revision}.md"] = text
    pages["docs/steps/index.md"] = templates.get_template("steps.md.jinja").render(plans=plans)
    return pages


def facts_of_way(plan: StepPlan, direction: str) -> WayFacts:
    """Choose what is said of one direction."""
    way = plan.ways[direction, "strict"]
    overlay = plan.overlay
    shared = way.source.methods.keys() & (way.target.methods.keys() | way.methods.keys())
    touched = sorted({*way.requests, *way.notifications, *way.results})
    return WayFacts(
        way.source.revision,
        way.target.revision,
        direction,
        dropped={node.label: (*node.drops, *node.forgotten) for node in _objects(way) if node.drops or node.forgotten},
        cosmetic={node.label: node.cosmetic for node in _objects(way) if node.cosmetic},
        implied={node.label: node.implied for node in _objects(way) if node.implied},
        filled={node.label: node.fills for node in _objects(way) if node.fills},
        guarded={node.label: tuple(node.guards) for node in _objects(way) if node.guards},
        cosmetic_entries=tuple(entry for entry in overlay.cosmetics if entry.direction in ("", direction)),
        decisions=tuple(decision for decision in overlay.decisions if decision.direction == direction),
        hooks=tuple(hook for hook in overlay.hooks if hook.direction == direction and not hook.rule),
        moves=overlay.moves,
        renames=overlay.renames,
        refused=dict(sorted(way.refused.items())),
        swallowed=tuple(sorted(way.swallowed)),
        untouched=len(shared) - len(touched),
        touched=tuple(touched),
    )


def _objects(way: DirectionPlan) -> Iterator[ObjectNode]:
    """The object nodes by label, each once."""
    found = {node.label: node for _, node in sorted(way.nodes.items()) if isinstance(node, ObjectNode)}
    yield from (found[label] for label in sorted(found))
