"""What is compressed: to its end, and no more of it than is reasonable."""

from __future__ import annotations

import gzip
import json
import random
import zlib

import pytest

from dragoman.errors import TransportError
from dragoman.transports.upstream.bodies import RATIO, Inflater

FREE = 100_000


def unfold(packed: bytes, coding: str = "gzip", step: int = 1000) -> bytes:
    inflater = Inflater("peer", coding, FREE)
    parts = [piece for at in range(0, len(packed), step) for piece in inflater.feed(packed[at : at + step])]
    inflater.finish()
    return b"".join(parts)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_what_unfolds_to_far_more_than_came_is_refused(coding: str) -> None:
    packed = (gzip.compress if coding == "gzip" else zlib.compress)(b"data:\n" * FREE)
    with pytest.raises(TransportError, match=f"unfolds to more than {RATIO} times its length"):
        unfold(packed, coding)


def test_what_is_not_long_may_be_compressed_as_well_as_it_likes() -> None:
    assert unfold(gzip.compress(b"0" * FREE)) == b"0" * FREE


def rows(count: int) -> bytes:
    """A table as servers send it: the same members in each row, and numbers that differ."""
    chance = random.Random(1)
    table = [
        {"timestamp": 1767225600 + i * 60, "sensor": "kitchen", "value": chance.randrange(9)} for i in range(count)
    ]
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": {"rows": table}}}).encode()


def test_a_table_of_rows_that_are_much_alike_passes() -> None:
    body = rows(20_000)
    assert unfold(gzip.compress(body, 9)) == body


def test_a_small_step_is_no_bomb() -> None:
    body = rows(3000)
    assert unfold(gzip.compress(body), step=1) == body


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("lost", [1, 8, 9])
def test_what_does_not_come_to_its_end_was_cut(members: int, lost: int) -> None:
    packed = b"".join(gzip.compress(b"{}" * 100) for _ in range(members))
    with pytest.raises(TransportError, match="ends in the middle"):
        unfold(packed[:-lost])
    assert unfold(packed) == b"{}" * 100 * members


def test_nothing_at_all_is_not_cut() -> None:
    assert unfold(b"") == b""


def test_others_are_served_between_empty_members() -> None:
    pieces = list(Inflater("peer", "gzip").feed(gzip.compress(b"") * 1000))
    assert pieces == [b""] * 1000
