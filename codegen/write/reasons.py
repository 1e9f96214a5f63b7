"""`decisions.py` of every revision: what the step into it decides, and why, for whoever asks about a loss.

Here lives the choice of facts, which are those of `docs/steps/`, and where each definition stands in frames: a loss
names a place in a frame, an overlay one in a definition. Called by `regen`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pprint import pformat
from typing import Any

from codegen.names import module_name
from codegen.plan.actions import declared_actions
from codegen.plan.plan import StepPlan
from codegen.read.model import Array, Object, Ref, Spec, Type, Union
from codegen.read.overlay import Decision, Hook
from codegen.write.docs import WayFacts, facts_of_way
from codegen.write.registry import NOTICE


def render_decisions(specs: Sequence[Spec], plans: Sequence[StepPlan], digests: Mapping[str, str]) -> dict[str, str]:
    """Render the module of every revision, unformatted, by path below `generated/`."""
    output = {}
    into = {plan.newer.revision: plan for plan in plans}
    for spec in specs:
        plan = into.get(spec.revision)
        rows = tuple(row for direction in ("up", "down") if plan for row in _rows(plan, facts_of_way(plan, direction)))
        places = {path: names for definition in sorted(spec.definitions) for path, names in _places(spec, definition)}
        frames = {name: (method.request, *method.results) for name, method in sorted(spec.methods.items())}
        lines = [
            f"# {NOTICE}",
            f"# Source: schema/{spec.revision}/schema.json, sha256 {digests[spec.revision]}",
            *([f"# Source: {plan.overlay.path}"] if plan else []),
            f'"""Why the step into {spec.revision} does what it does, as docs/steps says it. Imports no pydantic."""\n',
            "from __future__ import annotations\n",
            "from collections.abc import Mapping",
            "from typing import Any\n",
            f"DECISIONS: tuple[Mapping[str, Any], ...] = {pformat(rows, width=110, sort_dicts=False)}",
            '"""What was decided: `at` names places in definitions, in which `*` stands for anything."""\n',
            f"FRAMES: Mapping[str, tuple[str, ...]] = {pformat(frames, width=110)}",
            '"""By method: the definition of its request or notification, and those of its results."""\n',
            f"PLACES: Mapping[str, tuple[str, ...]] = {pformat(places, width=110)}",
            '"""Which definitions the value at a place may be: `ListToolsResult.tools[]` is a `Tool`."""',
        ]
        output[f"dragoman_spec/{module_name(spec.revision)}/decisions.py"] = "\n".join(lines) + "\n"
    return output


def _rows(plan: StepPlan, way: WayFacts) -> Iterator[dict[str, Any]]:
    """Say in a row each what is decided in one direction; what a row does not say is left out."""
    loses = {action.name: tuple(action.facts.get("losses", ())) for action in declared_actions().values()}
    loses |= {"default": ("added",), "drop": ("dropped",)}
    decided: tuple[Decision | Hook, ...] = (*way.decisions, *_hooks(plan, way))
    for entry in decided:
        said = {"text": entry.arguments.get("reason"), "reason": entry.reason, "losses": loses.get(entry.do, ())}
        if isinstance(entry, Decision):
            said |= {"arm": tuple(filter(None, entry.arm))}
        elif entry.method:
            said |= {"method": entry.method, "frame": entry.kind}
        yield _row(way, entry.at, name=entry.name, do=entry.do, **said)
    for error in plan.overlay.errors:
        if error.direction == way.direction:
            yield _row(way, (), name=error.name, do=error.do, codes=error.codes, reason=error.reason)
    for cosmetic in way.cosmetic_entries:
        yield _row(way, cosmetic.at, name=cosmetic.name, do="cosmetic", losses=("dropped",), reason=cosmetic.reason)
    for do, loss, found, reason in (
        ("drop", "dropped", way.dropped, f"{way.target} does not name this field."),
        ("guard", "dropped", way.guarded, f"Only {way.target} names this field, and this value is not valid there."),
        ("fill", "added", way.filled, f"{way.target} requires this field, and {way.source} does not name it."),
    ):
        for label, fields in found.items():
            yield _row(way, tuple(f"{label}.{name}" for name in fields), do=do, losses=(loss,), reason=reason)
    for method, refusal in way.refused.items():
        said = {"name": refusal.name, "text": refusal.reason, "reason": f"{way.target} has no such request."}
        yield _row(way, (), do="refuse", method=method, **said)
    for method in way.swallowed:
        said = {"losses": ("swallowed",), "reason": f"{way.target} has no such notification."}
        yield _row(way, (), do="swallow", method=method, **said)


def _hooks(plan: StepPlan, way: WayFacts) -> tuple[Hook, ...]:
    """Return what no schema asks for in this direction, with what repair rules do."""
    return tuple(hook for hook in plan.overlay.hooks if hook.direction in ("", way.direction))


def _row(way: WayFacts, at: str | tuple[str, ...], **said: Any) -> dict[str, Any]:
    row = {"direction": way.direction, "at": (at,) if isinstance(at, str) and at else at}
    return {name: value for name, value in (row | said).items() if value}


def _places(spec: Spec, definition: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield where in a definition which others stand."""
    found: dict[str, list[str]] = {}
    _walk(spec, spec.definitions[definition], definition, found)
    yield from ((path, tuple(names)) for path, names in sorted(found.items()))


def _walk(spec: Spec, type_: Type, path: str, found: dict[str, list[str]]) -> None:
    match type_:
        case Ref(name):
            if isinstance(spec.resolve(type_), (Object, Array, Union)):
                found.setdefault(path, []).append(name)
        case Object():
            for name, member in type_.fields.items():
                _walk(spec, member.type, f"{path}.{name}", found)
            _walk(spec, type_.extra, f"{path}{{}}", found)
        case Array():
            _walk(spec, type_.item, f"{path}[]", found)
        case Union(arms):
            for arm in arms:
                _walk(spec, arm, path, found)
