"""What may pass between a shared server and its sessions, by the methods of the server's revision.

Lives here: refusing a known method in the wrong kind or from the wrong side. Must not: write frames. Called by
`from_clients` and `from_server`.

Which ids and tokens in a frame are replaced depends on its kind and method. A `tools/call` without an id, or a
`notifications/cancelled` with one, would keep its ids and tokens. A lenient peer would accept it, and for that peer
they belong to another client.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import dragoman_spec
from dragoman.core.codes import INVALID_REQUEST, METHOD_NOT_FOUND
from dragoman.core.consent import Method
from dragoman.core.envelope import Frame
from dragoman.core.methods import NOTICES
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS


class Fault(NamedTuple):
    """Why a frame does not pass: the JSON-RPC error for a request."""

    code: int
    reason: str


def methods_of(revision: object) -> Mapping[str, Method]:
    """Return the methods of a server's revision; those of the newest with a handshake where it is nobody's."""
    known = revision if isinstance(revision, str) and revision in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[-1]
    methods: Mapping[str, Method] = dragoman_spec.load(known).METHODS
    return methods


def find_fault(frame: Frame, sender: str, methods: Mapping[str, Method]) -> Fault | None:
    """Return what is wrong with a request or notification; None if it may pass, as what no revision knows may.

    Args:
        frame: A request or notification.
        sender: `client` or `server`.
        methods: Of the server's revision.
    """
    name = frame.method or ""
    known = methods.get(name)
    if known is None:
        if frame.kind == "request" and name.startswith(NOTICES):
            return Fault(INVALID_REQUEST, f"{name} is not a request: it is named like a notification")
        if name in _names_of_all_revisions():
            return Fault(METHOD_NOT_FOUND, f"the server's revision has no {name}")
    elif known.kind != frame.kind:
        return Fault(INVALID_REQUEST, f"{name} is a {known.kind}, and came as a {frame.kind}")
    elif sender not in known.sender:
        return Fault(METHOD_NOT_FOUND, f"a {sender} does not send {name}")
    return None


@lru_cache(maxsize=1)
def _names_of_all_revisions() -> frozenset[str]:
    return frozenset(name for revision in REVISIONS for name in dragoman_spec.load(revision).METHODS)
