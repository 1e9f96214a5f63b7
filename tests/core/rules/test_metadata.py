"""What requests say of their client and results of their server: put on, read, taken off."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.rules import names
from dragoman.core.rules.metadata import (
    Metadata,
    MetadataReader,
    claims_per_request,
    put_identity,
    read,
    stamp,
    take_identity,
    take_off,
)
from dragoman.errors import RemoteProtocolError

E = "2026-07-28"
CLIENT = {"name": "a-client", "version": "1"}
SERVER = {"name": "a-server", "version": "2"}
ALL = Metadata(E, {"roots": {}}, CLIENT, "info")


def meta(**changes: Any) -> dict[str, Any]:
    """Params with complete metadata, changed at some keys; None leaves a key out."""
    found = stamp({}, ALL)["_meta"]
    found.update({getattr(names, f"META_{name}"): value for name, value in changes.items()})
    return {"_meta": {key: value for key, value in found.items() if value is not None}}


@pytest.mark.parametrize("metadata", [ALL, Metadata(E, {})])
def test_what_is_stamped_is_read(metadata: Metadata) -> None:
    assert read(stamp({"name": "add"}, metadata), [E]) == metadata


def test_a_stamped_request_is_valid_where_it_goes() -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": stamp(None, ALL)}
    dragoman_spec.validate(request, E)


def test_a_stamp_keeps_what_is_not_metadata() -> None:
    given = {"name": "add", "_meta": {"progressToken": 7, "traceparent": "00-ab", "com.example/a": 1}}
    stamped = stamp(given, ALL)
    assert stamped["name"] == "add"
    assert {key: stamped["_meta"][key] for key in given["_meta"]} == given["_meta"]


def test_a_stamp_replaces_metadata_of_somebody_else() -> None:
    stamped = stamp(stamp({}, ALL), Metadata(E, {}))
    assert stamped["_meta"] == {names.META_VERSION: E, names.META_CLIENT_CAPABILITIES: {}}


def test_a_stamp_changes_nothing_of_what_it_is_given() -> None:
    given = {"_meta": {"progressToken": 7}}
    stamp(given, ALL)
    assert given == {"_meta": {"progressToken": 7}}


@pytest.mark.parametrize("broken", [None, 5, [], "x"])
def test_a_stamp_replaces_meta_that_is_no_object(broken: Any) -> None:
    assert read(stamp({"_meta": broken}, ALL), [E]) == ALL


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        (None, "/params/_meta"),
        ([], "/params/_meta"),
        ({}, "/params/_meta"),
        ({"_meta": 5}, "/params/_meta"),
        (meta(VERSION=None), "/params/_meta/io.modelcontextprotocol~1protocolVersion"),
        (meta(VERSION=20260728), "/params/_meta/io.modelcontextprotocol~1protocolVersion"),
        (meta(CLIENT_CAPABILITIES=None), "/params/_meta/io.modelcontextprotocol~1clientCapabilities"),
        (meta(CLIENT_CAPABILITIES=[]), "/params/_meta/io.modelcontextprotocol~1clientCapabilities"),
        (meta(CLIENT_INFO="me"), "/params/_meta/io.modelcontextprotocol~1clientInfo"),
        (meta(LOG_LEVEL="loud"), "/params/_meta/io.modelcontextprotocol~1logLevel"),
        (meta(LOG_LEVEL=["info"]), "/params/_meta/io.modelcontextprotocol~1logLevel"),
    ],
)
def test_malformed_metadata_is_invalid_params(params: Any, pointer: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        read(params, [E])
    assert caught.value.code == -32602
    assert caught.value.data == {"pointer": pointer}


@pytest.mark.parametrize("level", dragoman_spec.facts(E).log_levels)
def test_every_level_of_the_schema_is_read(level: str) -> None:
    assert read(meta(LOG_LEVEL=level), [E]).log_level == level


def test_an_unsupported_version_is_told_what_is_supported() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        read(meta(VERSION="1900-01-01"), (E, "2025-11-25"))
    assert caught.value.code == -32022
    assert caught.value.data == {"supported": [E, "2025-11-25"], "requested": "1900-01-01"}


def test_an_unsupported_version_counts_before_what_else_is_wrong() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        read(meta(VERSION="2027-01-01", CLIENT_CAPABILITIES=None), [E])
    assert caught.value.code == -32022


@pytest.mark.parametrize(
    ("params", "claims"),
    [(None, False), ({}, False), ({"_meta": 1}, False), ({"_meta": {"progressToken": 1}}, False), (meta(), True)],
)
def test_a_request_claims_the_era_by_naming_a_version(params: Any, claims: bool) -> None:
    assert claims_per_request(params) is claims


def test_taking_off_leaves_the_rest_and_the_form_that_the_steps_take_off() -> None:
    given = {"name": "add", "_meta": {"progressToken": 7, "traceparent": "00-ab"}}
    assert take_off(stamp(given, ALL)) == stamp(given, Metadata(E, {}))


def test_taking_off_keeps_the_form_of_capabilities_that_are_none() -> None:
    bare = stamp({}, Metadata(E, {}))
    assert take_off(stamp({}, Metadata(E, {}, CLIENT, "info"))) == bare
    assert take_off(bare) is bare


@pytest.mark.parametrize("given", [{}, {"_meta": {}}, {"_meta": {"progressToken": 1}}, {"_meta": 5}])
def test_taking_off_nothing_gives_the_same_object(given: Any) -> None:
    assert take_off(given) is given


def test_metadata_that_is_taken_off_is_no_loss() -> None:
    params = take_off(stamp({"name": "add", "arguments": {}}, ALL))
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    translation = dragoman_spec.translate(frame, source=E, target="2024-11-05")
    assert not translation.losses


def test_identity_goes_on_and_comes_off() -> None:
    result = {"tools": [], "_meta": {"com.example/a": 1}}
    assert take_identity(put_identity(result, SERVER)) == (result, SERVER)


def test_identity_that_is_alone_takes_meta_with_it() -> None:
    assert take_identity(put_identity({"tools": []}, SERVER)) == ({"tools": []}, SERVER)


def test_identity_of_somebody_else_is_replaced() -> None:
    assert put_identity(put_identity({}, CLIENT), SERVER) == {"_meta": {names.META_SERVER_INFO: SERVER}}


def test_a_result_without_identity_stays_the_same_object() -> None:
    result = {"tools": []}
    found, info = take_identity(result)
    assert found is result
    assert info is None


def test_identity_that_is_no_object_is_nobody() -> None:
    assert take_identity({"_meta": {names.META_SERVER_INFO: "me"}}) == ({}, None)


def test_what_a_request_says_like_the_one_before_is_read_once() -> None:
    reader = MetadataReader([E])
    first = reader.read(stamp({"a": 1}, ALL))
    assert first == ALL
    assert reader.read(stamp({"b": 2}, ALL)) is first


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (False, 0)])
def test_what_only_looks_equal_is_read_again(one: Any, other: Any) -> None:
    reader = MetadataReader([E])
    for value in (one, other):
        found = reader.read(stamp({}, Metadata(E, {"experimental": {"x": value}})))
        assert type(found.capabilities["experimental"]["x"]) is type(value)


def test_a_request_that_says_nothing_is_refused_after_one_that_did() -> None:
    reader = MetadataReader([E])
    reader.read(stamp({}, ALL))
    for params in ({}, {"_meta": None}, None):
        with pytest.raises(RemoteProtocolError):
            reader.read(params)
    assert reader.read(stamp({}, ALL)) == ALL


def test_capabilities_that_are_nested_without_end_are_refused() -> None:
    capabilities: dict[str, Any] = {}
    for _ in range(5_000):
        capabilities = {"experimental": capabilities}
    reader = MetadataReader([E])
    with pytest.raises(RemoteProtocolError, match="at most 500 levels at /params/_meta"):
        reader.read(stamp({}, Metadata(E, capabilities)))
    assert reader.read(stamp({}, ALL)) == ALL
