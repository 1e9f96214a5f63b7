"""The page of the rules of a check has every rule, as the code has it."""

from __future__ import annotations

from tests.docs.checked_rules import PAGE, text


def test_the_page_has_every_rule() -> None:
    assert PAGE.read_text("utf-8") == text(), "run `python -m tests.docs.checked_rules`"
