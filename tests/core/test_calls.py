"""Who waits for which answer."""

from __future__ import annotations

from dragoman.core.calls import CANCELLED_KEPT, NAME_BYTES, Call, Calls, Unfit
from dragoman.core.envelope import Frame


def test_an_answer_finds_its_request_once() -> None:
    table = Calls()
    call = Call(b"1", "ping")
    assert table.add(call) is None
    assert table.take(b"1") is call
    assert table.take(b"1") is None


def test_the_same_number_as_a_string_is_another_request() -> None:
    table = Calls()
    table.add(Call(b"1", "ping"))
    assert table.take(b'"1"') is None


def test_an_id_in_use_is_not_taken_over() -> None:
    table = Calls()
    assert table.add(Call(b"1", "ping")) is None
    assert table.add(Call(b"1", "tools/list")) is Unfit.DUPLICATE
    assert table.waiting[b"1"].method == "ping"


def test_a_cancelled_request_frees_its_id_and_is_remembered() -> None:
    table = Calls()
    table.add(Call(b"1", "ping"))
    table.cancel(b"1")
    assert table.take_all() == []
    found = table.take(b"1")
    assert found is not None
    assert found.method == "ping"


def test_cancelling_what_nobody_asked_is_nothing() -> None:
    table = Calls()
    table.cancel(b"1")
    assert table.take(b"1") is None


def test_cancelled_requests_are_not_remembered_for_ever() -> None:
    table = Calls()
    for number in range(CANCELLED_KEPT + 10):
        table.add(Call(b"%d" % number, "ping"))
        table.cancel(b"%d" % number)
    assert len(table.cancelled) == CANCELLED_KEPT
    assert table.take(b"0") is None


def test_all_that_waits_is_given_in_order() -> None:
    table = Calls()
    for key in (b"2", b"1"):
        table.add(Call(key, "ping"))
    assert [call.key for call in table.take_all()] == [b"2", b"1"]
    assert table.take_all() == []


def test_no_more_requests_are_taken_in_than_the_limit() -> None:
    table = Calls(limit=2)
    assert [table.add(Call(key, "ping")) for key in (b"1", b"2", b"3")] == [None, None, Unfit.TOO_MANY]
    table.take(b"1")
    assert table.add(Call(b"3", "ping")) is None


def test_an_id_or_a_method_without_end_is_not_kept() -> None:
    table = Calls()
    assert table.add(Call(b'"' + b"x" * NAME_BYTES + b'"', "ping")) is Unfit.TOO_LONG
    assert table.add(Call(b"1", "x" * NAME_BYTES)) is Unfit.TOO_LONG
    assert not table.fits([Call(b"1", "x" * NAME_BYTES)])


def test_an_id_that_was_cancelled_and_is_used_again_has_one_answer() -> None:
    table = Calls()
    table.add(Call(b"1", "ping"))
    table.cancel(b"1")
    table.add(Call(b"1", "tools/list"))
    found = table.take(b"1")
    assert found is not None
    assert found.method == "tools/list"
    assert table.take(b"1") is None


def test_a_request_whose_id_is_used_again_is_not_taken_for_the_other() -> None:
    table = Calls()
    first, second = Call(b"1", "ping"), Call(b"1", "tools/list")
    table.add(first)
    table.cancel(b"1")
    table.add(second)
    assert not table.remove(first)
    assert table.remove(second)
    assert not table.remove(second)


def test_requests_that_use_an_id_twice_do_not_fit() -> None:
    assert not Calls().fits([Call(b"1", "ping"), Call(b"1", "ping")])


def test_the_answer_to_a_renamed_request_that_was_given_up_is_not_one_to_the_next_of_its_id() -> None:
    table = Calls()
    table.add(Call(b"1", "ping"))
    table.cancel(b"1")
    renamed = Call(b"1", "prompts/list")
    table.rename(renamed, Frame(b'{"jsonrpc":"2.0","id":1,"method":"prompts/list"}\n', "request", b"1", "prompts/list"))
    table.add(renamed)
    table.cancel(renamed.key)
    table.add(Call(b"1", "tools/list"))
    assert table.take(renamed.key) is None
    found = table.take(b"1")
    assert found is not None
    assert found.method == "tools/list"
