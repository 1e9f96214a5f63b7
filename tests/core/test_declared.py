"""What a client said that it can do."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.declared import declares, read_declared, split_declared


@pytest.mark.parametrize(
    ("capabilities", "is_there"),
    [
        ({"sampling": {"tools": {}}}, True),
        ({"sampling": {"tools": True}}, True),
        ({"sampling": {"tools": None}}, False),
        ({"sampling": {"tools": False}}, False),
        ({"sampling": {}}, False),
        ({"sampling": True}, False),
        ({}, False),
    ],
)
def test_null_and_false_are_not_declared(capabilities: dict[str, Any], is_there: bool) -> None:
    assert declares(capabilities, "sampling.tools") is is_there


@pytest.mark.parametrize(
    ("capabilities", "asked", "rest"),
    [
        ({}, {}, {}),
        ({"elicitation": {"form": {}}, "roots": {}}, {"elicitation": {"form": {}}, "roots": {}}, {}),
        ({"extensions": {"x/y": {"n": 1}}, "vendor": 5}, {}, {"extensions": {"x/y": {"n": 1}}, "vendor": 5}),
        (
            {"sampling": {"tools": {"n": 1}, "v": 2}},
            {"sampling": {"tools": {}}},
            {"sampling": {"tools": {"n": 1}, "v": 2}},
        ),
        ({"sampling": {"v": 2}}, {"sampling": {}}, {"sampling": {"v": 2}}),
        ({"sampling": {"tools": None}}, {"sampling": {}}, {"sampling": {"tools": None}}),
        ({"elicitation": {"v": 2}}, {}, {"elicitation": {"v": 2}}),  # an empty one would say that forms can be shown
        ({"sampling": 7}, {}, {"sampling": 7}),
    ],
)
def test_what_a_client_can_be_asked_is_told_apart_from_all_else(
    capabilities: dict[str, Any], asked: dict[str, Any], rest: dict[str, Any]
) -> None:
    assert split_declared(capabilities) == (asked, rest)
    assert read_declared(asked) <= read_declared(capabilities)
