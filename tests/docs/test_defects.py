"""The page of known defects is what the changelog says."""

from __future__ import annotations

from tests.docs.defects import PAGE, text


def test_the_page_is_written_from_the_changelog() -> None:
    assert PAGE.read_text("utf-8") == text(), "run `python -m tests.docs.defects`"


def test_a_version_has_its_defects() -> None:
    assert "## Not released yet\n\n- " in text()
