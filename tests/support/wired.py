"""A session between two byte streams: what its transports do, without transports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dragoman_spec
from dragoman.core.commands import Command, Outcome, Send, Side
from dragoman.core.lifecycle import State
from dragoman.core.session import Session
from dragoman.core.settings import Settings
from dragoman.transports.lines import LineFramer, join_lines


@dataclass(frozen=True)
class Sent:
    """What a `Send` writes."""

    side: Side
    data: bytes


Done = list[Any]


class Wired:
    """Bytes in, commands out."""

    def __init__(self, settings: Settings | None = None, translate: Any = None) -> None:
        self.session = Session(
            settings or Settings(),
            translate or dragoman_spec.translator,
            lambda revision: dragoman_spec.load(revision).METHODS,
        )
        self._framers = {side: LineFramer() for side in Side}

    @property
    def state(self) -> State:
        return self.session.state

    def open(self) -> Done:
        return _written(self.session.open())

    def receive(self, side: Side, data: bytes) -> Done:
        return _written(self.session.receive(side, self._framers[side].feed(data)))

    def close(self, side: Side, reason: str, outcome: Outcome | None = None) -> Done:
        last = self._framers[side].finish()
        self._framers[side] = LineFramer()  # of a server that is started again
        return _written([*self.session.receive(side, last), *self.session.close(side, reason, outcome)])

    def expire(self) -> Done:
        return _written(self.session.expire())

    def stop(self, reason: str) -> Done:
        return _written(self.session.stop(reason))


def _written(commands: list[Command]) -> Done:
    return [Sent(one.side, join_lines(one.frames)) if isinstance(one, Send) else one for one in commands]
