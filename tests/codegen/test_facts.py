"""What a revision has beside its methods: derived from its schema, or said by an entry; and no entry without use."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.errors import UnusedDecision
from codegen.read.fact_entries import Entry, entries_of, said_of
from codegen.read.facts import Json, Made, Source, check_entries, derive_facts, missing_facts, source_of
from codegen.read.load import build_spec
from codegen.read.normalise import normalise
from codegen.write.registry import render_facts

REVISION = "2099-01-01"
TEXT = {"type": "string"}
FLAG = {"type": "boolean"}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _call(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return _object(("method",), method={"const": method, "type": "string"}, params=params or {"type": "object"})


def _ref(*names: str) -> dict[str, Any]:
    return {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in names]}


def _definitions(**more: Any) -> dict[str, Any]:
    meta = _object(("mcp/mood",), **{"mcp/mood": TEXT, "token": TEXT})
    return {
        "Request": _object(("method",), method=TEXT, params=_object(_meta=_object(token=TEXT))),
        "Notification": _object(("method",), method=TEXT, params={"type": "object"}),
        "Result": _object(_meta=_object(**{"mcp/cook": TEXT})),
        "EmptyResult": {"type": "object"},
        "RequestId": {"type": ["string", "integer"]},
        "LoggingLevel": {"enum": ["high", "low"], "type": "string"},
        "ClientCapabilities": _object(
            mirror=_object(deep={"type": "object"}, loud=FLAG), experimental={"type": "object"}
        ),
        "ServerCapabilities": _object(soup=_object(listChanged=FLAG, stir=FLAG)),
        "SoupCookRequest": _call("soup/cook", _object(("_meta", "dish"), _meta=meta, dish=TEXT)),
        "SoupCookResult": _object(ttlMs={"type": "integer"}, cacheScope=TEXT),
        "SoupStirRequest": _call("soup/stir"),
        "SoupStirResult": {"type": "object"},
        "SoupListChangedNotification": _call("notifications/soup/list_changed", _object(_meta=_object(id=TEXT))),
        "MirrorLookRequest": _call("mirror/look", _object(depth=TEXT)),
        "MirrorLookResult": {"type": "object"},
        "ClientRequest": _ref("SoupCookRequest", "SoupStirRequest"),
        "ServerRequest": _ref("MirrorLookRequest"),
        "ServerNotification": _ref("SoupListChangedNotification"),
        **more,
    }


def _entries(tables: dict[str, Any], revision: str = REVISION) -> list[Entry]:
    said = {table: [{**entry, "reason": "because"} for entry in entries] for table, entries in tables.items()}
    return entries_of(f"{revision}.toml", revision, said)


def _source(tables: dict[str, Any] | None = None, **more: Any) -> Source:
    schema = {"$defs": _definitions(**more)}
    said = said_of(_entries(tables or {}), REVISION, "handshake")
    return source_of(build_spec(REVISION, schema), normalise(REVISION, schema), "handshake", said)


def _derive(tables: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return derive_facts(_source(tables, **more))


PART = {"capability": "mirror.deep", "method": "mirror/look", "member": "depth", "value": "all"}
LISTED = {"quiet": [{"methods": ["soup/stir", "soup/gone"]}]}
FILTER = {"SubscriptionFilter": _object(soupListChanged=FLAG, soupTastes=FLAG)}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("revision", REVISION),
        ("era", "handshake"),
        ("batches", False),
        ("polls", False),
        ("relayed", {"soup/cook", "soup/stir", "mirror/look", "notifications/soup/list_changed"}),
        ("cacheable", {"soup/cook"}),
        ("client_capabilities", {"mirror", "mirror.deep", "mirror.loud", "experimental"}),
        ("server_capabilities", {"soup", "soup.listChanged", "soup.stir"}),
        ("server_flags", {"soup.listChanged", "soup.stir"}),
        ("announced", {"notifications/soup/list_changed": "soup.listChanged"}),
        ("standing", {"soup/stir"}),
        ("asked", {"mirror/look": "mirror"}),
        ("interactive", {"mirror/look"}),
        ("shared_capabilities", Json({"mirror": {"deep": {}, "loud": True}})),
        ("request_meta", {"mood": "mcp/mood", "token": "token"}),
        ("required_meta", {"mcp/mood"}),
        ("result_meta", {"cook": "mcp/cook"}),
        ("notification_meta", {"id": "id"}),
        ("meta_refusal", None),
    ],
)
def test_a_schema_shows(field: str, expected: Any) -> None:
    assert _derive()[field] == expected


@pytest.mark.parametrize(
    ("field", "tables", "expected"),
    [
        ("transports", {"transport": [{"name": "stdio"}]}, {"stdio"}),
        ("http_methods", {"http_method": [{"name": "POST"}]}, {"POST"}),
        ("authorization", {"authorization": [{"name": "announced-pkce"}]}, {"announced-pkce"}),
        ("polls", {"trait": [{"name": "polls"}]}, True),
        ("log_levels", {"log_levels": [{"order": ["low", "middle", "high"]}]}, ("low", "high")),
        ("lifecycle", {"lifecycle": [{"part": "open", "method": "soup/cook"}]}, {"open": "soup/cook"}),
        ("relayed", {"local": [{"methods": ["soup/stir"]}], "lifecycle": [{"part": "open", "method": "soup/cook"}]},
         {"mirror/look", "notifications/soup/list_changed"}),
        ("local", {"local": [{"methods": ["soup/stir"]}]}, {"soup/stir"}),
        ("quiet", LISTED, {"soup/stir"}),
        ("interactive", {"impersonal": [{"methods": ["mirror/look"]}]}, frozenset()),
        ("interactive", {"unshared": [{"capability": "mirror"}]}, frozenset()),
        ("shared_capabilities", {"unshared": [{"capability": "mirror"}]}, Json({})),
        ("parts", {"part": [PART]}, (Made("Part", {**PART, "is_default": False}),)),
        ("parts", {"part": [{**PART, "capability": "mirror.gone"}]}, ()),
        ("notification_meta", {"meta": [{"key": "mcp/do", "on": ["notification"]}]}, {"id": "id", "do": "mcp/do"}),
        ("http_status", {"http_status": [{"code": -1, "status": 400}]}, {-1: 400}),
        ("meta_refusal", {"meta_refusal": [{"code": -1, "status": 400}]}, (-1, 400)),
    ],
)  # fmt: skip
def test_an_entry_says(field: str, tables: dict[str, Any], expected: Any) -> None:
    assert _derive(tables)[field] == expected


def test_a_key_of_meta_is_for_the_frames_that_its_entry_names() -> None:
    facts = _derive({"meta": [{"key": "mcp/do", "on": ["notification"]}]})
    assert "do" not in facts["request_meta"] | facts["result_meta"]


def test_a_header_is_found_by_what_it_carries() -> None:
    header = {"name": "Mcp-Name", "carries": "name", "members": {"soup/cook": "dish"}}
    rest = {"annotation": None, "is_encoded": False}
    assert _derive({"header": [header]})["headers"] == {"name": Made("Header", {**header, **rest})}


def test_batches_are_there_where_the_schema_has_them() -> None:
    assert _derive(JSONRPCBatchRequest={"type": "array"})["batches"]


def test_where_results_say_that_they_ask_everything_else_is_quiet() -> None:
    more = {
        "InputRequiredResult": {"type": "object"},
        "SoupCookResultResponse": _object(result=_ref("InputRequiredResult", "SoupCookResult")),
    }
    facts = _derive({"quiet": [{"methods": ["soup/cook"]}]}, **more)
    assert (facts["input_required"], facts["quiet"]) == ({"soup/cook"}, {"soup/stir"})


def test_requests_inside_of_results_need_capabilities_too() -> None:
    look = _call("mirror/peer", _object(depth=TEXT))
    more = {"MirrorPeerRequest": look, "MirrorPeerResult": {"type": "object"}}
    facts = _derive(**more, InputRequest=_ref("MirrorPeerRequest", "MirrorLookRequest"))
    assert facts["asked"] == {"mirror/look": "mirror", "mirror/peer": "mirror"}


def test_a_key_of_meta_that_only_some_requests_need_is_not_required() -> None:
    other = _call("soup/stir", _object(("_meta",), _meta=_object(("token",), token=TEXT)))
    assert _derive(SoupStirRequest=other)["required_meta"] == frozenset()


def test_a_filter_asks_for_what_its_members_repeat_or_an_entry_says() -> None:
    tastes = {"subscription": [{"member": "soupTastes", "method": "soup/stir"}]}
    by_name = {"soupListChanged": "notifications/soup/list_changed"}
    assert _derive(**FILTER)["subscriptions"] == by_name
    assert _derive(tastes, **FILTER)["subscriptions"] == {**by_name, "soupTastes": "soup/stir"}


def test_what_no_entry_places_is_named() -> None:
    assert missing_facts(_source({"log_levels": [{"order": ["low"]}]}, **FILTER)) == [
        "[[log_levels]] order: 'high'",
        "[[subscription]]: 'soupTastes'",
    ]


@pytest.mark.parametrize(
    ("table", "says", "reason"),
    [
        ("quiet", {"methods": ["soup/stir", "soup/eat"]}, "the revision has no method soup/eat"),
        ("lifecycle", {"part": "open", "method": "soup/eat"}, "no method soup/eat"),
        ("lifecycle", {"part": "open", "method": "soup/cook", "era": "per_request"}, "is of the era handshake"),
        ("capability", {"method": "soup/eat", "capability": "soup"}, "no method soup/eat"),
        ("capability", {"method": "soup/cook", "capability": "spoon"}, "no client or server capability spoon"),
        ("fill", {"at": "*.spoon", "value": 1}, r"no required field \*\.spoon"),
        ("gone", {"header": "name"}, r"no \[\[header\]\] on 'name' to end"),
        ("unshared", {"capability": "spoon"}, "no client capability spoon"),
        ("part", {**PART, "member": "width"}, "no mirror/look with params.width"),
        ("http_status", {"code": -5, "status": 400}, "no error code -5"),
        ("log_levels", {"order": ["low", "middle"]}, "no level middle"),
        ("subscription", {"member": "soupTastes", "method": "soup/stir"}, "no filter member soupTastes"),
        ("header", {"name": "X", "carries": "name", "members": {"soup/cook": "name"}}, "soup/cook with params.name"),
    ],
)
def test_an_entry_without_use_is_refused(table: str, says: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnusedDecision, match=reason):
        check_entries(_source(), _entries({table: [says]}))


def test_entries_of_use_pass() -> None:
    earlier = _entries({"transport": [{"name": "stdio"}]}, "2098-01-01")
    check_entries(_source(), [*earlier, *_entries({"part": [PART], "gone": [{"transport": "stdio"}]})])


def test_entries_of_other_revisions_are_not_its_business() -> None:
    check_entries(_source(), _entries({"quiet": [{"methods": ["soup/eat"]}]}, "2098-01-01"))


def test_the_table_is_python_that_gives_the_facts() -> None:
    text = render_facts([_source({"part": [PART]})])
    names: dict[str, Any] = {}
    exec(compile(text, "_facts.py", "exec"), names)
    facts = names["FACTS"][REVISION]
    assert (facts.server_flags, facts.shared_capabilities) == (
        {"soup.listChanged", "soup.stir"},
        {"mirror": {"deep": {}, "loud": True}},
    )
    assert [part.is_needed({"depth": "all"}) for part in facts.parts] == [True]
