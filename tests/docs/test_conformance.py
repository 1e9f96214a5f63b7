"""The pages say what the conformance suite misses across the eras, in the words of its run, and how many sign in."""

from pathlib import Path

import pytest

from tests.conformance.across import WHY, explain
from tests.conformance.sign_ins import EXTENSIONS, SIGN_INS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "eras.md"


@pytest.mark.parametrize("sentence", sorted(set(WHY.values())))
def test_the_page_has_each_reason(sentence: str) -> None:
    assert sentence in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_a_loss_without_a_reason_is_not_explained() -> None:
    assert explain("2026-07-28", "server-sse-polling", "any") is None
    assert explain("2025-11-25", "server-sse-polling", "any") is not None


@pytest.mark.parametrize("revision", sorted(SIGN_INS.keys() - {EXTENSIONS}))
def test_the_page_has_as_many_sign_ins_of_a_revision_as_are_run(revision: str) -> None:
    page = " ".join((DOCS / "sign-in.md").read_text(encoding="utf-8").split())
    assert f"{len(SIGN_INS[revision])} of {len(SIGN_INS[revision])} for {revision}" in page
