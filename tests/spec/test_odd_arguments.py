"""What the library does with values that are deep, not JSON, or not what was asked for; and errors in a pickle."""

from __future__ import annotations

import copy
import json
import pickle
from collections import OrderedDict
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman_spec import (
    Error,
    Loss,
    MethodNeeded,
    MissingRequiredField,
    Model,
    TranslationError,
    UnsupportedRevision,
    Untranslatable,
    ValidationFailed,
    adapter,
    convert,
    facts,
    translate,
    translator,
    v2025_06_18,
    v2025_11_25,
    v2026_07_28,
    validate,
    violations,
)
from dragoman_spec._types import Opt
from tests.support.effort import effort
from tests.support.nesting import deep


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


# --- what Python has and JSON has not --------------------------------------------------------------------------------


class Text(str):
    """A string of a class of its own, as members of enumerations are."""


class Share(float):
    """A number of a class of its own."""


NOT_JSON = [b"x", {1}, frozenset(), object(), 1j, {1: 2}, [{"a": b"x"}]]


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
def test_arguments_that_are_not_json_are_refused(value: Any) -> None:
    with pytest.raises(ValidationError, match=r"arguments\.a.*\n +Input should be JSON"):
        v2025_11_25.CallToolRequestParams(name="x", arguments={"a": value})


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
def test_object_below_that_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError, match=r"params\.arguments\.a.*\n +Input should be JSON"):
        v2025_11_25.CallToolRequest(id=1, params={"name": "x", "arguments": {"a": value}})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
def test_unknown_field_that_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError, match=r"vendor.*\n +Input should be JSON"):
        v2025_11_25.TextContent(text="a", vendor=value)


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
def test_frame_with_what_is_not_json_is_not_valid(value: Any) -> None:
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {"a": value}}}
    with pytest.raises(ValidationFailed, match=r"/params/arguments/a.*expected JSON, found a Python value"):
        validate(frame, "2025-11-25")


@pytest.mark.parametrize("value", [float("nan"), Share("inf"), [(Share("nan"),)]], ids=repr)
def test_number_that_json_lacks_is_refused_of_any_class(value: Any) -> None:
    with pytest.raises(ValidationError, match=r"arguments\.a.*\n +Input should be a finite number"):
        v2025_11_25.CallToolRequestParams(name="x", arguments={"a": value})


def test_number_that_json_lacks_is_refused_beside_what_is_not_json() -> None:
    with pytest.raises(ValidationError, match="finite"):
        v2025_11_25.ListRootsResult(roots=iter(()), vendor=float("nan"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [(1, "a"), OrderedDict(a=1), {Text("b"): Text("c")}, Share(0.5), {"a": (1,)}, [None, True, 1.5, "a"], ()],
    ids=repr,
)
def test_what_json_can_say_is_taken(value: Any) -> None:
    params = v2025_11_25.CallToolRequestParams(name="x", arguments={"a": value})
    assert json.loads(params.model_dump_json())["arguments"]["a"] == json.loads(json.dumps(value))


@pytest.mark.parametrize("make", [iter, tuple, set, lambda items: dict.fromkeys(items).keys()])
def test_list_of_a_type_may_come_as_any_collection(make: Any) -> None:
    assert v2025_11_25.Annotations(audience=make(["user"])).audience == ["user"]


def held() -> dict[str, Any]:
    value: dict[str, Any] = {"b": 1}
    value["a"] = value
    return value


def test_frame_that_holds_itself_is_a_typed_error_of_the_translation() -> None:
    frame = {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "structuredContent": held()}}
    with pytest.raises(TranslationError, match="expected JSON, which has an end") as caught:
        translate(frame, source="2025-06-18", target="2025-03-26", method="tools/call")
    assert (caught.value.pointer, caught.value.method) == ("/result/structuredContent/a", "tools/call")


def test_frame_that_is_not_json_is_a_typed_error_of_the_translation() -> None:
    frame = {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "structuredContent": {"a/b": {1}}}}
    with pytest.raises(TranslationError, match="found a Python value that is not JSON") as caught:
        translate(frame, source="2025-06-18", target="2025-03-26", method="tools/call")
    assert caught.value.pointer == "/result/structuredContent/a~1b"


def test_model_that_holds_itself_is_a_typed_error_of_the_conversion() -> None:
    model = v2025_11_25.CallToolResult(content=[])
    model.structured_content = held()
    with pytest.raises(TranslationError, match="expected JSON, which has an end"):
        convert(model, to="2025-03-26")


@pytest.mark.parametrize("value", [held(), {1}, [deep(3_000, "list"), held()]], ids=["itself", "set", "deep"])
def test_loss_of_what_is_not_json_has_no_size(value: Any) -> None:
    loss = Loss("/a", "dropped", value)
    assert (loss.bytes, repr(loss), loss == Loss("/a", "dropped", value)) == (
        0,
        "Loss(pointer='/a', kind='dropped', bytes=0)",
        True,
    )


def test_kind_of_frame_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match="no kind 'nope'; there are request, notification, result, error"):
        translator("2025-11-25", "2024-11-05").touches("nope", "tools/list")  # type: ignore[arg-type]


# --- in another process ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy])
@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28"])
def test_facts_reach_another_process_whole(way: Any, revision: str) -> None:
    here = facts(revision)
    there = way(here)
    assert [getattr(there, name) for name in here.__slots__] == [getattr(here, name) for name in here.__slots__]
    with pytest.raises(TypeError):
        there.headers["name"] = None


def test_translator_reaches_another_process_as_the_one_there() -> None:
    here = translator("2025-11-25", "2024-11-05", profile="minimal", rules=())
    assert pickle.loads(pickle.dumps(here)) is here


