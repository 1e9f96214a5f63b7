"""One visit to a server, in one revision, from the first word to the last.

Lives here: the order of a visit. Must not: know a rule; those who are called here do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dragoman.check.findings import Finding, FindingLog, RevisionReport, holds
from dragoman.check.http import HttpProbe
from dragoman.check.lists import read_lists
from dragoman.check.manners import try_manners, try_unknown_revision
from dragoman.check.offered import judge_offer
from dragoman.check.opening import open_session
from dragoman.check.rules import RULES, Wires
from dragoman.check.talk import Talk
from dragoman.check.uses import use_missing, use_offer
from dragoman.transports.base import Transport
from dragoman.transports.stdio import ChildTransport
from dragoman.transports.upstream.config import UpstreamConfig

OPENS: Final = frozenset({"revision-known", "http-content-type", "http-session-id"})
"""Rules that may be why a revision cannot be spoken."""


@dataclass(frozen=True, slots=True)
class Visited:
    """What came of a visit.

    Attributes:
        report: On the revision.
        frames: The results that came, each with the method that it answers.
    """

    report: RevisionReport
    frames: tuple[tuple[str, dict[str, Any]], ...]


@dataclass(frozen=True, slots=True)
class VisitPlan:
    """What a visit is to do.

    Attributes:
        over: The transport.
        timeout_s: How long an answer may take, in seconds.
        calls_tools: Whether tools are called that say that they only read.
        http: Where the server is, if it is spoken to over HTTP.
    """

    over: Wires
    timeout_s: float
    calls_tools: bool
    http: UpstreamConfig | None = None


async def visit(connect: Callable[[], Transport], revision: str, plan: VisitPlan, patience_s: float) -> Visited:
    """Speak with a server in one revision.

    Args:
        connect: Opens a transport to it.
        revision: To speak.
        plan: What to do.
        patience_s: How long the first answer may take.

    Raises:
        TransportError: It cannot be reached.
    """
    findings = FindingLog(revision, plan.over)
    transport = connect()
    talk = Talk(transport, findings, plan.timeout_s)
    talk.start()
    try:
        why = await open_session(talk, patience_s)
        if not why:
            await _walk(talk, plan)
    finally:
        await _close(talk, transport)
    if plan.http is not None and talk.facts.http_methods:
        await HttpProbe(plan.http, findings, plan.timeout_s).run(only_opens=bool(why))
    if why:
        findings.all = [one for one in findings.all if one.rule in OPENS]
    held = {rule.name for rule in RULES.values() if not why and holds(rule, revision, plan.over)}
    rules = tuple(name for name in RULES if name in held or any(one.rule == name for one in findings.all))
    report = RevisionReport(revision, not why, why, talk.server, talk.asked, tuple(findings.all), rules)
    return Visited(report, tuple(talk.listener.frames))


async def _walk(talk: Talk, plan: VisitPlan) -> None:
    offer = await read_lists(talk)
    judge_offer(talk, offer)
    await use_offer(talk, offer, plan.calls_tools)
    await use_missing(talk, offer)
    await try_manners(talk)


async def _close(talk: Talk, transport: Transport) -> None:
    """End a conversation, and see whether a child goes by itself."""
    if talk.is_over or not isinstance(transport, ChildTransport):
        await talk.close()
        return
    clock = asyncio.get_running_loop().time
    began, patience_s = clock(), transport.patience.after_eof_s
    await talk.close()
    if clock() - began >= patience_s:
        found = f"still there after {patience_s:g} s"
        talk.findings.note("ends-with-input", "the end of the session", "an end", found)


async def visit_strangely(connect: Callable[[], Transport], revision: str, plan: VisitPlan) -> tuple[Finding, ...]:
    """Ask for a revision that does not exist, in a session of its own; give what is found.

    Args:
        connect: Opens a transport to the server.
        revision: With a handshake, which the server speaks.
        plan: As for `visit`.

    Raises:
        TransportError: The server cannot be reached.
    """
    findings = FindingLog(revision, plan.over)
    talk = Talk(connect(), findings, plan.timeout_s)
    talk.start()
    try:
        await try_unknown_revision(talk, plan.timeout_s)
    finally:
        await talk.close()
    return tuple(one for one in findings.all if one.rule == "revision-answered")
