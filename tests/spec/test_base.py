"""What a model feels like in the hand: absent is None, constants fill themselves in, and what came is what goes."""

from __future__ import annotations

import subprocess
import sys
from inspect import cleandoc
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from codegen.read.overlay import overlay_path, read_until
from codegen.read.words import words_of
from dragoman_spec import (
    REVISIONS,
    Model,
    convert,
    load,
    v2024_11_05,
    v2025_06_18,
    v2025_11_25,
    v2026_07_28,
)

PLAIN_TOOL = {"name": "add", "inputSchema": {"type": "object"}}
TASK = {"taskId": "1", "createdAt": "", "lastUpdatedAt": "", "status": "working", "ttl": None}


def _refused(model: type[BaseModel], value: Any) -> tuple[tuple[int | str, ...], str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value)
    error = caught.value.errors()[0]
    return error["loc"], error["type"]


def test_absent_member_reads_as_none() -> None:
    assert v2025_06_18.Tool.model_validate(PLAIN_TOOL).title is None


def test_absent_member_is_not_written() -> None:
    assert v2025_06_18.Tool.model_validate(PLAIN_TOOL).model_dump() == PLAIN_TOOL


def test_none_in_the_constructor_means_absent() -> None:
    tool = v2025_06_18.Tool(name="add", input_schema={"type": "object"}, title=None)
    assert tool.model_dump() == PLAIN_TOOL


def test_member_set_to_none_later_is_not_written() -> None:
    tool = v2025_06_18.Tool.model_validate({**PLAIN_TOOL, "title": "Add"})
    tool.title = None
    assert tool.model_dump() == PLAIN_TOOL


def test_null_on_the_wire_is_refused() -> None:
    assert _refused(v2025_06_18.Tool, {**PLAIN_TOOL, "title": None}) == (("title",), "string_type")


def test_null_in_json_is_refused() -> None:
    with pytest.raises(ValidationError):
        v2025_06_18.Tool.model_validate_json('{"name": "add", "inputSchema": {"type": "object"}, "title": null}')


def test_null_inside_a_constructor_argument_is_refused() -> None:
    with pytest.raises(ValidationError):
        v2025_06_18.ListToolsResult(tools=[{**PLAIN_TOOL, "title": None}])


def test_required_null_is_kept() -> None:
    assert v2025_11_25.Task.model_validate(TASK).model_dump() == TASK


def test_required_null_is_asked_for() -> None:
    assert _refused(v2025_11_25.Task, {key: TASK[key] for key in TASK if key != "ttl"}) == (("ttl",), "missing")


def test_required_null_is_constructed_from_none() -> None:
    task = v2025_11_25.Task(task_id="1", created_at="", last_updated_at="", status="working", ttl=None)
    assert task.model_dump() == TASK


@pytest.mark.parametrize("error", [{"code": 1, "message": ""}, {"code": 1, "message": "", "data": None}])
def test_null_and_absence_stay_apart_where_both_are_valid(error: dict[str, Any]) -> None:
    assert v2025_11_25.Error.model_validate(error).model_dump() == error


def test_null_and_absence_stay_apart_in_json() -> None:
    assert v2025_11_25.Error.model_validate_json('{"code":1,"message":"","data":null}').model_dump_json() == (
        '{"code":1,"message":"","data":null}'
    )


def test_constant_is_filled_in_by_the_constructor() -> None:
    assert v2024_11_05.TextContent(text="hi").model_dump() == {"type": "text", "text": "hi"}


def test_constant_is_asked_for_on_the_wire() -> None:
    assert _refused(v2024_11_05.TextContent, {"text": "hi"}) == (("type",), "missing")


def test_wrong_constant_is_refused_in_the_constructor() -> None:
    with pytest.raises(ValidationError):
        v2024_11_05.TextContent(text="hi", type="image")


def test_optional_constant_is_not_filled_in() -> None:
    schema = v2025_11_25.ElicitRequestFormParamsRequestedSchema(properties={})
    params = v2025_11_25.ElicitRequestFormParams(message="?", requested_schema=schema)
    assert "mode" not in params.model_dump()


def test_numeric_constant_keeps_its_kind() -> None:
    error = v2026_07_28.ParseError.model_validate({"code": -32700.0, "message": ""})
    assert repr(error.model_dump()["code"]) == "-32700.0"


