"""What the library does with values that are deep, not JSON, or not what was asked for; and errors in a pickle."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pydantic import ValidationError

from dragoman_spec import (
    Error,
    MethodNeeded,
    MissingRequiredField,
    TranslationError,
    UnsupportedRevision,
    Untranslatable,
    ValidationFailed,
    adapter,
    v2025_11_25,
    validate,
)
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


@pytest.mark.parametrize("name", ["Any", "__name__", "METHODS", "tool", 5])
def test_adapter_of_what_is_not_a_definition_is_an_error_that_names_one(name: Any) -> None:
    with pytest.raises(AttributeError, match=f"2025-11-25 has no definition {name!r}"):
        adapter("2025-11-25", name)


def test_there_is_an_adapter_of_an_object_without_a_name_of_its_own() -> None:
    assert adapter("2025-11-25", "RequestParamsMeta").validate_python({"progressToken": 1}).progress_token == 1


def test_result_of_a_notification_is_not_valid() -> None:
    frame = {"jsonrpc": "2.0", "id": 1, "result": {}}
    with pytest.raises(ValidationFailed, match="a request of 2025-11-25, found the string 'notifications/progress'"):
        validate(frame, "2025-11-25", method="notifications/progress")


@pytest.mark.parametrize(
    "error",
    [
        Untranslatable("It is not there.", code=-32602, extra={"a": 1}, source="2025-11-25", target="2024-11-05"),
        TranslationError("/a", "a string", "5", method="ping"),
        MissingRequiredField("/a", "b", method="ping"),
        MethodNeeded("2025-11-25"),
        UnsupportedRevision("x", ("a", "b")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_reaches_another_process_whole(error: Error) -> None:
    there = pickle.loads(pickle.dumps(error))
    assert (type(there), str(there), vars(there)) == (type(error), str(error), vars(error))
