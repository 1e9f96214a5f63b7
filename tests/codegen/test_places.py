"""Pointers through references, `allOf` and unions of unions: each becomes one that can be looked up in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codegen.errors import UnknownSchemaForm
from codegen.names import escaped
from codegen.plan.plan import StepPlan
from codegen.read.load import _type
from codegen.read.model import Anything, Array, Literal, Object, Ref, Scalar, Spec, Type, Union
from codegen.read.normalise import normalise, read_normalised
from codegen.read.places import Places
from codegen.read.plain import plain_arms, read_plain
from tests.codegen.releases.cases import STRING, add, both
from tests.codegen.releases.test_releases import OF_TOOLS, RELEASES
from tests.support.judge import canonical
from tests.support.profile import some
from tests.support.releases import _plan, release
from tests.support.subjects import REVISIONS

ROOT = Path(__file__).resolve().parents[2]
PART = {"type": "object", "properties": {"a": STRING, "c": {"type": "object", "properties": {"d": STRING}}}}
FILE: dict[str, Any] = {
    "$defs": {
        "Part": PART,
        "Alias": {"$ref": "#/$defs/Part"},
        "Whole": {"allOf": [{"$ref": "#/$defs/Part"}, {"type": "object", "properties": {"b": STRING}}]},
        "Narrow": {"allOf": [{"$ref": "#/$defs/Part"}, {"type": "object", "properties": {"e": PART, "n": {}}}]},
        "Narrower": {"allOf": [{"$ref": "#/$defs/Narrow"}, {"type": "object", "properties": {"n": PART}}]},
        "More": {"allOf": [{"$ref": "#/$defs/Whole"}, {"type": "object", "required": ["a"]}]},
        "Holder": {
            "type": "object",
            "properties": {
                "part": {"$ref": "#/$defs/Alias"},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/Whole"}},
                "inner": {"$ref": "#/$defs/Part/properties/c"},
                "table": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Alias"}},
                "a/b": {"$ref": "#/$defs/Alias"},
                "choice": {
                    "anyOf": [
                        {"type": ["string", "null"]},
                        {"oneOf": [{"type": "integer"}, PART]},
                        {"type": "object", "properties": {"a": {"type": "integer"}}},
                    ]
                },
                "same": {"anyOf": [{"anyOf": [PART]}, {"oneOf": [PART]}]},
                "twice": {"anyOf": [STRING, STRING, PART]},
                "far": {"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/Holder/properties/choice"}]},
                "nullable": {"type": ["object", "null"], "properties": {"a": STRING}},
            },
        },
        "Ring": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Ring"}}},
    }
}
PROPERTY = "/$defs/Part/properties/a"


@pytest.mark.parametrize(
    ("logical", "written"),
    [
        ("/$defs/Part/properties/a", PROPERTY),
        ("/$defs/Alias/properties/a", PROPERTY),
        ("/$defs/Alias", "/$defs/Alias"),
        ("/$defs/Whole/properties/a", PROPERTY),
        ("/$defs/Whole/properties/b", "/$defs/Whole/allOf/1/properties/b"),
        ("/$defs/More/properties/a", PROPERTY),
        ("/$defs/Narrower/properties/n/properties/a", "/$defs/Narrower/allOf/1/properties/n/properties/a"),
        ("/$defs/Narrower/properties/e/properties/a", "/$defs/Narrow/allOf/1/properties/e/properties/a"),
        ("/$defs/More/properties/b", "/$defs/Whole/allOf/1/properties/b"),
        ("/$defs/Holder/properties/part", "/$defs/Holder/properties/part"),
        ("/$defs/Holder/properties/part/properties/a", PROPERTY),
        ("/$defs/Holder/properties/a~1b/properties/a", PROPERTY),
        ("/$defs/Holder/properties/a~1b", "/$defs/Holder/properties/a~1b"),
        ("/$defs/Holder/properties/parts/items/properties/b", "/$defs/Whole/allOf/1/properties/b"),
        ("/$defs/Holder/properties/inner/properties/d", "/$defs/Part/properties/c/properties/d"),
        ("/$defs/Holder/properties/table/additionalProperties/properties/a", PROPERTY),
        ("/$defs/Holder/properties/choice/anyOf/0", "/$defs/Holder/properties/choice/anyOf/0"),
        ("/$defs/Holder/properties/choice/anyOf/1", "/$defs/Holder/properties/choice/anyOf/0"),
        (
            "/$defs/Holder/properties/choice/anyOf/3/properties/a",
            "/$defs/Holder/properties/choice/anyOf/1/oneOf/1/properties/a",
        ),
        (
            "/$defs/Holder/properties/choice/anyOf/4/properties/a",
            "/$defs/Holder/properties/choice/anyOf/2/properties/a",
        ),
        ("/$defs/Holder/properties/nullable/anyOf/0/properties/a", "/$defs/Holder/properties/nullable/properties/a"),
        ("/$defs/Holder/properties/same/properties/a", "/$defs/Holder/properties/same/anyOf/0/anyOf/0/properties/a"),
        ("/$defs/Holder/properties/twice/anyOf/1/properties/a", "/$defs/Holder/properties/twice/anyOf/2/properties/a"),
        ("/$defs/Holder/properties/far/anyOf/0", "/$defs/Holder/properties/far/anyOf/0"),
        (
            "/$defs/Holder/properties/far/anyOf/4/properties/a",
            "/$defs/Holder/properties/choice/anyOf/1/oneOf/1/properties/a",
        ),
        ("/$defs/Ring/properties/next/properties/next/properties/next", "/$defs/Ring/properties/next"),
        # What the file does not have: the last place on the way.
        ("/$defs/Holder/properties/part/properties/new", "/$defs/Part"),
        ("/$defs/Whole/properties/new", "/$defs/Whole"),
        ("/$defs/Holder/properties/new/items", "/$defs/Holder"),
        ("/$defs/Holder/properties/parts/additionalProperties", "/$defs/Holder/properties/parts"),
        ("/$defs/New", "/$defs"),
    ],
)
def test_pointer_is_that_of_the_file(logical: str, written: str) -> None:
    assert Places("2001-01-01", FILE).written(logical) == written


def test_pointer_ends_where_a_fix_put_something() -> None:
    fixed = {"$defs": {"Tool": {"type": "object", "properties": {"x": PART}}}}
    file = {"$defs": {"Tool": {"type": "object", "properties": {"x": {"type": "object", "properties": {"b": STRING}}}}}}
    assert Places("2001-01-01", fixed, {}, file).written("/$defs/Tool/properties/x/properties/a") == (
        "/$defs/Tool/properties/x"
    )


def test_definition_with_another_name_has_that_of_the_file() -> None:
    assert (
        Places("2001-01-01", FILE, {"Part": "List<string>"}, {"$defs": {"List<string>": PART}}).written(
            "/$defs/Alias/properties/a"
        )
        == "/$defs/List<string>/properties/a"
    )


@pytest.mark.parametrize(
    ("node", "pointer"),
    [
        ({"allOf": [{"$ref": "#/$defs/Odd"}]}, "/$defs/Odd/properties/odd"),
        ({"allOf": [PART, {"type": "object", "properties": {"b": {"not": {}}}}]}, "/$defs/X/allOf/1/properties/b"),
        ({"allOf": [PART, {"type": "object", "properties": {"a": {"type": "null"}}}]}, "/$defs/X/allOf/1/properties/a"),
        ({"allOf": [PART, {"allOf": [STRING]}]}, "/$defs/X/allOf/1/allOf/0"),
        ({"$ref": "#/$defs/Odd/properties/odd"}, "/$defs/Odd/properties/odd"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_place_in_the_file(node: Any, pointer: str) -> None:
    odd = {"type": "object", "properties": {"odd": {"not": {}}}}
    schema = {"$defs": {"X": node, "Odd": odd} if "Odd" in str(node) else {"X": node}}
    if "allOf" in node or "$ref" in node:
        schema["$defs"] = dict(sorted(schema["$defs"].items(), reverse=True))
    with pytest.raises(UnknownSchemaForm) as caught:
        normalise("2001-01-01", schema)
    assert caught.value.pointer == pointer


def look_up(schema: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        schema = schema[int(part) if isinstance(schema, list) else part]
    return schema


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_model_names_a_place_of_the_file(revision: str) -> None:
    schema = read_normalised(ROOT, revision)
    for name in schema.origins:
        assert isinstance(look_up(canonical(revision), schema.pointer(name)), dict)


def places_in(spec: Spec, type_: Type, pointer: str, references: int) -> Iterator[tuple[str, Type]]:
    """Every pointer from a type on, through so many references, and the type there."""
    yield pointer, type_
    if isinstance(type_, Ref):
        references -= 1
    match spec.resolve(type_) if references >= 0 else None:
        case Object(fields, extra):
            for name, member in fields.items():
                yield from places_in(spec, member.type, f"{pointer}/properties/{escaped(name)}", references)
            if not isinstance(extra, Anything):
                yield from places_in(spec, extra, f"{pointer}/additionalProperties", references)
        case Array(item):
            if not isinstance(item, Anything):
                yield from places_in(spec, item, f"{pointer}/items", references)
        case Union(arms):
            for index, arm in enumerate(arms):
                if not isinstance(arm, Scalar | Literal):  # several of them may stand in one place
                    yield from places_in(spec, arm, f"{pointer}/anyOf/{index}", references)


@pytest.mark.parametrize("revision", [*REVISIONS, "2001-01-01"])
def test_what_stands_at_a_place_is_what_is_read_there(revision: str) -> None:
    schema = FILE if revision == "2001-01-01" else canonical(revision)
    types = {name: _type(node) for name, node in read_plain(revision, schema).items()}
    spec, places = Spec(revision, types, {}), Places(revision, schema)
    for name in types:
        for pointer, type_ in places_in(spec, Ref(name), f"/$defs/{name}", 2):
            node = look_up(schema, places.written(pointer))
            arms = tuple(map(_type, plain_arms(revision, schema, node)))
            wanted = types[name] if pointer == f"/$defs/{name}" else type_
            # One node may be several arms, `["object", "null"]`; a definition may be a long way to say `Anything`.
            assert wanted in (*arms, Union(arms)) or isinstance(spec.resolve(wanted), Anything), pointer


@pytest.mark.parametrize("one", some(RELEASES, 5), ids=str)
def test_questions_point_into_both_files(one: Any) -> None:
    old = release(OF_TOOLS[one.name][0]) if one.name in OF_TOOLS else None
    new = release(one.change)
    plan: StepPlan = _plan(new, "", old)
    for change in plan.undecided:
        files = (old or canonical(REVISIONS[-1]), new)
        source, target = files if change.direction == "up" else files[::-1]
        look_up(source, change.source_pointer), look_up(target, change.target_pointer)


def test_question_about_what_stands_behind_a_reference_names_its_place() -> None:
    """A field of a definition that only an `allOf` brings in."""
    parts = {"allOf": [{"$ref": "#/$defs/Base"}, {"type": "object", "properties": {"own": STRING}}]}

    def based(kind: dict[str, Any]) -> Any:
        base = {"type": "object", "properties": {"rank": kind}}
        return both(lambda defs: defs.update(Base=base), add("Tool", x=parts))

    old, new = release(based(STRING)), release(based({"type": "integer"}))
    found = {(c.direction, c.source_pointer, c.target_pointer) for c in _plan(new, "", old).undecided}
    place = "/$defs/Base/properties/rank"
    assert found == {("up", place, place), ("down", place, place)}


def test_question_about_an_arm_in_place_names_the_arm() -> None:
    def either(kind: dict[str, Any]) -> Any:
        one, two = (
            {"type": "object", "required": ["kind"], "properties": {"kind": {"const": tag}, "a": a}}
            for tag, a in (("one", STRING), ("two", kind))
        )
        nested = {"anyOf": [{"type": "string"}, {"anyOf": [one, two]}]}
        return both(lambda defs: defs.update(Nested=nested), add("Tool", x={"anyOf": [{"$ref": "#/$defs/Nested"}]}))

    old, new = release(either(STRING)), release(either({"type": "integer"}))
    places = {(c.source_pointer, c.target_pointer) for c in _plan(new, "", old).undecided}
    place = "/$defs/Nested/anyOf/1/anyOf/1/properties/a"
    assert places == {(place, place)}