def test_unknown_members_are_kept() -> None:
    tool = {**PLAIN_TOOL, "x-vendor": {"deep": [1, None]}, "empty": None}
    assert v2025_06_18.Tool.model_validate(tool).model_dump() == tool


def test_python_name_on_the_wire_is_an_unknown_member() -> None:
    tool = {**PLAIN_TOOL, "input_schema": 5}
    assert v2025_06_18.Tool.model_validate(tool).model_dump() == tool


def test_python_name_on_the_wire_does_not_stand_for_the_wire_name() -> None:
    assert _refused(v2025_06_18.Tool, {"name": "add", "input_schema": {"type": "object"}}) == (
        ("inputSchema",),
        "missing",
    )


def test_python_name_on_the_wire_puts_no_null_in_the_place_of_what_is_absent() -> None:
    wire = {"resultType": "complete", "content": [], "structured_content": 1}
    assert v2026_07_28.CallToolResult.model_validate(wire).model_dump() == wire


def test_constructor_takes_wire_names_too() -> None:
    assert v2025_06_18.Tool(**PLAIN_TOOL).model_dump() == PLAIN_TOOL


def test_reserved_meta_keys_have_attributes() -> None:
    meta = v2026_07_28.RequestMetaObject(
        protocol_version="2026-07-28", client_capabilities=v2026_07_28.ClientCapabilities()
    )
    assert meta.model_dump() == {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }


@pytest.mark.parametrize("request_id", [1, "1", 1.0, 10**30, ""])
def test_request_id_keeps_type_and_value(request_id: Any) -> None:
    assert repr(TypeAdapter(v2025_06_18.RequestId).validate_python(request_id)) == repr(request_id)


