"""What the sessions at a shared server want to be told: changes of resources, and log messages.

Lives here: who wants what, and which of this the server has to know. Must not: write frames. Used by `desk`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from dragoman.core.rules.notifications import list_above
from dragoman.core.serving.sessions import ClientSession
from dragoman_spec import HANDSHAKE_REVISIONS, facts

LEVELS: Final = facts(HANDSHAKE_REVISIONS[-1]).log_levels
"""Most verbose first."""

URI_BYTES: Final = 8192
"""The longest URI that is remembered: RFC 9110, 4.1, asks for no more than 8000 octets to be supported."""

_UNASKED: Final = LEVELS.index("info")
"""What a session that never asked for a level is given once another one has: without that, the server decides."""


class Subscriptions:
    """Who subscribed to which resource; the server is subscribed once for all of them."""

    def __init__(self) -> None:
        self._holders: dict[str, dict[ClientSession, bool]] = {}  # whether the server has confirmed it

    def __len__(self) -> int:
        return len(self._holders)

    def add(self, uri: str, session: ClientSession) -> bool:
        """Note that a session wants a resource; whether the server has confirmed a subscription already."""
        holders = self._holders.setdefault(uri, {})
        confirmed = any(holders.values())
        holders[session] = confirmed
        session.uris |= {uri}
        return confirmed

    def confirm(self, uri: str, session: ClientSession) -> None:
        """Note that the server agreed."""
        holders = self._holders.get(uri, {})
        if session in holders:
            holders[session] = True

    def refuse(self, uri: str, session: ClientSession) -> bool:
        """Note that the server did not agree, or is gone; whether others still want the resource."""
        if not self._holders.get(uri, {}).get(session, True):
            self.remove(uri, session)
        return uri in self._holders

    def remove(self, uri: str, session: ClientSession) -> bool:
        """Note that a session does not want a resource any more; whether others still do."""
        session.uris -= {uri}
        holders = self._holders.get(uri, {})
        holders.pop(session, None)
        if not holders:
            self._holders.pop(uri, None)
        return bool(holders)

    def remove_all(self, session: ClientSession) -> list[str]:
        """Note that a session has gone; give the resources that nobody wants any more."""
        return [uri for uri in sorted(session.uris) if not self.remove(uri, session)]

    def listeners(self, uri: str) -> list[ClientSession]:
        """Return who is to hear of a change of this resource: also who subscribed to something above it."""
        return list(dict.fromkeys(session for above in list_above(uri) for session in self._holders.get(above, ())))


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
