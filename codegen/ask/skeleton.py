"""Undecided changes as overlay entries: a skeleton to fill in, or the safe defaults, marked as not reviewed.

Called by `regen`. Entries are appended to the overlay's text, so that what a person wrote there, and how, stays.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from codegen.ask.questions import Question, ask_once
from codegen.compare.type_facts import accepts
from codegen.errors import UndecidedChange
from codegen.names import line, toml
from codegen.plan.plan import METHODS_GONE, StepPlan
from codegen.plan.verbs import verbs_for
from codegen.read.model import Anything, Ref, Spec
from codegen.read.overlay import Change

UNITS = ("Ms", "Millis", "Milliseconds", "Seconds", "Secs", "Minutes", "Bytes", "Kb", "Percent")
LINE = 118
SAFE_REASON = "Safe default, taken by --accept-defaults."


def undecided_error(plan: StepPlan, skeleton: str) -> UndecidedChange:
    """The error that lists what a person has to decide; *skeleton* is the overlay's text with an entry for each."""
    path = plan.overlay.path
    remedy = f"Rule on each: its entry is at the end of {path}, with `do` and `reason` to fill in."
    if has_defaults(plan.undecided):
        remedy += " Or run `nox -s regen -- --accept-defaults` to take safe defaults for all, marked as not reviewed."
    changes = [str(question) for question in ask_once(plan.undecided)]
    return UndecidedChange(plan.newer.revision, changes, remedy, overlay=path, skeleton=skeleton)


def has_defaults(changes: Sequence[Change]) -> bool:
    """Whether there is a safe default for all: without its methods a revision refuses everything."""
    return all(change.kind != METHODS_GONE for change in changes)


def add_entries(text: str, plan: StepPlan, *, complete: bool) -> str:
    """Append an entry for each question to an overlay's text: to fill in, or *complete* with the safe default.

    A change that an earlier skeleton already has an entry for gets no second one; where entries are complete, it is
    replaced.
    """
    text = text or _heading(plan)
    if complete:
        text = _without_blanks(text)
    blank = [decision for decision in plan.overlay.decisions if not decision.do]
    present = {(d.direction, d.change, pattern, arm) for d in blank for pattern in d.at for arm in d.arm}
    changes = [c for c in plan.undecided if complete or (c.direction, c.kind, c.at, c.arm) not in present]
    for question in ask_once(changes):
        for part in _same_default(question, plan) if complete else [question]:
            text = f"{text.rstrip()}\n\n{_entry(part, plan, complete)}"
    return f"{text.rstrip()}\n"


def _same_default(question: Question, plan: StepPlan) -> list[Question]:
    """The question in parts that have one safe default each: a text may stand in one of two places alone."""
    parts: dict[str, list[Change]] = {}
    for change in question.changes:
        parts.setdefault(str(safe_default(change, plan)), []).append(change)
    return [Question(tuple(changes)) for changes in parts.values()]


def _heading(plan: StepPlan) -> str:
    return f"# The step {plan.older.revision} <-> {plan.newer.revision}. What entries can say: CONTRIBUTING.md.\n"


def _without_blanks(text: str) -> str:
    """The overlay without the entries that nobody has filled in."""
    parts = text.split("\n[[")
    return "\n[[".join(part for part in parts if '\ndo = ""' not in part)


def _entry(question: Question, plan: StepPlan, complete: bool) -> str:
    change, more = question.first, len(question.places) - 1
    arm = f"{change.arm} " if change.arm else ""
    lines = [
        "[[decision]]",
        line(f"# {change.detail}; {change.source_pointer} -> {change.target_pointer}"),
        f"name = {toml(f'{change.kind} {arm}at {change.at}' + (f' and {more} more' if more else ''))}",
        f'direction = "{change.direction}"',
        f'change = "{change.kind}"',
        f"at = {_places(question.places)}",
    ]
    lines += [f"arm = {toml(change.arm)}"] if change.arm else []
    if complete:
        lines += [*safe_default(change, plan), f"reason = {toml(SAFE_REASON)}", "reviewed = false"]
    else:
        lines += [f'do = ""  # {_verbs(change)}', 'reason = ""', *_instead(question)]
    return "\n".join(lines) + "\n"