@pytest.mark.parametrize("request_id", [1.5, True, None, ["1"]])
def test_what_is_no_request_id_is_refused(request_id: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(v2025_06_18.RequestId).validate_python(request_id)


@pytest.mark.parametrize("progress", [1, 1.0, 0.5, 10**20])
def test_number_keeps_its_kind(progress: float) -> None:
    params = {"progressToken": 1, "progress": progress}
    assert repr(v2025_06_18.ProgressNotificationParams.model_validate(params).model_dump()["progress"]) == repr(
        progress
    )


@pytest.mark.parametrize("progress", [float("nan"), float("inf"), -float("inf")])
def test_not_a_number_is_refused(progress: float) -> None:
    with pytest.raises(ValidationError):
        v2025_06_18.ProgressNotificationParams(progress_token=1, progress=progress)
    with pytest.raises(ValidationError):
        v2025_06_18.ProgressNotificationParams.model_validate({"progressToken": 1, "progress": progress})


def test_not_a_number_is_refused_where_any_json_is_asked_for() -> None:
    with pytest.raises(ValidationError, match="finite"):
        v2025_06_18.CallToolRequestParams(name="add", arguments={"a": [1, {"b": float("nan")}]})


def test_tagged_union_tries_only_the_tagged_arm() -> None:
    place, _ = _refused(v2025_06_18.CallToolResult, {"content": [{"type": "image", "data": 5, "mimeType": ""}]})
    assert place == ("content", 0, "image", "data")


@pytest.mark.parametrize(("count", "valid"), [(100, True), (101, False)])
def test_list_has_its_limit(count: int, valid: bool) -> None:
    completion = {"values": [""] * count}
    if valid:
        assert v2026_07_28.CompleteResultCompletion.model_validate(completion).model_dump() == completion
    else:
        assert _refused(v2026_07_28.CompleteResultCompletion, completion) == (("values",), "too_long")


def test_models_of_two_revisions_share_only_the_base() -> None:
    shared = set(v2025_06_18.Tool.__mro__) & set(v2025_11_25.Tool.__mro__)
    assert {kind.__name__ for kind in shared} == {"Model", "BaseModel", "object"}


def test_docstring_tells_where_a_definition_comes_from() -> None:
    doc = v2025_11_25.Tool.__doc__ or ""
    assert [line.strip() for line in doc.splitlines() if line.strip()][:5] == [
        "A function that a server lets models call.",
        "`Tool` of MCP 2025-11-25. Since 2024-11-05; changed in 2025-03-26, 2025-06-18, 2025-11-25.",
        "Source: `schema/2025-11-25/schema.json#/$defs/Tool`,",
        "https://modelcontextprotocol.io/specification/2025-11-25/schema#tool",
        "Attributes:",
    ]


def test_docstring_leads_to_the_front_page_where_there_is_no_schema_page() -> None:
    lines = cleandoc(v2024_11_05.Tool.__doc__ or "").splitlines()
    assert "https://modelcontextprotocol.io/specification/2024-11-05" in lines


def test_fields_stand_in_the_order_of_a_reader() -> None:
    assert list(v2025_11_25.Tool.model_fields) == [
        *("name", "input_schema", "title", "icons", "description", "execution", "output_schema", "annotations", "meta"),
    ]


def test_representation_leaves_out_what_is_absent() -> None:
    assert repr(v2025_06_18.Tool.model_validate({**PLAIN_TOOL, "vendor": None})) == (
        "Tool(name='add', input_schema={'type': 'object'}, vendor=None)"
    )


def test_representation_shows_a_required_null() -> None:
    assert "ttl=None" in repr(v2025_11_25.Task.model_validate(TASK))


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_description_is_there_before_and_after_building(revision: str) -> None:
    package = load(revision)
    tool, words = package.Tool, words_of(read_until(Path(__file__).parents[2] / overlay_path(revision)))
    for _ in range(2):
        for name, field in tool.model_fields.items():
            assert field.description
            assert field.description == words.field("Tool", field.alias or name, revision)
        tool.model_rebuild(force=True)


@pytest.mark.parametrize("revision", REVISIONS)
def test_meta_is_written_by_every_model(revision: str) -> None:
    package = load(revision)
    assert package.Tool(**PLAIN_TOOL, meta={"a": 1}).model_dump() == {**PLAIN_TOOL, "_meta": {"a": 1}}


def test_meta_that_no_field_is_for_can_be_read_set_and_taken_away() -> None:
    tool = v2024_11_05.Tool.model_validate({**PLAIN_TOOL, "_meta": {"a": 1}, "meta": 2})
    assert tool.meta == {"a": 1}
    tool.meta = {"b": 1}
    assert tool.model_dump() == {**PLAIN_TOOL, "_meta": {"b": 1}, "meta": 2}
    tool.meta = None
    assert tool.model_dump() == {**PLAIN_TOOL, "meta": 2}
    assert tool.meta is None


def test_meta_can_be_a_model_where_no_field_is_for_it() -> None:
    params = v2025_06_18.CallToolRequestParams(name="add", meta=v2025_06_18.RequestParamsMeta(progress_token=5))
    assert params.model_dump() == {"name": "add", "_meta": {"progressToken": 5}}


def test_attribute_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError):
        v2024_11_05.Tool(**PLAIN_TOOL).metadata  # noqa: B018


@pytest.mark.parametrize("revision", REVISIONS)
def test_frames_take_any_model_as_params_and_result(revision: str) -> None:
    package = load(revision)
    request = package.JSONRPCRequest(id=1, method="vendor/rate", params=package.Annotations(priority=1))
    response = getattr(package, package.ENVELOPES["result"])(id=1, result=package.CallToolResult(content=[]))
    assert request.model_dump()["params"] == {"priority": 1}
    assert response.model_dump()["result"]["content"] == []


@pytest.mark.parametrize(
    ("model", "kind"),
    [(v2026_07_28.CallToolResult(content=[]), "complete"), (v2026_07_28.InputRequiredResult(), "input_required")],
)
def test_kind_of_result_is_filled_in(model: Model, kind: str) -> None:
    assert model.model_dump()["resultType"] == kind


def test_kind_of_result_can_be_another_one() -> None:
    assert v2026_07_28.Result(result_type="vendor").model_dump() == {"resultType": "vendor"}


class RankedTool(v2025_11_25.Tool):
    """A tool with a field of its own."""

    rank: int = 0