# --- attributes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wire", "attribute"), [("inputSchema", "input_schema"), ("_meta", "meta")])
def test_name_on_the_wire_is_not_an_attribute(wire: str, attribute: str) -> None:
    tool = v2025_11_25.Tool(name="a", input_schema={"type": "object"})
    with pytest.raises(AttributeError, match=f"no attribute '{wire}': it is called '{attribute}'"):
        setattr(tool, wire, {"type": "object"})
    with pytest.raises(AttributeError, match=f"no attribute '{wire}': it is called '{attribute}'"):
        getattr(tool, wire)


def test_metadata_of_a_model_without_any_is_not_called_as_on_the_wire() -> None:
    annotations = v2025_11_25.Annotations()
    with pytest.raises(AttributeError, match="it is called 'meta'"):
        annotations._meta = {}


def test_a_model_of_a_class_of_ones_own_stays_what_it_is_where_there_are_several() -> None:
    class Shown(v2025_11_25.ImageContent):
        pass

    class Holder(Model):
        block: Opt[v2025_11_25.TextContent | v2025_11_25.ImageContent] = None

    given = Shown(data="", mime_type="image/png")
    assert Holder(block=given).block is given


def test_update_of_a_copy_may_have_names_on_the_wire() -> None:
    tool = v2025_11_25.Tool(name="a", input_schema={"type": "object"}, meta={"a": 1})
    copied = tool.model_copy(update={"inputSchema": {"type": "object", "b": 1}, "_meta": {"b": 2}, "vendor": 1})
    assert (copied.input_schema, copied.meta) == ({"type": "object", "b": 1}, {"b": 2})
    assert copied.model_dump() == {
        "name": "a",
        "inputSchema": {"type": "object", "b": 1},
        "_meta": {"b": 2},
        "vendor": 1,
    }
    assert v2025_11_25.Annotations().model_copy(update={"meta": {"a": 1}}).model_dump() == {"_meta": {"a": 1}}


def test_unknown_field_of_that_name_is_one() -> None:
    model = v2025_11_25.Annotations.model_validate({"lastModified": "2025", "last_modified": 5, "a": 1})
    assert model.last_modified == "2025"
    model.other = 6  # type: ignore[attr-defined]
    assert model.model_dump() == {"lastModified": "2025", "last_modified": 5, "a": 1, "other": 6}


def test_model_is_shown_however_deep_it_is() -> None:
    model = v2025_11_25.CallToolResult(content=[], structured_content=deep(200_000, "object"))
    assert repr(model) == "CallToolResult(content=[], structured_content=...)"
    assert str(model) == "content=[] structured_content=..."


def reads_unknown_fields_called_as_attributes() -> bool:
    """Whether pydantic does, from JSON text; before 2.14.2 it loses them."""

    class Named(BaseModel):
        model_config = ConfigDict(extra="allow")
        some_name: int | None = Field(None, alias="someName")

    return Named.model_validate_json('{"some_name": 1}').model_extra == {"some_name": 1}


@pytest.mark.parametrize(
    "value",
    [
        {"content": [], "structuredContent": None, "structured_content": 5},
        {"content": [], "structured_content": None},
        {"content": [], "structuredContent": None, "structured_content": None},
        {"content": [], "structured_content": 5, "structuredContent": 6},
        {"content": [], "structured_content": 5},
        {"content": [], "structuredContent": None},
        {"content": []},
    ],
    ids=str,
)
def test_null_and_an_unknown_field_called_as_the_attribute_stay_apart(value: dict[str, Any]) -> None:
    value = {"resultType": "complete", **value}
    model = v2026_07_28.CallToolResult.model_validate(value)
    assert model.model_dump() == value
    assert json.loads(model.model_dump_json()) == value
    if reads_unknown_fields_called_as_attributes():
        assert v2026_07_28.CallToolResult.model_validate_json(json.dumps(value)).model_dump() == value
    assert model.model_copy(deep=True).model_dump() == value
    assert all(type(key) is str for key in model.model_dump())


# --- whole frames ----------------------------------------------------------------------------------------------------


def test_response_to_a_method_of_nobody_is_converted_as_such() -> None:
    response = v2025_11_25.JSONRPCResultResponse(id=1, result={"a": 1})
    converted = convert(response, to="2025-06-18", method="vendor/method")
    assert (type(converted), converted.model_dump()) == (
        v2025_06_18.JSONRPCResponse,
        {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}},
    )


@pytest.mark.parametrize("kind", ["list", "object"])
def test_a_null_is_taken_for_its_absence_beside_what_is_very_deep(kind: str) -> None:
    inner = deep(5_000, kind)
    params = {"name": "t", "arguments": {"x": inner}, "task": {"ttl": None}, "_meta": None}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    validate(frame, "2025-11-25", allow_null=True)
    assert list(params) == ["name", "arguments", "task", "_meta"]
    assert params["arguments"]["x"] is inner
    assert params["task"] == {"ttl": None}
    with pytest.raises(ValidationFailed, match="/params/name"):
        validate({**frame, "params": {**params, "name": 1}}, "2025-11-25", allow_null=True)


def test_nulls_in_several_items_are_taken_for_their_absence() -> None:
    tools = [{"name": str(number), "inputSchema": {"type": "object"}, "title": None} for number in range(3)]
    result = {"tools": tuple(tools), "nextCursor": None}
    validate({"jsonrpc": "2.0", "id": 1, "result": result}, "2025-11-25", "tools/list", allow_null=True)
    assert tools[2]["title"] is None


def test_a_method_that_is_very_deep_or_long_is_none() -> None:
    for method in (deep(2_000, "list"), "tools/call" * 100_000):
        (problem, *_) = violations({"jsonrpc": "2.0", "id": 1, "method": method}, "2025-11-25")
        assert problem.pointer == "/method"
