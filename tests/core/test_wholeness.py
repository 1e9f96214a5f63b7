"""Whether a message is whole: certain for every place at which it may be cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.codes import INVALID_REQUEST, PARSE_ERROR
from dragoman.core.envelope import Frame, Malformed
from dragoman.core.exact_json import outline
from dragoman.core.lines import Overlong
from dragoman.core.wholeness import (
    GLANCED_BYTES,
    PARSED_BYTES,
    Brackets,
    is_whole,
    parses,
    read_broken,
    read_last_line,
    seems_whole,
)

TEXTS = st.text('{}[]"\\ab,: é\n', max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)


def searched(message: bytes, size: int = 1_000_000) -> bool:
    brackets = Brackets()
    for start in range(0, len(message), size):
        brackets.feed(message[start : start + size])
    return brackets.is_whole()


@given(OBJECTS, st.booleans(), st.integers(1, 9), st.sampled_from([None, 1]))
def test_what_is_whole_is_found_to_be(value: Any, ascii_only: bool, size: int, indent: int | None) -> None:
    message = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert searched(message)
    assert searched(message, size)
    assert seems_whole(message, outline(message))
    assert is_whole(message)


@given(OBJECTS, st.data())
def test_what_is_cut_is_found_out_wherever_that_is(value: Any, data: st.DataObject) -> None:
    message = json.dumps(value).encode()
    half = message[: data.draw(st.integers(0, len(message) - 1))]
    assert not searched(half)
    assert not searched(half, data.draw(st.integers(1, 9)))
    assert not seems_whole(half, outline(half))
    assert not is_whole(half)


@given(OBJECTS, OBJECTS, st.sampled_from([b"", b" ", b"\n"]), st.integers(1, 9))
def test_two_texts_are_no_whole_one(one: Any, other: Any, between: bytes, size: int) -> None:
    message = json.dumps(one).encode() + between + json.dumps(other).encode()
    assert not searched(message, size)
    assert not is_whole(message)


LARGE = b'{"jsonrpc":"2.0","id":1,"result":{"text":"' + b"x" * PARSED_BYTES + b'"}}'


@pytest.mark.parametrize(
    ("message", "whole"),
    [
        (LARGE, True),
        (LARGE + b"\n", True),
        (LARGE[:-1], False),
        (LARGE[:-3], False),
        (LARGE + b"}", False),
        (LARGE + b" x", False),
        (LARGE + b" {}", False),
        (LARGE[:-2] + b'","b":[[{}],"]"]}}', False),
        (LARGE[:-2] + b',"b":[[{}],"]"]}}', True),
        (LARGE.replace(b"xx}", b"\nx}"), True),
        (LARGE[:-4] + b'\n"}}', False),
        (LARGE[:-2] + b',"b":' + b"[" * 1000 + b"]" * 1000 + b"}}", False),
        (LARGE[:-2] + b',"b":' + b"[" * 200 + b"]" * 200 + b"}}", True),
        (b"[" + LARGE + b"]", False),
        (b"{]" + LARGE[1:], False),
        (b"\xff" + LARGE, True),
    ],
)
def test_what_is_large_is_searched(message: bytes, whole: bool) -> None:
    assert is_whole(message) == whole


def test_what_is_large_is_not_parsed() -> None:
    assert not parses(LARGE)


@pytest.mark.parametrize(
    ("message", "seems"),
    [
        (LARGE, True),
        (LARGE[:-1], False),
        (LARGE[:-4] + b'{"}}', True),
        (LARGE + LARGE, False),
        (LARGE + b'","' + LARGE, False),
        (b'{"a":[' + b'"{",' * GLANCED_BYTES + b'""]}', False),  # it is whole, and a closer look will tell
        (b'{"a":"' + b"x" * GLANCED_BYTES, False),
        (b'{"a":"}"', False),
        (b'{"a":"{"}', True),
    ],
)
def test_a_second_look_counts_brackets_of_what_is_not_short(message: bytes, seems: bool) -> None:
    assert seems_whole(message, outline(message)) == seems


def test_what_is_broken_stays_so() -> None:
    brackets = Brackets()
    brackets.feed(b'{"a\n":1')
    brackets.feed(b"}")
    assert not brackets.is_whole()


@pytest.mark.parametrize(
    ("line", "key", "is_response"),
    [
        (b'{"jsonrpc":"2.0","id":3,"result":{"a":[1,2', b"3", True),
        (b'{"jsonrpc":"2.0","id":3,"result":{"a":{"b":1}', b"3", True),
        (b'{"jsonrpc":"2.0","id":"3","error":{"code":1', b'"3"', True),
        (b'{"jsonrpc":"2.0","id":3,"method":"x","params":{"a":{}', b"3", False),
        (b'{"jsonrpc":"2.0","id":3,"meth', None, False),
        (b'{"result":{"a":1},"id":', None, True),
        (b'[{"jsonrpc":"2.0"', None, False),
    ],
)
def test_a_last_line_that_was_cut_is_no_frame(line: bytes, key: bytes | None, is_response: bool) -> None:
    found = read_last_line(line + b"\n")
    assert isinstance(found, Malformed)
    assert (found.code, found.key, found.is_response) == (PARSE_ERROR, key, is_response)
    assert found.reason.startswith("the line ends in the middle of a frame")


def test_a_last_line_that_is_whole_is_a_frame() -> None:
    result = read_last_line(b'{"jsonrpc":"2.0","id":3,"result":{}}\n')
    batch = read_last_line(b'[{"jsonrpc":"2.0","method":"x"}]\n')
    assert isinstance(result, Frame)
    assert isinstance(batch, Frame)
    assert (result.kind, batch.kind) == ("result", "batch")


def test_a_last_line_that_is_empty_too_long_or_no_frame_is_said_to_be_that() -> None:
    overlong = read_last_line(Overlong(b'{"jsonrpc":"2.0","id":3,"result":', 10))
    no_frame = read_last_line(b"3\n")
    assert read_last_line(b"\n") is None
    assert isinstance(overlong, Malformed)
    assert overlong.key == b"3"
    assert isinstance(no_frame, Malformed)
    assert no_frame.code == INVALID_REQUEST


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{}} {"jsonrpc":"2.0","id":2,"error":{}}', [(b"1", True), (b"2", True)]),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":2,"resu', [(b"1", True), (None, False)]),
        (b'{"jsonrpc":"2.0","id":1,"method":"a"}{"id":2}', [(b"1", False), (b"2", False)]),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a', [(b"1", True)]),
        (b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * 2_000_000, [(b"1", True)]),
        (b"[" * 100_000, [(None, False)]),
        (b"", []),
    ],
)
def test_of_a_broken_message_it_is_told_whom_it_was_for(
    message: bytes, expected: list[tuple[bytes | None, bool]]
) -> None:
    found = read_broken(message, PARSE_ERROR, "why")
    assert [(one.key, one.is_response) for one in found] == expected
    assert all(one.reason == "why" for one in found)


def test_of_very_many_texts_only_the_first_are_read() -> None:
    assert len(read_broken(b"{}" * 1000, PARSE_ERROR, "why")) == 101
