"""An upstream edge with an open session, and a switch that writes down what it is told."""

from __future__ import annotations

from typing import Any

import dragoman_spec
from dragoman.core.commands import Command, Outbox, Outcome, Send
from dragoman.core.edges.greeting import INITIALIZED_FRAME, read_greeting
from dragoman.core.edges.lifecycle import UpstreamState
from dragoman.core.edges.offer import Accepted
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, Malformed, Refusal, classify
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.settings import Settings
from tests.proxy.conversation import initialize, initialized

NEWEST = dragoman_spec.HANDSHAKE_REVISIONS[-1]


def frame_of(body: Any) -> Frame:
    frame = classify(encode_line(body), body)
    assert isinstance(frame, Frame)
    return frame


class UpstreamTalk:
    """Opens the session; `opening` is what that led to."""

    def __init__(self, **settings: Any) -> None:
        self.outbox = Outbox()
        self.edge = UpstreamEdge(Settings(expect_echo=False, **settings), self.outbox, self)
        self.told: list[Any] = []
        self.interruptions: list[str] = []
        self.end: str | None = None
        hello = frame_of(initialize(NEWEST))
        greeting = read_greeting(hello, "auto")
        assert not isinstance(greeting, Malformed)
        assert self.edge.initialize(greeting, lambda _: hello, greeting.key) is None
        self.hello = self.bodies()
        self.hear(initialized(NEWEST))
        self.edge.announce(INITIALIZED_FRAME)
        self.opening = self.commands()
        assert self.edge.state is UpstreamState.READY

    # What the edge tells

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        assert isinstance(frame, Frame)
        self.told.append(decode(frame.raw))

    def waits_for(self, upstream: UpstreamEdge) -> bool:
        return True

    def offered(self, upstream: UpstreamEdge) -> None: ...

    def accepted(self, upstream: UpstreamEdge, accepted: Accepted) -> None: ...

    def refused(self, upstream: UpstreamEdge, refused: Any) -> None:
        raise AssertionError(refused)

    def failed(self, upstream: UpstreamEdge, failure: Any) -> None:
        raise AssertionError(failure)

    def discovered(self, upstream: UpstreamEdge, verdict: Any) -> None:
        raise AssertionError(verdict)

    def interrupted(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        self.interruptions.append(failure.message)

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        self.end = reason

    # What a test does

    def say(self, body: Any) -> Frame:
        frame = frame_of(body)
        self.edge.send(frame)
        return frame

    def hear(self, body: Any) -> None:
        self.edge.take(frame_of(body))

    def commands(self) -> list[Command]:
        return self.outbox.take_all()

    def bodies(self) -> list[Any]:
        """Give what the server is sent; nothing else may have come out."""
        return bodies_in(self.commands())


def bodies_in(commands: list[Command]) -> list[Any]:
    return [decode(frame.raw) for command in commands if isinstance(command, Send) for frame in command.frames]
