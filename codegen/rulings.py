"""Whether what an entry of an overlay rules can be done: its verb, and the values that it puts into frames.

Everything here raises `UnusedDecision` with the entry's name. Whether an action takes the arguments that it is given is
seen where it is spelled (`steps`). Called by `derive`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from codegen.errors import UnusedDecision
from codegen.model import Array, Ref, Scalar, Spec, Type
from codegen.overlay import Cosmetic, Decision, Overlay
from codegen.type_facts import accepts, fits, words

VERBS = {
    "field-removed": frozenset({"drop", "keep"}),
    "methods-gone": frozenset({"gone"}),
    "moved": frozenset({"apart"}),
    "renamed": frozenset({"apart"}),
}
"""What can be ruled on changes on which no action is called."""


def check_verb(overlay: Overlay, decision: Decision) -> None:
    """Make sure that a change on which no action is called is ruled on by a word that means something there."""
    known = VERBS.get(decision.change, frozenset({decision.do}))
    if decision.do not in known:
        said = f"`do` is {' or '.join(sorted(known))} here, not {decision.do!r}"
        raise UnusedDecision(overlay.path, decision.name, said)


def check_arguments(overlay: Overlay, decision: Decision, target: Spec, wanted: Type, place: str) -> None:
    """Make sure that what an entry puts into a frame is valid there."""
    for value in _given(overlay, decision, decision.arguments, wanted):
        if not accepts(wanted, value, target.resolve):
            said = f"{json.dumps(value)} is not valid at {place} in {target.revision}: {words(wanted)}"
            raise UnusedDecision(overlay.path, decision.name, said)


def check_default(overlay: Overlay, entry: Cosmetic, source: Spec, wanted: Type, place: str) -> None:
    """Make sure that the value for which a loss is cosmetic can stand there at all."""
    if not accepts(wanted, entry.value, source.resolve):
        said = f"{json.dumps(entry.value)} is not valid at {place} in {source.revision}: {words(wanted)}"
        raise UnusedDecision(overlay.path, entry.name, said)


def _given(overlay: Overlay, decision: Decision, arguments: Mapping[str, Any], wanted: Type) -> list[Any]:
    match decision.do:
        case "default" if "value" not in arguments:
            raise UnusedDecision(overlay.path, decision.name, "`default` needs a `value` in `with`")
        case "default":
            return [arguments["value"]]
        case "map-value":
            others = [arguments["otherwise"]] if "otherwise" in arguments else []
            return [*dict(arguments.get("to", {})).values(), *others]
        case "truncate" if not isinstance(wanted, Array):
            raise UnusedDecision(overlay.path, decision.name, f"`truncate` is for lists, not for {words(wanted)}")
        case "truncate":
            return [[None] * int(arguments.get("most", 0))]
    return []


def check_copy(overlay: Overlay, decision: Decision, copied: Type | None, wanted: Type, place: str) -> None:
    """Make sure that a field that is copied is there, and valid where it goes."""
    if decision.do == "copy-of" and (copied is None or not fits(copied, wanted)):
        found = "no such field" if copied is None else words(copied)
        said = f"{place} takes {words(wanted)}; {decision.arguments.get('field')!r} is {found}"
        raise UnusedDecision(overlay.path, decision.name, said)


def check_factor(overlay: Overlay, one: Type, two: Type, source: Spec, target: Spec, place: str) -> None:
    """Make sure that what is multiplied is a number, before and after."""
    for spec, type_ in ((source, one), (target, two)):
        kind = spec.resolve(type_)
        if not isinstance(kind, Scalar) or not kind.types <= {"integer", "number"}:
            raise UnusedDecision(
                overlay.path, f"rename at {place}", f"a `factor` is for numbers, not for {words(kind)}"
            )


def check_other(overlay: Overlay, decision: Decision, arm: Type, target: Spec) -> str:
    """The definition that an arm goes to; make sure that both have a name."""
    other = str(decision.arguments.get("definition"))
    if not isinstance(arm, Ref) or other not in target.definitions:
        said = f"`as` takes a definition of {target.revision} in place of another, not {other!r}"
        raise UnusedDecision(overlay.path, decision.name, said)
    return other