def _verbs(change: Change) -> str:
    return " | ".join(verb.name for verb in verbs_for(change.kind, change.direction))


def _places(places: Sequence[str]) -> str:
    """One path, or a list of them in lines that are not too long."""
    if len(places) == 1:
        return toml(places[0])
    return "[" + "\n".join(textwrap.wrap(", ".join(map(toml, places)), LINE, break_long_words=False)) + "]"


def _instead(question: Question) -> list[str]:
    """The entry that says of something new that it is the same, as comments."""
    table, entry = question.first.instead
    if not table:
        return []
    places = [str(change.instead[1]["at"]) for change in question.changes if "at" in entry]
    old = entry["old"]
    named = f"{table} of {'.'.join(old) if isinstance(old, list) else old}"
    said = [f"# {key} = {toml(value)}" for key, value in {"name": named, **entry}.items() if key != "at"]
    said += [f"# at = {_places(places)}".replace("\n", "\n# ")] if places else []
    said += ["# factor = 1000  # if it is a number in another unit; else without this line"] if _is_unit(entry) else []
    boolean = question.first.detail.endswith("is of the same type: boolean")
    said += ["# negated = true  # if it says the opposite; else without this line"] if boolean else []
    return ["# If it is the same, write in the place of this entry:", f"# [[{table}]]", *said, '# reason = ""']


def _is_unit(entry: Mapping[str, object]) -> bool:
    """Whether a new name of a field says a unit: `ttl`, and then `ttlMs`."""
    old, new = str(entry.get("old")), str(entry.get("new"))
    return any(name.endswith(UNITS) for name in (old, new)) and entry.get("what") == "field"


def safe_default(change: Change, plan: StepPlan) -> list[str]:
    """The lines of an entry that loses least without asking: leave out what may be left out, else a placeholder, else
    refuse."""
    target = plan.older if change.direction == "down" else plan.newer
    words_alone = {"field-removed": "keep", "methods-gone": "gone", "narrowed": "drop-invalid"}
    words_alone |= dict.fromkeys(("code-changed", "kind-changed", "moved", "renamed"), "apart")
    if change.kind in words_alone:
        return [f'do = "{words_alone[change.kind]}"']
    if change.kind == "required":
        return _filled(change, target, plan)
    if _has_text_arm(target, change.target_way):
        return ['do = "text-block"', f"with = {{ template = {toml(f'[{change.arm}]')} }}"]
    source = plan.newer if change.direction == "down" else plan.older
    if change.at.endswith("[]") or change.arm not in source.definitions:
        tagged = change.arm in source.definitions and source.tag(Ref(change.arm)) is not None
        return ['do = "drop-item"' if tagged else 'do = "drop-invalid"']
    return ['do = "refuse"', f"with = {{ reason = {toml(f'{target.revision} has no {change.arm} here.')} }}"]


def _filled(change: Change, target: Spec, plan: StepPlan) -> list[str]:
    """What a field that becomes required gets where nobody says: `null` or an empty object, if it may be that."""
    wanted = target.at(change.target_way)
    if target.takes_null(wanted) and not isinstance(target.resolve(wanted), Anything):
        return ['do = "default"']
    replaces = any(other.kind == "narrowed" and other.at == change.at for other in plan.undecided)
    empty = accepts(wanted, {}, target.resolve) and not replaces
    return ['do = "default"', "with = { value = {} }"] if empty else ['do = "refuse"']


def _has_text_arm(spec: Spec, pointer: str) -> bool:
    """Whether a block of text is one of what may stand where a pointer through the types leads."""
    try:
        type_ = spec.at(pointer)
    except LookupError:
        return False
    return any(spec.tag(arm) == ("type", "text") for arm in spec.arms(type_))
