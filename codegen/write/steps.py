"""Plans in, `steps.py` of each revision out.

What is to be done is in `plan`, the statements of a function in `bodies`, the layout in the templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codegen.names import module_name
from codegen.plan.nodes import Key
from codegen.plan.plan import StepPlan
from codegen.write.alike import equal_nodes
from codegen.write.bodies import body_of
from codegen.write.checks import Checks
from codegen.write.layout import environment
from codegen.write.registry import NOTICE, TEMPLATES
from codegen.write.spelling import Speller, Way


def render_steps(plans: Sequence[StepPlan], digests: Mapping[str, str]) -> dict[str, str]:
    """Render the steps.

    Args:
        plans: One a step, oldest first.
        digests: sha256 of each canonical schema, by revision.

    Returns:
        Unformatted Python by path below `generated/`.
    """
    template, output = environment(TEMPLATES).get_template("steps.py.jinja"), dict[str, str]()
    for plan in plans:
        ways = [_spell(plan, "up"), _spell(plan, "down")]
        output[f"dragoman_spec/{module_name(plan.newer.revision)}/steps.py"] = template.render(
            notice=NOTICE, plan=plan, ways=ways, digests=digests, body_of=body_of
        )
    return output


def _spell(plan: StepPlan, direction: str) -> Way:
    plans = {profile: plan.ways[direction, profile] for profile in ("strict", "minimal")}
    way = Way(
        direction, plans, Checks(plans["strict"].target, direction), Checks(plans["strict"].source, f"{direction}_from")
    )
    nodes = {(profile, key): node for profile, one in plans.items() for key, node in sorted(one.nodes.items())}
    for alike in equal_nodes(nodes):
        (profile, key), *_ = alike
        name = _function_name(direction, profile, key, set(way.names.values()))
        way.names |= dict.fromkeys(alike, name)
        labels = list(dict.fromkeys(nodes[one].label for one in alike))
        way.functions.append(Speller(name, nodes[profile, key], way, profile, labels))
    return way


def _function_name(direction: str, profile: str, key: Key, taken: set[str]) -> str:
    """A name that neither another function nor a predicate has: `ToolMinimal` and `IsTool` may be definitions."""
    key = f"convert_{key}" if key.startswith(("is_", "from_is_")) else key
    name = f"{direction}_{key}" if profile == "strict" else f"{direction}_{key}_minimal"
    while name in taken:
        name += "_"
    return name
