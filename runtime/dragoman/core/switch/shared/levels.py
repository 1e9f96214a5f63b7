"""Which log messages the sessions at a shared server want, and which level the server has to be told for it.

Must not: write frames. Used by `desk`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from dragoman.core.serving.sessions import ClientSession
from dragoman_spec import HANDSHAKE_REVISIONS, facts

LEVELS: Final = facts(HANDSHAKE_REVISIONS[-1]).log_levels
"""Most verbose first."""

_UNASKED: Final = LEVELS.index("info")
"""What a session that never asked for a level is given once another one has: without that, the server decides."""


class Levels:
    """The log level of the server, which is the most verbose that anybody wants."""

    def __init__(self) -> None:
        self._current: int | None = None

    def change(self, sessions: Iterable[ClientSession]) -> str | None:
        """Return the level that the server has to be told, if it has to be told one."""
        wanted = [session.level for session in sessions]
        asked = [level for level in wanted if level is not None]
        if not asked:
            return None
        target = min(asked) if len(asked) == len(wanted) else min(*asked, _UNASKED)
        if target == self._current:
            return None
        self._current = target
        return LEVELS[target]

    def forget(self) -> None:
        """Note that the server did not take the level that it was told: what it has now is not known."""
        self._current = None

    def wants(self, session: ClientSession, level: Any) -> bool:
        """Whether a session wants to see a message of this level."""
        if level not in LEVELS:
            return True
        least = session.level
        if least is None:
            least = 0 if self._current is None else _UNASKED
        return LEVELS.index(level) >= least
