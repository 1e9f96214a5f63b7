"""Reports: one finding that many servers have does not bury the rest, and JUnit says what happened."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dragoman.check.findings import CheckReport, Finding, Outcome, RevisionReport
from dragoman.check.report import write_findings, write_junit

SMALL = Finding("tool-missing", "should", "2025-06-18", "the answer", "", "-32602", "a result", "https://page")
BAD = replace(SMALL, rule="result-model", level="must", pointer="/result/tools/0/name", expected="a string", found="5")


def report(outcome: Outcome, *findings: Finding, why: str = "") -> CheckReport:
    one = RevisionReport("2025-06-18", outcome, why, findings=findings, rules=("ping", "result-model", "tool-missing"))
    return CheckReport("server", (one,), ())


def test_what_is_alike_in_a_list_is_one_line_and_violations_come_first() -> None:
    many = [replace(BAD, pointer=f"/result/tools/{number}/name") for number in range(40)]
    other = replace(BAD, pointer="/result/nextCursor", found="6")
    assert [line.strip() for line in write_findings([SMALL, *many, other])][:4] == [
        "MUST   result-model: A result is valid in the revision's schema.",
        "the answer at /result/tools/*/name: expected a string, found 5 (40 times)",
        "the answer at /result/nextCursor: expected a string, found 6",
        "https://page",
    ]


def test_junit_says_what_happened() -> None:
    root = ElementTree.fromstring(write_junit(report("spoken", BAD, replace(BAD, found="7"), SMALL), is_strict=False))
    (failure,) = root.iter("failure")
    message = "the answer at /result/tools/0/name: expected a string, found 5 (https://page) (and 1 more)"
    assert failure.get("message") == message
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("4", "1", "0")


def test_a_server_that_cannot_be_reached_is_a_failure_for_junit() -> None:
    root = ElementTree.fromstring(write_junit(report("gone", why="the server exited with status 1"), is_strict=False))
    assert [one.get("message") for one in root.iter("failure")] == ["the server exited with status 1"]


def test_a_revision_that_is_not_spoken_is_skipped_for_junit() -> None:
    spoken = report("spoken")
    both = CheckReport(
        "s", (replace(spoken.revisions[0], revision="2024-11-05", outcome="refused"), *spoken.revisions), ()
    )
    root = ElementTree.fromstring(write_junit(both, is_strict=False))
    assert (root.get("failures"), root.get("skipped")) == ("0", "1")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ('["no-such-server-command"]', "no-such-server-command: command not found"),
        ('[sys.executable, "-c", "exit(3)"]', "status 3"),
    ],
)
def test_the_helper_fails_without_a_traceback_of_its_own(command: str, said: str, tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(
        "import sys\nfrom dragoman.testing import assert_conforms\n"
        f"def test_it():\n    assert_conforms({command}, '2025-06-18', must_speak=True, timeout_s=2)\n"
    )
    asked = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert said in done.stdout
    assert "testing.py" not in done.stdout
    assert "runners.py" not in done.stdout
