"""Write `docs/drafts.md`, what each state of upstream's draft would ask a person: `python -m tests.docs.drafts`.

It takes some minutes. `tests/codegen/test_drafts.py` compares the rows of the states that it tries.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codegen.errors import UnknownSchemaForm
from tests.support.drafts import State, as_next_release, as_next_state, states
from tests.support.releases import Made

PAGE = Path(__file__).resolve().parents[2] / "docs" / "drafts.md"
NOTHING = "-"
REFUSING = ("refuse", "drop-invalid", "drop-item")

HEAD = """\
# Drafts of the specification, taken as releases

The official repository has had about 180 schemas of its draft between releases. Here each is taken as the next release,
once after the release before it and once after the state before it: how many questions `regen` asks, how many lines the
overlay has that it writes with `--accept-defaults`, and on how many of them the safe default can only refuse a frame or
leave something out. `nox -s thorough` sends random frames over all of these steps, `nox -s tests` over a sample:
an independent validator sees that no valid frame becomes invalid, and none is refused without an entry that says so.

Questions count decisions, not places: changes that are alike are one. This page is written by
`python -m tests.docs.drafts`.

## By hand

The last state before each of two releases, decided by hand as that release, with CONTRIBUTING alone and without the
revisions that came later. An entry is a question answered, a fix of upstream's file, or a field that is to stay. From
`pull` to the first `regen` that asks nothing it took less than five minutes each, by somebody who knew what the release
is about. Facts and sentences were then taken from the overlay of the real release: to write them is the rest of the
work.

| state | as | questions | entries | lines | facts | lines | sentences | orders | what only a test asked for |
|---|---|---|---|---|---|---|---|---|---|
| `14043ad9` | 2025-11-25 | 14 | 18 | 157 | 9 | 51 | 97 | 40 | that `_meta` and `$schema` stay |
| `71e30695` | 2026-07-28 | 20 | 20 | 171 | 14 | 73 | 58 | 26 | nothing |

In both, "number becomes integer" or "any value becomes JSONValue" was a defect of upstream's `schema.json`, and a fix
took the place of the answer. With these entries every law of `tests/laws/test_laws.py` and `test_definitions.py` held
for all pairs of the revisions that were there.

## Each state

| state | date | release before | questions | lines | refuse or leave out | questions on the state before | lines |
|---|---|---|---|---|---|---|---|
"""


def render() -> str:
    """Give the page."""
    found = states()
    return HEAD + "".join(row(found, number) + "\n" for number in range(len(found)))


def row(found: tuple[State, ...], number: int) -> str:
    """One line of the table."""
    state = found[number]
    release = _cells(lambda: as_next_release(state), with_losses=True)
    before = _cells(lambda: as_next_state(found[number - 1], state)) if number else [NOTHING] * 2
    return "| " + " | ".join([f"`{state.commit}`", state.date, state.predecessor, *release, *before]) + " |"


def _cells(make: Callable[[], Made], *, with_losses: bool = False) -> list[str]:
    """Questions, lines, and decisions that refuse or leave out; where it cannot be read, that."""
    try:
        there = make()
    except UnknownSchemaForm:
        return ["cannot be read", *[NOTHING] * (2 if with_losses else 1)]
    decisions = there.plan.overlay.decisions
    silent = sum(decision.do in REFUSING for decision in decisions)
    return [str(len(there.asked)), str(len(there.overlay.splitlines())), *([str(silent)] if with_losses else [])]


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
