"""What a spec says about its types."""

from __future__ import annotations

import pytest

from codegen.read.model import Object, Ref, Scalar, Type
from tests.support.small_specs import INTEGER, STRING, any_of, array_of, const, object_of, ref, spec

SPEC = spec(
    {
        "Box": object_of("lid", lid=ref("Lid"), things=array_of(ref("Thing"))),
        "Lid": {"type": "object", "additionalProperties": INTEGER},
        "Thing": any_of(ref("Stone"), ref("Alias")),
        "Alias": any_of(ref("Leaf"), STRING),
        "Stone": object_of("jsonrpc", "number", "type", jsonrpc=const("2.0"), number=const(1), type=const("stone")),
        "Leaf": object_of("size", size=STRING, colour=const("green")),
        "Either": object_of("type", type={"enum": ["stone", "leaf"]}),
    }
)


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("/$defs/Box/properties/lid", Ref("Lid")),
        ("/$defs/Box/properties/lid/additionalProperties", Scalar(frozenset({"integer"}))),
        ("/$defs/Box/properties/things/items", Ref("Thing")),
        ("/$defs/Thing/anyOf/1/anyOf/1", Scalar(frozenset({"string"}))),
    ],
)
def test_at_follows_a_pointer_through_references(pointer: str, found: Type) -> None:
    assert SPEC.at(pointer) == found


@pytest.mark.parametrize(
    "pointer", ["/$defs/Box/items", "/$defs/Box/properties/key", "/$defs/Stone/properties/type/items"]
)
def test_at_fails_where_a_pointer_leads_nowhere(pointer: str) -> None:
    with pytest.raises(LookupError):
        SPEC.at(pointer)


def test_arms_are_flattened_and_stay_references() -> None:
    assert list(SPEC.arms(Ref("Thing"))) == [Ref("Stone"), Ref("Leaf"), Scalar(frozenset({"string"}))]


def test_a_type_that_is_no_union_is_its_own_arm() -> None:
    assert list(SPEC.arms(Ref("Leaf"))) == [Ref("Leaf")]


def test_tag_is_the_first_required_constant_string_but_not_the_version_of_json_rpc() -> None:
    assert SPEC.tag(Ref("Stone")) == ("type", "stone")


@pytest.mark.parametrize("name", ["Leaf", "Either", "Thing"])
def test_tag_is_absent_without_a_required_single_constant(name: str) -> None:
    assert SPEC.tag(Ref(name)) is None


def test_tags_are_the_strings_that_a_required_field_allows() -> None:
    assert SPEC.tags(Ref("Either"), "type") == ("stone", "leaf")


@pytest.mark.parametrize(("name", "key"), [("Leaf", "colour"), ("Leaf", "size"), ("Leaf", "absent"), ("Thing", "type")])
def test_tags_are_none_where_no_constant_is_required(name: str, key: str) -> None:
    assert SPEC.tags(Ref(name), key) == ()


def test_objects_with_equal_fields_have_equal_hashes() -> None:
    assert hash(SPEC.definitions["Box"]) == hash(spec({"Box": object_of(lid={}, things={})}).definitions["Box"])


def test_an_object_is_open_unless_it_says_otherwise() -> None:
    assert Object().extra == spec({"It": {}}).definitions["It"]
