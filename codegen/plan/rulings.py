"""Whether what an entry of an overlay rules can be done: its verb, and the values that it puts into frames.

Everything here raises `UnusedDecision` with the entry's name. Whether an action takes the arguments that it is given is
seen where it is spelled (`steps`). Called by `derive`.
"""

from __future__ import annotations

import json
from typing import Any

from codegen.compare.type_facts import accepts, fits, words
from codegen.errors import UnusedDecision
from codegen.plan.verbs import verbs_for
from codegen.read.model import Array, Ref, Scalar, Spec, Type
from codegen.read.overlay import Cosmetic, Decision, Overlay, Rename

EVERYWHERE = frozenset({"cosmetic", "final"})
"""Arguments that each decision may have: what is said stays the same; what comes of it is not looked at again."""


def check_verb(overlay: Overlay, decision: Decision) -> None:
    """Make sure that a change is ruled on by a word that means something there, with the arguments that it takes.

    What an action of its own takes is also seen where it is spelled.
    """
    found = {verb.name: verb for verb in verbs_for(decision.change, decision.direction)}
    if decision.do not in found:
        said = f"`do` is {' or '.join(sorted(found))} here, not {decision.do!r}"
        raise UnusedDecision(overlay.path, decision.name, said)
    verb = found[decision.do]
    odd = sorted(decision.arguments.keys() - {*verb.needed, *verb.more, *EVERYWHERE})
    if odd:
        takes = ", ".join((*verb.needed, *verb.more)) or "nothing"
        raise UnusedDecision(overlay.path, decision.name, f"{verb.name} takes {takes} in `with`: no {odd[0]!r}")


def check_arguments(overlay: Overlay, decision: Decision, target: Spec, wanted: Type, place: str) -> None:
    """Make sure that what an entry puts into a frame is valid there."""
    for value in _given(overlay, decision, target, wanted):
        if not accepts(wanted, value, target.resolve):
            said = f"{json.dumps(value)} is not valid at {place} in {target.revision}: {words(wanted)}"
            raise UnusedDecision(overlay.path, decision.name, said)


def check_default(overlay: Overlay, entry: Cosmetic, source: Spec, wanted: Type, place: str) -> None:
    """Make sure that the value for which a loss is cosmetic can stand there at all."""
    if not accepts(wanted, entry.value, source.resolve):
        said = f"{json.dumps(entry.value)} is not valid at {place} in {source.revision}: {words(wanted)}"
        raise UnusedDecision(overlay.path, entry.name, said)


def mapped_values(overlay: Overlay, decision: Decision, source: Spec, kind: Type, place: str) -> dict[Any, Any]:
    """What `map-value` puts in the place of which values: keys of TOML are strings, and say others as JSON does."""
    found: dict[Any, Any] = {}
    for key, value in dict(decision.arguments.get("to", {})).items():
        read = key if accepts(kind, key, source.resolve) else _as_json(key)
        if not accepts(kind, read, source.resolve):
            said = f"{key!r} in `to` is no value of {place} in {source.revision}: {words(kind)}"
            raise UnusedDecision(overlay.path, decision.name, said)
        found[read] = value
    return found


def _as_json(key: str) -> Any:
    try:
        read = json.loads(key)
    except ValueError:
        return key
    return key if isinstance(read, list | dict) else read


def _given(overlay: Overlay, decision: Decision, target: Spec, wanted: Type) -> list[Any]:
    arguments = decision.arguments
    match decision.do:
        case "default" if "value" not in arguments and not target.takes_null(wanted):
            raise UnusedDecision(overlay.path, decision.name, "`default` needs a `value` in `with`")
        case "default":
            return [arguments.get("value")]
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


def check_rename(
    overlay: Overlay, rename: Rename, one: Type, two: Type, source: Spec, target: Spec, place: str
) -> None:
    """Make sure that what is multiplied is a number, and what is negated a boolean, before and after."""
    said, known = ("`negated`", {"boolean"}) if rename.negated else ("a `factor`", {"integer", "number"})
    for spec, type_ in ((source, one), (target, two)):
        kind = spec.resolve(type_)
        if not isinstance(kind, Scalar) or not kind.types <= known or (rename.negated and rename.factor != 1):
            is_for = "booleans" if rename.negated else "numbers"
            raise UnusedDecision(overlay.path, f"rename at {place}", f"{said} is for {is_for}, not for {words(kind)}")


def check_other(overlay: Overlay, decision: Decision, arm: Type, target: Spec) -> str:
    """The definition that an arm goes to; make sure that both have a name."""
    other = str(decision.arguments.get("definition"))
    if not isinstance(arm, Ref) or other not in target.definitions:
        said = f"`as` takes a definition of {target.revision} in place of another, not {other!r}"
        raise UnusedDecision(overlay.path, decision.name, said)
    return other
