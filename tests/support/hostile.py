"""Input that is not valid: any JSON that happens to look like a frame, and frames with something wrong in each place.

Also what a parser can hand over that no valid frame has: NaN, integers of any length, lone surrogates, deep nesting.
Used by the law of totality.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.support.instances import SIMPLE
from tests.support.subjects import REVISIONS, WRONG, places, put, subjects

METHODS = (
    *sorted({subject.method for revision in REVISIONS for subject in subjects(revision)}),
    "initialized",
    "x/y",
    "",
)
KEYS = (
    *(
        "method",
        "id",
        "params",
        "result",
        "error",
        "jsonrpc",
        "_meta",
        "tools",
        "content",
        "type",
        "capabilities",
        "messages",
    ),
    *(
        "role",
        "text",
        "contents",
        "uri",
        "code",
        "data",
        "original",
        "elicitations",
        "completion",
        "values",
        "requestedSchema",
    ),
    *(
        "properties",
        "oneOf",
        "const",
        "title",
        "annotations",
        "structuredContent",
        "outputSchema",
        "inputSchema",
        "$schema",
    ),
    *("items", "mode", "url", "task", "execution", "taskSupport", "resultType", "name", "mimeType", "inputRequests"),
)
CONSTANTS = (
    "audio",
    "text",
    "resource_link",
    "tool_use",
    "tool_result",
    "object",
    "required",
    "url",
    "form",
    "complete",
)
ODD = (*SIMPLE, *CONSTANTS, float("nan"), float("inf"), 10**400, "\ud800", "\x00")


def any_json(rng: random.Random, depth: int) -> Any:
    """Some JSON, of words that the protocol uses."""
    kind = rng.randrange(9 if depth > 0 else 6)
    if kind < 5:
        return rng.choice(ODD)
    if kind == 5:
        return rng.choice(([], {}, [[]], [{}]))
    if kind == 6:
        return [any_json(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(KEYS): any_json(rng, depth - 1) for _ in range(rng.randrange(6))}


def any_frame(rng: random.Random) -> Any:
    """Something that may be taken for a frame."""
    frame = any_json(rng, 6)
    if not isinstance(frame, dict):
        return frame
    if rng.random() < 0.5:
        frame["method"] = rng.choice(METHODS) if rng.random() < 0.9 else any_json(rng, 1)
    else:
        frame.pop("method", None)
        frame[rng.choice(("result", "error"))] = any_json(rng, 5)
    return frame


def wrong_in_each_place(frame: Any, rng: random.Random) -> Iterator[Any]:
    """Copies of a frame with something else in one place, for every place."""
    for path in [(), *places(frame, ())]:
        yield put(frame, path, rng.choice((None, *WRONG)))
