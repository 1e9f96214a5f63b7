"""Of which era a server is, by how it took the probe."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.bridge.verdict import HANDSHAKE_HOLDS_S, PROBE, Answer, Era, Event, Verdict, judge

D = "2025-11-25"
E = "2026-07-28"


def result(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def error(code: Any, **data: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no", "data": data}}


MODERN = [
    Answer(result(resultType="complete", supportedVersions=[E], capabilities={})),
    Answer(result(supportedVersions=[E, D])),
    Answer(result(supportedVersions=["2027-01-01"])),
    Answer(result(resultType="input_required", requestState="x")),
    Answer(result(resultType="task")),
    Answer(error(-32020)),
    Answer(error(-32021, requiredCapabilities={})),
    Answer(error(-32022, supported=[E])),
    Answer(error(-32022, supported=["2027-01-01"], requested=E)),
    Answer(error(-32022)),
    Answer(error(-32022, supported="all")),
    Answer(error(-32020), status=400),
    Answer(error(-32022, supported=[E]), status=200),
    Answer(error(-32022, supported=[E]), status=404),
]
LEGACY = [
    Answer(error(-32601)),
    Answer(error(-32602)),
    Answer(error(-32600)),
    Answer(error(0)),
    Answer(error("-32022")),
    Answer(error(None)),
    Answer(error([-32022])),
    Answer(error(-32601), status=404),
    Answer(error(-32000), status=400),
    Answer(result(supportedVersions=[D, "2024-11-05"])),
    Answer(error(-32022, supported=[D])),
    Answer(result()),
    Answer(result(supportedVersions=[])),
    Answer(result(supportedVersions=5)),
    Answer(result(supportedVersions=[5])),
    Answer(event=Event.SILENCE),
    Answer(event=Event.EXIT),
    Answer(status=400),
    Answer("Bad Request: no session", status=400),
    Answer(status=404),
    Answer({"error": "nope"}, status=405),
]
NEITHER = [
    *(Answer(status=status) for status in (301, 308, 401, 403, 407, 408, 429, 500, 502, 503)),
    Answer(error(-32601), status=401),
    Answer(event=Event.FAILURE),
    Answer("<html>", status=200),
    Answer(status=202),
    Answer([]),
]


@pytest.mark.parametrize("answer", MODERN)
def test_a_recognised_answer_is_of_the_per_request_era(answer: Answer) -> None:
    assert judge(answer).era is Era.PER_REQUEST


@pytest.mark.parametrize("answer", LEGACY)
def test_any_other_answer_of_a_server_is_of_the_handshake_era(answer: Answer) -> None:
    assert judge(answer).era is Era.HANDSHAKE


@pytest.mark.parametrize("answer", NEITHER)
def test_what_says_nothing_of_the_server_is_no_verdict(answer: Answer) -> None:
    verdict = judge(answer)
    assert verdict.era is Era.NONE
    assert verdict.revision is None
    assert not verdict.is_kept(0)


@pytest.mark.parametrize(("answer"), [*MODERN, *LEGACY, *NEITHER])
def test_a_verdict_says_why(answer: Answer) -> None:
    assert judge(answer).why


def test_a_discover_result_comes_with_the_verdict() -> None:
    answer = result(supportedVersions=[E], capabilities={"tools": {}})
    assert judge(Answer(answer)).discovered == answer["result"]


@pytest.mark.parametrize(
    ("answer", "revision"),
    [
        (Answer(result(supportedVersions=[D, E, "2027-01-01"])), E),
        (Answer(result(supportedVersions=["2027-01-01"])), None),
        (Answer(error(-32022, supported=["2027-01-01", E])), E),
        (Answer(error(-32020)), dragoman_spec.LATEST),
        (Answer(result(supportedVersions=["2024-11-05", "2025-03-26"])), "2025-03-26"),
        (Answer(error(-32601)), D),
    ],
)
def test_a_verdict_has_the_newest_common_revision(answer: Answer, revision: str | None) -> None:
    assert judge(answer).revision == revision


def test_a_handshake_verdict_expires() -> None:
    verdict = Verdict(Era.HANDSHAKE, "it said so")
    assert verdict.is_kept(HANDSHAKE_HOLDS_S - 1)
    assert not verdict.is_kept(HANDSHAKE_HOLDS_S)


def test_a_per_request_verdict_does_not_expire() -> None:
    assert Verdict(Era.PER_REQUEST, "it said so").is_kept(1e9)


def test_the_probe_is_discover() -> None:
    assert PROBE == "server/discover"