def test_subclass_in_the_place_of_a_model_keeps_its_own_fields() -> None:
    tools = v2025_11_25.ListToolsResult(tools=[RankedTool(**PLAIN_TOOL, rank=3)])
    assert tools.model_dump() == {"tools": [{**PLAIN_TOOL, "rank": 3}]}
    assert tools.model_dump_json() == '{"tools":[{"name":"add","inputSchema":{"type":"object"},"rank":3}]}'


def test_subclass_is_converted_with_its_own_fields() -> None:
    old = convert(RankedTool(**PLAIN_TOOL, rank=3), to="2024-11-05")
    assert (type(old), old.model_dump()) == (v2024_11_05.Tool, {**PLAIN_TOOL, "rank": 3})


def test_json_schema_keeps_its_order_and_is_copied() -> None:
    schema = {"required": ["a"], "$defs": {}, "type": "object", "properties": {"b": {}, "a": {}}}
    tool = v2025_06_18.Tool(name="add", input_schema=schema)
    assert list(tool.input_schema) == ["required", "$defs", "type", "properties"]
    tool.input_schema["x"] = 1
    assert "x" not in schema


@pytest.mark.parametrize(
    ("schema", "place", "kind"),
    [
        ([], (), "dict_type"),
        (None, (), "dict_type"),
        ({}, ("type",), "missing"),
        ({None: None, "type": "object"}, ("None",), "invalid_key"),
        ({1: 2, "type": "object"}, (1,), "invalid_key"),
        ({"type": "array"}, ("type",), "literal_error"),
        ({"type": ["object"]}, ("type",), "literal_error"),
        ({"type": "object", "$schema": 7}, ("$schema",), "string_type"),
        ({"type": "object", "properties": []}, ("properties",), "dict_type"),
        ({"type": "object", "properties": None}, ("properties",), "dict_type"),
        ({"type": "object", "properties": {"a": {}, "b": True}}, ("properties", "b"), "dict_type"),
        ({"type": "object", "properties": {1: {}}}, ("properties", 1, "[key]"), "string_type"),
        ({"type": "object", "required": "a"}, ("required",), "list_type"),
        ({"type": "object", "required": ["a", 1]}, ("required", 1), "string_type"),
    ],
)
def test_json_schema_that_is_not_one_is_refused(schema: Any, place: tuple[Any, ...], kind: str) -> None:
    assert _refused(v2025_11_25.Tool, {"name": "add", "inputSchema": schema}) == (("inputSchema", *place), kind)
    with pytest.raises(ValidationError):
        v2025_11_25.Tool(name="add", input_schema=schema)


@pytest.mark.parametrize("schema", [{"type": ["object", "null"], "properties": True}, {"$schema": "x", "type": 1}, {}])
def test_json_schema_is_free_where_the_protocol_leaves_it_free(schema: dict[str, Any]) -> None:
    tool = {**PLAIN_TOOL, "outputSchema": schema}
    assert v2026_07_28.Tool.model_validate(tool).model_dump() == tool


def test_validation_takes_the_options_of_pydantic() -> None:
    tool = {**PLAIN_TOOL, "vendor": 1}
    assert v2025_06_18.Tool.model_validate(tool, extra="ignore").model_dump() == PLAIN_TOOL
    with pytest.raises(ValidationError):
        v2025_06_18.Tool.model_validate(tool, extra="forbid")


def _fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_methods_import_without_pydantic() -> None:
    code = "import dragoman_spec.v2026_07_28.methods, dragoman_spec.revisions"
    assert _fresh(f"import sys; {code}; print('pydantic' in sys.modules)") == "False"


def test_models_load_when_first_asked_for() -> None:
    before = "from dragoman_spec import v2025_06_18 as v; before = 'pydantic' in sys.modules"
    assert _fresh(f"import sys; {before}; v.Tool; print(before, 'pydantic' in sys.modules)") == "False True"


def test_star_import_gives_every_model() -> None:
    assert (
        _fresh("from dragoman_spec.v2024_11_05 import *; print(Annotated.__name__, len(METHODS) > 20)")
        == "Annotated True"
    )


def test_the_json_schema_has_the_names_of_attributes_if_asked() -> None:
    found = v2025_11_25.Tool.model_json_schema(by_alias=False)
    assert {"input_schema", "output_schema"} <= found["properties"].keys()
    assert found["$defs"]["Icon"]["properties"].keys() >= {"mime_type", "src"}
