"""How long a call may go on whose results want input.

Lives here: counting, for whoever makes such calls: the bridge (`core.rules.inputs`) and the client library. A result
may also have no question: then the server only wants to be asked again, a while later. Both kinds are counted, or a
server could keep a client for ever.
"""

from __future__ import annotations

from typing import Final

ROUNDS: Final = 10
"""How many results of a call may want input."""

PAUSES_S: Final = (0.25, 0.5, 1.0)
"""How long is waited after the first result in a row without a question, after the second, and so on; no more may
come."""


class Rounds:
    """Counts the results of one call that want input.

    Attributes:
        count: How many there were.
    """

    __slots__ = ("_pauses", "count")

    def __init__(self) -> None:
        self.count = 0
        self._pauses = 0

    def note(self, has_questions: bool) -> float | None:
        """Record a result that wants input.

        Returns:
            How long to wait before the next attempt, in seconds; None if the call has gone on too long.
        """
        self.count += 1
        self._pauses = 0 if has_questions else self._pauses + 1
        if self.count > ROUNDS or self._pauses > len(PAUSES_S):
            return None
        return 0.0 if has_questions else PAUSES_S[self._pauses - 1]
