"""Which definition of one revision is which of another: what `convert` makes of a model, for type checkers.

Follows the names along the steps, renames included. Must not live here: how the conversion is made (`steps`), or how it
is typed (`templates`). Called by `regen`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codegen.plan.plan import StepPlan
from codegen.read.normalise import Normalised
from codegen.write.bindings import is_model

Names = Mapping[str, str]


def find_counterparts(schemas: Sequence[Normalised], plans: Sequence[StepPlan]) -> dict[str, dict[str, dict[str, str]]]:
    """What each model of each revision is called in every revision that has it, its own included.

    Args:
        schemas: Every revision, oldest first.
        plans: The steps between them, oldest first.
    """
    models = {schema.revision: {name for name in schema.definitions if is_model(name, schema)} for schema in schemas}
    found: dict[str, dict[str, dict[str, str]]] = {}
    for schema in schemas:
        ways = dict(_ways(plans, schema.revision))
        found[schema.revision] = {
            name: {
                revision: other
                for revision, renamed in sorted(ways.items())
                if (other := _renamed(name, renamed)) in models[revision]
            }
            for name in sorted(models[schema.revision])
        }
    return found


def _ways(
    plans: Sequence[StepPlan], here: str, renamed: Sequence[Names] = (), after: str = ""
) -> Iterator[tuple[str, Sequence[Names]]]:
    """Each revision that is reached from *here*, with what the steps to it rename, in their order."""
    yield here, renamed
    for plan in plans:
        neighbours = {plan.older.revision: ("up", plan.newer), plan.newer.revision: ("down", plan.older)}
        direction, there = neighbours.get(here, ("", None))
        if there is not None and there.revision != after:
            names = [*renamed, plan.ways[direction, "strict"].renamed]
            yield from _ways(plans, there.revision, names, here)


def _renamed(name: str, renames: Sequence[Names]) -> str:
    for renamed in renames:
        name = renamed.get(name, name)
    return name
