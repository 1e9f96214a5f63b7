"""Small schemas in, types and methods out; a form without a rule is named with its pointer."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.errors import UnknownSchemaForm
from codegen.read.load import build_spec
from codegen.read.model import Anything, Array, Field, Literal, Object, Ref, Scalar, Type, Union
from tests.support.small_specs import META, STRING, Schema, any_of, array_of, const, object_of, ref, request, spec

TEXT = Scalar(frozenset({"string"}))
ALL = {"type": ["object", "array", "string", "number", "boolean", "null"]}

FORMS: list[tuple[Any, Type]] = [
    (True, Anything()),
    ({}, Anything()),
    ({"default": 1}, Anything()),
    (STRING, TEXT),
    ({"type": "integer", "minimum": 0, "maximum": 9}, Scalar(frozenset({"integer"}), 0, 9)),
    ({"type": ["string", "null"]}, Union((TEXT, Scalar(frozenset({"null"}))))),
    ({"type": ["integer", "number"]}, Scalar(frozenset({"number"}))),
    ({"enum": ["a", 1, None]}, Union((Literal(("a",)), Literal((1,)), Scalar(frozenset({"null"}))))),
    ({"type": "integer", "exclusiveMinimum": 0, "minLength": 3}, Scalar(frozenset({"integer"}), above=0)),
    ({"type": "string", "minLength": 1, "maxLength": 9}, Scalar(TEXT.types, min_length=1, max_length=9)),
    (array_of(STRING, minItems=1), Array(TEXT, None, 1)),
    ({"$comment": "x", "deprecated": True, "type": "string", "readOnly": True}, TEXT),
    (ref("Base/properties/a"), TEXT),
    (const(3), Literal((3,))),
    ({"enum": [3]}, Literal((3,))),
    ({"type": "string", "enum": ["a", 3]}, Literal(("a",))),
    ({"type": "string", "enum": ["a", "b"]}, Literal(("a", "b"))),
    ({"type": "array"}, Array(Anything())),
    (array_of(STRING, maxItems=5), Array(TEXT, 5)),
    ({"oneOf": [STRING, ref("Base")]}, Union((TEXT, Ref("Base")))),
    ({"properties": {"a": STRING}}, Object({"a": Field(TEXT)})),
    (object_of("a", "b", a=STRING), Object({"a": Field(TEXT, True), "b": Field(Anything(), True)})),
    ({**object_of(a=STRING), "additionalProperties": {}}, Object({"a": Field(TEXT)}, says_open=True)),
    ({"type": "object", "additionalProperties": STRING}, Object({}, TEXT)),
    (
        {"allOf": [ref("Base"), object_of("b", "a", b=const("x"))]},
        Object({"a": Field(TEXT, True), "b": Field(Literal(("x",)), True)}),
    ),
    (
        {"allOf": [{"allOf": [ref("Base")]}, object_of(b=STRING)]},
        Object({"a": Field(TEXT, True), "b": Field(TEXT)}),
    ),
]


@pytest.mark.parametrize(("schema", "expected"), FORMS)
def test_a_form_is_read_as_a_type(schema: Any, expected: Type) -> None:
    assert spec({"It": schema, "Base": object_of("a", a=STRING, b=STRING)}).definitions["It"] == expected


@pytest.mark.parametrize(
    ("schema", "found"),
    [({"not": STRING, "if": STRING}, "the keyword 'if', 'not'"), (False, "False in"), ("text", "'text' in")],
)
def test_a_form_without_a_rule_is_named_with_its_pointer(schema: Any, found: str) -> None:
    said = rf"schema/2001-01-01/schema\.json /\$defs/It/properties/a/items: no rule for {found}"
    with pytest.raises(UnknownSchemaForm, match=said):
        spec({"It": object_of(a=array_of(schema))})


@pytest.mark.parametrize(
    ("schema", "takes_all"),
    [
        (any_of({"type": ["string", "number", "boolean", "null"]}, array_of({}), {"type": "object"}), True),
        (any_of({"type": ["string", "number", "boolean", "null"]}, array_of(ref("It")), {"type": "object"}), True),
        (any_of({"type": ["string", "number", "boolean", "null"]}, array_of(STRING), {"type": "object"}), False),
        (any_of({"type": ["string", "number", "boolean", "null"]}, array_of({}), object_of(a={})), False),
        (any_of(ref("Rest"), array_of({}), {"type": "object"}), True),
        (any_of({**STRING, "minimum": 1}, array_of({}), {"type": "object"}), False),
        (STRING, False),
    ],
)
def test_a_union_of_all_kinds_is_anything(schema: Schema, takes_all: bool) -> None:
    told = spec({"It": schema, "Rest": {"type": ["string", "number", "boolean", "null"]}})
    assert (told.definitions["It"] == Anything()) is takes_all


def test_a_method_that_both_may_send_has_both_as_senders() -> None:
    told = spec(
        {
            **META,
            "PingRequest": request("ping"),
            "ClientRequest": any_of(ref("PingRequest")),
            "ServerRequest": any_of(ref("PingRequest")),
        }
    )
    assert told.methods["ping"].senders == {"client", "server"}


def test_a_union_of_one_that_is_written_out_is_found_by_its_form() -> None:
    told = spec({**META, "PingRequest": request("ping"), "ServerRequest": request("ping")})
    assert told.methods["ping"].request == "PingRequest"


def test_a_union_of_one_that_nothing_defines_is_refused() -> None:
    with pytest.raises(UnknownSchemaForm, match="a method written out in place"):
        spec({**META, "ServerRequest": request("ping")})


@pytest.mark.parametrize("method", [STRING, {"enum": ["a", "b"]}])
def test_a_request_without_a_constant_method_is_refused(method: Schema) -> None:
    with pytest.raises(UnknownSchemaForm, match="AskRequest: no rule for a request without a constant method"):
        spec({**META, "AskRequest": object_of("method", method=method), "ClientRequest": any_of(ref("AskRequest"))})


def test_a_notification_has_no_results() -> None:
    notice = object_of("method", method=const("notifications/x"), params=ref("NotificationParams"))
    base = {"NotificationParams": object_of(_meta=object_of())}
    told = spec({**base, "XNotification": notice, "ClientNotification": any_of(ref("XNotification"))})
    assert (told.methods["notifications/x"].kind, told.methods["notifications/x"].results) == ("notification", ())


@pytest.mark.parametrize(
    ("more", "results"),
    [
        ({}, ("EmptyResult",)),
        ({"AskResult": object_of()}, ("AskResult",)),
        (
            {
                "AskResult": object_of(),
                "AskResultResponse": object_of(result=any_of(ref("OtherResult"), ref("AskResult"))),
                "OtherResult": object_of(),
            },
            ("AskResult", "OtherResult"),
        ),
        (
            {"AskRequest": request("ask", task=object_of()), "AskResult": object_of()},
            ("AskResult", "CreateTaskResult"),
        ),
        ({"AskRequest": object_of("method", method=const("ask"))}, ("EmptyResult",)),
    ],
)
def test_results_of_a_method_are_found_by_response_by_name_and_by_task(
    more: dict[str, Schema], results: tuple[str, ...]
) -> None:
    told = spec({**META, "AskRequest": request("ask"), "ClientRequest": any_of(ref("AskRequest")), **more})
    assert told.methods["ask"].results == results


def test_a_request_has_the_envelope_that_older_files_leave_to_the_base() -> None:
    told = spec({**META, "AskRequest": request("ask", about=STRING), "ClientRequest": any_of(ref("AskRequest"))})
    found = told.definitions["AskRequest"]
    assert isinstance(found, Object)
    assert list(found.fields) == ["method", "params", "jsonrpc", "id"]


@pytest.mark.parametrize(
    "base",
    [
        {"RequestParams": object_of(_meta=object_of(progressToken=STRING))},
        {"Request": object_of(params=object_of(_meta=object_of(progressToken=STRING)))},
    ],
)
def test_params_have_the_meta_of_the_base(base: dict[str, Schema]) -> None:
    schema = {**base, "EmptyResult": object_of(), "AskRequest": request("ask")}
    told = build_spec("2001-01-01", {"$defs": {**schema, "ClientRequest": any_of(ref("AskRequest"))}})
    meta = told.at("/$defs/AskRequest/properties/params/properties/_meta")
    assert meta == Object({"progressToken": Field(TEXT)})


def test_params_that_say_their_meta_themselves_keep_it() -> None:
    told = spec({**META, "AskRequest": request("ask", _meta=STRING), "ClientRequest": any_of(ref("AskRequest"))})
    assert told.at("/$defs/AskRequest/properties/params/properties/_meta") == TEXT
