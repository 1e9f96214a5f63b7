"""Log levels of requests, at a server that has one level for its whole session.

Lives here: which level the server is to be told, and which message a request wants. Must not: know whose message it is
(`core.switch`), or send. Called by `core.bridge.to_session`, for a server that declares `logging`.

The server gets the most verbose level that any request under way wants: at once where that is more, and after a while
where it is less, or every second request would set a level. Where none wants any, it is told to say the least: "the
server MUST NOT emit `notifications/message` for a request that does not include this field"
(2026-07-28/server/utilities/logging).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from dragoman.core.bridge.names import FACTS

_RANKS: Final = {level: rank for rank, level in enumerate(FACTS.log_levels)}
_LEAST: Final = FACTS.log_levels[-1]


@dataclass(slots=True)
class RequestLevels:
    """The levels that the requests at one server want.

    Attributes:
        pause_s: For how many seconds a level stays that nobody wants any more.
    """

    pause_s: float = 5.0
    _wanted: dict[Hashable, str] = field(default_factory=dict)
    _told: str | None = None
    _lower_at_s: float | None = None

    def start(self, request: Hashable, level: str | None) -> str | None:
        """Record a request.

        Args:
            request: A name for it.
            level: From which on it wants messages; None for none.

        Returns:
            The level to tell the server before the request is sent; None if it need not be told.
        """
        if level is None:
            return None
        self._wanted[request] = level
        if self._told is not None and _RANKS[level] >= _RANKS[self._told]:
            if level == self._told:
                self._lower_at_s = None
            return None
        self._told, self._lower_at_s = level, None
        return level

    def end(self, request: Hashable, now_s: float) -> None:
        """Record that a request has been answered."""
        self._wanted.pop(request, None)
        is_less = self._told is not None and _RANKS[self._find_most_verbose()] > _RANKS[self._told]
        if is_less and self._lower_at_s is None:
            self._lower_at_s = now_s + self.pause_s

    @property
    def next_s(self) -> float | None:
        """When `settle` has something to say; None while it has not."""
        return self._lower_at_s

    def settle(self, now_s: float) -> str | None:
        """Return the less verbose level to tell the server now, if there is one."""
        if self._lower_at_s is None or now_s < self._lower_at_s:
            return None
        self._told, self._lower_at_s = self._find_most_verbose(), None
        return self._told

    def wants(self, request: Hashable, level: object) -> bool:
        """Whether a message of this level is for this request; one of no level that we know is not."""
        least = self._wanted.get(request)
        return least is not None and isinstance(level, str) and level in _RANKS and _RANKS[level] >= _RANKS[least]

    def _find_most_verbose(self) -> str:
        return min(self._wanted.values(), key=_RANKS.__getitem__, default=_LEAST)
