"""Saying which option helps where a tool asks its client in a way that works in the other era alone.

Lives here: the words by which SDKs say so, and what is added to them. Called by `edges.front` for each failure.

A handler that sends a request in the middle of a call needs a session, and one that answers with its question needs the
era without. A server of both eras has either kind, and only its author knows which.
"""

from __future__ import annotations

import logging
import re
from typing import Any, Final

from dragoman.core.envelope import Frame, decoded, rewrite
from dragoman.core.unchecked import find_object
from dragoman_spec import HANDSHAKE_REVISIONS, PER_REQUEST_REVISIONS

logger = logging.getLogger("dragoman.bridge")

MOST_BYTES: Final = 4096
"""How long a failure that says so can be."""

_FAILS: Final = re.compile(rb'"isError":\s*true')
_OPTION: Final = b"--server-revision "
_ASKS: Final = re.compile(rb"server-(?:initiated|to-client) requests", re.IGNORECASE)
_ANSWERS: Final = re.compile(rb"InputRequiredResult|input-required result|Handler returned an invalid result")
"""What `mcp` 2.3, FastMCP 4 and the TypeScript SDK 2.4 say of handlers of the first and of the second kind.

Sources: NoBackChannelError in mcp/shared/exceptions.py and "Handler returned an invalid result" in mcp/server/runner.py
of `mcp` 2.3; fastmcp/server/context.py and server/mixins/mcp_operations.py of FastMCP 4; the guard of push-style
requests, and that of `input_required` with `legacyShim: false`, in @modelcontextprotocol/server 2.4."""


def advise(frame: Frame, spoken: str | None) -> Frame:
    """Return a failure with the option that helps, if it says that its server asks in the other era; else as it is.

    Args:
        frame: The response to a client, written; an error, or a result that may be the failure of a tool.
        spoken: The revision in which the server was asked.
    """
    has_session = spoken in HANDSHAKE_REVISIONS
    says = (_ANSWERS if has_session else _ASKS).search(frame.raw)
    if not says or (frame.kind == "result" and not _FAILS.search(frame.raw)) or _OPTION in frame.raw:
        return frame
    try:
        body = decoded(frame).body
    except ValueError:  # whoever reads it says so
        return frame
    why = "seems to answer with a question" if has_session else "asks in the middle of a call"
    revision = (PER_REQUEST_REVISIONS if has_session else HANDSHAKE_REVISIONS)[-1]
    advice = f"the server {why}, which does not work in {spoken}: it works with --server-revision {revision}"
    logger.warning("%s (in a configuration file: `revision`, among `dragoman.servers`)", advice)
    member = find_object(body, frame.kind)
    if frame.kind == "error":
        told: dict[str, Any] = {"message": f"{member.get('message')} ({advice})"}
    else:
        content = member.get("content")
        content = content if isinstance(content, list) else []
        told = {"content": [*content, {"type": "text", "text": f"({advice})"}]}
    return rewrite(frame, {**body, frame.kind: {**member, **told}})
