"""What both sides of a shared server work on: settings, counters, tables and the frames that go out.

Lives here: the tables together, and the few things that both sides do with them. Must not: take frames; that is
`member_side` and `server_side`. Made by `hub`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoman.core.consent import Method
from dragoman.core.envelope import Frame, error_frame, notification_frame, request_frame
from dragoman.core.exact_json import decode
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.core.sharing.allowed import methods_of
from dragoman.core.sharing.attribution import Attribution
from dragoman.core.sharing.calls import Call, Calls, Member
from dragoman.core.sharing.interests import Levels, Subscriptions
from dragoman.core.sharing.lane import Lane
from dragoman.core.sharing.opening import IDENTITY, Opening
from dragoman.core.sharing.questions import Questions
from dragoman.core.sharing.suspects import Suspects
from dragoman.core.tally import Lines

logger = logging.getLogger("dragoman.sharing")

Deliveries = list[tuple[Member | None, Frame]]
"""Frames and whom they are for, in order; None is the server."""


@dataclass(frozen=True, slots=True)
class SharingSettings:
    """What can be decided about a shared server.

    Attributes:
        identity: The `clientInfo` for the server.
        asks: Whether it is known to ask, so that sessions take turns from the start.
        cancel_abandoned: Whether what a session leaves behind is cancelled; some old servers die of that.
        limit_bytes: How much is written to a server that reads nothing, before it is given up.
        calls: How many requests of one session may be unanswered.
        subscriptions: How many resources one session may subscribe to.
        questions: How many requests of the server may be unanswered.
        waiting_bytes: How much may wait for its turn.
        turn_s: How long a call may wait for its turn.
        grace_s: How long the answer to a cancelled request is still passed on, and others wait for their turn.
        suspects: How many requests that ended without an answer are remembered one by one.
    """

    identity: Mapping[str, Any] = field(default_factory=lambda: dict(IDENTITY))
    asks: bool = False
    cancel_abandoned: bool = True
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    calls: int = 1024
    subscriptions: int = 1024
    questions: int = 1024
    waiting_bytes: int = 16 * 1024 * 1024
    turn_s: float = 120.0
    grace_s: float = 5.0
    suspects: int = 1024


@dataclass(slots=True)
class SharingCounters:
    """What did not find its way.

    Attributes:
        dropped: Notifications that belong to no session, or to one that did not ask for them, or that may not pass.
        unmatched: Answers and cancellations of nothing that is known.
        refused: Requests that were answered here, with an error.
        malformed: Lines that are no frames.
    """

    dropped: int = 0
    unmatched: int = 0
    refused: int = 0
    malformed: int = 0

    def describe(self) -> str:
        """Say it for the log."""
        return (
            f"{self.dropped} notifications of no session dropped, {self.unmatched} answers unmatched, "
            f"{self.refused} requests refused, {self.malformed} lines malformed"
        )


class Desk:
    """The tables.

    Args:
        settings: What was decided.
    """

    def __init__(self, settings: SharingSettings) -> None:
        self.settings = settings
        self.counters = SharingCounters()
        self.members: dict[Member, None] = {}
        self.calls = Calls(Suspects(settings.suspects))
        self.opening = Opening(self.calls, dict(settings.identity))
        self.lane = Lane(self.calls, settings.asks, settings.waiting_bytes)
        self.attribution = Attribution(self.calls)
        self.questions = Questions(self.attribution, settings.questions)
        self.subscriptions = Subscriptions()
        self.levels = Levels()
        self.announced = False  # whether the server has had its `notifications/initialized`
        self.called_and_left = False  # whether a member has gone that had made calls
        self.now = 0.0
        self._out: Deliveries = []
        self._methods: Mapping[str, Method] | None = None
        self._lines = Lines()

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods of the server's revision."""
        if self._methods is None and self.opening.is_open:
            self._methods = methods_of(self.opening.revision)
        return self._methods or methods_of(None)

    def post(self, member: Member | None, frame: Frame) -> None:
        """Add a frame for a member, or for the server."""
        self._out.append((member, frame))

    def take_out(self) -> Deliveries:
        """Take everything that goes out, in order."""
        out, self._out = self._out, []
        return out

    def reasons(self, params: dict[str, Any], related: bytes | None) -> set[Member | None]:
        """Give who may be the reason for what the server says; None in it is nobody who is there.

        Args:
            params: Of the server's frame.
            related: The id of ours of the request on whose stream it came.
        """
        reasons = self.attribution.named_owners(params, related) or self.calls.reasons()
        if reasons or not self.members:
            return reasons
        return {*self.members, None} if self.called_and_left else set(self.members)

    def drop(self, sender: str, frame: Frame, reason: str) -> None:
        """Drop a notification that may not pass.

        Args:
            sender: `a session` or `the shared server`.
            frame: The notification.
            reason: Why it may not.
        """
        self.counters.dropped += 1
        self._warn(f"{frame.kind} of {sender} dropped", frame.method, reason)

    def refuse(self, member: Member, frame: Frame, code: int, reason: str) -> None:
        """Answer a member's request with an error."""
        self.counters.refused += 1
        self._warn("request of a session refused", frame.method, f"session {member.number}: {reason}")
        self.post(member, error_frame(frame.key, code, reason, {"method": frame.method}))

    def refuse_server(self, frame: Frame, answer: Frame) -> None:
        """Answer a server's request with this error."""
        self.counters.refused += 1
        self._warn("request of the shared server refused", frame.method, decode(answer.raw)["error"]["message"])
        self.post(None, answer)

    def _warn(self, what: str, method: str | None, reason: str) -> None:
        """Log it, a line a second at most: peers choose how often it happens."""
        left_out = self._lines.take(what, self.now)
        if left_out is not None:
            more = f" ({left_out} more since the last line)" if left_out else ""
            logger.warning("%s %s: %s%s", (method or "")[:80], what, reason, more)

    def refuse_call(self, call: Call, code: int, reason: str) -> None:
        """Answer a member's request, which never got to the server, with an error."""
        assert call.member is not None, "requests of our own do not wait"
        self.calls.forget(call)
        self.refuse(call.member, Frame(b"", "request", call.own_key, call.method), code, reason)

    def ask(self, method: str, params: dict[str, Any]) -> None:
        """Send the server a request of our own, whose answer nobody waits for."""
        call = self.calls.add(method)
        self.calls.cancel(call, self.now)
        self.post(None, request_frame(call.key, method, params))

    def tell_level(self) -> None:
        """Tell the server the log level, if what is wanted has changed."""
        told = self.levels.change(self.members)
        if told is not None:
            self.ask("logging/setLevel", {"level": told})

    def let_in(self) -> None:
        """Send the calls whose turn it is."""
        while (frame := self.lane.next()) is not None:
            self.post(None, frame)

    def abandon(self, call: Call) -> None:
        """Give up a request of a member that has gone."""
        if not call.started:
            self.lane.remove(call)
            self.calls.forget(call)
        elif call.cancelled_at is None:
            self.calls.cancel(call, self.now)
            if self.settings.cancel_abandoned:
                params = {"requestId": decode(call.key), "reason": "the session has ended"}
                self.post(None, notification_frame("notifications/cancelled", params))


def params_of(body: Any) -> dict[str, Any]:
    """Give the params of a frame, or none."""
    return object_in(body, "params")


def object_in(value: Any, name: str) -> dict[str, Any]:
    """Give the object that an object has under this name, or an empty one where either is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}
