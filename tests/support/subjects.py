"""What the laws speak about: every kind of frame of every method of a revision, and random frames of each.

A `Subject` is one (revision, kind, method, definition). Frames are valid both as the method's definition and as the
envelope of their kind; in the older revisions the envelope says what `_meta` may hold, so it is made from there. Must
not live here: judging (`judge`), comparing (`round_trips`). Used by the laws.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import dragoman_spec
from tests.support.instances import mutants, random_instance
from tests.support.judge import canonical, is_valid

REVISIONS = dragoman_spec.REVISIONS
PAIRS = [(source, target) for source in REVISIONS for target in REVISIONS if source != target]
ENVELOPES = {
    "request": ("JSONRPCRequest",),
    "notification": ("JSONRPCNotification",),
    "result": ("JSONRPCResultResponse", "JSONRPCResponse"),
    "error": ("JSONRPCErrorResponse", "JSONRPCError"),
}
CODES = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
    -32000,
    -32002,
    -32019,
    -32020,
    -32021,
    -32022,
    -32042,
    -32050,
    -32099,
    -1,
    7,
    10**20,
)


@dataclass(frozen=True, slots=True)
class Subject:
    """One kind of frame of one method; for results one of the definitions that the result can be."""

    revision: str
    kind: Literal["request", "notification", "result", "error"]
    method: str
    definition: str

    @property
    def asked(self) -> str | None:
        """What `translate` is told: the method that a response answers."""
        return self.method if self.kind in ("result", "error") else None

    def __str__(self) -> str:
        return f"{self.revision} {self.kind} {self.method} {self.definition}"


@cache
def subjects(revision: str) -> tuple[Subject, ...]:
    """Every subject of a revision."""
    found: list[Subject] = []
    for name, method in dragoman_spec.load(revision).METHODS.items():
        found.append(Subject(revision, method.kind, name, method.frame))
        found += [Subject(revision, "result", name, definition) for definition in method.results]
        if method.kind == "request":
            found.append(Subject(revision, "error", name, ""))
    return tuple(found)


def random_frame(rng: random.Random, subject: Subject) -> dict[str, Any]:
    """A valid frame."""
    make = random_instance
    if subject.kind == "error":
        return _error(rng, subject.revision)
    if subject.kind == "result":
        result = make(rng, subject.revision, subject.definition)
        return {"jsonrpc": "2.0", "id": make(rng, subject.revision, "RequestId"), "result": result}
    frame: dict[str, Any] = {"jsonrpc": "2.0", **make(rng, subject.revision, subject.definition)}
    if subject.kind == "request":
        frame.setdefault("id", make(rng, subject.revision, "RequestId"))
    base = make(rng, subject.revision, "RequestParams" if subject.kind == "request" else "NotificationParams")
    if "_meta" in base and "_meta" not in frame.get("params", {}):
        frame["params"] = {**frame.get("params", {}), "_meta": base["_meta"]}
    return frame


def leaky_frames(rng: random.Random, subject: Subject, newer: Subject) -> Iterator[dict[str, Any]]:
    """Frames of an older revision with keys that only the newer one names, as SDKs send them, some of them of the wrong
    type.
    """
    frame = random_frame(rng, newer)
    for candidate in (frame, *mutants(rng, frame, 3)):
        if isinstance(candidate, dict) and frame_faults(candidate, subject) == []:
            yield candidate


def frame_faults(frame: Any, subject: Subject) -> list[str]:
    """Why a frame is not valid in its revision; an empty list if it is."""
    definition = next(name for name in ENVELOPES[subject.kind] if name in canonical(subject.revision)["$defs"])
    if not is_valid(frame, subject.revision, definition):
        return [f"it is no {definition} of {subject.revision}"]
    if subject.kind == "error":
        return []
    value = frame["result"] if subject.kind == "result" else frame
    fits = is_valid(value, subject.revision, subject.definition)
    return [] if fits else [f"it is no {subject.definition} of {subject.revision}"]


def counterpart(subject: Subject, target: str) -> Subject | None:
    """The subject of another revision that a frame becomes there, if it has the method."""
    if subject.kind == "error":
        return Subject(target, "error", subject.method, "")
    method = dragoman_spec.load(target).METHODS.get(subject.method)
    if method is None:
        return None
    definition = method.result if subject.kind == "result" else method.frame
    return Subject(target, subject.kind, subject.method, str(definition))


def _error(rng: random.Random, revision: str) -> dict[str, Any]:
    frame: dict[str, Any] = {
        "jsonrpc": "2.0",
        "error": {"code": rng.choice(CODES), "message": rng.choice(["", "no", "naïve"])},
    }
    if revision < "2025-11-25" or rng.random() < 0.8:
        frame["id"] = random_instance(rng, revision, "RequestId")
    if rng.random() < 0.7:
        data: list[Any] = [None, [], {}, "text", 1.0, {"x-vendor": {"a": None}}, {"uri": "file:///a"}]
        data += [
            {"elicitations": [{"mode": "url", "url": "https://example.com/a", "elicitationId": "1", "message": "m"}]}
        ]
        data += [
            {"elicitations": 5},
            {"original": {"code": -32002}},
            {"original": {"code": -32021, "data": [1]}},
            {"original": 3},
        ]
        data += [{"requested": "2023-01-01", "supported": ["2026-07-28"]}, {"requiredCapabilities": {"roots": {}}}]
        frame["error"]["data"] = rng.choice(data)
    return frame
