"""What constructors and `validate` do with values that are deep, or that are not JSON at all."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from dragoman_spec import ValidationFailed, v2025_11_25, validate
from tests.support.effort import effort
from tests.support.hostile import deep


def test_deep_arguments_of_a_constructor_take_time_by_their_size() -> None:
    def take(levels: int, times: int) -> float:
        arguments = {"a": deep(levels, "object")}
        return effort(lambda: [v2025_11_25.CallToolRequestParams(name="x", arguments=arguments) for _ in range(times)])

    assert take(64_000, 1) < 10 * take(1_000, 64)


def test_arguments_that_hold_themselves_are_refused() -> None:
    arguments: dict[str, Any] = {"a": []}
    arguments["a"].append(arguments)
    with pytest.raises(ValidationError, match=r"arguments\.a\.0"):
        v2025_11_25.CallToolRequestParams(name="x", arguments=arguments)


def test_frame_that_holds_itself_is_not_valid() -> None:
    frame: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}
    frame["params"]["arguments"] = frame
    with pytest.raises(ValidationFailed, match="/params/arguments: expected JSON, which has an end"):
        validate(frame, "2025-11-25")
