"""What the schema shows of methods is derived, the rest comes from the table, and every entry of the table is used."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.errors import UnknownSchemaForm
from codegen.read.fact_entries import Said, entries_of, said_of
from codegen.read.load import build_spec
from codegen.read.model import Spec
from codegen.read.normalise import Normalised, normalise
from codegen.read.protocol import (
    ErrorCode,
    MethodEntry,
    envelopes,
    error_codes,
    filled_in,
    input_entries,
    method_entries,
)

REVISION = "2099-01-01"


def _said(**tables: Any) -> Said:
    rows = {table: [{**says, "reason": "because"} for says in entries] for table, entries in tables.items()}
    return said_of(entries_of("overlay", REVISION, rows), REVISION, "handshake")


NOTHING = _said()
CAPABILITIES = {
    "type": "object",
    "properties": {
        "tools": {"type": "object", "properties": {"listChanged": {"type": "boolean"}}},
        "logs": {"type": "object"},
    },
}


def _call(method: str, **params: Any) -> dict[str, Any]:
    properties = {"method": {"const": method, "type": "string"}, "params": {"type": "object", "properties": params}}
    return {"type": "object", "properties": properties, "required": ["method"]}


def _definitions(**more: Any) -> dict[str, Any]:
    meta = {"type": "object", "properties": {"_meta": {"type": "object"}}}
    base = {"type": "object", "properties": {"method": {"type": "string"}, "params": meta}}
    return {
        "Request": base,
        "Notification": base,
        "RequestId": {"type": ["string", "integer"]},
        "EmptyResult": {"type": "object"},
        "ClientCapabilities": {"type": "object"},
        "ServerCapabilities": CAPABILITIES,
        "PokeRequest": _call("tools/poke", hard={"type": "boolean"}),
        "PokeResult": {"type": "object"},
        "ShoutRequest": _call("shout", word={"type": "string"}),
        "ToolListChangedNotification": _call("notifications/tools/list_changed"),
        "ClientRequest": {"anyOf": [{"$ref": "#/$defs/PokeRequest"}, {"$ref": "#/$defs/ShoutRequest"}]},
        "ServerRequest": {"anyOf": [{"$ref": "#/$defs/ShoutRequest"}]},
        "ServerNotification": {"anyOf": [{"$ref": "#/$defs/ToolListChangedNotification"}]},
        **more,
    }


def _both(**more: Any) -> tuple[Spec, Normalised]:
    schema = {"$defs": _definitions(**more)}
    return build_spec(REVISION, schema), normalise(REVISION, schema)


def _entry(name: str, said: Said = NOTHING) -> MethodEntry:
    return {entry.name: entry for entry in method_entries(*_both(), said)}[name]


def test_entries_come_by_name() -> None:
    names = [entry.name for entry in method_entries(*_both(), NOTHING)]
    assert names == ["notifications/tools/list_changed", "shout", "tools/poke"]


def test_entry_names_the_definitions_of_its_frames() -> None:
    entry = _entry("tools/poke")
    assert (entry.frame, entry.params, entry.result) == ("PokeRequest", "PokeRequestParams", "PokeResult")


def test_request_without_a_result_of_its_own_is_answered_empty() -> None:
    assert _entry("shout").results == ("EmptyResult",)


def test_both_sides_may_send_what_both_unions_have() -> None:
    assert _entry("shout").senders == ("client", "server")


def test_notification_has_no_result() -> None:
    assert _entry("notifications/tools/list_changed").result is None


def test_capability_is_the_feature_a_method_is_named_after() -> None:
    assert _entry("tools/poke").capability == "tools"


def test_capability_is_the_member_a_method_is_named_after() -> None:
    assert _entry("notifications/tools/list_changed").capability == "tools.listChanged"


def test_method_named_after_no_feature_needs_no_capability() -> None:
    assert _entry("shout").capability is None


def test_table_rules_where_the_schema_shows_nothing() -> None:
    assert _entry("shout", _said(capability=[{"method": "shout", "capability": "logs"}])).capability == "logs"


def test_requests_inside_results_have_a_table_of_their_own() -> None:
    _, schema = _both(InputRequest={"anyOf": [{"$ref": "#/$defs/PokeRequest"}, {"$ref": "#/$defs/ShoutRequest"}]})
    assert [(entry.name, entry.senders, entry.results) for entry in input_entries(schema, _said())] == [
        ("shout", ("server",), ("ShoutResult",)),
        ("tools/poke", ("server",), ("PokeResult",)),
    ]


def test_revision_without_requests_inside_results_has_none() -> None:
    assert input_entries(_both()[1], _said()) == []


def test_error_codes_are_constants_of_errors() -> None:
    code = {"type": "object", "properties": {"code": {"const": -1, "type": "integer"}}, "required": ["code"]}
    response = {"type": "object", "properties": {"error": {**code, "properties": {"code": {"const": -2}}}}}
    _, schema = _both(FullMoonError=code, HTTPIsDownError=response)
    assert error_codes(schema, NOTHING) == [ErrorCode(-2, "HTTP_IS_DOWN"), ErrorCode(-1, "FULL_MOON")]


def test_table_names_a_code_before_the_schema_does() -> None:
    code = {"type": "object", "properties": {"code": {"const": -1}}, "required": ["code"]}
    _, schema = _both(FullMoonError=code)
    assert error_codes(schema, _said(error_code=[{"code": -1, "name": "LUNACY"}])) == [ErrorCode(-1, "LUNACY")]


def test_envelope_goes_by_the_name_the_revision_has() -> None:
    _, schema = _both(JSONRPCRequest={}, JSONRPCNotification={}, JSONRPCResponse={}, JSONRPCError={})
    assert envelopes(schema)["result"] == "JSONRPCResponse"


def test_missing_envelope_is_refused() -> None:
    _, schema = _both(JSONRPCRequest={})
    with pytest.raises(UnknownSchemaForm, match="no JSONRPCNotification"):
        envelopes(schema)


def test_definitions_own_entry_wins_over_that_for_all() -> None:
    _, schema = _both()
    fills = [{"at": "PokeRequest.method", "value": "p"}, {"at": "*.method", "value": "x"}]
    found = filled_in(schema, _said(fill=fills))
    assert (found["PokeRequest"]["method"], found["ShoutRequest"]["method"]) == ("p", "x")
