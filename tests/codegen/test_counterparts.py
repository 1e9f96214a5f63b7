"""What a model is called in other revisions: the same, or what renames along the steps make of it."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

from codegen.maintain.regen import plan_steps
from codegen.read.load import load_spec
from codegen.read.normalise import read_normalised
from codegen.read.pins import check_pins
from codegen.write.counterparts import find_counterparts
from tests.support.judge import ROOT


@cache
def found() -> dict[str, Any]:
    revisions = list(check_pins(ROOT / "schema"))
    pairs = list(pairwise(load_spec(ROOT, revision) for revision in revisions))
    plans, _ = plan_steps(ROOT, pairs, accept_defaults=False)
    return find_counterparts([read_normalised(ROOT, revision) for revision in revisions], plans)


def test_model_that_every_revision_has_is_its_own_counterpart() -> None:
    assert found()["2025-06-18"]["Tool"] == dict.fromkeys(found(), "Tool")


def test_model_is_found_where_there_is_one() -> None:
    assert sorted(found()["2025-11-25"]["Task"]) == ["2025-11-25"]


def test_renames_are_followed_both_ways() -> None:
    assert found()["2024-11-05"]["ResourceReference"]["2026-07-28"] == "ResourceTemplateReference"
    assert found()["2026-07-28"]["ResourceTemplateReference"]["2024-11-05"] == "ResourceReference"


def test_aliases_have_no_counterparts() -> None:
    assert "ContentBlock" not in found()["2025-11-25"]
    assert "2025-11-25" not in found()["2024-11-05"]["JSONRPCResponse"]
