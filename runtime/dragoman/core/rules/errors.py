"""What a server's error means for a client across the eras, where the code alone does not decide it.

Lives here: the errors of the per-request era that are about one hop (headers, capabilities, versions), and the HTTP
status of each. Must not: replace codes that mean the same everywhere, which the steps do; they come after this.

An error about a hop is about *that* hop. A server that misses a header, a capability or a revision has missed what we
sent it, and its client, which sent something else, would only be confused by its words: so these are answered anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.core.codes import INTERNAL_ERROR, INVALID_PARAMS
from dragoman.core.declared import declares
from dragoman.core.rules.capabilities import Path
from dragoman.core.rules.names import (
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_VERSION,
    URL_ELICITATION_REQUIRED,
    name_of_hop_error,
)
from dragoman.core.unchecked import find_object
from dragoman_spec import era, facts
from dragoman_spec.record import record


@record
class Relay:
    """Pass the server's error on, over the steps."""


@record
class Say:
    """Answer the client with this error, in its own form.

    Attributes:
        code: Of the error.
        message: Of the error.
        data: Of the error.
    """

    code: int
    message: str
    data: dict[str, Any]


@record
class FailTool:
    """Answer the client with this result of a tool, in the form of 2026-07-28."""

    result: dict[str, Any]


@record
class Refresh:
    """List the server's tools anew and send the request once more: our headers were made from an outdated schema."""


@record
class Visit:
    """Ask the client to open URLs first (`urls`)."""


Answer = Relay | Say | FailTool | Refresh | Visit


def answer_error(
    error: Mapping[str, Any],
    method: str,
    path: Path,
    *,
    declared: Mapping[str, Any] | None = None,
    has_refreshed: bool = False,
) -> Answer:
    """Say what to do about an error of a server.

    Args:
        error: Of the JSON-RPC response, in the server's form.
        method: That was asked.
        path: The way between client and server.
        declared: The capabilities that the server was told.
        has_refreshed: Whether this is the answer to the second attempt.
    """
    code = error.get("code")
    if path.bridge == "to_session":
        return Visit() if code == URL_ELICITATION_REQUIRED else Relay()
    if era(path.server) == "handshake":
        return Relay()
    name = name_of_hop_error(code)
    if name == "HEADER_MISMATCH":
        return (
            _say_about_us(error, f"the server does not accept our headers for {method}") if has_refreshed else Refresh()
        )
    if name == "UNSUPPORTED_PROTOCOL_VERSION":
        return _say_about_us(error, f"the server does not speak revision {path.server} any more")
    if name == "MISSING_REQUIRED_CLIENT_CAPABILITY":
        return _answer_missing(error, method, path, declared or {})
    return Relay()


def _answer_missing(error: Mapping[str, Any], method: str, path: Path, declared: Mapping[str, Any]) -> Answer:
    required = _read_required(error)
    missing = [name for name in required if not declares(declared, name)]
    if path.bridge is None:
        if required and not missing:
            return _say_about_us(error, "the server wants capabilities that it was told of")
        spelled = _spell(error, missing)
        return Say(MISSING_CLIENT_CAPABILITY, str(error.get("message", "")), {"requiredCapabilities": spelled})
    named = f": {', '.join(required)}" if required else ""
    text = f"The server needs a capability that this client does not have here{named}."
    if method == "tools/call":
        return FailTool({"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": True})
    return Say(INVALID_PARAMS, text, {"original": dict(error)})


def explain_missing(missing: str, failure: Mapping[str, Any]) -> Say:
    """Return the error for a call that failed after its server has asked for what the client did not declare.

    Args:
        missing: The capability, such as `sampling.tools`.
        failure: The error or result with which the call ended.
    """
    name, _, part = missing.partition(".")
    message = f"the call failed after the server had asked for {missing}, which the client did not declare"
    required: dict[str, Any] = {name: {part: {}} if part else {}}
    return Say(MISSING_CLIENT_CAPABILITY, message, {"requiredCapabilities": required, "original": dict(failure)})


def _say_about_us(error: Mapping[str, Any], message: str) -> Say:
    return Say(INTERNAL_ERROR, message, {"original": dict(error)})


def _read_required(error: Mapping[str, Any]) -> list[str]:
    """Return the capabilities that an error asks for, `elicitation.url` and so on, as far as they go."""
    found: list[str] = []
    for name, value in find_object(error, "data", "requiredCapabilities").items():
        parts = [part for part in value if part] if isinstance(value, dict) else []
        found += [f"{name}.{part}" for part in parts] or [name]
    return found


def _spell(error: Mapping[str, Any], missing: Sequence[str]) -> dict[str, Any]:
    required: Mapping[str, Any] = error["data"]["requiredCapabilities"] if missing else {}
    spelled: dict[str, Any] = {}
    for path in missing:
        name, _, part = path.partition(".")
        whole = required[name]
        spelled.setdefault(name, {}).update({part: whole[part]} if part else whole if isinstance(whole, dict) else {})
    return spelled


def find_http_status(revisions: Sequence[str], code: int, *, is_about_metadata: bool = False) -> int:
    """Return the HTTP status that an error is sent with.

    Args:
        revisions: Those that the client may speak; the status is of the first that has one.
        code: Of the error.
        is_about_metadata: Whether it refuses a request for what its `_meta` lacks.
    """
    for known in map(facts, revisions):
        if is_about_metadata and known.meta_refusal is not None and known.meta_refusal[0] == code:
            return known.meta_refusal[1]
        if code in known.http_status:
            return known.http_status[code]
    return 200


def unsupported_version(requested: object, supported: Sequence[str]) -> Say:
    """Return the error for a revision that is not served here: with our own list, never that of a server behind us."""
    data = {"supported": list(supported), "requested": requested}
    is_newer = any(era(revision) == "per_request" for revision in supported)
    return Say(UNSUPPORTED_VERSION if is_newer else INVALID_PARAMS, "Unsupported protocol version", data)
