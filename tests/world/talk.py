"""What happened in a world, put together: requests with their answers, by peer. Rules and marks look at it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tests.world.peers import words
from tests.world.peers.words import PER_REQUEST
from tests.world.record import Body, Event, Record


@dataclass
class Asked:
    """A request and what came of it.

    Attributes:
        asked: The event in which it was said, or heard.
        answers: The events in which it was answered, by whoever had it.
        cancelled: Where it was cancelled by who asked.
        refused: Where it was refused, or lost, on the way: by an HTTP status.
        before: The one before it under the same id.
        is_muddled: Whether its id was used again before it was answered: then nobody knows what an answer is to.
    """

    asked: Event
    answers: list[Event]
    cancelled: Event | None = None
    refused: Event | None = None
    before: Asked | None = None
    is_muddled: bool = False

    def is_younger_than(self, answer: Event) -> bool:
        """Whether an answer was on its way already when this was asked, so that it is to the one before.

        What comes in one array comes at one moment, and is answered one after the other; but what bears the number of
        this one is to this one: the one before it was taken back, and its answer came to nothing.
        """
        if self.before is None or not answer.is_heard:
            return False
        since, written = self.asked.there or 0, answer.there or 0
        is_of_one_array = self.asked.via.startswith("array") and self.asked.via == self.before.asked.via
        came_together = is_of_one_array and since == self.before.asked.there and not self.before.answers
        numbers = words.nonces_in(self.frame)
        is_to_this = bool(numbers) and words.nonces_in(answer.frame) == numbers
        return 0 < written < since or (came_together and since > 0 and not is_to_this)

    @property
    def frame(self) -> Body:
        found: Body = self.asked.frame
        return found

    @property
    def params(self) -> Body:
        return self.frame.get("params") or {}

    @property
    def stream(self) -> str:
        """Name what brings what belongs to it, over HTTP: its own stream, or that of its array."""
        return f"on {self.asked.via}" if self.asked.via.startswith("array") else str(self.frame["id"])

    @property
    def is_open(self) -> bool:
        """Whether nobody has answered it, or taken it back."""
        return not self.answers and self.cancelled is None


class Talk:
    """What happened, put together: requests with their answers, by peer.

    Attributes:
        record: What happened.
        by_peer: The events of each.
        asked: The requests that each peer made, by peer; of a server those are questions.
        got: The requests that each peer got, by peer.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.by_peer: dict[str, list[Event]] = defaultdict(list)
        for event in record.events:
            self.by_peer[event.peer].append(event)
        self.unasked: list[Event] = []  # responses to what nobody asked
        self.asked = {peer: self._pair(events, "says", "hears") for peer, events in self.by_peer.items()}
        self.got = {peer: self._pair(events, "hears", "says") for peer, events in self.by_peer.items()}

    def _pair(self, events: list[Event], asks: str, answers: str) -> list[Asked]:
        found: list[Asked] = []
        latest: dict[tuple[Any, ...], Asked] = {}
        for event in events:
            frame = event.frame

            def key_of(key: Any, event: Event = event) -> tuple[Any, ...]:
                """Name a request: at a server without sessions, its connection is a part of that."""
                is_apart = event.peer.startswith("s") and asks == "hears" and self._is_stateless(event.peer)
                return (*words.key_of(key), event.via if is_apart else "")

            if event.what in ("is refused", "drops") and asks == ("says" if event.what == "is refused" else "hears"):
                known = latest.get(key_of(frame["id"]))
                if known is not None and event.what == "drops":
                    known.cancelled = event
                elif known is not None:
                    known.refused = event
            if event.what not in (asks, answers) or not isinstance(frame, dict):
                continue
            if "method" in frame:
                if event.what == asks and "id" in frame:
                    one, before = Asked(event, []), latest.get(key_of(frame["id"]))
                    if asks == "says" and event.peer.startswith("s") and before is not None and before.is_open:
                        one.refused = event  # the id of what it has asked and is not answered: nobody answers this
                        before.is_muddled = True
                    else:
                        latest[key_of(frame["id"])] = one
                        one.before = before
                    found.append(one)
                elif event.what == asks and frame["method"] == "notifications/cancelled":
                    known = latest.get(key_of((frame.get("params") or {}).get("requestId")))
                    if known is not None and known.cancelled is None:
                        known.cancelled = event
            elif event.what == answers:
                known = latest.get(key_of(frame.get("id")))
                while known is not None and known.is_younger_than(event):
                    known = known.before
                if known is not None:
                    known.answers.append(event)
                elif answers == "hears":
                    self.unasked.append(event)
        return found

    def _is_stateless(self, peer: str) -> bool:
        return self.record.revisions.get(peer) == PER_REQUEST

    def clients(self) -> list[str]:
        return [peer for peer in self.by_peer if peer.startswith("c") and peer != "clock"]

    def servers(self) -> list[str]:
        return [peer for peer in self.by_peer if peer.startswith("s")]

    def is_gone(self, peer: str) -> bool:
        """Whether a peer ended before everything else did."""
        return any(event.what in ("is cut", "dies") for event in self.by_peer[peer])
