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
from tests.support.instances import random_instance
from tests.support.judge import canonical, is_valid
from tests.support.renames import definition_in, method_in

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
        if "resultType" in result and subject.definition != "InputRequiredResult" and rng.random() < 0.9:
            result["resultType"] = "complete"  # any other is refused before anything else is looked at
        if subject.definition == "ListToolsResult" and subject.revision >= "2026-07-28":
            for tool in result["tools"]:  # what is wrapped depends on a type that no schema names
                tool.setdefault("outputSchema", {})["type"] = rng.choice(("object", "array", ["object", "null"]))
        if subject.definition == "CompleteResult" and subject.revision < "2026-07-28" and rng.random() < 0.1:
            result["completion"]["values"] = [str(number) for number in range(120)]
        frame = {"jsonrpc": "2.0", "id": make(rng, subject.revision, "RequestId"), "result": result}
        return named(frame, subject.revision)
    frame: dict[str, Any] = {"jsonrpc": "2.0", **make(rng, subject.revision, subject.definition)}
    if subject.kind == "request":
        frame.setdefault("id", make(rng, subject.revision, "RequestId"))
    base = make(rng, subject.revision, "RequestParams" if subject.kind == "request" else "NotificationParams")
    if "_meta" in base and "_meta" not in frame.get("params", {}):
        frame["params"] = {**frame.get("params", {}), "_meta": base["_meta"]}
    return named(frame, subject.revision)


REVISION_KEYS = ("protocolVersion", "io.modelcontextprotocol/protocolVersion")


def revisions_named(frame: dict[str, Any]) -> list[Any]:
    """The revisions that a frame says it is of."""
    params, result = frame.get("params"), frame.get("result")
    places = [params, params.get("_meta") if isinstance(params, dict) else None, result]
    if frame.get("method", "initialize") != "initialize":
        places = places[1:2]
    found = [place[key] for place in places if isinstance(place, dict) for key in REVISION_KEYS if key in place]
    return found if "method" in frame or "serverInfo" in (result or {}) else []


def named(frame: dict[str, Any], revision: str) -> dict[str, Any]:
    """A frame that says of itself what it is: where it names a revision, its own."""
    params, result = frame.get("params", {}), frame.get("result", {})
    for place in (params, params.get("_meta"), result):
        for key in REVISION_KEYS if isinstance(place, dict) else ():
            if isinstance(place.get(key), str):
                place[key] = revision
    return frame


def leaky_frames(rng: random.Random, subject: Subject, other: Subject) -> Iterator[dict[str, Any]]:
    """Valid frames with keys that only another revision names, as SDKs send them: as they should be, and of other
    types.

    Only of a method's usual result: what else a result can be is told from it by the very keys.
    """
    if (
        subject.kind == "result"
        and subject.definition != dragoman_spec.load(subject.revision).METHODS[subject.method].result
    ):
        return
    frame = random_frame(rng, subject)
    rich = _grafted(frame, random_frame(rng, other))
    grafts = [path for path in places(rich, ()) if _at(frame, path) is None]
    for candidate in (rich, *(put(rich, path, rng.choice(WRONG)) for path in grafts for _ in range(2))):
        if frame_faults(candidate, subject) == []:
            yield candidate


WRONG: tuple[Any, ...] = (
    True,
    5,
    1.5,
    "x",
    [],
    {},
    [[]],
    [1],
    {"a": None},
    [{}],
    {"type": "audio"},
    {"type": []},
    [None],
)


def _grafted(value: Any, donor: Any) -> Any:
    """A value with the keys that it lacks and its donor has in the same place."""
    if isinstance(value, dict) and isinstance(donor, dict):
        return {**donor, **{key: _grafted(item, donor.get(key)) for key, item in value.items()}}
    if isinstance(value, list) and isinstance(donor, list) and donor:
        return [_grafted(item, donor[i % len(donor)]) for i, item in enumerate(value)]
    return value


def places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        known = key in value if isinstance(value, dict) else isinstance(value, list) and isinstance(key, int)
        if not known or (isinstance(value, list) and key >= len(value)):
            return None
        value = value[key]
    return value


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


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
    name = method_in(subject.revision, target, subject.method)
    if subject.kind == "error":
        return Subject(target, "error", name, "")
    method = dragoman_spec.load(target).METHODS.get(name)
    if method is None:
        return None
    theirs = definition_in(subject.revision, target, subject.definition)
    usual = theirs if theirs in method.results else method.result
    definition = usual if subject.kind == "result" else method.frame
    return Subject(target, subject.kind, name, str(definition))


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
