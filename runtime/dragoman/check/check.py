"""Checking a server in every revision that it takes.

Lives here: visiting it once a revision, and putting the reports together. Must not: open transports by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from dragoman.check.findings import CheckReport, LostFor, RevisionReport
from dragoman.check.losses import find_lost
from dragoman.check.patience import CheckPatience
from dragoman.check.plan import VisitPlan
from dragoman.check.rules import Wires
from dragoman.check.visit import Visited, visit, visit_strangely, with_rules
from dragoman.errors import TransportError
from dragoman.transports.base import Transport
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman_spec import REVISIONS, era

START_TIMEOUT_S: Final = 12.0
OVERALL_TIMEOUT_S: Final = 180.0

OPENS: Final = frozenset({"revision-known", "http-content-type", "http-session-id", "in-time"})
"""Rules that count in a revision that the server does not speak: they may be why."""


async def check_server(
    connect: Callable[[], Transport],
    *,
    target: str = "the server",
    over: Wires = "stdio",
    revisions: Sequence[str] = REVISIONS,
    timeout_s: float = 10.0,
    start_timeout_s: float | None = None,
    overall_timeout_s: float = OVERALL_TIMEOUT_S,
    calls_tools: bool = False,
    http: UpstreamConfig | None = None,
    on_step: Callable[[str, str], None] = lambda revision, about: None,
) -> CheckReport:
    """Check a server.

    Args:
        connect: Opens a transport to it; called anew for each revision.
        target: What it is, for a person.
        over: The transport.
        revisions: To speak.
        timeout_s: How long an answer may take, without progress, in seconds.
        start_timeout_s: How long the very first may take: some servers are downloaded first. If nothing is said, as
            long as another, and at least 12 seconds.
        overall_timeout_s: How long everything may take. What there was no time for is said.
        calls_tools: Whether tools are called that say that they only read.
        http: Where the server is, if it is spoken to over HTTP: the rules of HTTP are tried then.
        on_step: Called before each request with the revision and the request, in words.

    Returns:
        The report; the server is gone by then.

    Raises:
        TransportError: It cannot be started or reached.
    """
    plan = VisitPlan(
        over,
        CheckPatience(timeout_s, start_timeout_s or max(timeout_s, START_TIMEOUT_S), overall_timeout_s),
        calls_tools,
        http,
        on_step,
    )
    # A server that has no handshake is asked last: others may not survive its first words.
    order = sorted(revisions, key=lambda one: (era(one) != "handshake", one))
    reports: dict[str, RevisionReport] = {}
    newest, early = await _visit_each(connect, order, plan, reports)
    if early and plan.patience.has_answered:
        plan.patience.forget_silence()
        again, _ = await _visit_each(connect, early, plan, reports)
        newest = max(filter(None, (newest, again)), key=lambda one: one.report.revision, default=None)
    with_handshake = [one.revision for one in reports.values() if one.served and era(one.revision) == "handshake"]
    if with_handshake and not plan.patience.is_over:
        chosen = reports[with_handshake[-1]]
        with contextlib.suppress(TransportError):  # it was there, so that what it broke is known
            found = await visit_strangely(connect, chosen.revision, plan)
            reports[chosen.revision] = replace(chosen, findings=(*chosen.findings, *found))
    report = CheckReport(target, tuple(sorted(reports.values(), key=lambda one: one.revision)), ())
    if newest is not None:
        report = replace(report, lost=_find_lost(newest, report))
    return _without_hearsay(report, over)


async def _visit_each(
    connect: Callable[[], Transport], revisions: Sequence[str], plan: VisitPlan, reports: dict[str, RevisionReport]
) -> tuple[Visited | None, list[str]]:
    """Visit a server in one revision after another.

    Args:
        connect: Opens a transport to it.
        revisions: In the order in which they are tried.
        plan: What to do.
        reports: Gets the report of each.

    Returns:
        The last visit in which the server spoke the revision; and those in which it was silent before it had answered
        anything, for it may only have been starting.

    Raises:
        TransportError: It cannot be started or reached at the very beginning.
    """
    last: Visited | None = None
    early = []
    for revision in revisions:
        if plan.patience.is_over:
            reports[revision] = RevisionReport(revision, "untried", "there was no time left")
            continue
        try:
            done = await visit(connect, revision, plan)
        except TransportError as error:
            if not reports:
                raise
            reports[revision] = RevisionReport(revision, "gone", str(error))
            continue
        reports[revision] = done.report
        if done.report.served:
            last = done
        elif done.report.outcome == "silent" and not plan.patience.has_answered:
            early.append(revision)
    return last, early


def _find_lost(newest: Visited, report: CheckReport) -> tuple[LostFor, ...]:
    """Return what clients of older revisions lose; those that the server speaks itself need no translation."""
    revision = newest.report.revision
    older = REVISIONS[: REVISIONS.index(revision)]
    return find_lost(newest.heard, revision, [one for one in reversed(older) if one not in report.served])


def _without_hearsay(report: CheckReport, over: Wires) -> CheckReport:
    """Leave out what a server broke in revisions that it does not speak, but for what may be why."""
    if report.outcome == "silent" or (report.outcome == "gone" and over == "stdio"):
        return report
    kept = [
        one
        if one.served
        else with_rules(replace(one, findings=tuple(found for found in one.findings if found.rule in OPENS)), over)
        for one in report.revisions
    ]
    return replace(report, revisions=tuple(kept))
