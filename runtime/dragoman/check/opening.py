"""Opening a session in one revision, or finding out that the server does not speak it.

Lives here: `initialize`, `server/discover`, and what follows from their answers. Must not: ask for anything that a
server offers (`lists`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dragoman.check.findings import Outcome
from dragoman.check.json_schemas import named
from dragoman.check.talk import CheckedAnswer, Talk, client_info
from dragoman.core.envelope import notification_frame
from dragoman.core.unchecked import find, find_object
from dragoman_spec import REVISIONS

_DATED: Final = re.compile(r"\d{4}-\d\d-\d\d\Z")
_NAME_MOST: Final = 100


class OpeningOutcome(NamedTuple):
    """What came of opening a session.

    Attributes:
        outcome: Whether the server speaks the revision, or what it did instead.
        why: What it did instead, in words.
    """

    outcome: Outcome
    why: str = ""


SPOKEN: Final = OpeningOutcome("spoken")


async def open_session(talk: Talk) -> OpeningOutcome:
    """Open a session in a conversation that has begun, or find out why that does not go."""
    if "open" in talk.facts.lifecycle:
        return await _shake_hands(talk)
    return await _discover(talk)


async def _ask(talk: Talk, method: str, params: Mapping[str, Any] | None) -> CheckedAnswer:
    waits_s = talk.patience.for_opening(talk.facts.era)
    reply = await talk.request(method, params, patience_s=waits_s, quietly=talk.patience.was_silent)
    talk.patience.note_opening(talk.facts.era, not reply.is_silence)
    return reply


async def _shake_hands(talk: Talk) -> OpeningOutcome:
    method = talk.facts.lifecycle["open"]
    reply = await _ask(talk, method, offer(talk.revision))
    if reply.result is None:
        return _why(talk, reply)
    answered = reply.result.get("protocolVersion")
    if answered != talk.revision:
        if not isinstance(answered, str) or not (answered in REVISIONS or _DATED.match(answered)):
            talk.findings.note(
                "revision-known",
                f"the answer to {method}",
                "a revision",
                named(answered),
                pointer="/result/protocolVersion",
            )
        return OpeningOutcome("refused", f"it answers with {named(answered)}")
    _take_introduction(talk, reply.result, reply.result.get("serverInfo"))
    talk.send(notification_frame(talk.facts.lifecycle["opened"], None))
    talk.listener.is_open = True
    return SPOKEN


async def _discover(talk: Talk) -> OpeningOutcome:
    method = talk.facts.lifecycle["discover"]
    reply = await _ask(talk, method, None)
    if reply.result is None:
        return _why(talk, reply)
    supported = reply.result.get("supportedVersions")
    listed = [one for one in supported if isinstance(one, str)] if isinstance(supported, list) else []
    if listed and talk.revision not in listed:
        return OpeningOutcome("refused", f"it supports only {', '.join(listed)[:200]}")
    if talk.revision not in listed:
        found = "an empty list" if listed == supported else "no such list"
        pointer = "/result/supportedVersions"
        talk.findings.note("discover-revision", f"the answer to {method}", talk.revision, found, pointer=pointer)
    info = find(reply.result, "_meta", talk.facts.result_meta["serverInfo"])
    if info is None:
        talk.findings.note(
            "discover-name", f"the answer to {method}", "the name of the server", "nothing", pointer="/result/_meta"
        )
    _take_introduction(talk, reply.result, info)
    talk.listener.is_open = True
    return SPOKEN


def _take_introduction(talk: Talk, result: Mapping[str, Any], info: Any) -> None:
    talk.capabilities = find_object(result, "capabilities")
    talk.listener.capabilities = talk.capabilities
    if isinstance(info, dict):
        talk.server = f"{info.get('name', '?')} {info.get('version', '')}".strip()[:_NAME_MOST]


def _why(talk: Talk, reply: CheckedAnswer) -> OpeningOutcome:
    if reply.body is not None:
        return OpeningOutcome("refused", f"it answers with {reply.told}")
    if talk.is_over:
        return OpeningOutcome("gone", f"it is gone: {reply.reason}")
    if reply.is_silence:
        return OpeningOutcome("silent", f"it does not answer: {reply.reason}")
    return (
        OpeningOutcome("gone", reply.reason) if reply.reason else OpeningOutcome("refused", "its answer cannot be read")
    )


def offer(revision: str) -> dict[str, Any]:
    """Return the params of `initialize`."""
    return {"protocolVersion": revision, "capabilities": {}, "clientInfo": client_info()}
