"""Reports: for a person, as JSON, and as JUnit XML for what shows the results of tests.

Lives here: laying out. Must not: judge.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import quoteattr

from dragoman.check.findings import CheckReport, Finding, LostFor, RevisionReport
from dragoman.check.rules import RULES

_SHOWN: Final = 5
"""How many places of one rule a person is shown."""

_LOST_SHOWN: Final = 8
_INDEX: Final = re.compile(r"/\d+(?=/|$)")
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def is_bad(finding: Finding, is_strict: bool) -> bool:
    """Whether a finding makes the check fail."""
    return is_strict or finding.level == "must"


def write_text(report: CheckReport) -> str:
    """Lay a report out for a person."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: CheckReport) -> Iterator[str]:
    yield f"{report.target}"
    told: dict[tuple[str, ...], str] = {}
    for _, alike in groupby(report.revisions, _what_came):
        yield from _revision_lines([*alike], told)
    yield from _lost_lines(report.lost)
    yield ""
    yield _sum(report)


def _what_came(report: RevisionReport) -> tuple[str, ...]:
    """Return what is the same for neighbours that are told together: revisions that came to nothing in the same way."""
    return (report.revision,) if report.served else (report.outcome, report.why)


def _revision_lines(reports: Sequence[RevisionReport], told: dict[tuple[str, ...], str]) -> Iterator[str]:
    """Lay out one revision, or several that came to nothing in the same way.

    What was told of an older one is not told again, but that it is so.

    Args:
        reports: Of the revisions.
        told: What has been told, and of which revision; more is added.
    """
    yield ""
    first = reports[0]
    if first.served:
        said = _count(first.findings) if first.findings else "nothing to report"
        named = f" {first.server};" if first.server else ""
        yield f"{first.revision}:{named} {first.asked} requests, {len(first.rules)} rules: {said}"
    else:
        done = "not asked" if first.outcome == "untried" else "not spoken"
        yield f"{', '.join(one.revision for one in reports)}: {done} ({first.why})"
    fresh: dict[tuple[str, ...], Finding] = {}
    again: dict[str, list[str]] = {}
    for finding in (finding for one in reports for finding in one.findings):
        what = _what(finding)
        if what in told:
            again.setdefault(told[what], []).append(finding.rule)
        else:
            fresh.setdefault(what, finding)
    yield from write_findings([*fresh.values()])
    for revision, rules in again.items():
        yield f"  as in {revision}: {', '.join(dict.fromkeys(rules))}"
    told.update(dict.fromkeys(fresh, first.revision))


def _what(finding: Finding) -> tuple[str, ...]:
    return finding.rule, finding.about, finding.pointer, finding.expected, finding.found


def write_findings(findings: Sequence[Finding]) -> Iterator[str]:
    """Lay out what was found in one revision, rule by rule: violations first, and what is alike on one line."""
    for rule in dict.fromkeys(finding.rule for finding in sorted(findings, key=lambda one: one.level)):
        found = [finding for finding in findings if finding.rule == rule]
        alike: dict[str, list[Finding]] = {}
        for finding in found:
            alike.setdefault(_tell_place(finding, _INDEX.sub("/*", finding.pointer)), []).append(finding)
        yield f"  {found[0].level.upper():<6} {rule}: {RULES[rule].says}"
        for place, ones in list(alike.items())[:_SHOWN]:
            said = f"{place} ({len(ones)} times)" if len(ones) > 1 else _tell_place(ones[0], ones[0].pointer)
            yield f"         {said}"
        if len(alike) > _SHOWN:
            yield f"         and {len(alike) - _SHOWN} more"
        for page in dict.fromkeys(finding.page for finding in found):
            yield f"         {page}"


def _tell_place(finding: Finding, pointer: str) -> str:
    return f"{finding.about}{f' at {pointer}' if pointer else ''}: expected {finding.expected}, found {finding.found}"


def _lost_lines(lost: tuple[LostFor, ...]) -> Iterator[str]:
    for target in dict.fromkeys(one.target for one in lost):
        of_target = sorted((one for one in lost if one.target == target), key=lambda one: one.cosmetic)
        yield ""
        yield f"Clients of {target} would lose, through a proxy that translates:"
        for one in of_target[:_LOST_SHOWN]:
            small = " (cosmetic)" if one.cosmetic else ""
            often = "once" if one.count == 1 else f"{one.count} times"
            yield f"  {one.kind} {one.pointer or 'the result'} of {one.method}, {often}{small}"
        if len(of_target) > _LOST_SHOWN:
            others = len(of_target) - _LOST_SHOWN
            yield f"  and {others} other field{'s' * (others != 1)}"


