"""What a server is told of its client and a client of its server, across the eras."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import dragoman_spec
from dragoman.core.rules.capabilities import Path, declare_down, declare_up, spell_required
from dragoman_spec import HANDSHAKE_REVISIONS

A, B, C, D = HANDSHAKE_REVISIONS
E = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
UI = "io.modelcontextprotocol/ui"

RICH = {
    "experimental": {"x": {"y": 1}},
    "roots": {"listChanged": True},
    "sampling": {"context": {}, "tools": {}},
    "elicitation": {"form": {}, "url": {}},
    "tasks": {"list": {}, "requests": {"sampling": {"createMessage": {}}}},
    "ofAVendor": {"z": 1},
}
SERVER = {
    "completions": {},
    "experimental": {"x": {}},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}


def pointers(losses: Any) -> list[str]:
    assert all(loss.kind == "dropped" for loss in losses)
    return sorted(loss.pointer for loss in losses)


@pytest.mark.parametrize(
    ("client", "server", "bridge"), [(A, D, None), (A, E, "to_stateless"), (E, A, "to_session"), (E, E, None)]
)
def test_a_path_between_two_eras_has_a_bridge(client: str, server: str, bridge: str | None) -> None:
    assert Path(client, server).bridge == bridge


@pytest.mark.parametrize(("client", "server"), [(A, D), (E, E)])
def test_nothing_is_decided_within_an_era(client: str, server: str) -> None:
    path = Path(client, server)
    assert declare_up(RICH, path) == (RICH, ())
    assert declare_down(SERVER, path) == (SERVER, ())


@pytest.mark.parametrize(
    ("client", "declared", "told"),
    [
        (A, {"roots": {"listChanged": True}, "sampling": {}}, {"roots": {}, "sampling": {}}),
        (A, {"elicitation": {}}, {}),
        (B, {"elicitation": {}}, {}),
        (C, {"elicitation": {}}, {"elicitation": {"form": {}}}),
        (C, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        (C, {"sampling": {"tools": {}}}, {"sampling": {}}),
        (D, {"elicitation": {}}, {"elicitation": {"form": {}}}),
        (D, {"elicitation": {"url": {}}}, {"elicitation": {"url": {}}}),
        (D, {"sampling": {"tools": {}, "context": {}}}, {"sampling": {"tools": {}, "context": {}}}),
        (D, {"tasks": {"list": {}}}, {}),
        (D, {"extensions": {UI: {"a": 1}, TASKS: {}}}, {"extensions": {UI: {"a": 1}}}),
        (C, {"extensions": {UI: {"a": 1}}}, {"extensions": {UI: {"a": 1}}}),
        (D, {"extensions": 5}, {}),
        (D, {"roots": 5, "x": None}, {"roots": 5, "x": None}),
    ],
)
def test_a_per_request_server_is_told_what_the_client_can_be_asked(client: str, declared: Any, told: Any) -> None:
    assert declare_up(declared, Path(client, E)).capabilities == told


def test_what_a_per_request_server_is_not_told_is_lost() -> None:
    told, losses = declare_up(RICH, Path(D, E))
    assert told.keys() == RICH.keys() - {"tasks"}
    assert pointers(losses) == ["/capabilities/roots/listChanged", "/capabilities/tasks"]


@pytest.mark.parametrize("client", HANDSHAKE_REVISIONS)
def test_what_a_per_request_server_is_told_is_valid(client: str) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": E,
        "io.modelcontextprotocol/clientCapabilities": declare_up(RICH, Path(client, E, tasks=True)).capabilities,
    }
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}, E)


def test_a_call_that_wants_a_task_declares_the_extension() -> None:
    path = Path(D, E, tasks=True)
    assert declare_up({"extensions": {UI: {}}}, path, wants_task=True).capabilities == {
        "extensions": {UI: {}, TASKS: {}}
    }
    assert declare_up({}, path).capabilities == {}
    assert declare_up({}, Path(D, E), wants_task=True).capabilities == {}


@pytest.mark.parametrize("scope", ["shared", "principal", "client"])
def test_a_session_is_opened_with_what_its_client_declares(scope: Any) -> None:
    assert declare_up({}, Path(E, D, scope)) == ({}, ())
    told, losses = declare_up({"roots": {}, "elicitation": {}}, Path(E, D, scope))
    assert told == {"roots": {}, "elicitation": {"form": {}}}
    assert losses == ()


@pytest.mark.parametrize("path", [Path(D, E), Path(A, E), Path(E, D), Path(E, A)])
def test_a_client_is_told_what_a_server_can_do(path: Path) -> None:
    assert declare_down(SERVER, path) == (SERVER, ())


def test_a_capability_that_is_no_object_is_told_as_it_is() -> None:
    assert declare_down({"tools": 5}, Path(D, E)) == ({"tools": 5}, ())


@pytest.mark.parametrize(
    ("path", "told", "lost"),
    [
        (Path(D, E), {}, ["tasks"]),
        (Path(C, E, tasks=True), {}, ["tasks"]),
        (Path(D, E, tasks=True), {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}, []),
    ],
)
def test_a_handshake_client_is_told_of_extensions(path: Path, told: Any, lost: list[str]) -> None:
    found, losses = declare_down({"extensions": {TASKS: {}, UI: {"a": 1}}}, path)
    assert found == {"extensions": {UI: {"a": 1}}, **told}
    assert pointers(losses) == [f"/capabilities/extensions/io.modelcontextprotocol~1{name}" for name in lost]


def test_a_per_request_client_is_told_of_extensions_beside_that_of_tasks() -> None:
    tasks = {"requests": {"tools": {"call": {}}}}
    found, losses = declare_down({"extensions": {UI: {"a": 1}}, "tasks": tasks}, Path(E, D, tasks=True))
    assert (found, losses) == ({"extensions": {UI: {"a": 1}, TASKS: {}}}, ())


@pytest.mark.parametrize(
    ("path", "tasks", "told"),
    [
        (Path(E, D), {"requests": {"tools": {"call": {}}}}, {}),
        (Path(E, D, tasks=True), {"requests": {"tools": {"call": {}}}}, {"extensions": {TASKS: {}}}),
        (Path(E, D, tasks=True), {"list": {}, "cancel": {}}, {}),
        (Path(E, D, tasks=True, promotes=True), {"list": {}, "cancel": {}}, {}),
        (Path(E, D, tasks=True), 5, {}),
    ],
)
def test_a_per_request_client_is_told_of_tasks_as_an_extension(path: Path, tasks: Any, told: Any) -> None:
    found, losses = declare_down({"tasks": tasks}, path)
    assert found == told
    assert pointers(losses) == ([] if told else ["/capabilities/tasks"])


@pytest.mark.parametrize("broken", [{"extensions": 5}, {"extensions": {}}])
def test_extensions_that_say_nothing_lose_nothing(broken: Any) -> None:
    assert declare_down(broken, Path(D, E)) == ({}, ())


def test_a_required_capability_is_spelled_as_it_is_declared() -> None:
    assert spell_required("roots") == {"roots": {}}
    assert spell_required("elicitation.url") == {"elicitation": {"url": {}}}


@pytest.mark.parametrize(("has", "told"), [({"tools": {}}, True), ({"prompts": {}}, False)])
def test_a_call_may_become_a_task_where_there_are_tools(has: Any, told: bool) -> None:
    path = Path(E, D, tasks=True, promotes=True)
    assert (declare_down(has, path).capabilities.get("extensions") == {TASKS: {}}) is told
    assert "extensions" not in declare_down(has, replace(path, promotes=False)).capabilities
