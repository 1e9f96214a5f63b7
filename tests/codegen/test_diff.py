"""Two small schemas in, what changed between them out."""

from __future__ import annotations

import pytest

from codegen.compare.diff import SpecChange, diff_specs
from codegen.write.changes import render_changes
from tests.support.small_specs import (
    INTEGER,
    NEWER,
    OLDER,
    STRING,
    Schema,
    any_of,
    array_of,
    const,
    object_of,
    ref,
    spec,
)

MEMBERS: list[tuple[Schema, Schema, list[tuple[str, str, str]]]] = [
    (STRING, STRING, []),
    (STRING, INTEGER, [("", "type changed", "string became integer")]),
    (STRING, {}, [("", "type changed", "string became any value")]),
    (INTEGER, {"type": "integer", "minimum": 0, "maximum": 9}, [("", "limit changed", "at least 0 and at most 9")]),
    (array_of(STRING), array_of(INTEGER), [("/items", "type changed", "string became integer")]),
    (INTEGER, {"type": "integer", "exclusiveMinimum": 0}, [("", "limit changed", "more than 0")]),
    (INTEGER, {"type": "integer", "exclusiveMaximum": 9}, [("", "limit changed", "less than 9")]),
    (STRING, {"type": "string", "minLength": 1}, [("", "limit changed", "at least 1 characters")]),
    (STRING, {"type": "string", "maxLength": 9}, [("", "limit changed", "at most 9 characters")]),
    (array_of(STRING), array_of(STRING, minItems=1), [("", "limit changed", "at least 1 items")]),
    (array_of(STRING), array_of(STRING, maxItems=9), [("", "limit changed", "at most 9 items")]),
    (array_of(STRING, maxItems=9), array_of(STRING), [("", "limit changed", "no limit")]),
    ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}, [("", "added", "the value 'c'"), ("", "removed", "the value 'a'")]),
    (
        any_of(STRING, ref("Same")),
        any_of(ref("Same"), INTEGER),
        [("", "added", "or integer"), ("", "removed", "or string")],
    ),
    (any_of(STRING, object_of(a={})), any_of(STRING, object_of()), [("/properties/a", "removed", "any value")]),
    (any_of(STRING, INTEGER), STRING, [("", "removed", "or integer")]),
    (object_of("a/~b"), object_of(), [("/properties/a~1~0b", "removed", "any value")]),
    (object_of(), object_of("a", a=STRING), [("/properties/a", "added", "required string")]),
    (object_of(), object_of(a=STRING), [("/properties/a", "added", "optional string")]),
    (object_of(a=STRING), object_of("a", a=STRING), [("/properties/a", "became required", "string")]),
    (object_of("a", a=STRING), object_of(a=STRING), [("/properties/a", "became optional", "string")]),
    (
        {"type": "object"},
        {"type": "object", "additionalProperties": STRING},
        [("/additionalProperties", "type changed", "any value became string")],
    ),
    (ref("Same"), object_of(), []),
    (ref("Same"), ref("Same"), []),
]


@pytest.mark.parametrize(("older", "newer", "expected"), MEMBERS)
def test_diff_says_what_changed_and_where(older: Schema, newer: Schema, expected: list[tuple[str, str, str]]) -> None:
    same = {"Same": object_of()}
    found = diff_specs(spec({"It": older, **same}), spec({"It": newer, **same}, NEWER))
    assert found == [SpecChange("It", *change) for change in expected]


def test_diff_names_definitions_that_came_and_went() -> None:
    found = diff_specs(spec({"Old": STRING}), spec({"New": const("a")}, NEWER))
    assert found == [SpecChange("New", "", "added", "'a'"), SpecChange("Old", "", "removed", "string")]


def test_render_changes_writes_a_module_of_every_revision_but_the_first() -> None:
    output = render_changes(
        [(spec({"Old": STRING}), spec({"Old": INTEGER}, NEWER))], {OLDER: "1" * 64, NEWER: "2" * 64}
    )
    assert list(output) == ["dragoman_spec/v2002_02_02/changes.py"]


def test_rendered_changes_are_those_of_the_diff() -> None:
    output = render_changes(
        [(spec({"Old": STRING}), spec({"Old": INTEGER}, NEWER))], {OLDER: "1" * 64, NEWER: "2" * 64}
    )
    module: dict[str, object] = {}
    exec(output["dragoman_spec/v2002_02_02/changes.py"], module)
    detail = "string became integer"
    assert module["CHANGES"] == (
        {
            "definition": "Old",
            "pointer": "",
            "change": "type changed",
            "detail": detail,
            "rule": "type-changed",
            "senders": "",
        },
    )
