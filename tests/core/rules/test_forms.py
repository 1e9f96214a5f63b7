"""What somebody has filled in, and the form of the question that it answers."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.rules.forms import find_misfit
from tests.support.effort import effort

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 4},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "share": {"type": "number"},
        "sure": {"type": "boolean"},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"anyOf": [{"const": "a"}, {"const": "b"}]}},
        "any": {"type": "string", "format": "email", "minLength": "none"},
        "odd": 5,
    },
    "required": ["name", 7],
}
ADA = {"name": "Ada"}


@pytest.mark.parametrize(
    ("content", "misfit"),
    [
        (ADA, None),
        ({}, "name"),
        ({"name": 5}, "name"),
        ({"name": "A"}, "name"),
        ({"name": "Adele"}, "name"),
        (ADA | {"age": 36}, None),
        (ADA | {"age": 36.0}, None),
        (ADA | {"age": 36.5}, "age"),
        (ADA | {"age": True}, "age"),
        (ADA | {"age": -1}, "age"),
        (ADA | {"age": 151}, "age"),
        (ADA | {"share": 0.5, "sure": False}, None),
        (ADA | {"sure": "yes"}, "sure"),
        (ADA | {"color": "red", "size": "l"}, None),
        (ADA | {"color": "green"}, "color"),
        (ADA | {"size": "Large"}, "size"),
        (ADA | {"tags": ["a", "b"]}, None),
        (ADA | {"tags": []}, "tags"),
        (ADA | {"tags": ["a", "c"]}, "tags"),
        (ADA | {"tags": "a"}, "tags"),
        (ADA | {"any": "not an address", "odd": [], "more": 1}, None),
    ],
)
def test_what_is_filled_in_is_held_against_the_form(content: dict[str, Any], misfit: str | None) -> None:
    assert find_misfit(content, FORM) == misfit


@pytest.mark.parametrize(
    "form", [None, 5, {}, {"properties": 5, "required": 5}, {"properties": {"name": {"oneOf": [5]}}}]
)
def test_what_is_no_form_asks_for_nothing(form: Any) -> None:
    assert find_misfit(ADA, form) is None


@pytest.mark.parametrize(
    "choices",
    [
        [f"choice {number}" for number in range(15_000)],
        [number * (2**61 - 1) for number in range(15_000)],  # which all have one hash
        [number + 0.5 for number in range(15_000)],
    ],
    ids=["texts", "integers", "numbers"],
)
def test_very_many_choices_take_no_longer_than_they_are_many(choices: list[Any]) -> None:
    for form in ({"enum": choices}, {"anyOf": [{"const": one} for one in choices]}):
        content, asked = {"many": choices[::-1]}, {"properties": {"many": {"type": "array", "items": form}}}
        assert effort(lambda content=content, asked=asked: find_misfit(content, asked)) < 10  # type: ignore[misc]


@pytest.mark.parametrize(
    ("choices", "chosen", "fits"),
    [
        ([1], 1.0, True),
        ([1.0], 1, True),
        ([1], True, False),
        ([None], None, True),
        (["1"], 1, False),
        ([10**400], 10**400, True),
        (["a", {"b": 1}], "c", True),
        (["a"], {"b": 1}, False),
    ],
)
def test_choices_are_compared_as_json_compares_them(choices: list[Any], chosen: Any, fits: bool) -> None:
    assert (find_misfit({"one": chosen}, {"properties": {"one": {"enum": choices}}}) is None) == fits
