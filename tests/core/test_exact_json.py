"""JSON that comes out as it went in."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given

from dragoman.core.exact_json import decode, encode, may_hold_long_integer, skim
from tests.support.json_values import json_values
from tests.support.profile import hypothesis_settings


@pytest.mark.parametrize(
    "value", [2**64, -(2**63) - 1, 10**300, "\ud800", "\x00", 1.0, 100, -0.0, 1e300, "é", "\u2028"]
)
def test_values_survive_decoding_and_encoding(value: Any) -> None:
    text = json.dumps({"value": value})
    found = decode(encode(decode(text.encode())))["value"]
    assert (type(found), found) == (type(value), value)


def test_a_long_integer_is_not_read_as_a_float() -> None:
    assert isinstance(orjson.loads(b"18446744073709551616"), float)  # the reason for looking; if it fails, look no more
    assert decode(b"[18446744073709551616,1.5]") == [2**64, 1.5]


@pytest.mark.parametrize("at", range(12))
@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_a_long_integer_is_found_wherever_it_stands(number: int, at: int) -> None:
    assert decode(b" " * at + b"[%d]" % number) == [number]


def test_digits_that_stand_apart_are_no_long_integer() -> None:
    assert not may_hold_long_integer(b"12345 " * 20)


@pytest.mark.parametrize("line", [b"[1.5]", b'"\\ud800"', b"1" * 400])
def test_skimming_reads_what_decoding_reads(line: bytes) -> None:
    assert skim(line) == decode(line)


@pytest.mark.parametrize("line", [b"NaN", b"{", b"\xff"])
def test_skimming_refuses_what_decoding_refuses(line: bytes) -> None:
    with pytest.raises(ValueError, match="not"):
        skim(line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"NaN", "NaN"),
        (b"-Infinity", "Infinity"),
        (b"1e999", "beyond"),
        (b"-1e999", "beyond"),
        (b"\xff", "not UTF-8: byte 0xff at offset 0"),
        (b"[" * 100_000, "deep"),
        (b"{", "not JSON"),
        (b"1" * 5000, "digits"),
        (b'"a\x00"', "not JSON"),
    ],
)
def test_what_is_not_json_is_said_to_be(line: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace(":", ".")) as caught:
        decode(line)
    assert words in str(caught.value)


@pytest.mark.parametrize(("levels", "number"), [(300, "123456789012345678901234567890"), (1000, "7")])
def test_what_is_deep_is_written_as_it_was_read(levels: int, number: str) -> None:
    """And everything beside it: numbers that orjson does not write, names that need escapes, empty containers."""
    inner = f'{{"a\\n\\"":[],"b":{{}},"n":{number},"t":[true,null,1.5,"x"]}}'
    line = ('[{"x":1,"y":[' * (levels // 3) + inner + ']},"z"]' * (levels // 3)).encode()
    assert encode(decode(line)) == line


def test_no_depth_is_too_deep_to_be_written() -> None:
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    assert encode(deep) == b"[" * 100_000 + b"0" + b"]" * 100_000
    while deep:
        deep = deep[0]


@hypothesis_settings(50, 2000)
@given(json_values)
def test_encoding_is_the_inverse_of_decoding(value: Any) -> None:
    assert decode(encode(value)) == value
