"""The rule for nulls on small schemas: the functions that come out are run."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.write.nulls import render_nulls
from tests.support.small_specs import (
    META,
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

ANSWERS = any_of(
    object_of("role", "content", role={"enum": ["user", "assistant"]}, content=STRING),
    object_of("action", action={"enum": ["accept", "decline"]}, content=STRING),
)
NULLABLE = {"type": ["string", "null"]}
TEXT = object_of("type", type=const("text"), text=STRING)
SOUND = object_of("type", type=const("sound"), data=STRING)

CASES: list[tuple[Schema, Any, Any]] = [
    (object_of(a=STRING), {"a": None}, {}),
    (object_of("a", a=STRING), {"a": None}, {"a": None}),
    (object_of(a=NULLABLE), {"a": None}, {"a": None}),
    (object_of(a={}), {"a": None}, {"a": None}),
    (object_of(a=any_of(STRING, ref("Nullable"))), {"a": None}, {"a": None}),
    (object_of(a=any_of(STRING, ref("Text"))), {"a": None}, {}),
    (object_of(a=ref("Alias")), {"a": {"type": "text", "text": None}}, {"a": {"type": "text"}}),
    (object_of(a=array_of(object_of(b=STRING))), {"a": [{"b": None}]}, {"a": [{}]}),
    (object_of(aB=object_of(c=STRING), a_b=object_of(d=STRING)), {"a_b": {"c": None, "d": None}}, {"a_b": {"c": None}}),
    (object_of(a=any_of(ref("Text"), ref("Sound"))), {"a": {"type": "sound", "data": None}}, {"a": {"type": "sound"}}),
    (
        object_of(a=any_of(object_of(b=STRING), object_of("b", b=STRING, c=STRING))),
        {"a": {"b": None, "c": None}},
        {"a": {"b": None}},
    ),
    (object_of(a=any_of(object_of(b=STRING), object_of(b=NULLABLE))), {"a": {"b": None}}, {"a": {"b": None}}),
    (
        object_of(a=any_of(object_of("type", type=const("text"), text=NULLABLE), ref("Text"), ref("Sound"))),
        {"a": {"type": "text", "text": None}},
        {"a": {"type": "text", "text": None}},
    ),
    (object_of(a=ANSWERS), {"a": {"action": "accept", "content": None}}, {"a": {"action": "accept"}}),
    (object_of(a=ANSWERS), {"a": {"content": None}}, {"a": {"content": None}}),
    (object_of(a=any_of(STRING, array_of(object_of(b=STRING)))), {"a": [{"b": None}]}, {"a": [{}]}),
    ({"type": "object", "additionalProperties": object_of(b=STRING)}, {"x": {"b": None}}, {"x": {}}),
]


def cleaners(definitions: dict[str, Schema]) -> Any:
    """What takes the nulls out of frames, by kind and method, as the module that is rendered says."""
    module: dict[str, Any] = {}
    exec(render_nulls([spec(definitions)], {OLDER: "1" * 64})["dragoman_spec/v2001_01_01/nulls.py"], module)
    return module["TABLES"]


def cleaned(schema: Schema, value: Any, *, kind: str = "request") -> Any:
    """What the rule makes of a value in the params of a request, or in its result."""
    definitions = {"Nullable": NULLABLE, "Text": TEXT, "Sound": SOUND, "Alias": ref("Text"), **META}
    definitions |= {"ToolInfo": object_of(x=STRING), "Tool_Info": object_of(y=STRING)}
    ask = object_of("method", "params", method=const("ask"), params=object_of(value=schema))
    answer = object_of(value=schema)
    definitions |= {"AskRequest": ask, "AskResult": answer, "ClientRequest": any_of(ref("AskRequest"))}
    clean = cleaners(definitions)[kind]["ask"]
    place = "params" if kind == "request" else "result"
    return clean({place: {"value": value}}, None, [])[place]["value"]


@pytest.mark.parametrize(("schema", "value", "expected"), CASES)
def test_nulls_go_where_absence_is_allowed_and_null_is_not(schema: Schema, value: Any, expected: Any) -> None:
    assert cleaned(schema, value) == expected


def test_nulls_go_from_results_too() -> None:
    assert cleaned(object_of(a=STRING), {"a": None}, kind="result") == {}


def test_nulls_go_from_every_result_that_a_request_can_have() -> None:
    task = object_of("task", task=object_of("id", id=STRING, note=STRING))
    ask = object_of("method", "params", method=const("ask"), params=object_of(task=STRING))
    asking = {"AskRequest": ask, "AskResult": object_of(word=STRING), "ClientRequest": any_of(ref("AskRequest"))}
    clean = cleaners({**META, **asking, "CreateTaskResult": task})["result"]["ask"]
    given = [{"task": {"id": None, "note": None}}, {"word": None}]
    assert [clean({"result": value}, None, [])["result"] for value in given] == [{"task": {"id": None}}, {}]


def test_what_has_no_nulls_stays_the_same_object() -> None:
    value = {"a": "x"}
    assert cleaned(object_of(a=STRING), value) is value


def test_other_types_than_those_of_the_schema_stay() -> None:
    assert cleaned(object_of(a=array_of(object_of(b=STRING))), {"a": "x"}) == {"a": "x"}


def test_equal_shapes_are_written_once() -> None:
    params = object_of(a=object_of(x=STRING), b=object_of(x=STRING))
    ask = object_of("method", "params", method=const("ask"), params=params)
    told = spec({**META, "AskRequest": ask, "ClientRequest": any_of(ref("AskRequest"))})
    text = render_nulls([told], {OLDER: ""})["dragoman_spec/v2001_01_01/nulls.py"]
    assert text.count("drops=('x',)") == 1


def test_definitions_whose_names_differ_in_spelling_only_have_a_shape_each() -> None:
    assert cleaned(object_of(a=ref("ToolInfo"), b=ref("Tool_Info")), {"a": {"y": None}, "b": {"y": None}}) == {
        "a": {"y": None},
        "b": {},
    }
