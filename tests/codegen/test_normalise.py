"""Small schemas in, their normal form out; what has no rule is named with its pointer."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.errors import UnknownSchemaForm
from codegen.read.normalise import Normalised, normalise

TEXT = {"type": "object", "properties": {"type": {"const": "text", "type": "string"}}, "required": ["type"]}
IMAGE = {"type": "object", "properties": {"type": {"const": "image", "type": "string"}}, "required": ["type"]}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}
EITHER = {"anyOf": [{"$ref": "#/$defs/Text"}, {"$ref": "#/$defs/Image"}]}
TAGGED = {**EITHER, "discriminator": {"propertyName": "type"}}


def _normal(**definitions: Any) -> Normalised:
    return normalise("2099-01-01", {"$defs": definitions})


def _one(node: Any) -> Any:
    return _normal(X=node).definitions["X"]


@pytest.mark.parametrize("node", [True, {}])
def test_anything_is_the_empty_schema(node: Any) -> None:
    assert _one(node) == {}


@pytest.mark.parametrize(
    "extra", [{"additionalProperties": True}, {"additionalProperties": {}}, {"properties": {}}, {}]
)
def test_open_object_says_nothing_about_it(extra: Any) -> None:
    assert _one({"type": "object", **extra}) == {"type": "object"}


def _json_value(*scalars: str) -> Normalised:
    arms = [{"$ref": "#/$defs/Dict"}, {"type": "array", "items": {"$ref": "#/$defs/Value"}}, {"type": list(scalars)}]
    return _normal(Value={"anyOf": arms}, Dict={"type": "object", "additionalProperties": {"$ref": "#/$defs/Value"}})


def test_long_way_to_say_anything_is_cut_short() -> None:
    assert _json_value("string", "number", "boolean", "null").definitions["Value"] == {}


@pytest.mark.parametrize("scalars", [("string", "number", "boolean"), ("string", "integer", "boolean", "null")])
def test_what_leaves_something_out_is_not_anything(scalars: tuple[str, ...]) -> None:
    assert "anyOf" in _json_value(*scalars).definitions["Value"]


def test_prose_and_formats_are_dropped() -> None:
    assert _one({"type": "string", "format": "uri", "title": "T", "description": "D", "default": ""}) == {
        "type": "string"
    }


def test_bounds_are_kept() -> None:
    node = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "maxItems": 3}
    assert _one(node) == node


@pytest.mark.parametrize(
    "arms",
    [
        [{"type": "string"}, {"type": "integer"}],
        [{"enum": ["a", "b"]}, {"const": "c"}],
        [{"const": 1}, {"const": 2}, {"const": "1"}],
        [TEXT, IMAGE],
        [{"type": "string"}, TEXT, {"type": "array"}],
    ],
)
def test_alternatives_of_which_none_shares_values_are_a_union(arms: Any) -> None:
    assert _one({"oneOf": arms}) == _one({"anyOf": arms})


def test_definitions_that_meet_again_are_no_circle() -> None:
    union = {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}
    again = {"$ref": "#/$defs/C"}
    assert "X" in _normal(X=union, A=again, B=again, C={"type": "string"}).definitions


def test_arms_with_more_than_their_constants_are_told_apart_by_those() -> None:
    one, two = (
        {**arm, "properties": {**arm["properties"], "a": {}}, "required": ["a", "type"]} for arm in (TEXT, IMAGE)
    )
    assert "anyOf" in _one({"oneOf": [one, two]})


def test_keywords_that_say_nothing_about_a_type_are_left_out() -> None:
    assert _one({"type": "string", "minimum": 3, "items": {}, "required": ["a"]}) == {"type": "string"}


def test_constants_of_several_types_are_a_union_of_single_ones() -> None:
    strings = {"enum": ["a", "b"], "type": "string"}
    one, half = {"const": 1, "type": "integer"}, {"const": 0.5, "type": "number"}
    arms = [strings, one, half, {"const": True, "type": "boolean"}, {"type": "null"}]
    assert _one({"enum": ["a", 1, 0.5, True, None, "b"]}) == {"anyOf": arms}


def test_reference_into_a_definition_is_read_in_its_place() -> None:
    schema = _normal(Call={"type": "object", "properties": {"a/b": NAMED}}, X={"$ref": "#/$defs/Call/properties/a~1b"})
    assert schema.definitions["X"] == NAMED | {"required": []}


def test_required_key_without_a_property_is_one_of_any_value() -> None:
    assert _one({"type": "object", "required": ["a"]}) == {"type": "object", "properties": {"a": {}}, "required": ["a"]}


def test_all_of_takes_a_constant_for_its_type() -> None:
    wide = {"type": "object", "properties": {"code": {"type": "string"}}}
    narrow = {"type": "object", "properties": {"code": {"const": "x"}}}
    assert _one({"allOf": [wide, narrow]}) == _one({"allOf": [narrow, wide]}) == _one(narrow)


def test_list_of_types_becomes_a_union() -> None:
    assert _one({"type": ["string", "integer"]}) == {"anyOf": [{"type": "string"}, {"type": "integer"}]}


def test_nested_unions_become_one() -> None:
    node = {"anyOf": [{"type": ["string", "null"]}, {"oneOf": [{"type": "boolean"}, {"type": "string"}]}]}
    assert _one(node) == {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "boolean"}]}


def test_object_in_an_object_gets_a_name() -> None:
    schema = _normal(Call={"type": "object", "properties": {"params": NAMED}})
    assert schema.definitions["Call"]["properties"] == {"params": {"$ref": "#/$defs/CallParams"}}


def test_name_remembers_where_it_came_from() -> None:
    schema = _normal(Call={"type": "object", "properties": {"params": NAMED}})
    assert schema.origins == {"Call": "/$defs/Call", "CallParams": "/$defs/Call/properties/params"}


def test_helpers_are_the_names_that_are_not_upstreams() -> None:
    assert _normal(Call={"type": "object", "properties": {"params": NAMED}}).helpers == {"CallParams"}


def test_objects_at_any_depth_get_names() -> None:
    node = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"b": NAMED}}}},
    }
    assert sorted(_normal(X=node).definitions) == ["X", "XAItem", "XAItemB"]


def test_member_of_a_base_interface_is_named_once() -> None:
    params = {"type": "object", "properties": {"cursor": {"type": "string"}}}
    base = {"type": "object", "properties": {"method": {"type": "string"}, "params": params}}
    ping = {"type": "object", "properties": {"method": {"const": "ping", "type": "string"}, "params": params}}
    assert sorted(_normal(Paged=base, PingRequest=ping).definitions) == ["Paged", "PagedParams", "PingRequest"]


def test_equal_members_of_siblings_are_named_each() -> None:
    params = {"type": "object", "properties": {"uri": {"type": "string"}}}

    def request(method: str) -> Any:
        return {"type": "object", "properties": {"method": {"const": method}, "params": params}}

    names = _normal(Read=request("read"), Subscribe=request("subscribe")).definitions
    assert sorted(names) == ["Read", "ReadParams", "Subscribe", "SubscribeParams"]


def test_object_among_alternatives_gets_a_name() -> None:
    schema = _normal(X={"anyOf": [{"type": "string"}, NAMED]})
    assert schema.definitions["X"] == {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/XOption1"}]}


def test_error_of_an_error_is_its_object() -> None:
    schema = _normal(TheError={"type": "object", "properties": {"error": NAMED}})
    assert sorted(schema.definitions) == ["TheError", "TheErrorObject"]


def test_two_objects_for_one_name_are_refused() -> None:
    call = {"type": "object", "properties": {"params": NAMED}}
    with pytest.raises(UnknownSchemaForm, match="/\\$defs/Call/properties/params: no rule for another object"):
        _normal(Call=call, CallParams={"type": "string"})


def test_union_with_constant_tags_says_which() -> None:
    assert _normal(Text=TEXT, Image=IMAGE, Either=EITHER).definitions["Either"] == TAGGED


def test_union_of_equal_constants_is_not_tagged() -> None:
    union = {"anyOf": [{"$ref": "#/$defs/Text"}, {"$ref": "#/$defs/Other"}]}
    assert _normal(Text=TEXT, Other=TEXT, Either=union).definitions["Either"] == union


def test_union_with_an_optional_tag_is_not_tagged() -> None:
    image = {key: value for key, value in IMAGE.items() if key != "required"}
    assert _normal(Text=TEXT, Image=image, Either=EITHER).definitions["Either"] == EITHER


def test_union_with_constants_that_are_no_strings_is_not_tagged() -> None:
    """One of the drafts has arms told apart by true and false, which pydantic takes for no tag."""
    arms = {
        name: {"type": "object", "properties": {"type": {"const": value}}, "required": ["type"]}
        for name, value in (("Text", True), ("Image", False))
    }
    assert _normal(**arms, Either=EITHER).definitions["Either"] == EITHER


def test_tagged_part_of_a_mixed_union_is_a_union_of_its_own() -> None:
    mixed = {"anyOf": [*EITHER["anyOf"], {"type": "array", "items": {}}]}
    assert _normal(Text=TEXT, Image=IMAGE, Mixed=mixed).definitions["Mixed"] == {
        "anyOf": [TAGGED, {"type": "array", "items": {}}]
    }


def test_union_that_has_a_name_goes_by_it() -> None:
    mixed = {"anyOf": [*EITHER["anyOf"], {"type": "string"}]}
    schema = _normal(Text=TEXT, Image=IMAGE, Either=EITHER, Mixed=mixed)
    assert schema.definitions["Mixed"] == {"anyOf": [{"$ref": "#/$defs/Either"}, {"type": "string"}]}


def test_tagged_items_get_a_name() -> None:
    result = {"type": "object", "properties": {"content": {"type": "array", "items": EITHER}}}
    schema = _normal(Text=TEXT, Image=IMAGE, Result=result)
    assert schema.definitions["ResultContentItem"] == TAGGED


def test_tagged_items_for_a_taken_name_are_refused() -> None:
    result = {"type": "object", "properties": {"content": {"type": "array", "items": EITHER}}}
    with pytest.raises(UnknownSchemaForm, match="another union whose name would be ResultContentItem"):
        _normal(Text=TEXT, Image=IMAGE, Result=result, ResultContentItem={"type": "string"})


def test_all_of_becomes_one_object() -> None:
    other = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    schema = _normal(Named=NAMED, Both={"allOf": [{"$ref": "#/$defs/Named"}, other]})
    assert schema.definitions["Both"] == {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["id"],
    }


def test_all_of_takes_the_narrower_member() -> None:
    code = {"type": "object", "properties": {"code": {"const": 1, "type": "integer"}}}
    wide = {"type": "object", "properties": {"code": {"type": "integer"}}}
    assert _one({"allOf": [code, wide]}) == _one({"allOf": [wide, code]}) == _one(code)


def test_references_to_objects_of_which_neither_has_what_the_other_has_are_refused() -> None:
    text, number = ({"type": "object", "properties": {"x": {"type": kind}}} for kind in ("string", "number"))
    parts = [{"type": "object", "properties": {"p": {"$ref": f"#/$defs/{name}"}}} for name in ("Text", "Number")]
    with pytest.raises(UnknownSchemaForm) as caught:
        _normal(Text=text, Number=number, Both={"allOf": parts})
    assert caught.value.found.startswith("an allOf that asks for")


def test_null_is_admitted_by_anything_and_by_unions_with_null() -> None:
    schema = _normal(Maybe={"type": ["string", "null"]})
    nodes = [{}, {"$ref": "#/$defs/Maybe"}, {"type": "string"}, {"const": "x"}]
    assert [schema.admits_null(node) for node in nodes] == [True, True, False, False]


@pytest.mark.parametrize(
    ("node", "found"),
    [
        ({"type": "string", "pattern": "(?=a)"}, "the keyword 'pattern'"),
        ({"not": {}}, "the keyword 'not'"),
        (False, "False in place of a schema"),
        ("text", "'text' in place of a schema"),
        ({"type": "object", "properties": []}, "a malformed schema"),
        ({"$ref": "#/$defs/Absent"}, "a reference to '#/$defs/Absent', which is no definition"),
        ({"$ref": "https://example.com/x"}, "a reference to 'https://example.com/x', which is no definition"),
        ({"$ref": "#/$defs/X/properties/a"}, "a reference to '#/$defs/X/properties/a', which leads nowhere"),
        ({"anyOf": [{"$ref": "#/$defs/X/anyOf/0"}]}, "a reference to '#/$defs/X/anyOf/0', which it is a part of"),
        ({"anyOf": [{"$ref": "#/$defs/X"}, {"type": "null"}]}, "a definition that refers to itself"),
        ({"anyOf": []}, "an anyOf of nothing"),
        ({"maximum": 3}, "['maximum'] without a type"),
        ({"enum": [{"a": 1}]}, "constants like"),
        ({"enum": [], "type": "string"}, "constants like"),
        ({"type": "string", "enum": [1]}, "constants like"),
        ({"oneOf": [{"type": "string"}, {"enum": ["a"]}]}, "a oneOf whose arms 0 and 1 may share values"),
        ({"oneOf": [{}, {"type": "string"}]}, "a oneOf whose arms 0 and 1 may share values"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "a oneOf whose arms 0 and 1 may share values"),
        ({"oneOf": [NAMED, TEXT]}, "a oneOf whose arms 0 and 1 may share values"),
        ({"oneOf": [{"type": ["null", "string"]}, {"enum": ["a", None]}]}, "a oneOf whose arms 0 and 1"),
        ({"$ref": "#/$defs/X", "type": "object"}, "$ref beside ['type']"),
        ({"anyOf": [{}], "type": "object"}, "anyOf beside ['type']"),
        ({"type": "tuple"}, "type 'tuple'"),
        ({**NAMED, "additionalProperties": {"type": "string"}}, "an object with properties whose other keys are typed"),
        ({"allOf": [{"type": "string"}, NAMED]}, "an allOf of something other than open objects"),
        ({"allOf": [NAMED, {"type": "object", "properties": {"name": {"type": "null"}}}]}, "an allOf that asks for"),
        (
            {"allOf": [{"type": "object", "additionalProperties": False}, {"type": "object", "required": ["b"]}]},
            "an allOf that both asks for b and forbids it",
        ),
    ],
)
def test_form_without_a_rule_is_refused(node: Any, found: str) -> None:
    with pytest.raises(UnknownSchemaForm) as caught:
        _one(node)
    assert caught.value.found.startswith(found)
    assert caught.value.pointer.startswith("/$defs/X")
