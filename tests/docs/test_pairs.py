"""The page of released SDKs is what `nox -s peers` holds them against."""

from tests.peers.pairs import PAGE, PICTURE, draw, find_reason, render


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `python -m tests.peers.pairs`"


def test_the_picture_is_up_to_date() -> None:
    assert PICTURE.read_text(encoding="utf-8") == draw(), "run `python -m tests.peers.pairs`"


def test_what_does_not_work_is_what_a_revision_does_not_have() -> None:
    assert find_reason("C", "D", "form") is None
    assert {find_reason(client, "E", "form") for client in "AB"} == {"b"}
    assert {find_reason("T", server, "structure") for server in "AB"} == {"a"}
