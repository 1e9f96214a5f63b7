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

The last state before each of two releases, decided as that release, with CONTRIBUTING alone and in a checkout without
the revisions that came later, by somebody who had not seen the generator before and knows MCP. An entry is a question
answered, a hook, a fix of upstream's file, or a field that is to stay or is cosmetic; lines are those of entries and
facts, without blank ones and comments.

| state | as | questions | entries | lines | facts | wrong entries | clock |
|---|---|---|---|---|---|---|---|
| `14043ad9` | 2025-11-25 | 14 | 23 | 181 | 4 | 2 | 4 min |
| `71e30695` | 2026-07-28 | 1, then 19 | 20 | 186 | 0 | 0 | 2 min |

The clock is from the skeleton to the first `regen` that asks nothing, by somebody who answers and types fast and wrote
one reason of one sentence for each entry: it says that nothing stops the work, not how long you will think. What it
leaves out takes longer than what it counts: to read CONTRIBUTING and the pages of the release; the words of 97 and 58
methods, definitions and fields, and the order of 40 and 26 definitions, which nobody wrote on that day; most facts; and
the laws, four minutes on a busy machine. With a minute for a word, a release like these takes an afternoon.

In both, "number becomes integer" or "any value becomes JSONValue" was a defect of upstream's `schema.json`, and a fix
took the place of the answer. 13 of 14 and all 20 answers do the same as the overlays of the real releases; the other
one shows the use of a tool in sampling as text, where ours refuses it. What nobody asks about was missed: ten hooks
(messages with several blocks, the `tools` of a sampling request, JSON Schemas of lists), what becomes of new error
codes, and most cosmetic fields. Since then it is also asked what an `outputSchema` without `type: object` becomes.

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
