"""Checking a server in every revision that it takes.

Lives here: visiting it once a revision, and putting the reports together. Must not: open transports by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from dragoman.check.findings import CheckReport
from dragoman.check.losses import find_lost
from dragoman.check.rules import Wires
from dragoman.check.visit import Visited, VisitPlan, visit, visit_strangely
from dragoman.transports.base import Transport
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman_spec import REVISIONS, era

START_S: Final = 60.0
"""How long a server may take to start: some are downloaded first."""


async def check_server(
    connect: Callable[[], Transport],
    *,
    target: str = "the server",
    over: Wires = "stdio",
    revisions: Sequence[str] = REVISIONS,
    timeout_s: float = 10.0,
    calls_tools: bool = False,
    http: UpstreamConfig | None = None,
) -> CheckReport:
    """Check a server.

    Args:
        connect: Opens a transport to it; called anew for each revision.
        target: What it is, for a person.
        over: The transport.
        revisions: To speak.
        timeout_s: How long an answer may take, without progress, in seconds.
        calls_tools: Whether tools are called that say that they only read.
        http: Where the server is, if it is spoken to over HTTP: the rules of HTTP are tried then.

    Returns:
        The report; the server is gone by then.

    Raises:
        TransportError: It cannot be started or reached.
    """
    plan = VisitPlan(over, timeout_s, calls_tools, http)
    visits: dict[str, Visited] = {}
    # A server that has no handshake is asked last: others may not survive its first words.
    for revision in sorted(revisions, key=lambda one: (era(one) != "handshake", one)):
        visits[revision] = await visit(connect, revision, plan, timeout_s if visits else max(timeout_s, START_S))
    served = [revision for revision, done in visits.items() if done.report.served]
    newest = max(served, default=None)
    with_handshake = [revision for revision in served if era(revision) == "handshake"]
    if with_handshake:
        chosen = visits[with_handshake[-1]]
        found = (*chosen.report.findings, *await visit_strangely(connect, with_handshake[-1], plan))
        visits[with_handshake[-1]] = replace(chosen, report=replace(chosen.report, findings=found))
    lost = () if newest is None else find_lost(visits[newest].frames, newest)
    return CheckReport(target, tuple(visits[revision].report for revision in sorted(visits)), lost)
