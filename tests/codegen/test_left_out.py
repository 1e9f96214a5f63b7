"""What the law of the way up forgives is what the steps say, no more."""

from __future__ import annotations

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS, Loss, Translation
from tests.codegen.releases.cases import Change, add, remove
from tests.support import laws
from tests.support.laws import Case, old_new_old
from tests.support.left_out import left_out_on_the_way_up, lossy_fields
from tests.support.releases import made, release
from tests.support.subjects import subjects


def test_among_handshake_revisions_nothing_is_left_out() -> None:
    assert left_out_on_the_way_up(HANDSHAKE_REVISIONS[0], HANDSHAKE_REVISIONS[-1]) == frozenset()


def test_into_the_other_era_three_fields_are() -> None:
    assert {"task", "execution", "values"} <= left_out_on_the_way_up("2024-11-05", "2026-07-28")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (remove("Tool", "outputSchema"), "outputSchema"),
        (add("Prompt", title={"type": "string", "maxLength": 3}), "title"),
        (add("CallToolResult", content={"type": "array", "items": {"$ref": "#/$defs/TextContent"}}), "content"),
    ],
)
def test_release_that_leaves_something_out_says_so(change: Change, field: str) -> None:
    plan = made(release(change)).plan
    assert field in set(lossy_fields(plan.ways["up", "strict"]))


def test_any_other_loss_breaks_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = next(one for one in subjects("2025-11-25") if one.method == "tools/list" and one.kind == "result")
    case = Case(subject, "2026-07-28")
    for pointer, broken in (("/result/tools/0/execution", False), ("/result/tools/0/title", True)):
        done = Translation({"result": {}}, (Loss(pointer, "dropped", 1),))
        monkeypatch.setattr(laws.Case, "over", lambda self, frame, done=done: done)
        assert (old_new_old({}, case) is not None) is broken
