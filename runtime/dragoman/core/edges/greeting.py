"""How a client opens a session, and what it is answered.

Lives here: reading `initialize` and `initialized`, writing the answer, and refusing the per-request era. Must not:
decide what happens next (the tables in `lifecycle`), nor offer anything to a server (`offer`). Called by `front`.
"""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple

from dragoman.core import negotiation
from dragoman.core.codes import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from dragoman.core.envelope import Frame, Malformed, classify, decoded, error_frame, rewrite
from dragoman.core.exact_json import decode
from dragoman.core.methods import INITIALIZED
from dragoman.core.unchecked import MOST_LEVELS, find, find_object, is_deeper
from dragoman_spec import HANDSHAKE_REVISIONS, PER_REQUEST_REVISIONS, facts

logger = logging.getLogger("dragoman.session")

PROTOCOL_VERSION_KEY = facts(PER_REQUEST_REVISIONS[-1]).request_meta["protocolVersion"]
"""Where a request of the per-request era names its revision: in its `_meta` (2026-07-28/basic/index)."""

DISCOVER = facts(PER_REQUEST_REVISIONS[-1]).lifecycle.get("discover")
"""How a client of the per-request era asks what a server speaks (2026-07-28/server/discover)."""

IDENTITY: Final = {"name": "dragoman", "version": "0"}
"""Who a server is told that its client is, where that is several clients, or one that does not say its name."""

LEGACY_INITIALIZED = "initialized"
"""How some clients call it, and no revision does."""

INITIALIZED_FRAME = Frame(
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n', "notification", None, INITIALIZED
)


class Greeting(NamedTuple):
    """A client's `initialize`.

    Attributes:
        frame: The request, decoded.
        key: Its id.
        requested: The revision that it asks for, which may be none at all.
        revision: The revision to speak with this client.
        capabilities: What it declares.
    """

    frame: Frame
    key: bytes
    requested: object
    revision: str
    capabilities: dict[str, Any]


def read_greeting(frame: Frame, client_revision: str) -> Greeting | Malformed:
    """Read a client's `initialize`.

    Args:
        frame: A request.
        client_revision: `auto`, or the revision that the user pinned the client to.
    """
    if frame.body is None:
        try:
            told = classify(frame.raw, decode(frame.raw))
        except ValueError as error:
            return Malformed(PARSE_ERROR, str(error))
        if isinstance(told, Malformed):
            return told
        frame = told
    if frame.key is None:
        return Malformed(INVALID_REQUEST, "expected initialize to have an id")
    if is_deeper(frame.body):
        return Malformed(INVALID_PARAMS, f"expected at most {MOST_LEVELS} levels in initialize", frame.key)
    requested = find(frame.body, "params", "protocolVersion")
    revision = negotiation.choose_client_revision(requested, client_revision)
    return Greeting(frame, frame.key, requested, revision, find_object(frame.body, "params", "capabilities"))


def write_welcome(key: bytes, answer: Frame) -> Frame:
    """Put the client's own id on the answer; the bytes stay as they are if it is there already.

    Args:
        key: Of the request.
        answer: What the server answered, translated: it names the client's revision.
    """
    if answer.key == key:
        return answer
    return rewrite(answer, {**decoded(answer).body, "id": decode(key)})._replace(key=key)


def read_per_request_revision(frame: Frame) -> str | None:
    """Return the revision that a request names for itself, as only those of the per-request era do."""
    try:
        body = decode(frame.raw) if frame.body is None else frame.body
    except ValueError:
        return None
    named = find(body, "params", "_meta", PROTOCOL_VERSION_KEY)
    return named if isinstance(named, str) else None


def refuse_per_request(frame: Frame, revision: str) -> Frame:
    """Turn away a client of the per-request era, so that one that knows both eras falls back to `initialize`.

    2026-07-28/basic/transports/stdio, Backward Compatibility: any error that is not a modern one means "legacy".
    """
    if frame.method == DISCOVER:
        code, message = METHOD_NOT_FOUND, f"{DISCOVER} is not served"
    else:
        code, message = INVALID_PARAMS, "Unsupported protocol version"
    message += f"{negotiation.explain_era(revision)}; open the session with initialize"
    data = {"supported": list(HANDSHAKE_REVISIONS), "requested": revision}
    return error_frame(frame.key, code, message, data)


def read_initialized(frame: Frame, accept_legacy: bool) -> Frame | None:
    """Return the client's `notifications/initialized`, if that is what it is; by its own name, whatever it came as."""
    if frame.kind != "notification":
        return None
    if frame.method == LEGACY_INITIALIZED and accept_legacy:
        logger.info("the client sent %s for %s", LEGACY_INITIALIZED, INITIALIZED)
        return INITIALIZED_FRAME
    return frame if frame.method == INITIALIZED else None
