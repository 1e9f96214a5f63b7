"""Which revision each peer speaks.

Lives here: what to answer the client, what to offer the server, and how to read what the server said. Must not: send,
or guess a revision from the shape of a message. Called by `core.edges`.

Sources: the lifecycle page of each revision, "Version Negotiation" (2025-11-25/basic/lifecycle): a server that supports
the requested version MUST respond with the same version, otherwise MUST respond with another one it supports, which
SHOULD be its latest. A per-request revision has no `initialize`, so it is never offered and never answered in one.

Rule `echoing-server`. Most servers, all official SDKs among them, accept any older revision and then send what their
newest one has all the same; their answer does not show it. So with the rule (the default) a server is offered the
newest handshake revision first, whatever the client asked for: one that speaks it says so, and is translated; one
that negotiates answers with its own. One that rejects what it does not speak is then offered what the client asked
for, which is not the one retry that `retry_older` allows but takes its permission. Without the rule, or without that
permission, the server is offered what the client asked for, even a value that is not a revision. `--server-revision`
rules out both.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple

from dragoman.core.codes import INVALID_PARAMS
from dragoman.errors import UnsupportedRevision
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS, load
from dragoman_spec.revisions import steps_between

AUTO = "auto"
SAME = "same"
"""Stands for whatever the client speaks: of a server that speaks every revision, because it is one of ours."""

UNSUPPORTED_VERSION = "UNSUPPORTED_PROTOCOL_VERSION"
"""What the error code is called that means it whatever the text."""

_REVISION = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_ABOUT_REVISIONS = re.compile(
    r"protocol[\s_-]*(version|revision)|(unsupported|unknown|incompatible)\s+(version|revision)"
    r"|(version|revision)\b.{0,40}\bnot\s+supported",
    re.IGNORECASE,
)


class Rejection(NamedTuple):
    """A server's error that says: not this revision.

    Attributes:
        supported: The revisions that it named instead, in its order; empty if it named none.
        requested: The revision that it turned down.
    """

    supported: tuple[str, ...]
    requested: str


def choose_client_revision(requested: object, setting: str = AUTO) -> str:
    """Return the revision to speak with a client that asked for this one.

    Args:
        requested: `params.protocolVersion` of its `initialize`.
        setting: `auto`, or the revision that the user pinned the client to.
    """
    if setting != AUTO:
        return setting
    return requested if isinstance(requested, str) and requested in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[-1]


def choose_offer(client_revision: str, requested: object, setting: str, *, expect_echo: bool) -> str:
    """Return the revision to offer the server first: the newest, the client's, or the one that the user named.

    Args:
        client_revision: What is spoken with the client.
        requested: What the client asked for, which may not be a revision at all.
        setting: `auto`, `same`, or the revision that the user says the server speaks.
        expect_echo: Whether rule `echoing-server` is on, and another offer may follow.
    """
    if setting == SAME:
        return client_revision
    if setting != AUTO:
        return setting
    if expect_echo:
        return HANDSHAKE_REVISIONS[-1]
    if requested in REVISIONS or not isinstance(requested, str):
        return client_revision
    return requested


def read_server_revision(result: dict[str, Any]) -> str:
    """Read the revision that the server speaks off its `initialize` result.

    Raises:
        UnsupportedRevision: It names one that has no handshake, or that nobody knows.
    """
    revision = result.get("protocolVersion")
    if isinstance(revision, str) and revision in HANDSHAKE_REVISIONS:
        return revision
    raise UnsupportedRevision(revision if revision is not None else "(none)", HANDSHAKE_REVISIONS)


def read_rejection(error: dict[str, Any], offered: str) -> Rejection | None:
    """Tell whether a server's error to `initialize` rejects the revision that it was offered.

    Explicit means: a list `supported` in the data, a code made for it, or a text that speaks of the protocol version.
    The revisions it supports are taken from the list, or else from the text, which is where most servers put them.
    """
    data = error.get("data")
    text = f"{error.get('message', '')} {data if data is not None else ''}"
    named = _read_supported(data)
    if named is None and not _says_unsupported(error.get("code")) and not _ABOUT_REVISIONS.search(text):
        return None
    if named is None:
        named = tuple(one for one in dict.fromkeys(_REVISION.findall(text)) if one in REVISIONS and one != offered)
    return Rejection(named, offered)


def _says_unsupported(code: Any) -> bool:
    return isinstance(code, int) and any(
        load(revision).ERROR_CODES.get(code) == UNSUPPORTED_VERSION for revision in REVISIONS
    )


def _read_supported(data: Any) -> tuple[str, ...] | None:
    if not isinstance(data, dict):
        return None
    for name in ("supported", "supportedVersions", "supportedProtocolVersions"):
        value = data.get(name)
        if isinstance(value, str):
            return (value,)
        if isinstance(value, list):
            return tuple(revision for revision in value if isinstance(revision, str))
    return None


def choose_retry(rejection: Rejection, client_revision: str, tried: Collection[str] = ()) -> str | None:
    """Return the revision to offer after a rejection, or None if there is none to offer.

    From the server's list: the nearest to the client's, because every step between revisions can cost something, and
    the newer of two that are equally near. Without a list: the client's, where something newer was rejected; then the
    next older, or the newest if there is no older.

    Args:
        rejection: What the server said.
        client_revision: What is spoken with the client.
        tried: What it has been offered so far; none of it is offered again.
    """
    left = [revision for revision in HANDSHAKE_REVISIONS if revision not in (*tried, rejection.requested)]
    if rejection.supported:
        known = [revision for revision in left if revision in rejection.supported]
        return max(known, key=lambda revision: (-_distance(revision, client_revision), revision), default=None)
    if client_revision < rejection.requested and client_revision in left:
        return client_revision
    older = [revision for revision in left if revision < rejection.requested]
    return next(reversed(older or left), None)


def _distance(one: str, other: str) -> int:
    return len(steps_between(one, other))


def explain_unsupported(requested: object, supported: tuple[str, ...]) -> tuple[int, str, dict[str, Any]]:
    """Return code, message and data of the error that tells a client that no revision could be agreed on.

    The form is that of the lifecycle page's example: -32602 with `supported` and `requested`.
    """
    message = "Unsupported protocol version"
    if supported and not any(revision in HANDSHAKE_REVISIONS for revision in supported):
        message += f": the server supports only {', '.join(supported)}{explain_era(supported[0])}"
        message += ", and the server did not say what it offers there (server/discover)"
    return INVALID_PARAMS, message, {"supported": list(supported), "requested": requested}


def explain_era(revision: object) -> str:
    """Say why a revision of the per-request era is nobody's answer here; nothing for any other value."""
    if revision not in REVISIONS or revision in HANDSHAKE_REVISIONS:
        return ""
    return f"; {revision} belongs to the per-request era, which has no initialize"
