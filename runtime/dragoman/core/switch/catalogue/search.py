"""Asking one server after the other for a resource that is on no list: to read changes nothing.

Lives here: whose turn it is. Must not: know URIs and lists (`routes`). A server that is slow does not hold up the
others: after as long as a merged list would wait for it, the next is asked as well, and the first who has it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dragoman.core.envelope import Frame
from dragoman.core.switch.catalogue.member import Member, MemberState
from dragoman.core.switch.catalogue.own import OwnRequests

_READ = "resources/read"


class Search:
    """One resource that is sought.

    Args:
        own: Asks servers.
        remind: Calls something after so many seconds.
        servers: Who may have it, in their order.
        params: Of the requests.
        meta: Their metadata.
        then: Called once, with who has it, or None, and the answer for the client.
    """

    def __init__(
        self,
        own: OwnRequests,
        remind: Callable[[float, Callable[[], None]], None],
        servers: Sequence[Member],
        params: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        then: Callable[[Member | None, Frame], None],
    ) -> None:
        self._own = own
        self._remind = remind
        self._left = list(servers)
        self._params = params
        self._meta = meta
        self._then: Callable[[Member | None, Frame], None] | None = then
        self._asked: dict[Member, bytes | None] = {}

    def go_on(self, refusal: Frame) -> None:
        """Ask the next server; where nobody is left, this is the answer."""
        while self._left:
            member = self._left.pop(0)
            if member.state is not MemberState.FAILED:  # it may have gone since
                self._asked[member] = None
                key = self._own.send(member, _READ, self._params, self._hear(member), self._meta)
                if member in self._asked:
                    self._asked[member] = key
                    if self._left:
                        self._remind(member.list_timeout_s, partial(self._expire, member, refusal))
                return
        if not self._asked:
            self._end(None, refusal)

    def _expire(self, member: Member, refusal: Frame) -> None:
        if member in self._asked:
            self.go_on(refusal)

    def stop(self, reason: str) -> None:
        """Ask nobody any more."""
        self._then = None
        self._left.clear()
        asked, self._asked = self._asked, {}
        for key in asked.values():
            if key is not None and self._own.is_waiting(key):
                self._own.withdraw(key, reason)

    def _hear(self, member: Member) -> Callable[[Frame], None]:
        def hear(answer: Frame) -> None:
            self._asked.pop(member, None)
            if answer.kind == "result":
                self._end(member, answer)
            else:
                self.go_on(answer)

        return hear

    def _end(self, member: Member | None, answer: Frame) -> None:
        then = self._then
        self.stop("another server has answered")
        if then is not None:
            then(member, answer)
