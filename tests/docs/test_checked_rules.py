"""The page on checks has every rule, as the code has it."""

from __future__ import annotations

from tests.docs.checked_rules import PAGE, page


def test_the_page_has_every_rule() -> None:
    """If this fails: `python -m tests.docs.checked_rules`."""
    text = PAGE.read_text("utf-8")
    assert page(text) == text
