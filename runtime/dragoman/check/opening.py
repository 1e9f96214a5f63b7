"""Opening a session in one revision, or finding out that the server does not speak it.

Lives here: `initialize`, `server/discover`, and what follows from their answers. Must not: ask for anything that a
server offers (`lists`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from dragoman.check.talk import CheckedAnswer, Talk, client_info
from dragoman_spec import REVISIONS

_DATED: Final = re.compile(r"\d{4}-\d\d-\d\d\Z")


async def open_session(talk: Talk, patience_s: float) -> str:
    """Open a session.

    Args:
        talk: Which has begun.
        patience_s: How long the server may take to answer: perhaps it is only starting.

    Returns:
        Why the server does not speak the revision; nothing if it does.
    """
    if "open" in talk.facts.lifecycle:
        return await _shake_hands(talk, patience_s)
    return await _discover(talk, patience_s)


async def _shake_hands(talk: Talk, patience_s: float) -> str:
    method = talk.facts.lifecycle["open"]
    reply = await talk.ask(method, offer(talk.revision), patience_s=patience_s, quietly=True)
    if reply.result is None:
        return _why(talk, reply)
    answered = reply.result.get("protocolVersion")
    if answered != talk.revision:
        if not isinstance(answered, str) or not (answered in REVISIONS or _DATED.match(answered)):
            talk.findings.note(
                "revision-known",
                f"the answer to {method}",
                "a revision",
                f"{answered!r}",
                pointer="/result/protocolVersion",
            )
        return f"it answers with {answered!r}"
    _take_introduction(talk, reply.result, reply.result.get("serverInfo"))
    talk.tell(talk.facts.lifecycle["opened"])
    talk.listener.is_open = True
    return ""


async def _discover(talk: Talk, patience_s: float) -> str:
    method = talk.facts.lifecycle["discover"]
    reply = await talk.ask(method, patience_s=patience_s, quietly=True)
    if reply.result is None:
        return _why(talk, reply)
    supported = reply.result.get("supportedVersions")
    listed = [one for one in supported if isinstance(one, str)] if isinstance(supported, list) else []
    if listed and talk.revision not in listed:
        return f"it supports only {', '.join(listed)[:200]}"
    if talk.revision not in listed:
        found = "an empty list" if listed == supported else "no such list"
        pointer = "/result/supportedVersions"
        talk.findings.note("discover-revision", f"the answer to {method}", talk.revision, found, pointer=pointer)
    meta = reply.result.get("_meta")
    info = meta.get(talk.facts.result_meta["serverInfo"]) if isinstance(meta, dict) else None
    if info is None:
        talk.findings.note(
            "discover-name", f"the answer to {method}", "the name of the server", "nothing", pointer="/result/_meta"
        )
    _take_introduction(talk, reply.result, info)
    talk.listener.is_open = True
    return ""


def _take_introduction(talk: Talk, result: Mapping[str, Any], info: Any) -> None:
    capabilities = result.get("capabilities")
    talk.capabilities = capabilities if isinstance(capabilities, dict) else {}
    talk.listener.capabilities = talk.capabilities
    if isinstance(info, dict):
        talk.server = f"{info.get('name', '?')} {info.get('version', '')}".strip()


def _why(talk: Talk, reply: CheckedAnswer) -> str:
    if talk.listener.over is not None:
        return f"it is gone: {talk.listener.over}"
    return f"it answers with {reply.told}" if reply.body is not None else "it does not answer"


def offer(revision: str) -> dict[str, Any]:
    """Give the params of `initialize`."""
    return {"protocolVersion": revision, "capabilities": {}, "clientInfo": client_info()}
