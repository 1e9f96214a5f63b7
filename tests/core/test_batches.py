"""Collecting the answers to an array."""

from __future__ import annotations

from dragoman.core.batches import Batch
from dragoman.core.envelope import Frame


def answer(line: bytes) -> Frame:
    return Frame(line, "result", b"1", None)


def test_answers_wait_for_the_last_one() -> None:
    batch = Batch(2)
    assert batch.answer(answer(b'{"a":1}\n')) is None
    assert batch.answer(answer(b'{"b":2}\n')) == Frame(b'[{"a":1},{"b":2}]\n', "batch", None, None)


def test_a_batch_without_requests_is_not_answered() -> None:
    assert Batch().complete() is None


def test_a_batch_of_bad_members_is_answered_at_once() -> None:
    batch = Batch()
    batch.answers.append(b"{}\n")
    assert batch.complete() == Frame(b"[{}]\n", "batch", None, None)
