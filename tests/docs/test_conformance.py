"""The page says what the conformance suite misses across the eras, in the words in which its run explains it."""

from pathlib import Path

import pytest

from tests.conformance.across import WHY, explain

PAGE = Path(__file__).parents[2] / "docs" / "eras.md"


@pytest.mark.parametrize("sentence", sorted(set(WHY.values())))
def test_the_page_has_each_reason(sentence: str) -> None:
    assert sentence in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_a_loss_without_a_reason_is_not_explained() -> None:
    assert explain("2026-07-28", "server-sse-polling", "any") is None
    assert explain("2025-11-25", "server-sse-polling", "any") is not None
