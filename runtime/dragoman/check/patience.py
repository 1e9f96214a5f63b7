"""How long the server of a check is waited for: its first answer, each other one, and all of it.

Lives here: the limits, and what has been learnt about the server that makes them shorter. Must not: wait (`talk`), or
end anything (`visit`). One for each check, used by all its visits.

A server that never answers must not cost the whole time in each revision anew. The first of an era is given the time to
start; what was silent in one revision of an era is hardly better in another, and the other era may be the only one that
it knows, so that is given the time of a fresh process. If it answers then, it may only have been slow to start for the
first time, such as one that had to be downloaded: what it was silent in before is asked once more (`check`).
"""

from __future__ import annotations

import asyncio
from typing import Final

from dragoman_spec.protocol import Era

SAME_ERA_S: Final = 1.0
"""How long the first answer may take where the server was silent in another revision of the era."""

OTHER_ERA_S: Final = 4.0
"""The same where it was silent in the other era."""

DOUBTFUL_S: Final = 2.0
"""How long an answer may take of a server that has left another request unanswered."""


class CheckPatience:
    """The limits of one check, in seconds.

    Args:
        timeout_s: How long an answer may take, without progress.
        start_timeout_s: How long the very first may take.
        overall_timeout_s: How long everything may take.

    Attributes:
        end_s: When everything has to be over, by the clock of the event loop.
        has_answered: Whether the server has answered the first request of a session.
    """

    def __init__(self, timeout_s: float, start_timeout_s: float, overall_timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.overall_timeout_s = overall_timeout_s
        self._start_timeout_s = start_timeout_s
        self.end_s = asyncio.get_running_loop().time() + overall_timeout_s
        self.has_answered = False
        self._silent: set[Era] = set()
        self._is_doubtful = False

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return asyncio.get_running_loop().time() >= self.end_s

    @property
    def was_silent(self) -> bool:
        """Whether the server has left a first request unanswered, which is worth telling only once."""
        return bool(self._silent)

    def for_opening(self, era: Era) -> float:
        """Return how long the first answer of a session may take."""
        whole_s = self.timeout_s if self.has_answered else self._start_timeout_s
        if era in self._silent:
            return min(whole_s, SAME_ERA_S)
        return min(whole_s, OTHER_ERA_S) if self._silent else whole_s

    def for_answer(self, is_doubtful: bool) -> float:
        """Return how long another answer may take.

        Args:
            is_doubtful: Whether the server has left a request unanswered in this session.
        """
        return min(self.timeout_s, DOUBTFUL_S) if is_doubtful or self._is_doubtful else self.timeout_s

    def note_opening(self, era: Era, answered: bool) -> None:
        """Record whether the first request of a session was answered."""
        if answered:
            self.has_answered = True
        else:
            self._silent.add(era)

    def forget_silence(self) -> None:
        """Let the first answers take as long again as if the server had never been silent."""
        self._silent.clear()

    def note_deafness(self) -> None:
        """Record that the server has stopped to answer in the middle of a session."""
        self._is_doubtful = True
