"""Which era a server is of, judged by how it took the probe `server/discover`.

Lives here: the judgement. Must not: probe or wait (`core.edges`), or keep a verdict: who asks judges again at
each connection, or knows for how long a verdict is good.

The rule of the specification is that recognised modern answers mean a modern server, and everything else an older
one (2026-07-28/basic/versioning, Backward Compatibility): "The fallback MUST NOT be keyed to one specific error
code".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

from dragoman.core.negotiation import UNSUPPORTED_VERSION
from dragoman.core.rules.names import name_of_hop_error
from dragoman.core.unchecked import find_object
from dragoman_spec import HANDSHAKE_REVISIONS, PER_REQUEST_REVISIONS
from dragoman_spec.record import record

_NO_EVIDENCE: Final = frozenset({401, 403, 407, 408, 429, 502, 503, 504})
"""What HTTP says of credentials, of haste, and of a way that is closed; none of it is about the server."""


class Era(Enum):
    """What a server is; NONE says that it could not be told, and that somebody should hear why."""

    HANDSHAKE = "handshake"
    PER_REQUEST = "per_request"
    NONE = "none"


@record
class Verdict:
    """What a probe showed.

    Attributes:
        era: Of the server.
        why: For the log, or for the operator where there is no verdict.
        supported: The revisions that it named, in its order; empty where it named none.
        discovered: Its discover result, if that is what it answered.
        is_rejection: Whether it turned down the revision of the question.
    """

    era: Era
    why: str
    supported: tuple[str, ...] = ()
    discovered: Mapping[str, Any] | None = None
    is_rejection: bool = False

    @property
    def is_older(self) -> bool:
        """Whether it shows a server with a handshake."""
        return self.era is Era.HANDSHAKE

    @property
    def discovers(self) -> bool:
        """Whether it shows a server that can be used without a handshake."""
        return self.discovered is not None and self.revision is not None

    @property
    def revision(self) -> str | None:
        """The newest revision that both sides speak in this era; None if there is none.

        A per-request server that names no revisions is taken at the one that it was probed with; a server with a
        handshake says its revision there.
        """
        known = {Era.PER_REQUEST: PER_REQUEST_REVISIONS, Era.HANDSHAKE: HANDSHAKE_REVISIONS}.get(self.era, ())
        common = [revision for revision in known if revision in self.supported or not self.supported]
        return common[-1] if common else None


def judge(answer: object) -> Verdict:
    """Say of which era a server is that answered the probe like this.

    Args:
        answer: The decoded JSON-RPC response.
    """
    body = answer if isinstance(answer, dict) else {}
    if isinstance(body.get("result"), dict):
        return _judge_result(body["result"])
    if isinstance(body.get("error"), dict):
        return _judge_error(body["error"])
    return Verdict(Era.NONE, "an answer that is not JSON-RPC")


def _judge_result(result: Mapping[str, Any]) -> Verdict:
    kind, supported = result.get("resultType", "complete"), _read_versions(result.get("supportedVersions"))
    if kind != "complete":
        return Verdict(Era.PER_REQUEST, f"a result of type {str(kind)[:40]}", supported)
    if _names_newer(supported):
        return Verdict(Era.PER_REQUEST, f"it supports {', '.join(supported)[:200]}", supported, result)
    why = f"it supports only {', '.join(supported)[:200]}" if supported else "a result that is not of server/discover"
    return Verdict(Era.HANDSHAKE, why, supported)


def _judge_error(error: Mapping[str, Any]) -> Verdict:
    code, told = error.get("code"), find_object(error, "data")
    supported = _read_versions(told.get("supported"))
    if told.get("httpStatus") in _NO_EVIDENCE:
        return Verdict(Era.NONE, f"status {told['httpStatus']}, which is about something else")
    name = name_of_hop_error(code)
    if name is None:
        return Verdict(Era.HANDSHAKE, f"error {str(code)[:40]}, which is not one of a newer server")
    if name == UNSUPPORTED_VERSION and supported and not _names_newer(supported):
        return Verdict(Era.HANDSHAKE, f"it supports only {', '.join(supported)[:200]}", supported)
    is_rejection = name == UNSUPPORTED_VERSION and bool(supported)
    return Verdict(Era.PER_REQUEST, f"error {code}, which only a newer server sends", supported, None, is_rejection)


def _names_newer(supported: Sequence[str]) -> bool:
    """Whether any of these is not a revision with a handshake: one that we know, or one that came after us."""
    return any(revision not in HANDSHAKE_REVISIONS for revision in supported)


def _read_versions(value: object) -> tuple[str, ...]:
    return tuple(revision for revision in value if isinstance(revision, str)) if isinstance(value, list) else ()
