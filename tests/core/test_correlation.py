"""Who waits for which answer."""

from __future__ import annotations

from dragoman.core.correlation import CANCELLED_KEPT, NAME_BYTES, Asked, InFlight, Unfit


def test_an_answer_finds_its_request_once() -> None:
    table = InFlight()
    asked = Asked("ping")
    assert table.add(b"1", asked) is None
    assert table.take(b"1") is asked
    assert table.take(b"1") is None


def test_the_same_number_as_a_string_is_another_request() -> None:
    table = InFlight()
    table.add(b"1", Asked("ping"))
    assert table.take(b'"1"') is None


def test_an_id_in_use_is_not_taken_over() -> None:
    table = InFlight()
    assert table.add(b"1", Asked("ping")) is None
    assert table.add(b"1", Asked("tools/list")) is Unfit.DUPLICATE
    assert table.waiting[b"1"].method == "ping"


def test_a_cancelled_request_frees_its_id_and_is_remembered() -> None:
    table = InFlight()
    table.add(b"1", Asked("ping"))
    table.cancel(b"1")
    assert table.take_all() == []
    found = table.take(b"1")
    assert found is not None
    assert found.method == "ping"


def test_cancelling_what_nobody_asked_is_nothing() -> None:
    table = InFlight()
    table.cancel(b"1")
    assert table.take(b"1") is None


def test_cancelled_requests_are_not_remembered_for_ever() -> None:
    table = InFlight()
    for number in range(CANCELLED_KEPT + 10):
        table.add(b"%d" % number, Asked("ping"))
        table.cancel(b"%d" % number)
    assert len(table.cancelled) == CANCELLED_KEPT
    assert table.take(b"0") is None


def test_all_that_waits_is_given_in_order() -> None:
    table = InFlight()
    for key in (b"2", b"1"):
        table.add(key, Asked("ping"))
    assert [key for key, _ in table.take_all()] == [b"2", b"1"]
    assert table.take_all() == []


def test_no_more_requests_are_taken_in_than_the_limit() -> None:
    table = InFlight(limit=2)
    assert [table.add(key, Asked("ping")) for key in (b"1", b"2", b"3")] == [None, None, Unfit.TOO_MANY]
    table.take(b"1")
    assert table.add(b"3", Asked("ping")) is None


def test_an_id_or_a_method_without_end_is_not_kept() -> None:
    table = InFlight()
    assert table.add(b'"' + b"x" * NAME_BYTES + b'"', Asked("ping")) is Unfit.TOO_LONG
    assert table.add(b"1", Asked("x" * NAME_BYTES)) is Unfit.TOO_LONG
    assert not table.fits({b"1": Asked("x" * NAME_BYTES)})


def test_an_id_that_was_cancelled_and_is_used_again_has_one_answer() -> None:
    table = InFlight()
    table.add(b"1", Asked("ping"))
    table.cancel(b"1")
    table.add(b"1", Asked("tools/list"))
    found = table.take(b"1")
    assert found is not None
    assert found.method == "tools/list"
    assert table.take(b"1") is None
