"""Every rule is seen when a server breaks it, and no other: thirty rules broken are thirty rules caught, and more."""

from __future__ import annotations

import pytest

from dragoman.check.check import check_server
from dragoman.check.findings import CheckReport, holds
from dragoman.check.rules import RULES
from dragoman_spec import REVISIONS
from tests.check.peer import Peer
from tests.support.waiting import run

NEWEST, CURRENT = REVISIONS[3], REVISIONS[4]

ELSEWHERE = {"ends-with-input", "in-time"}
"""Rules that need a process, or time; those of HTTP are in `test_http`."""

BESIDES = {
    "completion-limit": {"result-model"},  # newer schemas say it, too
    "flood": {"answer-id"},
    "log-asked-for": {"log-level-kept"},
    "notification-model": {"log-asked-for"},
    "quiet-before-open": {"client-declared"},
}
"""What else is broken by the way in which a rule is broken here."""


def check(revision: str, rule: str = "") -> CheckReport:
    work = check_server(lambda: Peer(revision, rule).connect(), revisions=[revision], timeout_s=0.05, calls_tools=True)
    return run(work)


def broken(report: CheckReport) -> set[str]:
    return {finding.rule for finding in report.findings}


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_good_server_breaks_nothing(revision: str) -> None:
    report = check(revision)
    assert report.findings == ()
    assert report.served == (revision,)


CASES = [
    (rule.name, revision)
    for rule in RULES.values()
    for revision in (NEWEST, CURRENT)
    if rule.over != "http" and rule.name not in ELSEWHERE and holds(rule, revision, "stdio")
]


@pytest.mark.parametrize(("rule", "revision"), CASES)
def test_a_broken_rule_is_seen(rule: str, revision: str) -> None:
    found = broken(check(revision, rule))
    assert rule in found
    assert found <= {rule} | BESIDES.get(rule, set())


def targets(spoken: list[str]) -> set[str]:
    peers = iter([*map(Peer, spoken), Peer(spoken[-1])])  # one more is asked for a revision that there is not
    report = run(check_server(lambda: next(peers).connect(), revisions=spoken, timeout_s=0.05, calls_tools=True))
    assert [*report.served] == spoken
    return {one.target for one in report.lost}


def test_only_clients_of_revisions_that_the_server_does_not_speak_lose_something() -> None:
    oldest, second = REVISIONS[:2]
    assert targets([NEWEST]) == {oldest, second}
    assert targets([oldest, NEWEST]) == {second}
