"""A server introduces itself to a client of the other era."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.rules.capabilities import Path
from dragoman.core.rules.discovery import (
    offer_served,
    read_initialize,
    served_versions,
    to_discover_result,
    to_initialize_params,
    to_initialize_result,
)
from dragoman.core.rules.metadata import Metadata
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS

A, B, C, D = HANDSHAKE_REVISIONS
E = "2026-07-28"
INFO = {"name": "a-server", "version": "2", "title": "A server"}
ME = {"name": "dragoman", "version": "9"}
SERVER_INFO = "io.modelcontextprotocol/serverInfo"

DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [E],
    "capabilities": {"tools": {"listChanged": True}, "extensions": {"com.example/x": {}}},
    "instructions": "Ask nicely.",
    "ttlMs": 60000,
    "cacheScope": "public",
    "_meta": {SERVER_INFO: INFO, "com.example/k": 1},
}
INITIALIZED = {
    "protocolVersion": D,
    "capabilities": {"tools": {"listChanged": True}, "extensions": {"com.example/x": {}}},
    "serverInfo": INFO,
    "instructions": "Ask nicely.",
    "_meta": {"com.example/k": 1},
}


def test_a_handshake_client_is_answered_from_a_discover_result() -> None:
    assert to_initialize_result(DISCOVERED, Path(D, E), "configured") == (INITIALIZED, ())


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_the_steps_take_the_answer_to_older_clients(revision: str) -> None:
    result, _ = to_initialize_result(DISCOVERED, Path(revision, E), "configured")
    frame = {"jsonrpc": "2.0", "id": 1, "result": result}
    translated = dragoman_spec.translate(frame, source=D, target=revision, method="initialize").frame
    assert translated is not None
    assert translated["result"]["protocolVersion"] == revision
    dragoman_spec.validate(translated, revision, method="initialize")


@pytest.mark.parametrize(
    ("info", "named"),
    [
        (None, {"name": "configured", "version": "0"}),
        ("nobody", {"name": "configured", "version": "0"}),
        ({"name": "a"}, {"name": "a", "version": "0"}),
        ({"version": "3"}, {"name": "configured", "version": "3"}),
    ],
)
def test_a_server_without_a_name_is_called_as_the_user_does(info: Any, named: dict[str, str]) -> None:
    result, losses = to_initialize_result({"capabilities": {}, "_meta": {SERVER_INFO: info}}, Path(D, E), "configured")
    assert result["serverInfo"] == named
    assert [(loss.kind, loss.pointer, loss.value) for loss in losses] == [("added", "/result/serverInfo", named)]


@pytest.mark.parametrize("broken", [{}, {"capabilities": []}])
def test_a_server_that_says_nothing_can_nothing(broken: Any) -> None:
    assert to_initialize_result(broken, Path(D, E), "x").result["capabilities"] == {}
    assert to_discover_result(broken, Path(E, D)).result["capabilities"] == {}


def test_a_per_request_client_is_answered_from_a_handshake() -> None:
    result, losses = to_discover_result(INITIALIZED, Path(E, D))
    assert losses == ()
    assert result == {
        **DISCOVERED,
        "supportedVersions": list(reversed(dragoman_spec.REVISIONS)),
        "ttlMs": 0,
        "cacheScope": "private",
    }
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "result": result}, E, method="server/discover")


def test_what_a_per_request_client_is_not_told_is_lost() -> None:
    _, losses = to_discover_result({**INITIALIZED, "capabilities": {"tasks": {}}}, Path(E, D))
    assert [loss.pointer for loss in losses] == ["/result/capabilities/tasks"]


def test_the_newest_revision_is_served_first() -> None:
    assert served_versions() == tuple(reversed(dragoman_spec.REVISIONS))


@pytest.mark.parametrize(
    ("scope", "client", "named"),
    [
        ("client", {"name": "c", "version": "1"}, "c"),
        ("client", None, "dragoman"),
        ("shared", {"name": "c"}, "dragoman"),
    ],
)
def test_a_session_is_opened_in_the_name_of(scope: Any, client: Any, named: str) -> None:
    params = to_initialize_params(Metadata(E, {}, client), Path(E, A, scope), ME)
    assert params["clientInfo"]["name"] == named
    assert params["protocolVersion"] == D


def test_an_opened_session_is_valid() -> None:
    params = to_initialize_params(Metadata(E, {"elicitation": {}}), Path(E, D), ME)
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}, D)


def test_what_initialize_says_is_stamped_later() -> None:
    params = {"protocolVersion": C, "capabilities": {"roots": {"listChanged": True}}, "clientInfo": ME}
    metadata, losses = read_initialize(params, Path(C, E))
    assert metadata == Metadata(E, {"roots": {}}, ME)
    assert [loss.pointer for loss in losses] == ["/params/capabilities/roots/listChanged"]


@pytest.mark.parametrize("info", [None, "me", {"name": "me"}, {"version": "1"}])
def test_a_client_that_does_not_say_who_it_is_is_nobody(info: Any) -> None:
    assert read_initialize({"clientInfo": info}, Path(C, E))[0] == Metadata(E, {}, None)


@pytest.mark.parametrize("named", [["2026-07-28"], ["2026-07-28", "2099-01-01"], 5])
def test_a_server_is_offered_in_every_revision_that_it_is_served_in(named: Any) -> None:
    found = offer_served({"supportedVersions": named, "ttlMs": 5})
    assert found["supportedVersions"][: len(REVISIONS)] == [*reversed(REVISIONS)]
    assert found["supportedVersions"][len(REVISIONS) :] == (named[1:] if isinstance(named, list) else [])
    assert found["ttlMs"] == 5
