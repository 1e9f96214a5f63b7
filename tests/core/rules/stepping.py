"""Steps a routine in a test: each answer goes in, and what it waits for next comes out."""

from __future__ import annotations

from typing import Any

from dragoman.core.rules.routines import Done, Routine, Wait
from dragoman.errors import ProtocolError


class Stepped:
    """A routine under way: `step` gives what it waits for, its end, or the error that it ends with."""

    def __init__(self, routine: Routine) -> None:
        self._routine = routine

    def step(self, value: Any = None) -> Wait | Done | ProtocolError:
        try:
            return self._routine.send(value)
        except StopIteration as end:
            done: Done = end.value
            return done
        except ProtocolError as error:
            return error
