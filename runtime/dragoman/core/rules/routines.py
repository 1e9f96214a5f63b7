"""Calls of several rounds, as generators: what such a routine waits for is what it yields.

Lives here: the words. Whoever steps a routine sends, asks and wakes as it says, and closes it when nobody waits for it
any more. So a routine reads from top to bottom, and needs no event loop and no clock.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from dragoman.core.rules.questions import Question
from dragoman_spec import Loss
from dragoman_spec.record import record


@record
class Ask:
    """Send the server a request, unstamped, and give its result; nothing at once where that is not awaited.

    Attributes:
        losses: What the params could not carry.
    """

    method: str
    params: Mapping[str, Any]
    losses: tuple[Loss, ...] = ()
    is_awaited: bool = True


@record
class Pose:
    """Ask the client these, each under its key, and give the next key and response; none: only wait for the next."""

    questions: Mapping[str, Question]


@record
class Tell:
    """Send the client a notification."""

    method: str
    params: Mapping[str, Any]


@record
class Pause:
    """Go on after so many seconds."""

    after_s: float


class Done(NamedTuple):
    """The result for the client, and the names of the elicitations by URL that are complete with it."""

    result: Mapping[str, Any]
    elicitations: tuple[str, ...] = ()


Wait = Ask | Pose | Tell | Pause

Routine = Generator[Wait, Any, Done]
"""Raises a ProtocolError where the client gets that error."""
