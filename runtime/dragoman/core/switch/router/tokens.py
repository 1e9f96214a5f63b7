"""Whose calls progress tokens belong to: a server may tell of its own calls alone.

Lives here: the tokens of calls. Must not: hold on to calls. Called by `catalogue`.

A client chooses its tokens, and servers see only their own. One that makes tokens up, or always says the same, must not
tell of a call that another server has. A token that nobody is known to have may be any server's.
"""

from __future__ import annotations

import logging
from typing import Final

from dragoman.core.calls import read_token
from dragoman.core.envelope import Frame, key_of, read_params
from dragoman.core.places import keep_latest
from dragoman.core.switch.router.member import Member
from dragoman.core.tally import deserves_a_line

logger = logging.getLogger("dragoman.router")

_MOST: Final = 10_000
"""How many are remembered: a task goes on under the token of a call that was answered long ago."""


class CallTokens:
    """The progress tokens of one client, and who has the calls."""

    def __init__(self) -> None:
        self._members: dict[bytes, Member] = {}
        self._foreign = 0

    def note(self, member: Member, frame: Frame) -> None:
        """Record the token of a request that a server gets, if it has one."""
        token = read_token(frame)
        if token is not None:
            keep_latest(self._members, token, member, _MOST)

    def allows(self, member: Member, frame: Frame) -> bool:
        """Whether a server may say what this notification of progress does."""
        if not self._members:
            return True
        token = key_of(read_params(frame).get("progressToken"))
        owner = self._members.get(token or b"", member)
        if owner is member:
            return True
        self._foreign += 1
        if deserves_a_line(self._foreign):
            told = member.name, owner.name, self._foreign
            logger.warning("progress that %s reports is dropped: it is of a call that %s has (%d so far)", *told)
        return False
