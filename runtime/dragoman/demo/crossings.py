"""What crossed: each frame that a peer sent, with what the other got, what was lost, or who answered instead.

Lives here: the record, which the proxy is given as its trace, and pairing its lines. A frame keeps its kind and id on
the way, and a notification its method, so that is what they are paired by. Must not: print.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from dragoman.core.commands import Side
from dragoman.core.envelope import Frame
from dragoman.core.translate import Crossing
from dragoman.trace.lines import Entry, Where
from dragoman.trace.trace import Watched
from dragoman.transports.base import Transport
from dragoman_spec import Loss

Key = tuple[str, str]
"""The kind of a frame, and its id as JSON; of a notification the method."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that a peer sent, or that was sent to it.

    Attributes:
        side: The peer.
        sent: Whether it is the peer who sent it.
        data: The bytes, line ending included.
    """

    side: Side
    sent: bool
    data: bytes


@dataclass(slots=True, eq=False)
class Record:
    """What happened, in order.

    Attributes:
        client_revision: What the client speaks.
        server_revision: What the server speaks.
        lines: Every line at both ends.
        translations: Every translation.
        problem: Why the conversation did not come to its end; empty if it did.
    """

    client_revision: str
    server_revision: str
    lines: list[Line] = field(default_factory=list)
    translations: list[Crossing] = field(default_factory=list)
    problem: str = ""

    def watch(self, transport: Transport, side: Side) -> Transport:
        """Return a transport that does what this one does, each line of which is written down."""
        return Watched(transport, 0, side, self.put)

    def translated(self, crossing: Crossing) -> None:
        """Write a translation down."""
        self.translations.append(crossing)

    def behind(self, server: str) -> Record:
        """Return itself: there is one server."""
        return self

    def put(self, entry: Entry) -> None:
        """Write a line down."""
        match entry:
            case (_, Where(side=side), "sent" | "received" as direction, Frame(raw=raw)):
                self.lines.append(Line(Side(side), direction == "received", raw))


@dataclass(frozen=True, slots=True)
class DemoCrossing:
    """One frame on its way from a peer to the other.

    Attributes:
        sender: Who sent it.
        before: The frame, as it was sent.
        after: The frame, as it arrived; None if it did not.
        same_bytes: Whether it arrived as the very bytes that were sent.
        losses: What could not be carried.
        answer: What the proxy answered instead; None if the frame arrived, or if nobody is owed an answer.
    """

    sender: Side
    before: dict[str, Any]
    after: dict[str, Any] | None
    same_bytes: bool
    losses: tuple[Loss, ...]
    answer: dict[str, Any] | None

    @property
    def opens_scene(self) -> bool:
        """Whether it is a request of the client."""
        return self.sender is Side.CLIENT and "id" in self.before and "method" in self.before


def pair_lines(record: Record) -> list[DemoCrossing]:
    """Return every frame that a peer sent, in order, with what became of it."""
    frames = [(line, json.loads(line.data)) for line in record.lines]
    arrived = {(line.side, key_of(frame)): line for line, frame in frames if not line.sent}
    losses = {(done.side, key_of(json.loads(done.before.raw))): tuple(done.losses) for done in record.translations}
    crossings = []
    for line, frame in frames:
        if line.sent:
            key = key_of(frame)
            found = arrived.pop((line.side.other, key), None)
            answer = None if found else _answer(arrived, line.side, frame)
            lost = losses.get((line.side, key), ())
            after = json.loads(found.data) if found else None
            crossings.append(
                DemoCrossing(line.side, frame, after, found is not None and found.data == line.data, lost, answer)
            )
    return crossings


def scenes(crossings: list[DemoCrossing]) -> list[list[DemoCrossing]]:
    """Split a conversation before each request of the client."""
    found: list[list[DemoCrossing]] = []
    for crossing in crossings:
        if crossing.opens_scene or not found:
            found.append([])
        found[-1].append(crossing)
    return found


def key_of(frame: dict[str, Any]) -> Key:
    """Tell frames of one direction apart."""
    if "id" not in frame:
        return "notification", frame["method"]
    return "request" if "method" in frame else "response", json.dumps(frame["id"])


def _answer(arrived: dict[tuple[Side, Key], Line], side: Side, request: dict[str, Any]) -> dict[str, Any] | None:
    line = arrived.get((side, ("response", json.dumps(request.get("id")))))
    answer: dict[str, Any] | None = json.loads(line.data) if line else None
    return answer
