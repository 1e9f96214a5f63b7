"""Headers that repeat the body: made from what goes out, held against what came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.rules.annotations import Mirrored
from dragoman.core.rules.headers import (
    check_arguments,
    check_collected,
    collect_headers,
    decode_value,
    encode_value,
    make_headers,
    select_arguments,
)
from dragoman.core.rules.metadata import Metadata, stamp
from dragoman.errors import RemoteProtocolError

E = "2026-07-28"
PATHS = (
    Mirrored(("region",), "Region", "string"),
    Mirrored(("where", "zone"), "Zone", "integer"),
    Mirrored(("dry",), "Dry", "boolean"),
)


def check(headers: Iterable[tuple[str, str]], body: dict[str, Any], mirrored: Sequence[Mirrored] = ()) -> None:
    """Hold all headers against a request, as a front and the switch behind it do."""
    listed = list(headers)
    check_collected(collect_headers(listed), body)
    if body["method"] == "tools/call":
        check_arguments(select_arguments(listed), body["params"].get("arguments"), mirrored)


def body(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": stamp(params, Metadata(E, {}))}


def call(**arguments: Any) -> dict[str, Any]:
    return body("tools/call", name="add", arguments=arguments)


@pytest.mark.parametrize(
    ("request_", "headers"),
    [
        (body("tools/list"), {"Mcp-Method": "tools/list"}),
        (body("tools/call", name="add"), {"Mcp-Method": "tools/call", "Mcp-Name": "add"}),
        (body("prompts/get", name="hi"), {"Mcp-Method": "prompts/get", "Mcp-Name": "hi"}),
        (body("resources/read", uri="file:///a"), {"Mcp-Method": "resources/read", "Mcp-Name": "file:///a"}),
        (body("tasks/get", taskId="t1"), {"Mcp-Method": "tasks/get", "Mcp-Name": "t1"}),
        (body("completion/complete", name="no"), {"Mcp-Method": "completion/complete"}),
        (body("tools/call", name=5), {"Mcp-Method": "tools/call"}),
    ],
)
def test_headers_are_made_of_the_body(request_: dict[str, Any], headers: dict[str, str]) -> None:
    assert dict(make_headers(request_)) == {"MCP-Protocol-Version": E, **headers}


def test_a_notification_without_metadata_has_its_method() -> None:
    assert make_headers({"jsonrpc": "2.0", "method": "notifications/cancelled"}) == [
        ("Mcp-Method", "notifications/cancelled")
    ]


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        (
            {"region": "us-west1", "where": {"zone": 42}, "dry": True},
            {"Region": "us-west1", "Zone": "42", "Dry": "true"},
        ),
        ({"region": None, "where": {"zone": -7}, "dry": False}, {"Zone": "-7", "Dry": "false"}),
        ({"where": {"zone": 42.0}}, {"Zone": "42"}),
        ({"where": "there"}, {}),
        ({"region": ["a"], "where": {"zone": 1.5}, "dry": {}}, {}),
        ({"region": 10**400}, {}),
        ({"region": ""}, {"Region": ""}),
        ({"region": " padded "}, {"Region": "=?base64?IHBhZGRlZCA=?="}),
    ],
)
def test_annotated_arguments_are_mirrored(arguments: dict[str, Any], headers: dict[str, str]) -> None:
    request = call(**arguments)
    made = make_headers(request, PATHS)
    assert {name[10:]: value for name, value in made if name.startswith("Mcp-Param-")} == headers
    check(made, request, PATHS)


def test_a_call_without_arguments_mirrors_none() -> None:
    request = body("tools/call", name="add")
    assert len(make_headers(request, PATHS)) == 3
    check(make_headers(request, PATHS), request, PATHS)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("us-west1", "us-west1"),
        ("a b\tc", "a b\tc"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("=?base64?half", "=?base64?half"),
        ("\x7f", "=?base64?fw==?="),
        ("a\n", "=?base64?YQo=?="),
    ],
)
def test_what_no_header_can_hold_is_encoded(value: str, encoded: str) -> None:
    assert encode_value(value) == encoded
    assert decode_value(encoded) == value


@given(st.text(st.characters(exclude_categories=[])))
def test_every_text_survives(value: str) -> None:
    encoded = encode_value(value)
    assert encoded.isascii()
    assert encoded == encoded.strip()
    assert decode_value(encoded) == value


@pytest.mark.parametrize(
    "value", ["=?base64?a?=", "=?base64?fx==?=", "=?base64?/w==?=", "=?base64?a b=?=", "é", "\x00"]
)
def test_what_is_no_value_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="it "):
        decode_value(value)


@pytest.mark.parametrize("zone", ["42", "42.0", "042", "+42", "=?base64?NDI=?="])
def test_integers_are_compared_as_numbers(zone: str) -> None:
    request = call(where={"zone": 42})
    check([*make_headers(request), ("mcp-param-zone", zone)], request, PATHS)


def test_names_of_headers_have_no_case() -> None:
    request = call(region="a")
    check([(name.upper(), value) for name, value in make_headers(request, PATHS)], request, PATHS)


def test_headers_that_are_not_of_the_protocol_are_left_alone() -> None:
    request = call(region="a")
    check([("Host", "a"), *make_headers(request, PATHS), ("Accept", "b"), ("Accept", "c")], request, PATHS)


def test_white_space_around_a_value_is_none_of_it() -> None:
    request = call(region="a")
    check([(name, f" {value}\t") for name, value in make_headers(request, PATHS)], request, PATHS)


def test_headers_of_tools_that_nobody_knows_are_left_alone() -> None:
    request = call(region="a")
    check([*make_headers(request), ("Mcp-Param-Other", "é")], request)


@pytest.mark.parametrize("request_", [body("tools/list"), body("tools/call"), body("tools/call", name=5)])
def test_a_request_that_names_nothing_needs_no_name(request_: dict[str, Any]) -> None:
    check(make_headers(request_), request_)


def test_a_name_of_nothing_is_a_mismatch() -> None:
    request = body("tools/call")
    with pytest.raises(RemoteProtocolError) as caught:
        check([*make_headers(request), ("Mcp-Name", "add")], request)
    assert caught.value.data == {"header": "Mcp-Name", "pointer": "/params/name"}


META = "/params/_meta/io.modelcontextprotocol~1protocolVersion"
GOOD = {"MCP-Protocol-Version": E, "Mcp-Method": "tools/call", "Mcp-Name": "add", "Mcp-Param-Region": "a"}


@pytest.mark.parametrize(
    ("change", "header", "pointer"),
    [
        ({"MCP-Protocol-Version": None}, "MCP-Protocol-Version", META),
        ({"MCP-Protocol-Version": "2025-11-25"}, "MCP-Protocol-Version", META),
        ({"Mcp-Method": None}, "Mcp-Method", "/method"),
        ({"Mcp-Method": "Tools/Call"}, "Mcp-Method", "/method"),
        ({"Mcp-Method": "=?base64?dG9vbHMvY2FsbA==?="}, "Mcp-Method", "/method"),
        ({"Mcp-Name": None}, "Mcp-Name", "/params/name"),
        ({"Mcp-Name": "sub"}, "Mcp-Name", "/params/name"),
        ({"Mcp-Name": "=?base64?c3Vi?="}, "Mcp-Name", "/params/name"),
        ({"Mcp-Name": "=?base64?!?="}, "Mcp-Name", "/params/name"),
        ({"Mcp-Param-Region": None}, "Mcp-Param-Region", "/params/arguments/region"),
        ({"Mcp-Param-Region": "b"}, "Mcp-Param-Region", "/params/arguments/region"),
        ({"Mcp-Param-Region": "\x00"}, "Mcp-Param-Region", "/params/arguments/region"),
        ({"Mcp-Param-Zone": "42"}, "Mcp-Param-Zone", "/params/arguments/where/zone"),
        ({"Mcp-Param-Dry": "True"}, "Mcp-Param-Dry", "/params/arguments/dry"),
        ({"mcp-name": "add"}, "Mcp-Name", "/params/name"),
    ],
)
def test_a_mismatch_names_header_and_place(change: dict[str, Any], header: str, pointer: str) -> None:
    headers = [(name, value) for name, value in {**GOOD, **change}.items() if value is not None]
    with pytest.raises(RemoteProtocolError) as caught:
        check(headers, call(region="a", dry=True) if "Mcp-Param-Dry" in change else call(region="a"), PATHS)
    assert caught.value.code == -32020
    assert caught.value.data == {"header": header, "pointer": pointer}
    assert header in caught.value.message


BARE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.mark.parametrize(
    ("headers", "request_"), [({"MCP-Protocol-Version": E, "Mcp-Method": "tools/list"}, BARE), ({}, body("tools/list"))]
)
def test_a_request_whose_header_and_body_are_of_two_eras_is_a_mismatch(
    headers: dict[str, str], request_: dict[str, Any]
) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        check(headers.items(), request_)
    assert caught.value.code == -32020


@pytest.mark.parametrize(("said", "zone"), [("43", 42), ("42.5", 42), ("1e2", 100), ("", 0), ("true", 1), ("1", True)])
def test_numbers_that_differ_are_a_mismatch(said: str, zone: Any) -> None:
    request = call(where={"zone": zone})
    with pytest.raises(RemoteProtocolError):
        check([*make_headers(request), ("Mcp-Param-Zone", said)], request, PATHS)


def test_names_with_slashes_are_pointed_at() -> None:
    request = call(**{"a/b~c": "x"})
    with pytest.raises(RemoteProtocolError) as caught:
        check(make_headers(request), request, [Mirrored(("a/b~c",), "A", "string")])
    assert caught.value.data == {"header": "Mcp-Param-A", "pointer": "/params/arguments/a~1b~0c"}


def test_a_body_without_a_version_matches_no_header() -> None:
    with pytest.raises(RemoteProtocolError):
        check([("Mcp-Method", "ping"), ("MCP-Protocol-Version", E)], {"id": 1, "method": "ping"})
