"""How a server is asked which era it belongs to.

Lives here: when a refusal is a reason to ask, the `server/discover` request, and reading the answer. Must not: judge it
(`rules.verdict`), or decide what happens next (`opening`).

Servers without a handshake must cost nothing where both sides have one, and many servers with a handshake do not
survive an unknown method. So a server of which nothing is known is asked for a client with a handshake only after it
has refused `initialize` in a way that handshake servers do not use: "A server that supports only modern versions SHOULD
name the protocol versions it supports in any error it returns to an `initialize` request"
(2026-07-28/basic/versioning).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.core.edges.greeting import IDENTITY, Greeting
from dragoman.core.envelope import Frame, Malformed, read_params, twin_of
from dragoman.core.exact_json import decode, encode, encode_line
from dragoman.core.negotiation import read_rejection
from dragoman.core.rules.capabilities import Path
from dragoman.core.rules.discovery import read_initialize
from dragoman.core.rules.headers import make_headers
from dragoman.core.rules.metadata import Metadata, stamp
from dragoman.core.rules.names import (
    DISCOVER,
    META_VERSION,
    NEWER,
    name_of_hop_error,
)
from dragoman.core.rules.verdict import Era, Verdict, judge
from dragoman.core.unchecked import MOST_LEVELS, is_deeper
from dragoman_spec import HANDSHAKE_REVISIONS, PER_REQUEST_REVISIONS

logger = logging.getLogger("dragoman.session")

PROBE_ID: Final = "dragoman-discover-"
"""How the ids of probes begin; none is the client's."""


def suspects_newer(error: Mapping[str, Any], offered: str) -> bool:
    """Whether a server's refusal of `initialize` may mean that it has no handshake at all.

    Args:
        error: Of its answer.
        offered: The revision that it was offered.
    """
    rejection = read_rejection(dict(error), offered)
    if rejection is not None and any(revision in HANDSHAKE_REVISIONS for revision in rejection.supported):
        return False
    code = error.get("code")
    if code == METHOD_NOT_FOUND or name_of_hop_error(code) is not None:
        return True
    said = f"{error.get('message')} {error.get('data')}"
    return any(word in said for word in (*PER_REQUEST_REVISIONS, META_VERSION, "_meta"))


def describe(about: Greeting | Metadata | None) -> Metadata:
    """Return what a probe says of a client, by its `initialize` or one of its requests; None: of nobody."""
    if isinstance(about, Greeting):
        about = read_initialize(read_params(about.frame), Path(about.revision, NEWER))[0]
    about = about or Metadata(NEWER, {})
    return about._replace(client_info=about.client_info or IDENTITY, log_level=None)


class Probe:
    """One `server/discover`, and what came of it.

    Args:
        number: How many probes of this server there are, with this one.
        revision: That it is written in; None for the oldest of the era.
        about: Of the client in whose name it is sent: a proxy of ours, and a router, opens its servers so.
    """

    __slots__ = ("_metadata", "key")

    def __init__(self, number: int, revision: str | None, about: Metadata) -> None:
        self._metadata = about._replace(revision=revision or NEWER)
        self.key = encode(f"{PROBE_ID}{number}")

    def write(self) -> Frame:
        """Write the request."""
        body = {
            "jsonrpc": "2.0",
            "id": decode(self.key),
            "method": DISCOVER,
            "params": stamp(None, self._metadata),
        }
        return Frame(encode_line(body), "request", self.key, DISCOVER, body, None, tuple(make_headers(body)))

    def judge(self, event: object) -> Verdict | None:
        """Judge the answer; None for anything else. An error without id can be about nothing else."""
        if isinstance(event, Malformed):
            is_answer = event.is_response and event.key == self.key
            return Verdict(Era.NONE, f"its answer is not a response: {event.reason}") if is_answer else None
        if not isinstance(event, Frame) or event.kind not in ("result", "error"):
            return None
        is_ours = event.key is None or self.key in (event.key, twin_of(event.key))
        return self._read(event) if is_ours else None

    def _read(self, frame: Frame) -> Verdict:
        try:
            body = decode(frame.raw) if frame.body is None else frame.body
        except ValueError as error:
            return Verdict(Era.NONE, f"an answer that cannot be read: {error}")
        is_deep = is_deeper(body)
        verdict = Verdict(Era.NONE, f"an answer of more than {MOST_LEVELS} levels") if is_deep else judge(body)
        logger.info("the server's era: %s (%s)", verdict.era.value, verdict.why)
        return verdict
