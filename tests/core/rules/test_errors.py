"""What a server's error means for a client of the other era, and the HTTP status of each."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.rules.capabilities import Path
from dragoman.core.rules.errors import (
    FailTool,
    Refresh,
    Relay,
    Say,
    Visit,
    answer_error,
    find_http_status,
    unsupported_version,
)

D, E = "2025-11-25", "2026-07-28"
IN_SESSIONS, TO_STATELESS, TO_SESSION, STATELESS = Path(D, D), Path(D, E), Path(E, D), Path(E, E)


def error(code: Any, **data: Any) -> dict[str, Any]:
    return {"code": code, "message": "no", "data": data} if data else {"code": code, "message": "no"}


@pytest.mark.parametrize("path", [IN_SESSIONS, TO_STATELESS, TO_SESSION, STATELESS])
@pytest.mark.parametrize("code", [-32700, -32603, -32602, -32601, -32600, -32002, -32001, -32000, -1, 7, None])
def test_most_errors_are_passed_on(path: Path, code: Any) -> None:
    assert answer_error(error(code), "tools/call", path) == Relay()


@pytest.mark.parametrize("path", [IN_SESSIONS, TO_SESSION])
@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_codes_of_the_other_era_mean_nothing_at_an_older_server(path: Path, code: int) -> None:
    assert answer_error(error(code), "tools/call", path) == Relay()


def test_a_url_to_visit_is_for_the_client() -> None:
    assert answer_error(error(-32042), "tools/call", TO_SESSION) == Visit()
    assert answer_error(error(-32042), "tools/call", IN_SESSIONS) == Relay()


@pytest.mark.parametrize("path", [TO_STATELESS, STATELESS])
def test_headers_that_are_not_accepted_are_ours(path: Path) -> None:
    assert answer_error(error(-32020), "tools/call", path) == Refresh()
    said = answer_error(error(-32020), "tools/call", path, has_refreshed=True)
    assert said == Say(-32603, "the server does not accept our headers for tools/call", {"original": error(-32020)})


@pytest.mark.parametrize("path", [TO_STATELESS, STATELESS])
def test_a_revision_that_is_not_spoken_any_more_is_an_error_of_ours(path: Path) -> None:
    said = answer_error(error(-32022, supported=["2027-01-01"]), "tools/list", path)
    assert isinstance(said, Say)
    assert said.code == -32603
    assert "supported" not in said.data


REQUIRED = {"elicitation": {"url": {}}, "sampling": {}}


def test_a_missing_capability_fails_the_tool_of_an_older_client() -> None:
    failed = answer_error(error(-32021, requiredCapabilities=REQUIRED), "tools/call", TO_STATELESS)
    assert isinstance(failed, FailTool)
    assert failed.result["isError"] is True
    assert failed.result["content"][0]["text"] == (
        "The server needs a capability that this client does not have here: elicitation.url, sampling."
    )
    dragoman_spec.validate({"jsonrpc": "2.0", "id": 1, "result": failed.result}, E, method="tools/call")


def test_a_missing_capability_is_invalid_params_elsewhere() -> None:
    given = error(-32021, requiredCapabilities=REQUIRED)
    said = answer_error(given, "prompts/get", TO_STATELESS)
    assert isinstance(said, Say)
    assert (said.code, said.data) == (-32602, {"original": given})


@pytest.mark.parametrize("given", [error(-32021), error(-32021, requiredCapabilities=[]), error(-32021, other=1)])
def test_a_missing_capability_without_a_name_is_said_so(given: Any) -> None:
    failed = answer_error(given, "tools/call", TO_STATELESS)
    assert isinstance(failed, FailTool)
    assert failed.result["content"][0]["text"].endswith("does not have here.")
    said = answer_error(given, "tools/call", STATELESS)
    assert said == Say(-32021, "no", {"requiredCapabilities": {}})


@pytest.mark.parametrize(
    ("declared", "required"),
    [
        ({}, REQUIRED),
        ({"sampling": {}}, {"elicitation": {"url": {}}}),
        ({"elicitation": {"form": {}}}, REQUIRED),
        ({"elicitation": {"url": {}}}, {"sampling": {}}),
    ],
)
def test_a_client_hears_which_capabilities_it_did_not_declare(declared: Any, required: Any) -> None:
    given = error(-32021, requiredCapabilities=REQUIRED)
    assert answer_error(given, "tools/call", STATELESS, declared=declared) == Say(
        -32021, "no", {"requiredCapabilities": required}
    )


def test_a_capability_that_is_no_object_is_required_as_one() -> None:
    given = error(-32021, requiredCapabilities={"roots": True})
    assert answer_error(given, "tools/call", STATELESS) == Say(-32021, "no", {"requiredCapabilities": {"roots": {}}})


def test_capabilities_that_were_declared_are_not_missed_by_the_client() -> None:
    said = answer_error(error(-32021, requiredCapabilities=REQUIRED), "tools/call", STATELESS, declared=REQUIRED)
    assert isinstance(said, Say)
    assert said.code == -32603


@pytest.mark.parametrize(
    ("revision", "code", "metadata", "status"),
    [
        (E, -32601, False, 404),
        (E, -32020, False, 400),
        (E, -32021, False, 400),
        (E, -32022, False, 400),
        (E, -32602, False, 200),
        (E, -32602, True, 400),
        (E, -32022, True, 400),
        (E, -32603, False, 200),
        (D, -32601, False, 200),
        (D, -32602, True, 200),
    ],
)
def test_an_error_has_an_http_status(revision: str, code: int, metadata: bool, status: int) -> None:
    assert find_http_status([revision], code, is_about_metadata=metadata) == status


def test_an_unsupported_version_is_answered_with_our_own_list() -> None:
    assert unsupported_version("1", [E, D]) == Say(
        -32022, "Unsupported protocol version", {"supported": [E, D], "requested": "1"}
    )
    assert unsupported_version("1", [D]).code == -32602
