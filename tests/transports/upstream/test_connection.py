"""However an answer's bytes are cut, it is the same answer."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.transports.upstream.connection import HttpConnection
from tests.support.waiting import run
from tests.transports.upstream.test_answers import ANSWERS, FAILURES

CASES = {**{name: case[0] for name, case in ANSWERS.items()}, **{name: case[0] for name, case in FAILURES.items()}}


class Socket(asyncio.Transport):
    """Takes everything."""

    closed = False

    def write(self, data: object) -> None:
        pass

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed


def read(pieces: list[bytes]) -> tuple[int, bytes, bool, str, int | None, str, bool]:
    """Give what is made of an answer that comes so and then ends."""

    async def main() -> tuple[int, bytes, bool, str, int | None, str, bool]:
        reusable: list[bool] = []
        connection = HttpConnection("peer", lambda _, again: reusable.append(again), lambda _: None)
        connection.connection_made(Socket())
        answer = connection.begin(b"", None, lambda: None, None)
        for piece in pieces:
            if connection.open:
                connection.data_received(piece)
        was_open = connection.open and answer.complete
        if connection.open and not answer.complete:
            connection.eof_received()
        parts = []
        while answer.unread_bytes:
            parts.append(await answer.some())
        answer.close()
        connection.connection_lost(None)
        assert reusable[0] <= was_open
        about = (answer.header("Content-Length"), reusable[0])
        return answer.status, b"".join(parts), answer.complete, answer.failure, answer.length, *about

    return run(main())


@pytest.mark.parametrize("case", CASES)
def test_a_byte_at_a_time_is_no_different(case: str) -> None:
    whole = CASES[case]
    assert read([whole[at : at + 1] for at in range(len(whole))]) == read([whole] if whole else [])


@given(st.sampled_from(sorted(CASES)), st.lists(st.integers(0, 120), max_size=8))
def test_any_split_is_no_different(case: str, cuts: list[int]) -> None:
    whole = CASES[case]
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(edges) if start < end]
    assert read(pieces) == read([whole] if whole else [])


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=5),
    st.lists(st.integers(0, 400), max_size=8),
    st.sampled_from(["length", "chunks", "close"]),
)
def test_any_body_in_any_split_is_read_as_it_was_written(body: list[bytes], cuts: list[int], framing: str) -> None:
    plain = b"".join(body)
    if framing == "length":
        said = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(plain), plain)
    elif framing == "chunks":
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in body)
        said = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n" % chunks
    else:
        said = b"HTTP/1.0 200 OK\r\n\r\n" + plain
    edges = [0, *sorted(min(cut, len(said)) for cut in cuts), len(said)]
    status, found, complete, failure, *_ = read([said[start:end] for start, end in pairwise(edges) if start < end])
    assert (status, found, complete, failure) == (200, plain, True, "")


def test_a_connection_that_waits_for_its_reader_is_not_used_for_another_request() -> None:
    """Its answer came whole, but so quickly that nobody had read any of it when there was enough."""

    async def main() -> None:
        reusable: list[bool] = []
        connection = HttpConnection("peer", lambda _, again: reusable.append(again), lambda _: None)
        connection.connection_made(Socket())
        for is_read in (True, False):
            answer = connection.begin(b"", None, lambda: None, None)
            block = b"x" * 262144
            connection.data_received(b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n" % (3 * len(block)))
            for _ in range(3):
                connection.data_received(block)
            assert answer.complete
            assert answer.held
            if is_read:
                assert len(await answer.some()) == 3 * len(block)
            answer.close()
        assert reusable == [True, False]

    run(main())


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_a_status_without_a_body_has_none_also_where_its_head_has_come_before(status: bytes) -> None:
    async def main() -> None:
        reusable: list[bool] = []
        connection = HttpConnection("peer", lambda _, again: reusable.append(again), lambda _: None)
        connection.connection_made(Socket())
        for body in (b"", b"more than there can be"):
            answer = connection.begin(b"", None, lambda: None, None)
            connection.data_received(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
            assert answer.complete
            assert answer.take() == b""
            answer.close()
        assert reusable == [True, False]

    run(main())
