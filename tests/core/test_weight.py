"""How much a text unfolds into, told before it is decoded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.exact_json import MOST_CONTAINERS, MOST_VALUES, count_members, decode, is_heavier, skim

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a[{,"\\]}:\n\u00e9'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='b[,"\\'), inner),
    max_leaves=30,
)


def count(value: Any) -> tuple[int, int]:
    """Give how many values there are, and how many of them are arrays and objects."""
    if not isinstance(value, list | dict):
        return 1, 0
    inner = [count(child) for child in (value.values() if isinstance(value, dict) else value)]
    return 1 + sum(one for one, _ in inner), 1 + sum(two for _, two in inner)


@given(values)
def test_no_text_is_lighter_than_it_is(value: Any) -> None:
    text = json.dumps(value).encode()
    all_of_them, containers = count(value)
    assert is_heavier(text, all_of_them - 1, containers)
    assert not containers or is_heavier(text, 10**6, containers - 1)


@given(values)
def test_what_strings_hold_weighs_nothing(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False).encode()
    all_of_them, containers = count(value)
    assert not is_heavier(text, all_of_them + containers + 1, containers)


@pytest.mark.parametrize(
    ("text", "heavier"),
    [
        (b'"' + b"[]," * 100 + b'"', False),
        (b'"' + b'\\"[' * 100 + b'"', False),
        (b'"' + b"\\\\" * 99 + b'",' + b"[]," * 100, True),
        (b"[" * 100, True),
        (b'{"a":' * 100, True),
        (b"[" + b"0," * 100, True),
        (b"[" + b'"",' * 100, True),
        (b'{"' + b'[","' * 100, True),
    ],
)
def test_only_what_stands_outside_of_strings_counts(text: bytes, heavier: bool) -> None:
    assert is_heavier(text, 20, 10) == heavier


@pytest.mark.parametrize(("text", "heavier"), [(b'["' + b"x" * 5000 + b'"]', False), (b"[" * 5000, True)])
def test_a_long_text_with_few_signs_is_told_apart_quickly(text: bytes, heavier: bool) -> None:
    assert is_heavier(text, 2000, 1000) == heavier


@pytest.mark.parametrize("read", [decode, skim])
@pytest.mark.parametrize("text", [b"[" + b"[]," * MOST_CONTAINERS + b"[]]", b"[" + b"0," * MOST_VALUES + b"0]"])
def test_a_line_that_would_unfold_into_too_much_is_not_decoded(read: Any, text: bytes) -> None:
    with pytest.raises(ValueError, match="more than 4000000 values, or 1000000 arrays and objects"):
        read(text)


def test_a_long_line_of_few_values_is_decoded() -> None:
    assert len(decode(b'["' + b"[]," * 1_000_000 + b'"]')[0]) == 3_000_000


def count_named(value: Any) -> int:
    """Give how many members all objects have together."""
    if isinstance(value, dict):
        return len(value) + sum(map(count_named, value.values()))
    return sum(map(count_named, value)) if isinstance(value, list) else 0


@given(values, st.sampled_from([1, 2, 3, 7, 10**6]))
def test_members_are_counted_wherever_a_text_is_split(value: Any, piece: int) -> None:
    text = json.dumps(value, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.core.exact_json._PIECE_BYTES", piece)
        assert count_members(text) == count_named(value)


def test_a_name_that_stands_twice_counts_twice() -> None:
    assert count_members(b'{"a:b":1,"a:b":{"\\":":2}}') == 3
