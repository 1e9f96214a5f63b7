"""A text without its long strings: the same values, names and brackets, whatever stands in the strings."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.exact_json import outline

LETTERS = st.sampled_from(['"', "\\", "[", "}", ",", "é", "a", "\n", "0" * 30])
TEXTS = st.lists(LETTERS, max_size=8).map("".join)


def long(text: str) -> str:
    return text + "x" * 200_000


@given(st.lists(TEXTS, max_size=4), st.booleans())
def test_long_strings_are_emptied_and_nothing_else_changes(texts: list[str], is_ascii: bool) -> None:
    value = [{"name": text, "long": long(text), "after": [text, 1, {}]} for text in texts]
    bare = outline(json.dumps(value, ensure_ascii=is_ascii).encode())
    assert json.loads(bare) == [{"name": text, "long": "", "after": [text, 1, {}]} for text in texts]


@pytest.mark.parametrize(
    "text", [b"", b'"', b'{"a":"' + b"x" * 9000, b"[" * 9000, b'"x"' * 9000, b'"' + b"\\" * 9000, b'"' + b'\\"' * 9000]
)
def test_what_it_does_not_pay_for_is_left_as_it_is(text: bytes) -> None:
    assert outline(text) is text


def test_a_run_of_backslashes_is_given_up() -> None:
    text = b'"' + b"\\" * 9000 + b'"'
    assert outline(text) is text


@given(st.binary(max_size=60), st.integers(0, 2**32))
def test_what_is_not_json_raises_nothing(noise: bytes, seed: int) -> None:
    parts = [noise, b'"' + b"x" * 9000 + b'"', b"\\", b'"']
    random.Random(seed).shuffle(parts)
    outline(b"".join(parts))