def _sum(report: CheckReport) -> str:
    cut = "" if report.is_whole else " There was no time for more: --overall-timeout gives it."
    match report.outcome:
        case "spoken":
            return _sum_of_spoken(report) + cut
        case "refused":
            return "The server speaks none of these revisions." + cut
        case "silent":
            hint = "If it only needs longer to start, as one does that is downloaded first, say --start-timeout 60."
            return f"The server does not answer. {hint}{cut}"
        case "gone":
            return "The server does not stay, or cannot be reached." + cut
        case _:
            return "Nothing is known of the server." + cut


def _sum_of_spoken(report: CheckReport) -> str:
    spoken = f"{len(report.served)} of {len(report.revisions)} revisions"
    different = {_what(finding): finding for finding in report.findings}
    recurs = ", each counted once" if len(different) < len(report.findings) else ""
    return f"{spoken} spoken; {_count([*different.values()])}{recurs}."


def _count(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.level for finding in findings)
    violations, recommendations = counts["must"], counts["should"]
    return (
        f"{violations} violation{'s' * (violations != 1)}, "
        f"{recommendations} recommendation{'s' * (recommendations != 1)} not followed"
    )


def write_json(report: CheckReport) -> dict[str, Any]:
    """Return a report as a JSON object."""
    return {
        "target": report.target,
        "served": list(report.served),
        "whole": report.is_whole,
        "revisions": [
            {
                "revision": one.revision,
                "served": one.served,
                "outcome": one.outcome,
                "why": one.why,
                "server": one.server,
                "requests": one.asked,
                "rules": list(one.rules),
                "findings": [asdict(finding) for finding in one.findings],
            }
            for one in report.revisions
        ],
        "lost": [asdict(one) for one in report.lost],
    }


def write_junit(report: CheckReport, is_strict: bool) -> str:
    """Lay a report out as JUnit XML: a suite for each revision, with a case for opening it and one for each rule.

    A revision that the server does not speak is skipped; that it speaks none is a failure.

    Args:
        report: To lay out.
        is_strict: Whether recommendations count as failures.
    """
    cases = {one.revision: _write_cases(one, bool(report.served), is_strict) for one in report.revisions}
    suites = [_write_suite("testsuite", revision, found) for revision, found in cases.items()]
    whole = _write_suite("testsuites", report.target, [case for found in cases.values() for case in found], suites)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{whole}\n"


class _Case(NamedTuple):
    outcome: str
    text: str


def _write_suite(tag: str, name: str, cases: Sequence[_Case], inner: Sequence[str] | None = None) -> str:
    counts = Counter(case.outcome for case in cases)
    about = f"tests='{len(cases)}' failures='{counts['failure']}' skipped='{counts['skipped']}'"
    head = f"<{tag} name={_quoted(name)} {about}>"
    return "\n".join([head, *([case.text for case in cases] if inner is None else inner), f"</{tag}>"])


def _write_cases(report: RevisionReport, is_any_spoken: bool, is_strict: bool) -> list[_Case]:
    if not report.served:
        outcome = "skipped" if is_any_spoken else "failure"
        return [_write_case(report.revision, "opens", outcome, report.why, "")]
    cases = [_write_case(report.revision, "opens", "", "", "")]
    for rule in report.rules:
        told = [_tell(finding) for finding in report.findings if finding.rule == rule]
        bad = any(is_bad(finding, is_strict) for finding in report.findings if finding.rule == rule)
        more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
        outcome = "failure" if bad else "system-out" if told else ""
        cases.append(_write_case(report.revision, rule, outcome, f"{told[0]}{more}" if told else "", "\n".join(told)))
    return cases


def _write_case(revision: str, name: str, outcome: str, message: str, text: str) -> _Case:
    case = f"<testcase classname={_quoted(revision)} name={_quoted(name)}"
    if not outcome:
        return _Case(outcome, f"{case}/>")
    about = "" if outcome == "system-out" else f" message={_quoted(message)}"
    return _Case(outcome, f"{case}>\n<{outcome}{about}>{_escaped(text)}</{outcome}>\n</testcase>")


def _tell(finding: Finding) -> str:
    return f"{_tell_place(finding, finding.pointer)} ({finding.page})"


def _quoted(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", text))


def _escaped(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
