"""The page of all pairs is what `dragoman explain` says."""

from tests.docs.compatibility import PAGE, text


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "run `python -m tests.docs.compatibility`"
