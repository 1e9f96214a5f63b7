"""A direct switch between two byte streams: what its transports and its host do, without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dragoman_spec
from dragoman.core.commands import Command, Finish, Open, Outcome, Send, Side, Wake
from dragoman.core.edges.lifecycle import FrontState
from dragoman.core.edges.wiring import Wiring
from dragoman.core.settings import Settings
from dragoman.core.switch.direct import Direct
from dragoman.core.translate import Counters
from dragoman.transports.lines import LineFramer, join_lines


@dataclass(frozen=True)
class Sent:
    """What a `Send` writes."""

    side: Side
    data: bytes


@dataclass(frozen=True)
class Timer:
    """What a `Wake` asks for."""

    after_s: float | None


OPENED = "opened"
"""What an `Open` asks for."""

Done = list[Any]


def wiring(settings: Settings | None = None, translate: Any = None) -> Wiring:
    return Wiring(
        settings or Settings(),
        translate or dragoman_spec.translator,
        lambda revision: dragoman_spec.load(revision).METHODS,
    )


class Wired:
    """Bytes in, commands out."""

    def __init__(self, settings: Settings | None = None, translate: Any = None) -> None:
        self.switch = Direct(wiring(settings, translate))
        self._edges = {Side.CLIENT: self.switch.front, Side.SERVER: self.switch.upstream}
        self._framers = {side: LineFramer() for side in Side}

    @property
    def state(self) -> FrontState:
        return self.switch.front.state

    @property
    def counters(self) -> Counters:
        return self.switch.front.exchange.counters

    def waiting(self, side: Side) -> int:
        """Give how many requests of this peer are not answered."""
        return len(self.switch.front.exchange.calls[side].waiting)

    def open(self) -> Done:
        self.switch.open()
        return self._done()

    def receive(self, side: Side, data: bytes) -> Done:
        for frame in self._framers[side].feed(data):
            self._edges[side].take(frame)
        return self._done()

    def close(self, side: Side, reason: str, outcome: Outcome | None = None) -> Done:
        for frame in self._framers[side].finish():
            self._edges[side].take(frame)
        self._framers[side] = LineFramer()  # of a server that is started again
        if side is Side.CLIENT:
            self.switch.front.close(reason)
        else:
            self.switch.upstream.close(reason, outcome or Outcome.SERVER_CLOSED)
        return self._done()

    def expire(self) -> Done:
        self.switch.front.expire()
        return self._done()

    def stop(self, reason: str) -> Done:
        self.switch.front.stop(reason)
        return self._done()

    def _done(self) -> Done:
        return [self._read(command) for command in self.switch.outbox.take_all()]

    def _read(self, command: Command) -> Any:
        match command:
            case Send(edge, frames):
                side = Side.CLIENT if edge is self.switch.front else Side.SERVER
                return Sent(side, join_lines(frames))
            case Wake(_, after_s):
                return Timer(after_s)
            case Open():
                return OPENED
            case Finish():
                return command
        raise AssertionError(f"a direct switch does not ask for {command}")
