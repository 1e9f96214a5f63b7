"""Which definition of one revision is which of another: what `convert` makes of a model, for type checkers.

Follows the names along the steps, renames included. Must not live here: how the conversion is made (`steps`), or how it
is typed (`templates`). Called by `regen`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codegen.bindings import is_model
from codegen.normalise import Normalised
from codegen.plan import StepPlan

Names = Mapping[str, str]


def find_counterparts(schemas: Sequence[Normalised], plans: Sequence[StepPlan]) -> dict[str, dict[str, dict[str, str]]]:
    """What each model of each revision is called in every revision that has it, its own included.

    Args:
        schemas: Every revision, oldest first.
        plans: The steps between them, oldest first.
    """
    models = {schema.revision: {name for name in schema.definitions if is_model(name, schema)} for schema in schemas}
    found: dict[str, dict[str, dict[str, str]]] = {}
    for start, schema in enumerate(schemas):
        ways = dict(_ways(schemas, plans, start))
        found[schema.revision] = {
            name: {
                revision: other
                for revision, renamed in sorted(ways.items())
                if (other := _renamed(name, renamed)) in models[revision]
            }
            for name in sorted(models[schema.revision])
        }
    return found


def _ways(schemas: Sequence[Normalised], plans: Sequence[StepPlan], start: int) -> Iterator[tuple[str, list[Names]]]:
    """Each revision with what the steps to it rename, in their order."""
    yield schemas[start].revision, []
    for direction, steps in (("up", plans[start:]), ("down", plans[:start][::-1])):
        renamed: list[Names] = []
        for plan in steps:
            renamed = [*renamed, plan.ways[direction, "strict"].renamed]
            yield (plan.newer if direction == "up" else plan.older).revision, renamed


def _renamed(name: str, renames: Sequence[Names]) -> str:
    for renamed in renames:
        name = renamed.get(name, name)
    return name
