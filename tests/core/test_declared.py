"""What a client said that it can do."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.declared import declares


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
