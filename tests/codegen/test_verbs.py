"""What a decision may do is declared once: the skeleton, the page and the check say the same."""

from __future__ import annotations

import pytest

from codegen.ask.skeleton import _verbs
from codegen.errors import UnusedDecision
from codegen.plan.actions import declared_actions
from codegen.plan.verbs import BESIDE, KINDS, verbs, verbs_for
from codegen.read.overlay import Change
from tests.docs.verbs import PAGE, text
from tests.support.small_specs import INTEGER, STRING, decision, object_of, plan


def test_the_page_has_the_verbs_that_there_are() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "run `python -m tests.docs.verbs`"


def test_every_kind_of_change_has_a_verb_in_each_direction_in_which_it_can_be() -> None:
    assert [kind for kind in KINDS if not all(verbs_for(kind, way) for way in ("up", "down"))] == []


def test_verbs_are_for_kinds_of_change_that_there_are() -> None:
    assert {change for verb in verbs() for change in verb.changes} | BESIDE.keys() == KINDS.keys()


def test_a_decision_is_on_a_value_and_not_on_a_frame() -> None:
    assert {found.on for found in declared_actions().values() if found.facts.get("changes")} == {"value"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_skeleton_offers_what_the_check_takes(kind: str) -> None:
    change = Change("up", kind, "It", "", "", "")
    assert _verbs(change).split(" | ") == [verb.name for verb in verbs_for(kind, "up")]


@pytest.mark.parametrize("do", sorted({verb.name for verb in verbs()} - {v.name for v in verbs_for("narrowed", "up")}))
def test_a_verb_for_another_kind_of_change_is_refused(do: str) -> None:
    with pytest.raises(UnusedDecision, match=f"here, not '{do}'"):
        plan({"It": object_of(a=STRING)}, {"It": object_of(a=INTEGER)}, decision("up", "narrowed", "It.a", do))
