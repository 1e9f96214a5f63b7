"""The pictures of what a lent request goes through: worlds take no other steps."""

from __future__ import annotations

from typing import Final

import pytest

from tests.world.loan_states import BEGIN, DRAWN
from tests.world.plans import make_plan
from tests.world.worlds import run_world

SEEDS: Final = range(1, 21)
"""Enough worlds for what is ordinary; a minute of worlds has to take every step."""


@pytest.mark.parametrize(("cell", "kind"), [("direct", "call"), ("shared", "shared call")])
def test_the_ordinary_steps_are_taken_and_noted(cell: str, kind: str) -> None:
    taken = {step[1:] for seed in SEEDS for step in run_world(make_plan(cell, seed)).steps if step[0] == kind}
    ordinary = {("waiting", "at_work"), ("at_work", BEGIN), ("at_work", "settling"), ("settling", BEGIN)}
    assert ordinary <= taken <= DRAWN[kind]


def test_a_step_that_is_not_drawn_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DRAWN, "shared call", DRAWN["shared call"] - {("at_work", BEGIN)})
    found = [one for seed in SEEDS for one in run_world(make_plan("shared", seed)).findings]
    assert {one.rule for one in found} == {"loan-states"}
    assert "from at_work to [*], which is not drawn" in found[0].text
