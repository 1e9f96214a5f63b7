"""A member that may be absent and may be `null`: it reads as None in both cases, and is written as it came."""

from __future__ import annotations

import copy
import pickle
import sys
from types import FrameType
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from dragoman_spec import v2026_07_28 as spec

RESULT: dict[str, Any] = {"content": [{"type": "text", "text": "3"}], "resultType": "complete"}
NULL = {**RESULT, "structuredContent": None}
BOTH = pytest.mark.parametrize("value", [RESULT, NULL, {**RESULT, "structuredContent": {"a": None}}])


class Mine(spec.CallToolResult):
    """A model with a member of its own."""

    rating: int = 5


class Holder(BaseModel):
    """Somebody else's model that has one of ours in it."""

    one: spec.CallToolResult
    any_of: spec.ToolResultContent | spec.TextContent


@BOTH
def test_what_came_is_written(value: dict[str, Any]) -> None:
    made = spec.CallToolResult.model_validate(value)
    assert (made.model_dump(), made.structured_content) == (value, value.get("structuredContent"))
    assert spec.CallToolResult.model_validate_json(made.model_dump_json()).model_dump() == value


@BOTH
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_is_written_the_same(value: dict[str, Any], copied: Any) -> None:
    made = spec.CallToolResult.model_validate(value)
    assert (copied(made).model_dump(), copied(made)) == (value, made)


@BOTH
def test_options_change_nothing_of_it(value: dict[str, Any]) -> None:
    made = spec.CallToolResult.model_validate(value)
    assert made.model_dump(mode="json", exclude={"result_type"}) == {
        k: v for k, v in value.items() if k != "resultType"
    }


@BOTH
def test_it_is_written_inside_of_other_models(value: dict[str, Any]) -> None:
    block = {
        "type": "tool_result",
        "toolUseId": "1",
        "content": [],
        **{k: v for k, v in value.items() if k == "structuredContent"},
    }
    made = Holder.model_validate({"one": value, "any_of": block})
    assert made.model_dump() == {"one": value, "any_of": block}
    assert TypeAdapter(list[Holder]).dump_python([made], mode="json") == [{"one": value, "any_of": block}]


@BOTH
def test_it_is_kept_by_a_derived_model(value: dict[str, Any]) -> None:
    made = Mine.model_validate(value)
    assert (made.model_dump(), made.structured_content) == ({**value, "rating": 5}, value.get("structuredContent"))


def test_it_reads_as_none_wherever_one_looks() -> None:
    made = spec.CallToolResult.model_validate(NULL)
    assert (made.structured_content, dict(made)["structured_content"], repr(made).count("None")) == (None, None, 1)
    assert not hasattr(spec.CallToolResult, "structured_content")


def test_none_that_is_assigned_is_null() -> None:
    made = spec.CallToolResult.model_validate(RESULT)
    made.structured_content = None
    assert (made.model_dump(), made.model_copy(update={"structured_content": 5}).structured_content) == (NULL, 5)
    assert (
        spec.CallToolResult.model_validate(RESULT).model_copy(update={"structured_content": None}).model_dump() == NULL
    )


def test_dumping_calls_no_function_of_python_but_the_method() -> None:
    made, called = spec.CallToolResult.model_validate(RESULT), list[str]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    made.model_dump_json()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        made.model_dump_json()
        made.model_dump()
    finally:
        sys.setprofile(before)
    assert called == ["model_dump_json", "model_dump"]
