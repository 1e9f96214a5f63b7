"""Undecided changes as overlay entries: a skeleton to fill in, or the safe defaults, marked as not reviewed.

Called by `regen`. Entries are appended to the overlay's text, so that what a person wrote there, and how, stays.
"""

from __future__ import annotations

import json

from codegen.errors import UndecidedChange
from codegen.model import Spec
from codegen.overlay import Change
from codegen.step_plan import StepPlan
from codegen.type_facts import accepts

VERBS = {
    "arm-removed": "text-block | as | drop-item | map-value | refuse | keep",
    "field-removed": "keep | drop",
    "narrowed": "drop-invalid | truncate | map-value | wrap-unless-valid | refuse | keep",
    "required": "default | copy-of | digest | refuse",
    "renamed": "apart",
    "moved": "apart",
    "methods-gone": "gone",
}
SAFE_REASON = "Safe default, taken by --accept-defaults."


def undecided_error(plan: StepPlan, skeleton: str) -> UndecidedChange:
    """The error that lists what a person has to decide; *skeleton* is the overlay's text with an entry for each."""
    path = plan.overlay.path
    remedy = (
        f"Rule on each: its entry is at the end of {path}, with `do` and `reason` to fill in. Or run "
        "`nox -s regen -- --accept-defaults` to take the safe default for all of them, marked as not reviewed."
    )
    changes = [str(change) for change in plan.undecided]
    return UndecidedChange(plan.newer.revision, changes, remedy, overlay=path, skeleton=skeleton)


def add_entries(text: str, plan: StepPlan, *, complete: bool) -> str:
    """Append an entry for each undecided change to an overlay's text: to fill in, or *complete* with the safe default.

    A change that an earlier skeleton already has an entry for gets no second one; where entries are complete, it is
    replaced.
    """
    text = text or _heading(plan)
    if complete:
        text = _without_blanks(text)
    present = {(d.direction, d.change, pattern, d.arm) for d in plan.overlay.decisions if not d.do for pattern in d.at}
    for change in plan.undecided:
        if complete or (change.direction, change.kind, change.at, change.arm) not in present:
            text = f"{text.rstrip()}\n\n{_entry(change, plan, complete)}"
    return f"{text.rstrip()}\n"


def _heading(plan: StepPlan) -> str:
    return f"# The step {plan.older.revision} <-> {plan.newer.revision}. What entries can say: CONTRIBUTING.md.\n"


def _without_blanks(text: str) -> str:
    """The overlay without the entries that nobody has filled in."""
    parts = text.split("\n[[")
    return "\n[[".join(part for part in parts if '\ndo = ""' not in part)


def _entry(change: Change, plan: StepPlan, complete: bool) -> str:
    arm = f"{change.arm} " if change.arm else ""
    lines = [
        "[[decision]]",
        f"# {change.detail}; {change.source_pointer} -> {change.target_pointer}",
        f"name = {json.dumps(f'{change.kind} {arm}at {change.at}')}",
        f'direction = "{change.direction}"',
        f'change = "{change.kind}"',
        f"at = {json.dumps(change.at)}",
    ]
    lines += [f"arm = {json.dumps(change.arm)}"] if change.arm else []
    if complete:
        lines += [*safe_default(change, plan), f"reason = {json.dumps(SAFE_REASON)}", "reviewed = false"]
    else:
        lines += [f'do = ""  # {VERBS[change.kind]}', 'reason = ""', *_instead(change)]
    return "\n".join(lines) + "\n"


def _instead(change: Change) -> list[str]:
    """The entry that says of something new that it is the same, as comments."""
    table, entry = change.instead
    if not table:
        return []
    said = [f"# {key} = {json.dumps(value)}" for key, value in entry.items()]
    return ["# If it is the same, write in the place of this entry:", f"# [[{table}]]", *said, '# reason = ""']


def safe_default(change: Change, plan: StepPlan) -> list[str]:
    """The lines of an entry that loses least without asking: leave out what may be left out, else a placeholder, else
    refuse."""
    target = plan.older if change.direction == "down" else plan.newer
    if change.kind in ("moved", "renamed", "methods-gone"):
        return ['do = "gone"' if change.kind == "methods-gone" else 'do = "apart"']
    if change.kind == "field-removed":
        return ['do = "keep"']
    if change.kind == "narrowed":
        return ['do = "drop-invalid"']
    if change.kind == "required":
        replaces = any(other.kind == "narrowed" and other.at == change.at for other in plan.undecided)
        empty = accepts(target.at(change.target_way), {}, target.resolve) and not replaces
        return ['do = "default"', "with = { value = {} }"] if empty else ['do = "refuse"']
    if _has_text_arm(target, change.target_way):
        return ['do = "text-block"', f'with = {{ template = "[{change.arm}]" }}']
    source = plan.newer if change.direction == "down" else plan.older
    if change.at.endswith("[]") or change.arm not in source.definitions:
        return ['do = "drop-item"']
    return ['do = "refuse"', f"with = {{ reason = {json.dumps(f'{target.revision} has no {change.arm} here.')} }}"]


def _has_text_arm(spec: Spec, pointer: str) -> bool:
    """Whether a block of text is one of what may stand where a pointer through the types leads."""
    try:
        type_ = spec.at(pointer)
    except LookupError:
        return False
    return any(spec.tag(arm) == ("type", "text") for arm in spec.arms(type_))
