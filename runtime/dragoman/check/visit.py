"""One visit to a server, in one revision, from the first word to the last.

Lives here: the order of a visit. Must not: know a rule; those who are called here do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Final

from dragoman.check.findings import Finding, FindingLog, RevisionReport, holds
from dragoman.check.heard import HeardResult
from dragoman.check.http import HttpProbe
from dragoman.check.lists import ListedItem, read_lists
from dragoman.check.manners import try_manners, try_unknown_revision
from dragoman.check.offered import judge_item
from dragoman.check.opening import OpeningOutcome, open_session
from dragoman.check.plan import VisitPlan
from dragoman.check.rules import RULES, Wires
from dragoman.check.talk import Talk
from dragoman.check.uses import Usables, use_missing, use_offer
from dragoman.transports.base import Transport
from dragoman.transports.stdio import ChildTransport

WAITS: Final = frozenset({"silent", "untried"})
"""What the outcome is where a server is not worth asking more."""


@dataclass(frozen=True, slots=True)
class Visited:
    """What came of a visit.

    Attributes:
        report: On the revision.
        heard: The results that came.
    """

    report: RevisionReport
    heard: tuple[HeardResult, ...]


async def visit(connect: Callable[[], Transport], revision: str, plan: VisitPlan) -> Visited:
    """Speak with a server in one revision.

    Args:
        connect: Opens a transport to it.
        revision: To speak.
        plan: What to do.

    Raises:
        TransportError: It cannot be reached.
    """
    findings = FindingLog(revision, plan.over)
    transport = connect()
    talk = Talk(transport, findings, plan)
    transport.start(talk.listener)
    opening = OpeningOutcome("untried", "no time was left")
    try:
        async with _in_time(talk):
            opening = await open_session(talk)
            if opening.outcome == "spoken":
                await _walk(talk, plan)
    finally:
        await _close(talk, transport, opening)
    if plan.http is not None and talk.facts.http_methods and opening.outcome not in WAITS and not talk.is_deaf:
        async with _in_time(talk):
            await HttpProbe(plan.http, findings, plan).run(only_opens=opening.outcome != "spoken")
    report = RevisionReport(revision, *opening, talk.server, talk.asked, tuple(findings.all), ())
    return Visited(with_rules(report, plan.over), tuple(talk.listener.heard.all))


def with_rules(report: RevisionReport, over: Wires) -> RevisionReport:
    """Give a report with the rules that the server was held against: all that hold, or those that say why it failed."""
    held = {rule.name for rule in RULES.values() if report.served and holds(rule, report.revision, over)}
    broken = {one.rule for one in report.findings}
    return replace(report, rules=tuple(name for name in RULES if name in held or name in broken))


@contextlib.asynccontextmanager
async def _in_time(talk: Talk) -> AsyncIterator[None]:
    """Stop where the time for the whole check is over, and say so."""
    try:
        async with asyncio.timeout_at(talk.patience.end_s) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        expected = f"an end within {talk.patience.overall_timeout_s:g} s"
        talk.findings.note("in-time", "the check", expected, f"there was more to ask after {talk.asked} requests")


async def _walk(talk: Talk, plan: VisitPlan) -> None:
    usables = Usables(plan.calls_tools)

    def take(member: str, item: ListedItem) -> None:
        judge_item(talk, member, item)
        usables.take(member, item)

    listed = await read_lists(talk, take)
    await use_offer(talk, usables)
    await use_missing(talk, listed)
    await try_manners(talk)


async def _close(talk: Talk, transport: Transport, opening: OpeningOutcome) -> None:
    """End a conversation, and see whether a child goes by itself."""
    if opening.outcome != "spoken" or talk.is_deaf or talk.patience.is_over:
        transport.hurry()  # who does not answer will not say goodbye
    elif isinstance(transport, ChildTransport) and not talk.is_over:
        await _close_child(talk, transport)
        return
    await transport.close()


async def _close_child(talk: Talk, transport: ChildTransport) -> None:
    clock = asyncio.get_running_loop().time
    began, patience_s = clock(), transport.patience.after_eof_s
    await transport.close()
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
    transport = connect()
    talk = Talk(transport, findings, plan)
    transport.start(talk.listener)
    try:
        async with _in_time(talk):
            await try_unknown_revision(talk)
    finally:
        transport.hurry()  # whether it goes by itself is known
        await transport.close()
    return tuple(one for one in findings.all if one.rule in ("revision-answered", "in-time"))
