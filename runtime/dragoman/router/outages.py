"""What the log says of servers that cannot be used: a line when one goes, and one when it is back.

Lives here: telling what is news from what was said before, for all sessions of a router. Must not: decide whether a
server can be used (`core.switch.router`), or try it again (`transport`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dragoman.core.switch.router.member import Member

logger = logging.getLogger("dragoman.router")

_MOST_REASONS: Final = 5


class _Outage:
    """One server that cannot be used.

    Attributes:
        reasons: Why, as far as it was said.
        members: It, as the sessions know it in which it failed.
        failures: How often it did.
        is_unreached: Whether it could not be opened, rather than that one session has lost it.
    """

    def __init__(self) -> None:
        self.reasons: set[str] = set()
        self.members: set[Member] = set()
        self.failures = 0
        self.is_unreached = False


class Outages:
    """The servers of a router that cannot be used."""

    def __init__(self) -> None:
        self._outages: dict[str, _Outage] = {}

    def note_failure(self, member: Member, was_open: bool, detail: str = "") -> None:
        """Record that a session cannot use a server; say so, unless it was said already.

        Args:
            member: The server, as the session knows it.
            was_open: Whether the session could use it before.
            detail: Why, with the server's command or address, which clients may not be told.
        """
        outage = self._outages.setdefault(member.name, _Outage())
        outage.failures += 1
        outage.members.add(member)
        outage.is_unreached |= not was_open
        reason = f"it could not be opened: {detail}" if detail else member.reason
        if reason in outage.reasons or len(outage.reasons) >= _MOST_REASONS:
            return
        still = " still" if outage.reasons else ""
        outage.reasons.add(reason)
        logger.warning("%s%s cannot be used: %s; the other servers go on", member.name, still, reason)

    def note_open(self, member: Member) -> None:
        """Record that a session can use a server; say so, if it could not be used."""
        outage = self._outages.pop(member.name, None)
        if outage is None or not (outage.is_unreached or member in outage.members):
            return  # the process of another session was lost, which says nothing of this one
        times = f", after it failed {outage.failures} times" if outage.failures > 1 else ""
        logger.warning("%s can be used again%s", member.name, times)

    def forget(self, member: Member) -> None:
        """Record that a session is over, or does not have a server any more."""
        outage = self._outages.get(member.name)
        if outage is not None:
            outage.members.discard(member)

    def forget_server(self, name: str) -> None:
        """Record that a server is not in the file any more, or is another one now."""
        self._outages.pop(name, None)
