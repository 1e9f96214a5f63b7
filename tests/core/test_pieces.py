"""Bytes that come in pieces: the same whatever the pieces are, and no dearer."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.lines import LineSplitter
from dragoman.core.pieces import Pieces


@given(st.lists(st.binary(max_size=10) | st.integers(4090, 4100).map(bytes), max_size=30), st.integers(0, 9000))
def test_pieces_are_joined_in_their_order(parts: list[bytes], most: int) -> None:
    pieces = Pieces()
    for part in parts:
        pieces.add(part)
    whole = b"".join(parts)
    assert (pieces.size, bool(pieces), pieces.head(most)) == (len(whole), bool(whole), whole[:most])
    taken = pieces.take()
    assert (taken, type(taken)) == (whole, bytes)
    assert (pieces.size, pieces.take()) == (0, b"")


def test_one_piece_is_not_copied() -> None:
    pieces, part = Pieces(), bytes(5000)
    pieces.add(part)
    assert pieces.take() is part


def test_a_line_that_comes_byte_by_byte_costs_its_bytes() -> None:
    splitter = LineSplitter()
    tracemalloc.start()
    for _ in range(100_000):
        splitter.feed(b"x")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400_000
    assert splitter.feed(b"\n") == [b"x" * 100_000 + b"\n"]
