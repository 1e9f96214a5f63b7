"""Of which era a server is, by how it took the probe."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.rules.names import DISCOVER
from dragoman.core.rules.verdict import Era, judge

D = "2025-11-25"
E = "2026-07-28"


def result(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def error(code: Any, **data: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no", "data": data}}


MODERN = [
    result(resultType="complete", supportedVersions=[E], capabilities={}),
    result(supportedVersions=[E, D]),
    result(supportedVersions=["2027-01-01"]),
    result(resultType="input_required", requestState="x"),
    result(resultType="task"),
    error(-32020),
    error(-32021, requiredCapabilities={}),
    error(-32022, supported=[E]),
    error(-32022, supported=["2027-01-01"], requested=E),
    error(-32022),
    error(-32022, supported="all"),
]
LEGACY = [
    error(-32601),
    error(-32602),
    error(-32600),
    error(0),
    error("-32022"),
    error(None),
    error([-32022]),
    result(supportedVersions=[D, "2024-11-05"]),
    error(-32022, supported=[D]),
    result(),
    result(supportedVersions=[]),
    result(supportedVersions=5),
    result(supportedVersions=[5]),
]
NEITHER = [
    None,
    {"error": "nope"},
    "<html>",
    [],
]


@pytest.mark.parametrize("answer", MODERN)
def test_a_recognised_answer_is_of_the_per_request_era(answer: Any) -> None:
    assert judge(answer).era is Era.PER_REQUEST


@pytest.mark.parametrize("answer", LEGACY)
def test_any_other_answer_of_a_server_is_of_the_handshake_era(answer: Any) -> None:
    assert judge(answer).era is Era.HANDSHAKE


@pytest.mark.parametrize("answer", NEITHER)
def test_what_says_nothing_of_the_server_is_no_verdict(answer: Any) -> None:
    verdict = judge(answer)
    assert verdict.era is Era.NONE
    assert verdict.revision is None


@pytest.mark.parametrize(("answer"), [*MODERN, *LEGACY, *NEITHER])
def test_a_verdict_says_why(answer: Any) -> None:
    assert judge(answer).why


def test_a_discover_result_comes_with_the_verdict() -> None:
    answer = result(supportedVersions=[E], capabilities={"tools": {}})
    assert judge(answer).discovered == answer["result"]


@pytest.mark.parametrize(
    ("answer", "revision"),
    [
        (result(supportedVersions=[D, E, "2027-01-01"]), E),
        (result(supportedVersions=["2027-01-01"]), None),
        (error(-32022, supported=["2027-01-01", E]), E),
        (error(-32020), dragoman_spec.LATEST),
        (result(supportedVersions=["2024-11-05", "2025-03-26"]), "2025-03-26"),
        (error(-32601), D),
    ],
)
def test_a_verdict_has_the_newest_common_revision(answer: Any, revision: str | None) -> None:
    assert judge(answer).revision == revision


def test_the_probe_is_discover() -> None:
    assert DISCOVER == "server/discover"
