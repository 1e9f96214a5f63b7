"""What each revision has beside its schema, held against the pages of the specification."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS, UnsupportedRevision, facts

PER_REQUEST = "2026-07-28"
KEY = "io.modelcontextprotocol/"


def by_revision(value: Any) -> list[Any]:
    return [value(facts(revision)) for revision in (*HANDSHAKE_REVISIONS[:4], PER_REQUEST)]


def test_each_revision_has_its_own() -> None:
    assert [facts(revision).revision for revision in REVISIONS] == list(REVISIONS)
    assert [facts(revision).era for revision in REVISIONS] == [dragoman_spec.era(revision) for revision in REVISIONS]


def test_a_revision_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UnsupportedRevision):
        facts("2023-01-01")


def test_headers_by_revision() -> None:
    names = by_revision(lambda facts: sorted(header.name for header in facts.headers.values()))
    sessions = ["Last-Event-ID", "Mcp-Session-Id"]
    assert names == [
        [],
        sessions,
        ["Last-Event-ID", "MCP-Protocol-Version", "Mcp-Session-Id"],
        ["Last-Event-ID", "MCP-Protocol-Version", "Mcp-Session-Id"],
        ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-"],
    ]


def test_transports_by_revision() -> None:
    streamable = {"stdio", "streamable-http"}
    assert by_revision(lambda facts: facts.transports) == [{"stdio", "http+sse"}, *[streamable] * 4]


def test_http_methods_by_revision() -> None:
    session = {"POST", "GET", "DELETE"}
    assert by_revision(lambda facts: facts.http_methods) == [set(), session, session, session, {"POST"}]


def test_authorization_by_revision() -> None:
    demanded = by_revision(lambda facts: facts.authorization)
    named = {"resource-indicator"}
    announced = {*named, "announced-pkce"}
    assert demanded == [set(), {"default-endpoints"}, named, announced, announced]


def test_batches_and_polling_by_revision() -> None:
    assert by_revision(lambda facts: facts.batches) == [False, True, False, False, False]
    assert by_revision(lambda facts: facts.polls) == [False, False, False, True, False]


def test_a_name_is_taken_from_another_member_for_resources() -> None:
    name = facts(PER_REQUEST).headers["name"]
    assert name.members == {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
    assert name.is_encoded
    assert facts(PER_REQUEST).headers["argument"].annotation == "x-mcp-header"


def test_keys_of_meta_in_the_per_request_era() -> None:
    new = facts(PER_REQUEST)
    named = ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel")
    assert new.request_meta == {**{name: KEY + name for name in named}, "progressToken": "progressToken"}
    assert new.required_meta == {KEY + "protocolVersion", KEY + "clientCapabilities"}
    assert new.result_meta["serverInfo"] == KEY + "serverInfo"
    assert new.notification_meta == {"subscriptionId": KEY + "subscriptionId"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_progress_tokens_are_in_meta_in_every_revision(revision: str) -> None:
    assert facts(revision).request_meta["progressToken"] == "progressToken"


def test_what_the_per_request_era_lets_ask_and_keep() -> None:
    new = facts(PER_REQUEST)
    assert new.input_required == {"tools/call", "prompts/get", "resources/read"}
    lists = {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}
    assert new.cacheable == {*lists, "resources/read", "server/discover"}
    assert not new.quiet & new.input_required


def test_errors_and_their_status_in_the_per_request_era() -> None:
    new, codes = facts(PER_REQUEST), dragoman_spec.load(PER_REQUEST).ERROR_CODES
    assert {codes[code]: status for code, status in new.http_status.items()} == {
        "METHOD_NOT_FOUND": 404,
        "HEADER_MISMATCH": 400,
        "MISSING_REQUIRED_CLIENT_CAPABILITY": 400,
        "UNSUPPORTED_PROTOCOL_VERSION": 400,
    }
    assert new.meta_refusal == (-32602, 400)


def test_members_of_a_subscription_and_their_notifications() -> None:
    assert facts(PER_REQUEST).subscriptions == {
        "toolsListChanged": "notifications/tools/list_changed",
        "promptsListChanged": "notifications/prompts/list_changed",
        "resourcesListChanged": "notifications/resources/list_changed",
        "resourceSubscriptions": "notifications/resources/updated",
    }


def test_what_can_be_declared_for_several_clients() -> None:
    roots = {"roots": {"listChanged": True}}
    parts = {"sampling": {"context": {}, "tools": {}}, "elicitation": {"form": {}, "url": {}}}
    assert by_revision(lambda facts: facts.shared_capabilities) == [
        {**roots, "sampling": {}},
        {**roots, "sampling": {}},
        {**roots, "sampling": {}, "elicitation": {}},
        {**roots, **parts},
        {"roots": {}, **parts},
    ]


@pytest.mark.parametrize("revision", REVISIONS)
def test_log_levels_go_from_verbose_to_serious(revision: str) -> None:
    levels = facts(revision).log_levels
    assert (levels[0], levels.index("warning") < levels.index("error"), levels[-1]) == ("debug", True, "emergency")


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_method_is_relayed_or_spent_on_the_way(revision: str) -> None:
    known = facts(revision)
    spent = {*known.lifecycle.values(), *known.local}
    assert known.relayed | spent == dragoman_spec.load(revision).METHODS.keys()
    assert not known.relayed & spent


@pytest.mark.parametrize(
    ("method", "params", "needed"),
    [
        ("elicitation/create", {}, ["elicitation.form"]),
        ("elicitation/create", {"mode": "form"}, ["elicitation.form"]),
        ("elicitation/create", {"mode": "url"}, ["elicitation.url"]),
        ("sampling/createMessage", {}, []),
        ("sampling/createMessage", {"tools": []}, ["sampling.tools"]),
    ],
)
def test_params_say_which_part_of_a_capability_is_needed(
    method: str, params: dict[str, Any], needed: list[str]
) -> None:
    parts = facts("2025-11-25").parts
    assert [part.capability for part in parts if part.method == method and part.is_needed(params)] == needed


def test_facts_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        facts("2025-11-25").polls = False  # type: ignore[misc]
    with pytest.raises(TypeError):
        facts("2025-11-25").headers["session"] = None  # type: ignore[index]
