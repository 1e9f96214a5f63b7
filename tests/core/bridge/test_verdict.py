"""Of which era a server is, by how it took the probe."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.bridge.verdict import PROBE, Era, ProbeAnswer, ProbeEvent, judge

D = "2025-11-25"
E = "2026-07-28"


def result(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def error(code: Any, **data: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no", "data": data}}


MODERN = [
    ProbeAnswer(result(resultType="complete", supportedVersions=[E], capabilities={})),
    ProbeAnswer(result(supportedVersions=[E, D])),
    ProbeAnswer(result(supportedVersions=["2027-01-01"])),
    ProbeAnswer(result(resultType="input_required", requestState="x")),
    ProbeAnswer(result(resultType="task")),
    ProbeAnswer(error(-32020)),
    ProbeAnswer(error(-32021, requiredCapabilities={})),
    ProbeAnswer(error(-32022, supported=[E])),
    ProbeAnswer(error(-32022, supported=["2027-01-01"], requested=E)),
    ProbeAnswer(error(-32022)),
    ProbeAnswer(error(-32022, supported="all")),
    ProbeAnswer(error(-32020), status=400),
    ProbeAnswer(error(-32022, supported=[E]), status=200),
    ProbeAnswer(error(-32022, supported=[E]), status=404),
]
LEGACY = [
    ProbeAnswer(error(-32601)),
    ProbeAnswer(error(-32602)),
    ProbeAnswer(error(-32600)),
    ProbeAnswer(error(0)),
    ProbeAnswer(error("-32022")),
    ProbeAnswer(error(None)),
    ProbeAnswer(error([-32022])),
    ProbeAnswer(error(-32601), status=404),
    ProbeAnswer(error(-32000), status=400),
    ProbeAnswer(result(supportedVersions=[D, "2024-11-05"])),
    ProbeAnswer(error(-32022, supported=[D])),
    ProbeAnswer(result()),
    ProbeAnswer(result(supportedVersions=[])),
    ProbeAnswer(result(supportedVersions=5)),
    ProbeAnswer(result(supportedVersions=[5])),
    ProbeAnswer(event=ProbeEvent.SILENCE),
    ProbeAnswer(event=ProbeEvent.EXIT),
    ProbeAnswer(status=400),
    ProbeAnswer("Bad Request: no session", status=400),
    ProbeAnswer(status=404),
    ProbeAnswer({"error": "nope"}, status=405),
]
NEITHER = [
    *(ProbeAnswer(status=status) for status in (301, 308, 401, 403, 407, 408, 429, 500, 502, 503)),
    ProbeAnswer(error(-32601), status=401),
    ProbeAnswer(event=ProbeEvent.FAILURE),
    ProbeAnswer("<html>", status=200),
    ProbeAnswer(status=202),
    ProbeAnswer([]),
]


@pytest.mark.parametrize("answer", MODERN)
def test_a_recognised_answer_is_of_the_per_request_era(answer: ProbeAnswer) -> None:
    assert judge(answer).era is Era.PER_REQUEST


@pytest.mark.parametrize("answer", LEGACY)
def test_any_other_answer_of_a_server_is_of_the_handshake_era(answer: ProbeAnswer) -> None:
    assert judge(answer).era is Era.HANDSHAKE


@pytest.mark.parametrize("answer", NEITHER)
def test_what_says_nothing_of_the_server_is_no_verdict(answer: ProbeAnswer) -> None:
    verdict = judge(answer)
    assert verdict.era is Era.NONE
    assert verdict.revision is None


@pytest.mark.parametrize(("answer"), [*MODERN, *LEGACY, *NEITHER])
def test_a_verdict_says_why(answer: ProbeAnswer) -> None:
    assert judge(answer).why


def test_a_discover_result_comes_with_the_verdict() -> None:
    answer = result(supportedVersions=[E], capabilities={"tools": {}})
    assert judge(ProbeAnswer(answer)).discovered == answer["result"]


@pytest.mark.parametrize(
    ("answer", "revision"),
    [
        (ProbeAnswer(result(supportedVersions=[D, E, "2027-01-01"])), E),
        (ProbeAnswer(result(supportedVersions=["2027-01-01"])), None),
        (ProbeAnswer(error(-32022, supported=["2027-01-01", E])), E),
        (ProbeAnswer(error(-32020)), dragoman_spec.LATEST),
        (ProbeAnswer(result(supportedVersions=["2024-11-05", "2025-03-26"])), "2025-03-26"),
        (ProbeAnswer(error(-32601)), D),
    ],
)
def test_a_verdict_has_the_newest_common_revision(answer: ProbeAnswer, revision: str | None) -> None:
    assert judge(answer).revision == revision


def test_the_probe_is_discover() -> None:
    assert PROBE == "server/discover"
