"""What upstream really did, taken as releases: each state is planned, spelled and run on what came before it.

No state ends in a traceback, makes a valid frame invalid, or refuses one that no entry and no missing method explains.
"""

from __future__ import annotations

import pytest

from codegen.errors import UnknownSchemaForm
from tests.support.drafts import ARCHIVE, as_next_release, as_next_state, states
from tests.support.profile import THOROUGH, rounds
from tests.support.releases import Made

pytestmark = pytest.mark.skipif(not ARCHIVE.is_file(), reason=f"the drafts are not at {ARCHIVE}")
SEEDS = rounds(1, 10)
STATES = states() if ARCHIVE.is_file() else ()
NUMBERS = range(len(STATES)) if THOROUGH else range(7, len(STATES), 24)
"""Which states are tried."""
UNREADABLE = {
    "ac8b3e6b": "an allOf that asks for",
    "053d9cba": "an allOf that asks for",
    "f01df3c3": "an allOf that asks for",
    "0d217bba": "an allOf of something other than open objects",
    "888f87a6": "an allOf of something other than open objects",
    "5c4a992f": "additionalProperties: false",
}
"""What no rule reads, by the commits that have it."""


def test_every_state_is_there() -> None:
    assert len(STATES) == 178


@pytest.mark.parametrize("number", NUMBERS)
def test_state_as_the_release_after_the_one_before(number: int) -> None:
    state = STATES[number]
    if state.commit in UNREADABLE:
        with pytest.raises(UnknownSchemaForm, match=UNREADABLE[state.commit]):
            as_next_release(state)
        return
    check(as_next_release(state))


@pytest.mark.parametrize("number", NUMBERS)
def test_state_as_the_release_after_the_state_before(number: int) -> None:
    before, state = STATES[number - 1], STATES[number]
    if number and not UNREADABLE.keys() & {before.commit, state.commit}:
        check(as_next_state(before, state))


def check(there: Made) -> None:
    """Nothing is asked twice, and no valid frame comes to harm."""
    questions = [str(change) for change in there.asked]
    assert sorted(set(questions)) == sorted(questions)
    assert list(there.broken(SEEDS)) == []
