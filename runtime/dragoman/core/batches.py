"""JSON-RPC batches, which few revisions know.

Lives here: reading the members of an array, and collecting the answers to its requests until the array that answers it
is complete. Must not: send. Called by `edges.exchange`, which splits arrays and translates their members one by one.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import Any, Final

from dragoman.core.codes import INVALID_REQUEST
from dragoman.core.envelope import Frame, Malformed, classify, mend_response, rewrite
from dragoman.core.exact_json import encode_line
from dragoman_spec import REVISIONS, facts

logger = logging.getLogger("dragoman.exchange")

BATCH_REQUESTS: Final = 1000
"""How many requests one array may hold, unless told otherwise: each costs far more than its bytes."""

MOST_MEMBERS: Final = 4 * BATCH_REQUESTS
"""How many members of an array are looked at: of what is no frame, each costs as much time as a kilobyte."""


def has_batches(revision: str | None) -> bool:
    """Whether a frame of a peer that speaks this revision may be an array."""
    return revision in REVISIONS and facts(revision).batches


def explain_batches() -> str:
    """Say who may send an array, for somebody else who has sent one."""
    return f"only revision {' and '.join(filter(has_batches, REVISIONS))} has batches"


class Batch:
    """One array that came in, and what has been answered of it."""

    __slots__ = ("answers", "open_requests")

    def __init__(self, open_requests: int = 0) -> None:
        self.open_requests = open_requests
        self.answers: list[bytes] = []

    def answer(self, frame: Frame) -> Frame | None:
        """Add the answer to one request; give the whole array when it was the last one."""
        self.open_requests -= 1
        self.answers.append(frame.raw)
        return self.complete()

    def forgo(self) -> Frame | None:
        """Expect one answer less: its request was cancelled. Give the whole array if that was the last one missing."""
        self.open_requests -= 1
        return self.complete()

    def complete(self) -> Frame | None:
        """Return the array of answers, if none is missing and there is any."""
        if self.open_requests > 0 or not self.answers:
            return None
        return Frame(b"[" + b",".join(line.strip() for line in self.answers) + b"]\n", "batch", None, None)


def cut(frame: Frame) -> Frame:
    """Return an array that is not too long: of one that is, what may answer something, for somebody waits for it."""
    if frame.kind != "batch" or len(frame.body) <= MOST_MEMBERS:
        return frame
    logger.warning("an array of %d members is cut: no more than %d are looked at", len(frame.body), MOST_MEMBERS)
    answers = (one for one in frame.body if isinstance(one, dict) and "id" in one and "method" not in one)
    return rewrite(frame, list(islice(answers, MOST_MEMBERS)))


def read_member(member: Any, stream: bytes | None) -> Frame | Malformed:
    """Tell what a member of an array is that came on this stream."""
    if isinstance(member, list):
        return Malformed(INVALID_REQUEST, "expected a JSON object, found an array inside a batch")
    frame = classify(encode_line(member), member, stream)
    if isinstance(frame, Frame) and frame.method == "initialize":
        # "The initialize request MUST NOT be part of a JSON-RPC batch" (2025-03-26/basic/lifecycle).
        return Malformed(INVALID_REQUEST, "initialize must not be part of a batch", frame.key)
    return mend_response(frame) if isinstance(frame, Frame) else frame
